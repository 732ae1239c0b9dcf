"""Files of JSON lines, read in blocks by the kernel: the same events, survey and output, byte for byte."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.agents.input import event_file, long_lines
from shoal.agents.input.event_file import EventFile
from shoal.agents.input.first_pass import survey_file
from shoal.models.config.file import Config
from shoal.models.errors import InputError
from shoal.stream import file_run
from shoal.stream.file_run import FileRun
from shoal.stream.topic import plan_topic
from tests.stream.kernel.lanes import CONFIGS, KERNEL
from tests.stream.kernel.records import mutated, plain, records
from tests.stream.simulation import SECRET
from tests.support.cover import in_a_loop
from tests.support.effort import examples

WITH_BEATS = ["add-remove", "declared keys", "found keys", "users"]
NAMES = ["naive", "sharp", "several metrics", "sums", *WITH_BEATS]
BEATS = [b'{"shoal-beat": "1970-01-01T00:02:00Z"}', b'{"shoal-beat": "1970-01-01T00:03:20Z"}', b'{"shoal-beat": 1}']
others = st.sampled_from([b"", b" \t", b"\x0b\x0c", b"\r", b"no json", *BEATS])
far = st.sampled_from([b'{"u": "a", "x": 1, "t": %d, "g": "a"}' % time for time in (-5, 1, 50_000_000, 400_000_000)])
FIRST = b'{"u": "a", "x": 1, "t": 101, "g": "a"}\n'  # which says that the file is in lines


def contents_of(*lines: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """A file of such lines and of plain ones."""
    one_line = st.tuples(st.one_of(plain, plain, others, *lines), st.sampled_from([b"\n", b"\n", b"\r\n", b"\r\r\n"]))
    return st.lists(one_line, max_size=40).map(
        lambda pairs: FIRST + b"".join(line + end for line, end in pairs).replace(b"\0", b"\1")
    )


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few lines, and chunks of fewer; a line of more than 1,000 bytes is too long."""
    monkeypatch.setattr(long_lines, "PIECE", 300)
    monkeypatch.setattr(long_lines, "LONGEST", 1_000)
    monkeypatch.setattr(long_lines, "MAX_DEAD_LETTER_BYTES", 50)
    monkeypatch.setattr(file_run, "CHUNK", 4)


def write(folder: Path, content: bytes, *, ends: bool, packed: bool) -> str:
    path = folder / ("events.jsonl.gz" if packed else "events.jsonl")
    content = content if ends else content.rstrip(b"\r\n")
    path.write_bytes(gzip.compress(content) if packed else content)
    return str(path)


def files(path: str, cfg: Config) -> tuple[EventFile, EventFile]:
    one, two = (EventFile(path, cfg, "events", is_lines=cfg.protects_presence) for _ in range(2))
    return one, two


@examples(150)
@given(
    contents_of(records, far), st.booleans(), st.booleans(), st.sampled_from([0, 999, 1_000, 1_001, 2_000]),
    st.sampled_from(["naive", "add-remove"]),
)  # fmt: skip
@example(content=FIRST + b"\n" + FIRST, ends=True, packed=False, length=0, name="naive")
def test_events_and_their_digest_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, ends: bool, packed: bool, length: int, name: str
) -> None:
    content = content + b'{"u": 1}'.rjust(length) + b"\n" + content
    path = write(tmp_path_factory.mktemp("lines"), content, ends=ends, packed=packed)
    one, two = files(path, CONFIGS[name])
    assert two.is_in_lines()
    blocks = two.blocks(KERNEL.RecordBatch)
    found = [(r.offset, r.value, r.timestamp, r.key, list(r.headers)) for block in blocks for r in block]
    assert found == [(r.offset, r.value, r.timestamp, r.key, list(r.headers)) for r in one.lines()]
    assert (two.digest, two.count) == (one.digest, one.count)


def told(survey: Any) -> Any:
    troubles = [(one.number, one.reason, one.metric.name, one.raw) for one in survey.troubles]
    return (
        survey.records, survey.usable, survey.refused, survey.by_metric, survey.late, survey.disordered, troubles,
        survey.reads_dates_as_seconds, survey.longest_gap,
    )  # fmt: skip


@in_a_loop
@pytest.mark.parametrize("name", NAMES)
@examples(60)
@given(contents_of(records, far), st.booleans())
def test_a_survey_is_the_same(tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes, ends: bool) -> None:
    path = write(tmp_path_factory.mktemp("lines"), content, ends=ends, packed=False)
    plan = plan_topic(CONFIGS[name], "events", SECRET, source_partitions=1, contributions_partitions=1)
    one, two = files(path, CONFIGS[name])
    twin = survey_file(one, plan, event_file.ignore)
    kernel = survey_file(two, plan, event_file.ignore, KERNEL)
    assert told(kernel) == told(twin)


@in_a_loop
@pytest.mark.parametrize("name", NAMES)
@examples(40)
@given(contents_of(mutated()), st.booleans())
def test_a_run_makes_the_same(tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes, ends: bool) -> None:
    path = write(tmp_path_factory.mktemp("lines"), content, ends=ends, packed=False)
    plan = plan_topic(CONFIGS[name], "events", SECRET, source_partitions=1, contributions_partitions=1)
    one, two = files(path, CONFIGS[name])
    twin, kernel = FileRun(plan), FileRun(plan, KERNEL)
    assert two.is_in_lines()
    end = name not in WITH_BEATS  # whose last steps are hours after these events
    made = list(kernel.outputs_of(two.blocks(kernel.blocks), end=end))
    assert made == list(twin.outputs(one.lines(), end=end))
    assert kernel.counters == twin.counters


def test_plain_lines_are_all_the_kernels(tmp_path: Path) -> None:
    raw = b"".join(b'{"u": "a", "x": 1, "t": %d}\n' % time for time in range(100, 200))
    path = write(tmp_path, raw, ends=True, packed=False)
    plan = plan_topic(CONFIGS["naive"], "events", SECRET, source_partitions=1, contributions_partitions=1)
    file, _ = files(path, CONFIGS["naive"])
    run = FileRun(plan, KERNEL)
    assert sum(output.events for output in run.outputs_of(file.blocks(run.blocks))) == 100
    assert run.bound.read_by_kernel == 100


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"u": 1}\n' * 100_000)[:-20]
    (tmp_path / "cut.jsonl.gz").write_bytes(packed)
    file, missing = EventFile(str(tmp_path / "cut.jsonl.gz"), None), EventFile(str(tmp_path / "no.jsonl"), None)
    with pytest.raises(InputError, match="its gzip data is cut off"):
        list(file.blocks(KERNEL.RecordBatch))
    with pytest.raises(InputError, match="cannot be read"):
        missing.is_in_lines()
