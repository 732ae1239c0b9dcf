"""The schemas of topics take every record that there is, and are tight: no other field, name or type."""

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.cli.main import app
from shoal.models import schemas
from shoal.models.config.file import load
from shoal.models.records import dead_letter_bytes
from shoal.models.schemas.events import events_schema
from shoal.models.times import iso
from shoal.stream.file_run import FileRun, Line
from tests.golden.configurations import CASES
from tests.golden.corpus import outcome_of
from tests.golden.driver import run_file
from tests.models.schemas.records import CLOSED, OPEN, OPTIONAL, objects
from tests.privacy.auditor.families import FAMILIES, case_of
from tests.privacy.hosted import compiled
from tests.support.cover import FULL, in_a_loop
from tests.support.effort import examples, tries

ROOT = Path(__file__).parents[3]
VALIDATORS = {name: Draft202012Validator(json.loads(schemas.text(name))) for name in schemas.names()}
OF_FILES = ("releases", "activations", "dead-letters")
MOST = 8  # records of a kind and case
# Cases whose clusters have records of every kind, waiting and hidden ones too.
CLUSTERS = (
    "full with groups", "three coordinates", "window", "hexagons", "mean and variance", "distribution", "few users",
    "keys that are found", "presence per slot", "presence in bins", "what is withheld", "all windows",
)  # fmt: skip


def problems(name: str, record: Any) -> list[str]:
    return [error.message for error in VALIDATORS[name].iter_errors(record)]


