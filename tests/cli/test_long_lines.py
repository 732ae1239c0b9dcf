"""A line that is too long is refused alone and not read into memory: few bytes of a gzipped file can be gigabytes."""

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.input import long_lines
from shoal.agents.input.event_file import EventFile
from shoal.agents.input.long_lines import LONGEST, blocks_of, lines_of
from shoal.models.records import MAX_DEAD_LETTER_BYTES
from shoal.stream import file_run
from tests.support.desk import EVENTS, Desk, lines
from tests.support.effort import examples

MIB = b"a" * (1 << 20)
TABLE_HEAD = b"who,at,x,room\n"


def packed(path: Path, head: bytes, mebibytes: int, tail: bytes) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(mebibytes):
            file.write(MIB)
        file.write(tail)
    return path


@pytest.mark.slow
@pytest.mark.usefixtures("backend")
def test_a_line_that_is_too_long_is_one_dead_letter_and_changes_no_release(desk: Desk) -> None:
    desk.put("in.jsonl", lines(EVENTS))
    expected = desk.run("in.jsonl")
    desk.forget()
    long = LONGEST >> 20
    packed(desk.folder / "long.jsonl.gz", lines(EVENTS[:9]) + b'{"who": "', long, b'"}\n' + lines(EVENTS[9:]))
    said = desk.call("--input", "long.jsonl.gz", "--output", "out.jsonl", "--dead-letters", "dead.jsonl")
    assert (desk.folder / "out.jsonl").read_bytes() == expected, said.stderr
    (letter,) = map(json.loads, (desk.folder / "dead.jsonl").read_bytes().splitlines())
    assert (letter["reason"], letter["offset"]) == ("not-json", 9)
    assert letter["record"] == '{"who": "'.ljust(MAX_DEAD_LETTER_BYTES, "a")
    # and a file of nothing else is refused with the reason
    packed(desk.folder / "bomb.jsonl.gz", b'{"who": "', long, b'"}\n')
    assert f"line 1: its line is longer than {LONGEST:,} bytes; split or shorten it" in desk.refused("bomb.jsonl.gz")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (TABLE_HEAD + b"u1,2024-01-01,1,", b"\n"),
        (TABLE_HEAD + b"u1,2024-01-01,1,b\n" + b'u2,2024-01-01,1,"b\n', b'"\n'),
    ],
    ids=["one line", "two lines between quotes"],
)
def test_a_row_that_is_too_long_is_refused_by_its_place(desk: Desk, head: bytes, tail: bytes) -> None:
    packed(desk.folder / "long.csv.gz", head, LONGEST >> 20, tail)
    row = head.count(b"u")
    assert f"row {row + 1} has more than {LONGEST:,} characters" in desk.refused("long.csv.gz")


def peak(read: Iterator[object]) -> int:
    tracemalloc.start()
    try:
        for _ in read:
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("read", ["chunks", "whole_lines"])
def test_a_line_of_256_mib_takes_no_more_memory_than_the_longest(tmp_path: Path, read: str) -> None:
    file = EventFile(str(packed(tmp_path / "bomb.jsonl.gz", b'{"who": "', 256, b'"}\n')), None)
    assert peak(getattr(file, read)()) < 3 * LONGEST


def test_long_lines_are_not_gathered_by_the_thousand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(file_run, "CHUNK_BYTES", 100)
    file = tmp_path / "in.jsonl"
    file.write_bytes(b'{"who": "%s"}\n' % (b"a" * 60) * 10)
    assert [len(chunk) for chunk in EventFile(str(file), None).chunks()] == [2] * 5


@examples(200)
@given(st.lists(st.sampled_from([b"a" * 19, b"a" * 20, b"a" * 21, b"a" * 70, b"b\r", b"", b"\r"])), st.booleans())
def test_lines_are_as_they_stand_up_to_the_longest(
    tmp_path_factory: pytest.TempPathFactory, content: list[bytes], ends: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, size in {"LONGEST": 20, "PIECE": 8, "MAX_DEAD_LETTER_BYTES": 5}.items():
            patch.setattr(long_lines, name, size)
        path = tmp_path_factory.mktemp("lines") / "in"
        path.write_bytes(b"\n".join(content) + b"\n" * ends)
        expected = b"\n".join(line if len(line) <= 20 else b"aaaaa\0" for line in content) + b"\n" * ends
        for read in (lines_of, blocks_of):
            with path.open("rb") as file:
                assert b"".join(read(file)).removesuffix(b"\n") == expected.removesuffix(b"\n")
