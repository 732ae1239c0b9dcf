"""Mutants of the mathematics of privacy: that they fit the code, and what is made of one. `make mutants` tries them."""

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.__main__ import misfits, show, tried
from tests.mutants.catalogue import FAMILIES, MUTANTS, TABLES
from tests.mutants.mutant import ROOT, Misfit, Mutant, functions_of
from tests.mutants.runner import BROKEN, CAUGHT, SURVIVED, copy_project, failing_anyway, try_mutant
from tests.mutants.tables import FOLDER, Malformed, read_all
from tests.support.effort import SHORT

QUICK = [mutant for mutant in MUTANTS if mutant.quick]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, which mutants are made of."""
    return copy_project(tmp_path_factory.mktemp("mutants") / "pristine")


def test_all_mutants_fit_the_code() -> None:
    """A change of a line that a mutant breaks, or of a test that it names, updates the mutant."""
    found = [f"{one.mutant.name}: {one.by}" for one in misfits(MUTANTS)]
    assert not found, "\n".join(found)


def test_there_are_enough_of_each_family_and_none_twice() -> None:
    assert len(MUTANTS) >= 16
    assert set(FAMILIES) == {mutant.family for mutant in QUICK} | {"kernel"}  # which is built, and never quick
    assert max(Counter(mutant.family for mutant in QUICK).values()) <= 3
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


def test_no_table_is_left_out() -> None:
    assert sorted(TABLES) == sorted(path.stem for path in FOLDER.glob("*.toml"))


def test_mutants_are_tried_with_the_effort_of_make_test() -> None:
    assert re.findall(r"^TEST_EFFORT *:?= *(\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE) == [str(SHORT)]


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
        ({"tests": (), "long": HALVED.tests}, CAUGHT, HALVED.tests[0]),
    ],
)
def test_only_a_test_that_expected_otherwise_counts(
    change: dict[str, Any], outcome: str, said: str, pristine: Path, tmp_path: Path
) -> None:
    verdict = try_mutant(dataclasses.replace(HALVED, **change), pristine, tmp_path / "copy")
    assert verdict.outcome == outcome
    assert said in verdict.by


@pytest.mark.parametrize(
    "change",
    [
        {"old": "no such text"},
        {"old": "return"},
        {"new": HALVED.old},
        {"tests": ("test_data.py::test_none",)},
        {"long": ("test_data.py::test_none",)},
    ],
)
def test_a_mutant_that_no_longer_fits_is_an_error(change: dict[str, Any]) -> None:
    with pytest.raises(Misfit, match="update the mutant"):
        dataclasses.replace(HALVED, **change).check()


def test_a_test_that_is_marked_long_is_named_under_long() -> None:
    marked = ("test_mutants.py::test_only_a_test_that_expected_otherwise_counts",)
    with pytest.raises(Misfit, match="marks test_only_.* long: name it under `long`"):
        dataclasses.replace(HALVED, tests=marked).check()
    dataclasses.replace(HALVED, long=marked).check()


def test_long_marks_are_read_from_the_source(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("""
@pytest.mark.long
async def test_a(): ...
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.long)])
def test_b(x): ...
class Laws:
    def test_c(self): ...
@pytest.mark.long
class TestLaws(Laws):
    def test_d(self): ...
class TestMore(Laws):
    pytestmark = [pytest.mark.slow, pytest.mark.long]
    def test_e(self): ...
""")
    (tmp_path / "all.py").write_text("pytestmark = pytest.mark.long\ndef test_a(): ...\n")
    assert functions_of(tmp_path / "one.py") == {
        "test_a": True, "test_b": False, "Laws::test_c": False, "TestLaws::test_c": True, "TestLaws::test_d": True,
        "TestMore::test_c": False, "TestMore::test_e": True,
    }  # fmt: skip
    assert functions_of(tmp_path / "all.py") == {"test_a": True}


TABLE = """
[scale."counter.py"."halved"]
old = '''
  a "quoted"
'''
new = "b\\n"
breach = "half the noise"
test = "test_a.py::test_b"
"""


def test_a_table_is_a_mutant(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(TABLE)
    mutant = Mutant(
        name="halved", family="scale", file="counter.py", old='  a "quoted"\n', new="b\n", breach="half the noise",
        tests=("test_a.py::test_b",),
    )  # fmt: skip
    assert read_all([path]) == (mutant,)
    # and what else it may have
    path.write_text(TABLE.replace("test =", "long =") + 'test = ["a", "b"]\notherwise = "c"\nquick = true\n')
    changes: dict[str, Any] = {"tests": ("a", "b"), "long": mutant.tests, "otherwise": "c", "quick": True}
    assert read_all([path]) == (dataclasses.replace(mutant, **changes),)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("breach", "breech", 'one.toml, mutant "halved": the key breech is unknown'),
        ('breach = "half the noise"', "", 'one.toml, mutant "halved": the key breach is missing'),
        ("test = ", "quick = ", 'one.toml, mutant "halved": no test is named'),
        ('"half the noise"', "1", 'one.toml, mutant "halved": the value of breach is not a str'),
        ("test =", 'quick = "yes"\ntest =', 'one.toml, mutant "halved": the value of quick is not a bool'),
        ('"test_a.py::test_b"', "[]", 'one.toml, mutant "halved": the value of test is not a pytest id'),
        ('."halved"]', "]", 'one.toml, mutant "old": is not a table'),
        (TABLE, "scale = 1", 'one.toml, "scale": is not a table'),
        (TABLE, "[scale", "one.toml: "),
        (TABLE, TABLE * 2, "one.toml: .*halved"),
        (TABLE, TABLE + TABLE.replace("counter.py", "other.py"), 'one.toml: a second mutant has the name "halved"'),
    ],
)
def test_a_table_with_a_mistake_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(TABLE.replace(old, new))
    with pytest.raises(Malformed, match=said):
        read_all([tmp_path / "one.toml"])


@pytest.mark.long
def test_tests_marked_long_are_run_with_the_effort_of_the_long_suite(pristine: Path) -> None:
    # given a test that is marked long, and passes with the effort of the long suite only
    (pristine / "tests" / "test_effort.py").write_text(
        "import pytest\nfrom tests.support.effort import EFFORT, LONG\n"
        "@pytest.mark.long\ndef test_a():\n    assert EFFORT == LONG\ndef test_b():\n    assert EFFORT == LONG\n"
    )
    tests = ("test_effort.py::test_a", "test_effort.py::test_b")
    # then it passes among the tests of the long suite, and is not found among the others
    assert failing_anyway(tests, pristine, is_long=True) == {}
    failing = failing_anyway(tests, pristine, is_long=False)
    assert failing == {tests[0]: "not found in the short suite", tests[1]: "assertion"}


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