def spread(entries: list[Any]) -> list[Any]:
    """Some of them, from the first to the last."""
    return entries[:: max(1, len(entries) // MOST)]


def by_key(kind: str, entries: list[Any]) -> Iterable[list[Any]]:
    """The entries of a changelog by what kind of key they have."""
    kinds: dict[Any, list[Any]] = {}
    for entry in entries:
        kinds.setdefault(entry[1][:1] if kind.endswith("changelog") else None, []).append(entry)
    return kinds.values()


@cache
def of_files() -> tuple[tuple[str, Any], ...]:
    """Records that file runs of golden cases write, as (topic, record): cases with a cluster, with full effort all."""
    found = []
    for case in CASES:
        if case.name in CLUSTERS:
            made = {kind: [value for (value,) in outcome_of(case).entries[f"file-{kind}"]] for kind in OF_FILES}
        elif FULL:
            run = run_file(case)
            made = {kind: getattr(run, kind.replace("-", "_")) for kind in OF_FILES}
        else:
            continue
        found += [(kind, orjson.loads(value or b"")) for kind in OF_FILES for value in spread(made[kind])]
    return tuple(found)


@cache
def of_clusters() -> tuple[tuple[str, Any], ...]:
    """What workers of some golden cases write, internal topics and all."""
    found = []
    for case in CASES:
        if case.name in CLUSTERS:
            for kind, entries in outcome_of(case).entries.items():
                for some in by_key(kind, entries):
                    found += [one for entry in spread(some) for one in objects(kind, entry)]
    return tuple(found)


@pytest.mark.slow
def test_every_record_of_the_golden_corpus_fits() -> None:
    seen: dict[str, int] = {}
    for name, record in (*of_files(), *of_clusters()):
        assert problems(name, record) == [], json.dumps(record)[:500]
        seen[name] = seen.get(name, 0) + 1
    assert set(seen) == set(schemas.names()) - {"configuration", "beats"}
    kinds = {record["kind"] for name, record in of_clusters() if name == "release-changelog"}
    assert kinds == {"\0mark", "h", "k", "r", "p", "s", "c"}
    assert {case.name for case in CASES} >= set(CLUSTERS)


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_what_random_configurations_publish_fits(family: str) -> None:
    releases = 0
    for seed in range(tries(10)):
        case = case_of(family, seed)
        config = case.config()
        expected = Draft202012Validator(events_schema(config))
        raw = [event.raw() for event in case.events if not getattr(event, "is_beat", False)]
        assert all(expected.is_valid(json.loads(value)) for value in spread(raw))
        run = FileRun(compiled(config))
        for output in run.outputs(Line(offset, value) for offset, value in enumerate(raw)):
            for release in output.releases[:MOST]:
                assert problems("releases", json.loads(release.value)) == [], (seed, release.value)
                releases += 1
            for name, records in (("activations", output.activations), ("dead-letters", output.dead_letters)):
                for record in records[:MOST]:
                    assert problems(name, json.loads(record)) == [], (seed, record)
    assert releases or family == "found"  # whose few people are not enough for a key to be shown


@pytest.mark.slow
@pytest.mark.parametrize(("name", "events"), [("shoal", "purchases"), ("visits", "visits"), ("clicks", "clicks")])
def test_what_the_examples_publish_fits(name: str, events: str, tmp_path: Path) -> None:
    config, out, letters = tmp_path / f"{name}.toml", tmp_path / "out.jsonl", tmp_path / "letters.jsonl"
    config.write_text((ROOT / f"examples/{name}.toml").read_text("utf-8"))
    key_file.new(load(config).privacy.key_file)
    done = CliRunner().invoke(
        app,
        ["run", str(config), "--input", str(ROOT / f"examples/{events}.jsonl"), "--output", str(out),
         "--dead-letters", str(letters)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    releases = out.read_text("utf-8").splitlines()
    assert releases
    for line in spread(releases):
        assert problems("releases", json.loads(line)) == [], line
    for line in letters.read_text("utf-8").splitlines() if letters.exists() else ():
        assert problems("dead-letters", json.loads(line)) == [], line


def test_stored_releases_and_messages_fit() -> None:
    for path in sorted((ROOT / "tests/golden/bytes").glob("*/*.jsonl")):
        lines = path.read_text("utf-8").splitlines()
        for line in spread(lines):
            releases = path.name == "file-releases.jsonl"
            record = json.loads(line if releases else line.partition(" ")[2])
            assert problems("releases" if releases else "contributions", record) == [], (path, line[:300])


def fields(record: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a record has a field or an entry that its schema types."""
    inner = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in inner:
        yield (*at, key)
        if key not in CLOSED:
            yield from fields(value, (*at, key))


def holder(record: Any, place: tuple[Any, ...]) -> Any:
    for step in place[:-1]:
        record = record[step]
    return record


@pytest.mark.slow
@given(data=st.data(), how=st.sampled_from(["dropped", "renamed", "retyped", "added"]))
@examples(1500)
def test_a_record_that_was_changed_does_not_fit(data: st.DataObject, how: str) -> None:
    # given a real record, and a place in it
    name, whole = data.draw(st.sampled_from([*of_files(), *of_clusters()]))
    record = deepcopy(whole)
    place = data.draw(st.sampled_from(list(fields(record))))
    assume(not (name == "release-changelog" and record["kind"] == "c" and place[0] == "value" and len(place) > 1))
    table, key = holder(record, place), place[-1]
    is_own = isinstance(table, dict) and (len(place) < 2 or place[-2] not in OPEN) and not _is_cells(name, place)
    # when a field is dropped, renamed, given another type, or put beside the others
    if how == "dropped":
        assume(is_own and key not in OPTIONAL)
        assume(not (key == "mechanism" and _is_like_a_mean(record)))
        del table[key]
    elif how == "renamed":
        assume(is_own)
        table[f"{key}_"] = table.pop(key)
    elif how == "retyped":
        table[key] = "wrong" if isinstance(table[key], dict) else {"wrong": "type"}
    else:
        assume(is_own)
        table["another"] = 1
    # then it does not fit
    assert problems(name, record), (name, how, place, json.dumps(record)[:500])


def _is_cells(name: str, place: tuple[Any, ...]) -> bool:
    """Whether a place is inside totals by cell, which have names of their own."""
    return any(isinstance(step, int) for step in place[:-1]) and name in ("contributions", "release-changelog")


def _is_like_a_mean(release: dict[str, Any]) -> bool:
    """Whether nothing but its mechanism tells a release of steps from one of a mean without a decay."""
    return isinstance(release.get("samples"), int) and not {"users", "nodes"} & release.keys() and not release["delta"]


@pytest.mark.slow
@given(data=st.data())
@examples(400)
def test_a_number_in_text_does_not_fit(data: st.DataObject) -> None:
    name, whole = data.draw(st.sampled_from([*of_files(), *of_clusters()]))
    record = deepcopy(whole)
    numbers = [place for place in fields(record) if _is_number(holder(record, place)[place[-1]])]
    assume(numbers and not (name == "release-changelog" and record["kind"] == "c"))
    place = data.draw(st.sampled_from(numbers))
    table = holder(record, place)
    table[place[-1]] = str(table[place[-1]])
    assert problems(name, record), (name, place)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_a_long_dead_letter_says_how_long_it_was() -> None:
    letter = json.loads(dead_letter_bytes("bad-value", "m", "t", 0, 7, b"x" * 70_000))
    assert problems("dead-letters", letter) == []
    assert problems("dead-letters", {key: value for key, value in letter.items() if key != "sha256"})
    assert problems("dead-letters", json.loads(dead_letter_bytes("no-value", "", "t", 0, 7, None))) == []


def test_beats_are_times() -> None:
    assert problems("beats", iso(1_700_000_000_123_456)) == []
    assert problems("beats", iso(0)) == []
    assert problems("beats", "soon")
    assert problems("beats", 1_700_000_000)
