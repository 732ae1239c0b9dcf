"""Records and rows have what the JSON of a release has, of every golden configuration, and nothing else."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.reading.csv_text import csv_chunks, csv_line, guard, unguard
from shoal.agents.reading.table import COLUMNS, WHOLE, rows_of
from shoal.models.releases.record import Activation, Release, record_of
from shoal.models.times import iso_of
from tests.golden.case import Case
from tests.golden.configurations import CASES
from tests.support.effort import examples
from tests.support.golden_forms import READ, SHORT, forms, made_by
from tests.support.releases import release

SIDES = ("value", "noise_sd", "low", "high")
# What stands in columns of another name, or is no number of its own.
ELSEWHERE = {"at", "waiting", "withheld", "nodes", "error", *SIDES}


Name = tuple[str, float | None]  # the part, and which coordinate, quantile or bin


def numbers(side: Any) -> dict[Name, float]:
    """The numbers of one side of a release."""
    return {name: each for name, each in named(side) if each is not None}


def named(side: Any) -> Iterator[tuple[Name, Any]]:
    if isinstance(side, list):
        yield from ((("value", place), each) for place, each in enumerate(side, start=1))
    elif isinstance(side, dict):
        for part, inside in side.items():
            if part == "quantiles":
                yield from ((("quantile", float(key)), each) for key, each in inside.items())
            elif isinstance(inside, list):
                yield from (((part, place), each) for place, each in enumerate(inside, start=1))
            else:
                yield (part, None), inside
    else:
        yield ("value", None), side


def name_of(row: dict[str, Any]) -> Name:
    which = [float(row[name]) for name in ("coordinate", "quantile", "bin") if row[name] not in (None, "")]
    assert len(which) < 2
    return row["part"], which[0] if which else None


@pytest.mark.slow
@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_everything_that_a_release_says_is_in_its_record_and_rows(case: Case):
    made = made_by(case)
    for raw in made.releases:
        fields, found = json.loads(raw), record_of(raw)
        assert isinstance(found, Release)
        check_record(fields, found)
        check_rows(fields, [dict(zip(COLUMNS, row, strict=True)) for row in rows_of(found)])
    records = [record_of(raw) for raw in made.releases]
    text = b"".join(csv_chunks(each for each in records if isinstance(each, Release))).decode()
    check_csv([json.loads(raw) for raw in made.releases], list(csv.DictReader(io.StringIO(text, newline=""))))
    for raw in made.activations:
        fields, begun = json.loads(raw), record_of(raw)
        assert isinstance(begun, Activation)
        assert (begun.metric, begun.group, begun.version) == (fields["metric"], fields["group"], fields["version"])
        assert (begun.kind, begun.level) == (fields.get("kind", "level"), fields.get("level"))
        assert (begun.high, begun.epsilon) == (fields.get("high"), fields["epsilon"])


@pytest.mark.long
def test_short_runs_have_every_form_of_a_release() -> None:
    every, short = ({form for case in cases for form in forms(made_by(case))} for cases in (CASES, SHORT))
    assert every - short == set()


def check_record(fields: dict[str, Any], found: Release) -> None:
    assert found.at == datetime.fromisoformat(fields["at"])
    assert {name: getattr(found, name) for name in fields.keys() - ELSEWHERE} == {
        name: fields[name] for name in fields.keys() - ELSEWHERE
    }
    for side in (*SIDES, "error", "nodes"):
        plain = fields.get(side)
        assert getattr(found, side) == (tuple(plain) if isinstance(plain, list) else plain)
    until = fields.get("waiting", {}).get("until")
    assert (None if found.waits_until is None else iso_of(found.waits_until)) == until
    withheld = fields.get("withheld", {})
    assert (found.withheld_samples, found.withheld_share) == (withheld.get("samples"), withheld.get("share"))


def check_rows(fields: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    for side in SIDES:
        assert {name_of(row): row[side] for row in rows if row[side] is not None} == numbers(fields.get(side))
    assert len({name_of(row) for row in rows}) == len(rows)
    error = fields.get("error")
    told = numbers(error) if isinstance(error, list | dict) else {name_of(row): error for row in rows if error}
    assert {name_of(row): row["error"] for row in rows if row["error"] is not None} == told
    for row in rows:
        assert {name: row[name] for name in COLUMNS if name in fields.keys() - ELSEWHERE} == {
            name: fields[name] for name in COLUMNS if name in fields.keys() - ELSEWHERE
        }


def check_csv(releases: list[dict[str, Any]], rows: list[dict[str, str]]) -> None:
    after = iter(rows)
    for fields in releases:
        seen: dict[str, dict[Name, float]] = {side: {} for side in SIDES}
        wanted = max(1, *(len(list(named(fields.get(side)))) for side in SIDES))
        for _ in range(wanted):
            row = next(after)
            assert (unguard(row["group_name"]) or None, row["until"]) == (fields["group"], fields["at"])
            for side in SIDES:
                if row[side]:
                    seen[side][name_of(row)] = float(row[side])
        assert seen == {side: numbers(fields.get(side)) for side in SIDES}
    assert next(after, None) is None


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(["=1+1", "'", "\t-x", 'a,"b"\n'])
CELL = st.none() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT


@examples(200)
@given(st.lists(st.lists(CELL, min_size=2, max_size=6), min_size=1, max_size=5), st.booleans())
def test_what_is_written_as_csv_can_be_read_again(rows, guarded):
    text = "".join(csv_line(tuple(row), guarded=guarded) + "\n" for row in rows)
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert len(read) == len(rows)
    for cells, row in zip(read, rows, strict=True):
        for cell, value in zip(cells, row, strict=True):
            if value is None:
                assert cell == ""
            elif isinstance(value, str):
                assert (unguard(cell) if guarded else cell) == value
            else:
                assert type(value)(cell) == value


@examples(200)
@given(TEXT)
def test_no_text_begins_a_formula(text):
    assert not guard(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert unguard(guard(text)) == text


@pytest.mark.parametrize("text", ["a;=1+1", "a\t=1+1"])
def test_what_divides_cells_elsewhere_is_between_quotes(text):
    assert csv_line((text, 1)) == f'"{text}",1'


def test_columns_of_numbers_are_not_guarded():
    found = record_of(json.dumps(release("a", 1, -5.5, group="-5")).encode())
    assert isinstance(found, Release)
    (line,) = b"".join(csv_chunks([found])).decode().splitlines()[1:]
    assert ",'-5," in line
    assert ",-5.5,0.5,-6.5,-4.5," in line


def test_columns_are_those_that_the_page_says():
    assert COLUMNS["seq"] == WHOLE
    assert list(COLUMNS)[:9] == [
        "metric", "version", "group_name", "seq", "id", "since", "until", "part", "coordinate",
    ]  # fmt: skip
