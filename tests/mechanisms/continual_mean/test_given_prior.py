"""Means that clip around a given prior: the paper's constants, the intervals, and brute force over all neighbours."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from shoal.mechanisms.continual_mean.given_prior import ClippedReleaser, GivenPrior
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.mechanism_cases import KEY, Sample, contributions, lowest, mean
from tests.support.cover import in_a_loop

Given = type[GivenPrior]
ALL: list[Given] = [Wishful, SingleTree, MultiTree]
STEPS = 1 << 20


def over_unit(cls: Given, n: int, m: int, **more: Any) -> Any:
    """The algorithm over [0, 1]."""
    grid = Grid(Fraction(0), Fraction(1), STEPS)
    return cls(grid=grid, epsilon=Fraction(2), max_contributions=m, users=n, prior=Fraction(1, 3), **more)


@pytest.mark.parametrize("cls", ALL)
def test_a_level_says_what_it_holds(cls: Given) -> None:
    releaser = over_unit(cls, 10, 4).releaser(KEY, b"")
    for at, total in enumerate([3, STEPS, 5]):
        releaser.add(Contribution(at, f"{at:032x}", 1, 0, 1, total))
    assert releaser.levels[0].elements == sum(level.elements for level in releaser.levels) == 3
    assert releaser.levels[0].waiting == 0


@in_a_loop
@pytest.mark.parametrize(("n", "m"), [(1000, 100), (7, 1000), (10**6, 2), (10**6, 1)])
@pytest.mark.parametrize("sigma", [None, Fraction(1, 50)])
def test_constants_are_those_of_the_paper(n: int, m: int, sigma: Fraction | None) -> None:
    failure, top = 1e-3, max(1, math.ceil(math.log2(m)))
    # given data in [0, 1], or sigma-subgaussian data, rounded to the grid
    spread = 1.0 if sigma is None else 2 * (float(sigma) + 0.5 / STEPS)
    blocks = top if sigma is None else top + 1

    def half_width(w: int, projections: int) -> float:
        hoeffding = spread / 2 * math.sqrt(2 * w * math.log(2 * n * projections / failure))
        return hoeffding + w * spread / math.sqrt(m)

    single, multi, wishful = (over_unit(cls, n, m, sigma=sigma) for cls in (SingleTree, MultiTree, Wishful))
    # (2) and (3)
    (tree,) = wishful.trees
    assert 0 <= tree.width / 2 / STEPS - half_width(m, 1) < 2e-6
    assert tree.scale == tree.width * n.bit_length() / Fraction(2)
    # (4) for Algorithms 4 and 5
    weights = [1, *(2 ** (level - 1) for level in range(1, top + 1))]
    assert multi.half_widths == single.half_widths
    for weight, half in zip(weights, single.half_widths, strict=True):
        assert 0 <= half / STEPS - half_width(weight, blocks) < 2e-6
    # (5)
    depth = (n * (1 + top)).bit_length()
    assert single.trees[0].scale == 2 * single.half_widths[-1] * (1 + top) * depth / Fraction(2)
    # (7)
    for tree, half in zip(multi.trees, multi.half_widths, strict=True):
        assert tree.scale == 2 * half * n.bit_length() * (top + 1) / Fraction(2)


def test_deviations_of_a_sigma_of_half_the_range_are_those_of_the_range() -> None:
    """Hoeffding's lemma: one formula for both, but for the half step that rounding may add, and one more level."""
    bounded, unbounded = over_unit(MultiTree, 100, 64), over_unit(MultiTree, 100, 64, sigma=Fraction(1, 2))
    for one, other in zip(bounded.half_widths, unbounded.half_widths, strict=True):
        assert 1 < other / one < 1.02


def elements(parameters: GivenPrior, samples: list[Sample]) -> list[list[int]]:
    """What enters each counter."""
    releaser = parameters.releaser(KEY, b"")
    assert isinstance(releaser, ClippedReleaser)
    entered: list[list[int]] = [[] for _ in parameters.trees]
    for contribution in contributions(parameters, samples):
        counts, sums = releaser._counts[:], releaser._sums[:]
        assert releaser.add(contribution) == ()
        (moved,) = (i for i, count in enumerate(releaser._counts) if count > counts[i])
        entered[moved].append(releaser._sums[moved] - sums[moved])
    return entered


def loss(parameters: GivenPrior, one: list[list[int]], other: list[list[int]]) -> Fraction:
    """The sum over all nodes of all trees of |change of the node's sum| / scale, each node by its definition."""
    total = Fraction(0)
    for tree, first, second in zip(parameters.trees, one, other, strict=True):
        nodes: dict[tuple[int, int], int] = defaultdict(int)
        for place, (a, b) in enumerate(zip(first, second, strict=True)):
            epoch, node = place // tree.size, place % tree.size + 1
            while node <= tree.size:
                nodes[epoch, node] += a - b
                node += node & -node
        total += sum(map(abs, nodes.values())) / tree.scale
    return total


