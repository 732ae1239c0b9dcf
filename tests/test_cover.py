"""Short runs try a covering part of a product, runs with full effort all of it."""

import inspect
import os
from itertools import combinations, product
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import cover
from tests.support.effort import examples

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@examples(60)
@given(SIZES)
def test_a_cover_has_every_pair_of_values_once_at_least(sizes: list[int]) -> None:
    found = cover.cover(sizes)
    assert len(found) == len(set(found)) <= prod(sizes)
    assert set(found) <= set(product(*map(range, sizes)))
    for i, j in combinations(range(len(sizes)), 2):
        assert {(row[i], row[j]) for row in found} == set(product(range(sizes[i]), range(sizes[j])))
    assert cover.cover(sizes) == found


@examples(60)
@given(SIZES)
def test_a_cover_of_strength_1_has_every_value_once_at_least(sizes: list[int]) -> None:
    found = cover.cover(sizes, 1)
    assert len(found) == max(sizes)
    assert all({row[axis] for row in found} == set(range(size)) for axis, size in enumerate(sizes))


def test_a_cover_of_pairs_is_far_smaller_than_the_product() -> None:
    assert len(cover.cover([5, 12, 2, 2])) <= 1.2 * 5 * 12
    assert len(cover.cover([4] * 5)) <= 28


@pytest.mark.parametrize("full", [False, True])
def test_full_effort_tries_every_combination(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover, "FULL", full)
    assert len(cover.combined("abc", "de", (1, 2))) == (12 if full else 6)
    assert len(cover.combined("abc", "de", strength=1)) == (6 if full else 3)
    assert cover.some(range(10), 4) == (list(range(10)) if full else [0, 3, 6, 9])
    assert cover.some("ab", 4) == ["a", "b"]


def test_a_covered_test_has_the_ids_of_pytest_and_those_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def law(cap: int, counts: tuple[int], mean: int) -> None:
        """Nothing."""

    means = pytest.mark.parametrize("mean", [pytest.param(0, id="a"), pytest.param(1, marks=pytest.mark.long)])
    counts = pytest.mark.parametrize("counts", [(3,), (4,)])
    monkeypatch.setattr(cover, "FULL", False)
    test = cover.covered(strength=1, keep=["2-counts0-a"])(means(counts(pytest.mark.parametrize("cap", [1, 2])(law))))
    (mark,) = test.pytestmark  # type: ignore[attr-defined]
    names, found = mark.args
    assert names == ["cap", "counts", "mean"]
    assert [(one.id, one.values, len(one.marks)) for one in found] == [
        ("1-counts0-a", (1, (3,), 0), 0), ("2-counts0-a", (2, (3,), 0), 0), ("2-counts1-1", (2, (4,), 1), 1),
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="no case has the id 3"):
        cover.covered(keep=["3"])(pytest.mark.parametrize("cap", [1, 2])(law))


def test_a_loop_runs_all_cases_and_names_those_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @cover.in_a_loop
    @pytest.mark.slow
    @pytest.mark.parametrize(("x", "y"), [(1, 2), pytest.param(3, 4, id="last")])
    @pytest.mark.parametrize("z", ["a", "b"])
    def law(x: int, y: int, z: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        seen.append((x, y, z))
        (tmp_path / "made").mkdir()
        monkeypatch.setenv("SHOAL_TEST_COVER", z)
        assert (y, z) != (4, "b"), "wrong"
        if x == 1:
            pytest.fail("told")

    assert list(inspect.signature(law).parameters) == ["tmp_path", "monkeypatch"]
    assert [mark.name for mark in law.pytestmark] == ["slow"]  # type: ignore[attr-defined]
    with pytest.raises(BaseExceptionGroup) as found:
        law(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert sorted(seen) == [(1, 2, "a"), (1, 2, "b"), (3, 4, "a"), (3, 4, "b")]
    assert [error.__notes__ for error in found.value.exceptions] == [
        ["in case a-1-2"], ["in case b-1-2"], ["in case b-last"],
    ]  # fmt: skip
    assert "3 of 4 cases fail\nin case a-1-2: told" in str(found.value)
    assert "SHOAL_TEST_COVER" not in os.environ


def test_a_loop_over_a_property_tries_it_for_each_case() -> None:
    tried = set()

    @cover.in_a_loop
    @pytest.mark.parametrize("case", [1, 2, 3])
    @given(x=st.integers(0, 3))
    def law(case: int, x: int) -> None:
        tried.add(case)
        assert x < 4

    law()
    assert tried == {1, 2, 3}
