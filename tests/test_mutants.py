"""Mutants of the mathematics of privacy: that they fit the code, and what is made of one. `make mutants` tries them."""

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.__main__ import misfits, show, tried
from tests.mutants.catalogue import FAMILIES, MUTANTS
from tests.mutants.mutant import ROOT, Misfit, Mutant
from tests.mutants.runner import BROKEN, CAUGHT, SURVIVED, copy_project, try_mutant

QUICK = [mutant for mutant in MUTANTS if mutant.quick]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, which mutants are made of."""
    return copy_project(tmp_path_factory.mktemp("mutants") / "pristine")


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_fits_the_code(mutant: Mutant) -> None:
    """Whoever changes a line that a mutant breaks brings the mutant up to date."""
    mutant.check()


def test_there_are_enough_of_each_family_and_none_twice() -> None:
    assert len(MUTANTS) >= 16
    assert set(FAMILIES) == {mutant.family for mutant in QUICK} | {"kernel"}  # which is built, and never quick
    assert max(Counter(mutant.family for mutant in QUICK).values()) <= 3
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


def test_the_guarantee_says_how_many_there_are() -> None:
    told = (ROOT / "docs/explanation/guarantee.md").read_text().replace("\n", " ")
    harmless = ("golden", "kernel", "replay")  # these break no guarantee
    breaches = [mutant for mutant in MUTANTS if mutant.family not in harmless]
    assert f"{len(breaches)} deliberate breaches" in told


# Trying a mutant takes a copy of the project and an interpreter: `make test` tries this one only, and once.
HALVED: Mutant = next(mutant for mutant in MUTANTS if mutant.name == "halved scale")


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "outcome", "said"),
    [
        ({"new": HALVED.old + "  # the same"}, SURVIVED, "1 tests passed"),
        ({"new": "return self.no_such_thing"}, BROKEN, "ended with AttributeError"),
        ({"new": "return ("}, BROKEN, "collection"),
        ({"tests": ("mechanisms/counters/test_counters.py::test_no_such_test",)}, BROKEN, "not found"),
        (
            {"tests": ("models/test_log_values.py::test_nothing_stays_nothing",)},
            BROKEN,
            "no test imported shoal.mechanisms.counters.binary",
        ),
    ],
)
def test_only_a_test_that_expected_otherwise_counts(
    change: dict[str, Any], outcome: str, said: str, pristine: Path, tmp_path: Path
) -> None:
    verdict = try_mutant(dataclasses.replace(HALVED, **change), pristine, tmp_path / "copy")
    assert verdict.outcome == outcome
    assert said in verdict.by


@pytest.mark.parametrize(
    "change", [{"old": "no such text"}, {"old": "return"}, {"new": HALVED.old}, {"tests": ("test_data.py::test_none",)}]
)
def test_a_mutant_that_no_longer_fits_is_an_error(change: dict[str, Any]) -> None:
    with pytest.raises(Misfit, match="bring the mutant up to date"):
        dataclasses.replace(HALVED, **change).check()


@pytest.mark.slow
def test_the_checkout_is_left_alone(pristine: Path, tmp_path: Path) -> None:
    before = (ROOT / HALVED.source).read_bytes()
    assert try_mutant(HALVED, pristine, tmp_path / "copy").outcome == CAUGHT
    assert (ROOT / HALVED.source).read_bytes() == before == (pristine / HALVED.source).read_bytes()


@pytest.mark.long
def test_the_table_tells_who_was_caught_and_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    # given a mutant that is caught, one whose test is not there, and one that no longer fits
    absent = dataclasses.replace(HALVED, name="absent", tests=(HALVED.tests[0].replace("binary-7", "binary-1000"),))
    stale = dataclasses.replace(HALVED, name="stale", old="no such text")
    verdicts = [*misfits([HALVED, stale]), *tried([HALVED, absent], jobs=2)]
    assert [(one.mutant.name, one.outcome) for one in verdicts] == [
        ("stale", BROKEN), ("halved scale", CAUGHT), ("absent", BROKEN),
    ]  # fmt: skip
    # then the table says so
    show(verdicts, 3.0, as_json=False)
    table = capsys.readouterr().out
    assert "1 of 3 caught, in 3 seconds" in table
    assert "not found" in table
    assert f"broken: stale ({HALVED.source}): {HALVED.breach}" in table
    # and so do lines of JSON
    show(verdicts, 3.0, as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["outcome"] for line in lines] == [BROKEN, CAUGHT, BROKEN]
    assert lines[1]["by"] == HALVED.tests[0]
