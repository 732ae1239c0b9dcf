"""What neighbours may differ by, in the exact numbers behind the noise, is what the noise is made for.

The exact sums of two neighbouring runs are compared where they are published; with the heights and scales of the
counters that gives the privacy loss of the whole run, as a fraction, which must not exceed epsilon.
"""

from collections import defaultdict
from fractions import Fraction
from functools import partial
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean import full as full_module
from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.given_prior import GivenPrior
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.counters.binary import BinaryCounter, BinaryTree
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import PerKey
from shoal.mechanisms.selection.median import median_bin
from shoal.mechanisms.statistic import Estimate
from shoal.stream.group import GroupState
from shoal.stream.topic import Metric, plan_topic
from tests.privacy.observing import Neighbours, Row, Watched, neighbours, raws, watch_file
from tests.stream.simulation import SECRET, config
from tests.support.cover import covered, in_a_loop
from tests.support.effort import examples

GRID = 16  # of the configurations here

NAIVE = [
    config({"algorithm": "naive", "max_contributions": 3}),
    config({"algorithm": "naive", "max_contributions": 1, "users": 1}),
    config({"algorithm": "naive", "max_contributions": 8, "users": 1, "every": "contribution"}),
    config({"algorithm": "naive", "max_per_group": 2, "users": 2, "group": "g", "max_groups": 2}),
    config({"algorithm": "naive", "group": "g", "max_groups": 3, "lateness": "5s", "epsilon": "0.7"}),
]
FULL = [
    config({"epsilon": 2000}),
    config({"epsilon": 30}),
    config({"epsilon": 75, "max_per_group": 7, "group": "g", "every": "contribution"}),
    config({"epsilon": 2000, "max_contributions": 3, "users": 1, "every": "contribution"}),
    config({"epsilon": 4500, "max_contributions": 32, "users": 2}),
    config({"epsilon": 4500, "group": "g", "max_groups": 2, "lateness": "5s"}),
    config({"epsilon": 2000, "sigma": "0.1"}),
    config({"epsilon": 150, "sigma": "0.3", "max_contributions": 7, "users": 2, "every": "contribution"}),
]


def metric_of(cfg) -> Metric:
    plan = plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1)
    return plan.metrics[0]


def actual_scale(scale: Fraction) -> Fraction:
    """What the sampler makes of a scale: never less."""
    made = laplace.DiscreteLaplace(scale, bytes(32)).scale
    assert made >= scale
    return made


# ---------------------------------------------------------------- naive


@examples(30)
@given(st.sampled_from(NAIVE), neighbours())
def test_naive_sums_of_neighbours_differ_by_what_one_user_may_move(cfg, pair):
    # given the same key over two neighbours
    metric = metric_of(cfg)
    mechanism, parts = metric.parameters, metric.parts
    assert isinstance(mechanism, Naive)
    assert isinstance(mechanism.tree, BinaryTree)
    one, other = (exact_sums(metric, watch_file(cfg, raws(rows))) for rows in (pair.first, pair.second))
    # then what is left without the noise is a possible sum, for both: the noise is the same integer
    assert one.keys() == other.keys()
    loss = Fraction(0)
    for group in one:
        differences = [a - b for a, b in zip(one[group], other[group], strict=True)]
        moved = sum(abs(now - before) for now, before in zip(differences, [0, *differences], strict=False))
        # and all that a user moves in a group, over all releases, is within the cap
        assert moved <= parts.samples * GRID
        loss += Fraction(moved * mechanism.tree.height) / actual_scale(mechanism.tree.scale)
    assert loss <= parts.budget.epsilon


def exact_sums(metric: Metric, seen: Watched) -> dict[str | None, list[int]]:
    """By group, the sums of grid indices behind the releases: numerators less the noise of this key."""
    tree = metric.parameters.tree  # type: ignore[union-attr]
    sums: dict[str | None, list[int]] = defaultdict(list)
    for release in map(orjson.loads, seen.releases):
        group, samples = release["group"], release["samples"]
        name = (group or "").encode()
        counter = BinaryCounter(tree, partial(derive, metric.key, name, "tree", "mean", 0, 0))
        total = release["value"] * samples * GRID - counter.noise(samples)
        assert abs(total - round(total)) < 1e-4, "an integer but for the rounding of one double"
        assert 0 <= round(total) <= samples * GRID, "a possible sum"
        sums[group].append(round(total))
    return sums


@in_a_loop
@pytest.mark.parametrize("cfg", NAIVE, ids=range(len(NAIVE)))
def test_a_user_who_does_all_that_is_allowed_moves_exactly_the_cap(cfg):
    """The bound above is met: it is not the test that is weak. Far past the capacity of the first tree, too."""
    metric = metric_of(cfg)
    pattern = [("ann", group, n) for n in range(60) for group in "abcd"] + [("bob", "a", 60 + n) for n in range(60)]
    low, high = (
        [f'{{"u":"{u}","t":{t},"g":"{g}","x":{x if u == "ann" else 0}}}'.encode() for u, g, t in pattern]
        for x in ("-1e400", "1e400")
    )
    one, other = exact_sums(metric, watch_file(cfg, low)), exact_sums(metric, watch_file(cfg, high))
    moved = {group: other[group][-1] - one[group][-1] for group in one}
    groups = 1 if metric.parts.place is None else expect(metric.parts.hides.limits, PerKey).keys
    assert sorted(moved.values(), reverse=True)[:groups] == [metric.parts.samples * GRID] * groups
    assert sum(moved.values()) == groups * metric.parts.samples * GRID