def streams(values: list[int], m: int) -> Iterator[list[list[Sample]]]:
    """Patterns of three units; for each, every way in which the values of unit a may be the lowest or the highest."""
    for pattern in ("a" * m + "b" * m + "c" * m, "abc" * m, "bbca" + "acab" * m, "cccccbbbb" + "a" * m):
        counts = {unit: 0 for unit in "abc"}
        rows = []
        for at, unit in enumerate(pattern):
            counts[unit] += 1
            if counts[unit] <= m:
                rows.append((at // 2, unit))
        own = sum(unit == "a" for _, unit in rows)
        yield [
            [Sample(at, unit, next(chosen) if unit == "a" else at % 3) for at, unit in rows]
            for chosen in map(iter, itertools.product(values, repeat=own))
        ]


@pytest.mark.parametrize("users", [1, 2, 5])
@pytest.mark.parametrize("m", [1, 3, 4])
@pytest.mark.parametrize("sigma", [None, Fraction(1)])
@pytest.mark.parametrize("cls", ALL)
def test_no_neighbours_differ_by_more_than_epsilon(
    cls: Given, sigma: Fraction | None, m: int, users: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All values of a unit change, over one tick or several, one epoch or several, past the users expected."""
    # given intervals so narrow that they really clip
    monkeypatch.setattr(GivenPrior, "half_width", lambda _, weight, projections: weight + 1)
    parameters = mean(cls, m=m, users=users, steps=8, sigma=sigma)
    assert isinstance(parameters, GivenPrior)
    start = lowest(parameters)
    worst = Fraction(0)
    for variants in streams([-start, 8 + start], m):
        entered = [elements(parameters, samples) for samples in variants]
        worst = max(worst, *(loss(parameters, a, b) for a, b in itertools.combinations(entered, 2)))
    assert worst <= parameters.epsilon
    # then it is exactly epsilon where a unit makes the first element of each tree, and has a block of every level
    if cls is Wishful or (cls is MultiTree and m == 4):
        assert worst == parameters.epsilon


def test_without_the_projection_neighbours_would_differ_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brute force above sees it."""
    monkeypatch.setattr(GivenPrior, "half_width", lambda _, weight, projections: weight + 1)
    monkeypatch.setattr(GivenPrior, "interval", lambda _, weight, position, half_width: (-(10**9), 10**9))
    for cls in ALL:
        parameters = mean(cls, m=4, users=2, steps=8)
        assert isinstance(parameters, GivenPrior)
        low, high = ([Sample(0, "a", value)] * 4 for value in (0, 8))
        assert loss(parameters, elements(parameters, low), elements(parameters, high)) > parameters.epsilon


@in_a_loop
@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("prior", [Fraction(-1), Fraction(3), Fraction(1, 3)])
@pytest.mark.parametrize("sigma", [None, Fraction(1, 10)])
def test_a_block_is_projected_on_both_sides_of_the_prior(cls: Given, prior: Fraction, sigma: Fraction | None) -> None:
    parameters = mean(cls, m=4, steps=1000, prior=prior, sigma=sigma)
    assert isinstance(parameters, GivenPrior)
    releaser = parameters.releaser(KEY, b"")
    assert isinstance(releaser, ClippedReleaser)
    # given a block of 4 samples (wishful), or of level 2
    level, weight = (0, 4) if cls is Wishful else (2, 2)
    half = parameters.trees[-1].width // (2 if cls is not SingleTree else 6)
    middle = math.floor(weight * (parameters.margin + (prior + 1) * 250))
    for total, clipped in [(-(10**9), middle - half), (10**9, middle + half), (middle + 1, middle + 1)]:
        before = sum(releaser._sums)
        releaser.add(Contribution(0, "a", 1, level, weight, total))
        assert sum(releaser._sums) - before == clipped


def test_wishful_counts_whole_users_only() -> None:
    parameters = mean(Wishful, m=3, epsilon=Fraction(10**30))
    rows = [Sample(at, unit, at) for at, unit in enumerate("aabbcab")]
    sent = contributions(parameters, rows)
    assert [(c.effective, c.pseudonym, c.samples, c.total) for c in sent] == [(5, "a", 3, 6), (6, "b", 3, 11)]


def test_one_tree_holds_all_levels_and_many_hold_one_each() -> None:
    samples = [Sample(at, unit, 5) for at, unit in enumerate("ab" * 4)]
    assert [len(entered) for entered in elements(over_unit(SingleTree, 9, 4), samples)] == [6]
    assert [len(entered) for entered in elements(over_unit(MultiTree, 9, 4), samples)] == [2, 2, 2]
    assert [len(entered) for entered in elements(over_unit(Wishful, 9, 4), samples)] == [2]


@in_a_loop
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 1024, 1025])
def test_the_shares_sum_to_epsilon(m: int, groups: int) -> None:
    epsilon = Fraction("0.7")
    for cls in ALL:
        parameters = mean(cls, m=m, groups=groups, epsilon=epsilon)
        assert isinstance(parameters, GivenPrior)
        assert sum(groups * tree.epsilon for tree in parameters.trees) == epsilon
    single = mean(SingleTree, m=m)
    assert isinstance(single, SingleTree)
    assert single.half_widths == tuple(sorted(single.half_widths))  # so that L + 1 times the last covers them all


@pytest.mark.parametrize("cls", ALL)
def test_a_prior_lies_in_the_range(cls: Given) -> None:
    for prior in (Fraction(-2), Fraction(4)):
        with pytest.raises(ValueError, match="prior must lie in the range"):
            mean(cls, prior=prior)
