"""What is known of a sample: names and forms of fields, and nothing that a value decides."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.init.fields import Form, fields_of, form_of
from shoal.agents.init.sample import read_sample
from shoal.models.errors import InputError
from tests.support.cover import in_a_loop

EVENT = {"who": 7, "at": "2024-01-01T10:00:00Z", "paid": 3.5, "shop": "north"}
TABLE = "who,at,paid,shop\n7,2024-01-01T10:00:00Z,3.5,north\n8,2024-01-01T11:00:00Z,4,south\n"


@in_a_loop
@pytest.mark.parametrize(
    ("value", "form"),
    [
        (5, Form.NUMBER), (5.5, Form.NUMBER), (True, Form.BOOLEAN), ("anna", Form.TEXT), ([1], Form.LIST),
        ("2024-01-31", Form.TIME), (1704067200000, Form.EPOCH), (1704067200, Form.EPOCH),
        ("2024-01-31 18:30:00+01:00", Form.TIME), ("1704067200000", Form.DIGITS),
        ("5", Form.DIGITS), ("31.1.2024", Form.SLASHED), ("1/31/2024 18:30", Form.SLASHED),
        ("31/Jan/2024:18:30:00", Form.LOGGED), ("2024-01-31T18:30:00 CET", Form.ZONED), ("1,234.50", Form.THOUSANDS),
        ("12,50", Form.COMMA), ("$12.50", Form.MONEY), ("12 EUR", Form.MONEY), (None, None), ("", None),
    ],
)  # fmt: skip
def test_a_form_says_how_something_is_written(value: Any, form: Form | None) -> None:
    assert form_of(value, is_table=False) is form


def test_cells_of_a_table_with_numbers_are_numbers() -> None:
    assert form_of("5", is_table=True) is form_of(" 05.0 ", is_table=True) is Form.NUMBER


def test_fields_of_nested_objects_have_dots_and_most_records_decide_the_form() -> None:
    records = [{"a": {"b": 1}, "c": "x"}] * 3 + [{"a": {"b": "x"}, "c": None}]
    b, c = fields_of(records, is_table=False)
    assert (b.path, b.form, b.often) == ("a.b", Form.NUMBER, "in every record")
    assert (c.path, c.form, c.often) == ("c", Form.TEXT, "missing in many records")


def test_a_name_that_few_records_have_may_be_somebodys_and_is_left_out() -> None:
    records: list[dict[str, Any]] = [{"paid": 1, "anna": 5}, *[{"paid": 2}] * 20]
    found = fields_of(records, is_table=False)
    assert [(field.path, field.often) for field in found] == [("paid", "in every record")]


def test_names_that_no_configuration_can_hold_say_why() -> None:
    record = {"": 1, "a.b": 1, "\ud800": 1, "a\0": 1, "ok ü": 1}
    faults = {field.path: field.fault for field in fields_of([record], is_table=False)}
    assert [bool(fault) for fault in faults.values()] == [True] * 4 + [False]
    assert "dot" in (faults["a.b"] or "")


@in_a_loop
@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.csv", "x.tsv", "x.csv.gz", "semicolon.csv", "list.json"])
def test_every_form_that_a_run_reads_is_read(tmp_path: Path, name: str) -> None:
    content = {
        "x.jsonl": json.dumps(EVENT) + "\n",
        "x.json": json.dumps(EVENT, indent=2),
        "list.json": json.dumps([EVENT, EVENT]),
        "x.tsv": TABLE.replace(",", "\t"),
        "semicolon.csv": TABLE.replace(",", ";"),
    }.get(name, TABLE)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    sample = read_sample(str(path))
    assert {field.path: field.form for field in sample.fields} == {
        "who": Form.NUMBER, "at": Form.TIME, "paid": Form.NUMBER, "shop": Form.TEXT,
    }  # fmt: skip
    assert sample.is_whole
    assert sample.is_lines == (name == "x.jsonl")
    assert sample.stem in ("x", "semicolon", "list")


def test_of_a_large_file_the_beginning_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_text(TABLE + "9,2024-01-01T11:00:00Z,4,south\n" * 5_000 + 'this is "no CSV\n')
    assert not read_sample(str(path)).is_whole


@in_a_loop
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.jsonl", b"", "no event"),
        ("x.csv", b"", "no event"),
        ("x.csv", b"who,at,paid\n", "no event"),
        ("x.csv", b"7,2024-01-01,3.5\n8,2024-01-02,3.5\n", "names of the columns"),
        ("x.csv", b"anna,north,3.5\nbert,south,3.5\n", "names of the columns"),
        ("x.csv", b"who,who\n1,2\n", "twice"),
        ("x.jsonl", b"hello\nworld\n", "JSON object"),
        ("x.jsonl", b"[1]\n[2]\n", "JSON object"),
        ("x.jsonl", b'{"a": [1], "b.c": {"d": {"e.f": 1}}}\n', "dot"),
        ("x.jsonl", b"{}\n", "empty"),
        ("x.jsonl", b"\1\2\3\4" + bytes(99), "no text"),
        ("x.csv", b"PK\x03\x04" + bytes(99), "spreadsheet"),
        ("x.csv.gz", b"who,at\n", "gzip"),
        ("x.dat", b"who,at\n", "kind of file"),
    ],
)
def test_what_cannot_be_a_sample_says_why_and_shows_nothing_of_it(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as refused:
        read_sample(str(path))
    assert not any(value in str(refused.value) for value in ("3.5", "anna", "hello", "world"))


def test_no_file_and_standard_input_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_sample(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match="name one"):
        read_sample("-")