# ---------------------------------------------------------------- full


class Heads:
    """The exact counts and sums of every group at each release, and what each prior was computed from."""

    def __init__(self) -> None:
        self.sums: dict[str | None, list[list[Any]]] = defaultdict(list)
        self.calls: list[tuple[int, tuple[int, ...]]] = []
        self.chosen: list[int] = []

    def run(self, cfg, rows, chosen: list[int] | None = None) -> Watched:
        """A file run; with `chosen`, the priors come out as they did in another run."""
        answers = None if chosen is None else iter(chosen)
        next_release = GroupState.next_release

        def choose(totals: list[int], full: int, count: int, epsilon: Fraction, words: Any) -> int:
            self.calls.append(((full // GRID).bit_length(), tuple(totals)))  # level l: arrays of 2**(l-1)
            found = median_bin(totals, full, count, epsilon, words)
            self.chosen.append(found if answers is None else next(answers))
            return self.chosen[-1]

        def overhear(state: GroupState, made: Estimate | None, at: int) -> bytes:
            head = state.head()["releaser"]
            is_joint = isinstance(state.metric.parameters, Coordinates)
            self.sums[state.group].append(list(head[0] if is_joint else head[2]))
            return next_release(state, made, at)

        with patch.object(full_module, "median_bin", choose), patch.object(GroupState, "next_release", overhear):
            return watch_file(cfg, raws(rows))


@examples(25)
@given(st.sampled_from(FULL), neighbours(size=80))
def test_full_sums_of_neighbours_differ_level_by_level_by_what_one_user_may_move(cfg, pair: Neighbours):
    # given a run, and its neighbour's in which the priors came out the same
    mechanism, budget = metric_of(cfg).parameters, metric_of(cfg).parts.budget
    assert isinstance(mechanism, Full)
    one, other = Heads(), Heads()
    seen = one.run(cfg, pair.first)
    # then all else that is public is the same
    assert other.run(cfg, pair.second, one.chosen).pattern() == seen.pattern()
    # and each prior was computed from as many arrays, of which at most one differs
    loss = Fraction(0)
    for (called, totals), (same, others) in zip(one.calls, other.calls, strict=True):
        assert (called, len(totals)) == (same, len(others))
        differing = sum(a != b for a, b in zip(totals, others, strict=True))
        assert differing <= 1
        loss += differing * mechanism.median_epsilon / 2  # its quarter, twice: a weight and the sum of the weights
    # and each level's sums moved by no more than its width, over all releases together
    for group in one.sums:
        for level in mechanism.levels:
            differences = [
                a[level.index] - b[level.index] for a, b in zip(one.sums[group], other.sums[group], strict=True)
            ]
            moved = sum(abs(now - before) for now, before in zip(differences, [0, *differences], strict=False))
            assert moved <= level.tree.width
            assert level.tree.width == (2 * level.half_width or GRID)
            assert level.half_width or mechanism.sigma is None
            loss += Fraction(moved * level.tree.height) / actual_scale(level.tree.scale)
    # so the whole run cost at most what was charged
    assert loss <= budget.epsilon


MANY = [f"u{number}" for number in range(12)]
SHARING = [
    config({"epsilon": epsilon, "users": 9, "every": every})
    for epsilon in (30, 75)
    for every in ("10s", "contribution")
]
steps = st.integers(0, GRID).map(lambda index: str(index / GRID))


def all_of_one(number: str) -> tuple[Row, ...]:
    """Four samples of each of five users; those of the first user have this number."""
    return tuple(Row(MANY[n % 5], "0" if n % 5 else number, n, "a") for n in range(20))


@examples(15)
@given(st.sampled_from(SHARING), neighbours(steps, size=60, least=20, users=MANY))
@example(SHARING[0], Neighbours(MANY[0], all_of_one("0"), all_of_one("1")))
def test_each_prior_sees_each_user_in_one_array(cfg, pair):
    # given many users with few samples each, so that arrays hold several of them, and one who changes all values
    one, other = Heads(), Heads()
    one.run(cfg, pair.first)
    other.run(cfg, pair.second, one.chosen)
    # then who shares an array with whom is the same: all arrays but one have the same mean
    assert len(one.calls) == len(other.calls)
    for (level, totals), (same, others) in zip(one.calls, other.calls, strict=True):
        assert (level, len(totals)) == (same, len(others))
        assert sum(a != b for a, b in zip(totals, others, strict=True)) <= 1


def test_priors_are_chosen_in_the_streams_of_the_test_above():
    calls: list[tuple[int, tuple[int, ...]]] = []
    rows = [Row(f"user{n % 5}", "0.3", n, "a") for n in range(300)]
    for cfg in FULL:
        heads = Heads()
        heads.run(cfg, rows)
        calls += heads.calls
    assert {level for level, _ in calls} == {1, 2, 3, 4, 5}
    assert max(len(totals) for _, totals in calls) > 4


# ---------------------------------------------------------------- a given prior

GIVEN = [
    config({"algorithm": name, "prior": "0.3", "max_contributions": 2} | more)
    for name in ("wishful", "single-tree", "multi-tree")
    for more in (
        {},
        {"sigma": "0.01", "max_contributions": 4, "users": 1},
        {"group": "g", "max_groups": 2, "every": "contribution"},
    )
]


@examples(30)
@given(st.sampled_from(GIVEN), neighbours(size=80))
def test_sums_around_a_given_prior_differ_by_what_one_user_may_move(cfg, pair: Neighbours):
    mechanism, budget = metric_of(cfg).parameters, metric_of(cfg).parts.budget
    assert isinstance(mechanism, GivenPrior)
    # given two neighbours, whose traces are the same but for noised numbers
    one, other = Heads(), Heads()
    assert one.run(cfg, pair.first).pattern() == other.run(cfg, pair.second).pattern()
    # then each counter's sums moved by no more than its width, over all releases together
    loss = Fraction(0)
    for group in one.sums:
        for index, tree in enumerate(mechanism.trees):
            differences = [a[index] - b[index] for a, b in zip(one.sums[group], other.sums[group], strict=True)]
            moved = sum(abs(now - before) for now, before in zip(differences, [0, *differences], strict=False))
            assert moved <= tree.width
            loss += Fraction(moved * tree.height) / actual_scale(tree.scale)
    assert loss <= budget.epsilon


# ---------------------------------------------------------------- several coordinates

TWO = {"value": ("x", "y"), "range": ((0, 1), (-1, 3))}
JOINT = [
    config(TWO | {"algorithm": "naive", "max_contributions": 3}),
    config(TWO | {"algorithm": "naive", "users": 1, "every": "contribution", "epsilon": "0.7"}),
    config(TWO | {"algorithm": "single-tree", "prior": ("0.3", "2"), "max_contributions": 4, "users": 1}),
    config(TWO | {"algorithm": "multi-tree", "prior": ("0.3", "2"), "group": "g", "max_groups": 2}),
]


@examples(20)
@given(st.sampled_from(JOINT), neighbours(size=80))
def test_all_coordinates_of_a_user_together_move_by_what_epsilon_is_for(cfg, pair: Neighbours):
    mechanism, budget = metric_of(cfg).parameters, metric_of(cfg).parts.budget
    assert isinstance(mechanism, Coordinates)
    one, other = Heads(), Heads()
    assert one.run(cfg, pair.first).pattern() == other.run(cfg, pair.second).pattern()
    loss = Fraction(0)
    for group in one.sums:
        for index, part in enumerate(mechanism.parts):
            trees = part.trees if isinstance(part, GivenPrior) else [part.tree]  # type: ignore[attr-defined]
            heads = [
                [state[index][1:] if isinstance(part, Naive) else state[index][2] for state in run.sums[group]]
                for run in (one, other)
            ]
            for counter, tree in enumerate(trees):
                differences = [a[counter] - b[counter] for a, b in zip(*heads, strict=True)]
                moved = sum(abs(now - before) for now, before in zip(differences, [0, *differences], strict=False))
                loss += Fraction(moved * tree.height) / actual_scale(tree.scale)
    assert loss <= budget.epsilon


# ---------------------------------------------------------------- composition


@covered(keep=["1-3-1", "1-5-1"])
@pytest.mark.parametrize("groups", [1, 2, 3, 7])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 7, 8, 9, 1000, 1024, 1025])
@pytest.mark.parametrize("users", [1, 2, 3, 1000])
def test_the_shares_of_a_user_who_is_everywhere_sum_to_epsilon_exactly(m, groups, users):
    epsilon = Fraction("0.7")
    public: dict[str, Any] = {"grid": Grid(Fraction(0), Fraction(1), GRID), "epsilon": epsilon, "max_contributions": m}
    naive, full = Naive(**public, users=users, groups=groups), Full(**public, users=users, groups=groups)
    assert isinstance(naive.tree, BinaryTree)
    # one group's tree, at the scale that is really drawn
    assert groups * Fraction(naive.tree.width * naive.tree.height) / actual_scale(naive.tree.scale) <= epsilon
    assert naive.tree.width == m * GRID
    assert naive.tree.height == (users * m).bit_length()
    # levels that a unit can reach are all there, and all are paid for
    assert len(full.levels) > (m.bit_length() - 1)
    trees = sum(
        Fraction(level.tree.width * level.tree.height) / actual_scale(level.tree.scale) for level in full.levels
    )
    priors = sum(full.prior_epsilon for level in full.levels if level.index >= 2)
    assert groups * (trees + priors) <= epsilon
    assert groups * (len(full.levels) * full.tree_epsilon + full.top * full.prior_epsilon) == epsilon
    assert all(level.tree.height == users.bit_length() for level in full.levels)
