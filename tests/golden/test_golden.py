"""This version produces the bytes that are stored: releases, messages, changelogs, parameters, answers of commands.

A failure names the case and the kind that moved. Nothing here writes: `make golden` does, and CONTRIBUTING says when.
"""

import json

import pytest

from tests.golden import commands, compare, store
from tests.golden.case import Case
from tests.golden.configurations import CASES
from tests.golden.corpus import IN_FULL, KINDS, outcome_of
from tests.golden.driver import offered

IDS = [store.slug(case.name) for case in CASES]
FULL = [case for case in CASES if case.in_full]
each_case = pytest.mark.parametrize("case", CASES, ids=IDS)


def expect_none(*differences: str | None) -> None:
    assert [told for told in differences if told is not None] == []


@each_case
def test_parameters_are_as_stored(case: Case) -> None:
    """Another text is another digest, hence another key and other noise, and every ledger refuses the metric."""
    expect_none(compare.parameters_difference(case))


@each_case
def test_bytes_are_as_stored(case: Case) -> None:
    expect_none(*(compare.digest_difference(case, kind) for kind in KINDS))


@pytest.mark.parametrize("case", FULL, ids=[store.slug(case.name) for case in FULL])
def test_lines_are_as_stored(case: Case) -> None:
    """Stored bytes of some cases as text: the first difference can be read."""
    expect_none(*(compare.lines_difference(case, kind) for kind in IN_FULL))


@each_case
def test_counters_are_as_stored(case: Case) -> None:
    expect_none(compare.counters_difference(case))


@each_case
def test_a_replay_says_what_is_stored(case: Case) -> None:
    expect_none(compare.replay_difference(case))


@pytest.mark.parametrize("name", commands.NAMES)
def test_commands_print_what_is_stored(name: str) -> None:
    expect_none(compare.command_difference(name))


# ---------------------------------------------------------------- the corpus itself


def test_everything_that_can_be_configured_has_a_case() -> None:
    said = {
        "statistic": {metric["statistic"] for case in CASES for metric in case.metrics},
        "algorithm": {metric["algorithm"] for case in CASES for metric in case.metrics if "algorithm" in metric},
        "decay": {metric["decay"]["kind"] for case in CASES for metric in case.metrics if "decay" in metric},
        "partitioner": {case.kafka.get("partitioner", "murmur2") for case in CASES},
    }
    assert said == offered()


def test_every_reason_for_a_dead_letter_has_a_case() -> None:
    letters = (letter for case in CASES for (letter,) in outcome_of(case).entries["dead-letters"])
    assert {json.loads(letter or b"")["reason"] for letter in letters} == {
        "not-json", "not-json-object", "no-user", "bad-user", "no-value", "bad-value", "no-time", "bad-time",
        "no-group", "bad-group", "no-lat", "bad-lat", "no-lon", "bad-lon", "late", "too-far-ahead", "wrong-partition",
    }  # fmt: skip


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.stream.in_order], ids=lambda case: store.slug(case.name)
)
def test_a_cluster_releases_what_a_file_run_releases(case: Case) -> None:
    """Where no event is late; the cluster's clock goes on for a while after the last event."""
    entries = outcome_of(case).entries
    expected = sorted(value for (value,) in entries["file-releases"] if value is not None)
    last = max(json.loads(value)["at"] for value in expected)
    values = [entry[2] or b"" for entry in entries["releases"]]
    assert sorted(value for value in values if json.loads(value)["at"] <= last) == expected


def test_nothing_is_stored_of_what_is_gone() -> None:
    names = {case.name for case in CASES}
    assert len(names) == len(CASES)
    for stored in ("digests.json", "parameters.json", "summaries.json"):
        assert set(store.read(stored)) == names
    assert {path.parent.name for path in store.FOLDER.glob("bytes/*/*")} == {store.slug(case.name) for case in FULL}
    assert {path.stem for path in store.FOLDER.glob("cli/*.json")} == set(commands.NAMES)
