"""Distributions that protect presence: what a unit moves, what is told, and whether it holds."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shoal.mechanisms.bins.tree import EvenTree, even_tree
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.linear import distribution
from shoal.mechanisms.linear.distribution import fieller, mean_sd
from shoal.mechanisms.linear.estimates import Sided
from shoal.mechanisms.linear.sides import InBins, Nodes
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.sums.decays import Undecayed, Window
from tests.mechanisms.account_cases import Ledger
from tests.mechanisms.linear.presence_cases import KEY, contribution, step, two_sided
from tests.support.cover import in_a_loop
from tests.support.effort import tries

GRID = Grid(Fraction(0), Fraction(64), 1 << 10)
TREES = [(4, (2, 2)), (6, (2, 3)), (5, (2, 3)), (8, (2, 2, 2)), (64, (8, 8))]
MEDIAN = (Fraction(1, 2),)


@in_a_loop
@pytest.mark.parametrize(("bins", "shape"), TREES)
def test_every_sample_adds_one_to_one_node_of_each_level(bins: int, shape: tuple[int, ...]) -> None:
    """So all nodes together move by the number of levels, whatever the sample is."""
    packing = InBins(GRID, bins)
    sides = Nodes(EvenTree(bins, shape), packing)
    for index in range(GRID.steps + 1):
        parts = sides.parts(1, packing.unpack(packing.pack([index]), 1))
        assert sum(parts) == sides.width == len(shape)
        assert set(parts) <= {0, 1}
    assert len(sides.noised) == len(set(sides.noised)) == len(parts)


def test_a_unit_moves_all_nodes_of_all_keys_by_its_samples_times_the_levels() -> None:
    """Through the very accounts, with a tree of two levels: and it pays all of epsilon, and no more."""
    of = two_sided("distribution", Undecayed(), epsilon=Fraction(7, 3), steps=1 << 10, bins=64, m=3)
    assert even_tree(64).shape == (8, 8)
    random = np.random.default_rng(3)
    worst = max(sum(Fraction(node.coefficient) / node.scale for node in of.sums.column(s)) for s in range(1, 70))  # type: ignore[attr-defined]
    for _ in range(20):
        stream = [("ab"[random.integers(2)], "gh"[random.integers(2)], int(random.integers(1025))) for _ in range(9)]
        there, gone = (moved(of, [one for one in stream if one[0] in who]) for who in ("ab", "b"))
        counted = min(3, sum(user == "a" for user, *_ in stream))
        change = sum(int(np.abs(there[key] - gone[key]).sum()) for key in there)
        assert change == 2 * counted <= of.sums.width
        assert change * worst <= of.epsilon
        assert (change * worst == of.epsilon) == (counted == 3)


def moved(of: LinearStatistic, stream: list[tuple[str, str, int]]) -> dict[str, Any]:
    """The sums of all nodes of each key."""
    from tests.mechanisms.linear.test_presence_sensitivity import metric

    section = metric("distribution", grid=1 << 10, max_contributions=3)
    ledger = Ledger(lambda site: kind_of(section.parts).accounts(section.parts, of.bounder(), site))
    packing: Any = of.packing
    for user, key, index in stream:
        ledger.accounts.add(user.encode(), key, packing.pack([index]), 0, 0)
    ledger.accounts.flush(None, idle=True)
    sums = {key: np.zeros(len(of.sides.noised), dtype=int) for key in "gh"}
    for group, _, _, block in ledger.sent:
        sums[group or ""] += of.sides.parts(block.samples, packing.unpack(block.total, block.samples))
    return sums


def test_without_noise_it_is_the_distribution_of_the_samples() -> None:
    of = two_sided(
        "distribution", Undecayed(), epsilon=10**15, steps=1 << 10, bins=64, ends=(Fraction(0), Fraction(64)),
        quantiles=(Fraction(1, 4), *MEDIAN),
    )  # fmt: skip
    samples = [(37 * i * i) % 1025 for i in range(200)]
    made = step(of, of.releaser(KEY, b""), samples)
    expected = [sum(i * 64 < b << 10 for i in samples) / 200 for b in range(1, 64)] + [1.0]
    assert made.value["cdf"] == pytest.approx(expected, abs=1e-6)
    assert made.counts == {"count": 200, "count_sd": pytest.approx(0, abs=1e-9)}
    for q, at in made.value["quantiles"].items():
        assert abs(sorted(samples)[int(float(q) * 200)] / 16 - at) <= 1
    assert made.low["cdf"] == pytest.approx(expected, abs=1e-6) == made.high["cdf"]


def test_it_is_told_where_the_released_count_is_three_of_its_deviations() -> None:
    tree = EvenTree(4, (2, 2))
    for each, is_told in ((40, True), (4, False), (-9, False)):
        noisy = [2 * each, 2 * each, each, each, each, each]
        made = distribution.estimate(tree, GRID, MEDIAN, Sided(noisy, 1, 2, 20.0, 40.0))
        assert made.counts["count"] == 4 * each
        assert made.counts["count_sd"] == pytest.approx(20 * math.sqrt(tree.total_variance), rel=1e-5)
        assert (made.value is not None) == (made.noise_sd is not None) == is_told
    # then nothing is said but that it lies in the range
    assert made.low == {"cdf": [0, 0, 0, 1], "histogram": [0] * 4, "quantiles": {"0.5": 0.0}}
    assert made.high == {"cdf": [1] * 4, "histogram": [1] * 4, "quantiles": {"0.5": 64.0}}


def test_the_interval_is_all_shares_that_the_noise_may_have_hidden() -> None:
    random = np.random.default_rng(1)
    for _ in range(tries(300)):
        p, w, k, v = random.uniform(0, 1), random.uniform(0, 5), random.uniform(0, 1), random.uniform(0.5, 9)
        r = random.uniform(0, 0.7) / math.sqrt(v)
        low, high = (float(end[0]) for end in fieller(np.array([p]), np.array([w]), np.array([k]), v, r))

        def hidden(share: float, of: tuple[float, ...] = (p, w, k, v, r)) -> float:
            p, w, k, v, r = of
            return abs(p - share) - r * math.sqrt(w + (k - share) ** 2 * v)

        assert low <= p <= high
        assert hidden(low) == pytest.approx(0, abs=1e-9)
        assert hidden(high) == pytest.approx(0, abs=1e-9)
        assert hidden(low - 0.01) > 0 < hidden(high + 0.01)


def test_deviations_and_intervals_are_what_is_stated() -> None:
    """Of noise in all nodes, over many keys; the stated deviation is that of the estimate before it is made to rise."""
    of = two_sided("distribution", Window(1), epsilon=1, steps=1 << 10, bins=64, ends=(GRID.low, GRID.high), m=1)
    samples = [(i * i * 7) % 700 for i in range(2000)]
    runs = tries(400)
    exact = [sum(i * 64 < b << 10 for i in samples) / 2000 for b in range(1, 65)]
    inside, squares, told, counts = 0, 0.0, 0.0, 0.0
    for key in range(runs):
        releaser = of.releaser(KEY, b"%d" % key)
        made = step(of, releaser, samples)
        low, high = np.array(made.low["cdf"]), np.array(made.high["cdf"])
        inside += int(np.sum((low <= np.array(exact) + 1e-9) & (np.array(exact) <= high + 1e-9)))
        middle = (low + high) / 2 - exact
        squares += float(np.sum(middle[:-1] ** 2))
        told += float(np.sum(np.square(made.noise_sd["cdf"])))
        counts += (made.counts["count"] - 2000) ** 2 / made.counts["count_sd"] ** 2
        assert made.low["quantiles"]["0.5"] <= made.value["quantiles"]["0.5"] <= made.high["quantiles"]["0.5"]
    assert inside >= 0.94 * 64 * runs
    assert squares == pytest.approx(told, rel=3 / math.sqrt(runs))
    assert counts == pytest.approx(runs, rel=5 * math.sqrt(2 / runs))
    # and the plan's figure is that of samples spread evenly
    even = step(of, of.releaser(KEY, b""), range(0, 1024))
    node = of.sums.noise_sd(1)
    assert mean_sd(even_tree(64)) * node / even.counts["count"] == pytest.approx(
        math.sqrt(np.mean(np.square(even.noise_sd["cdf"]))), rel=0.05
    )


def test_what_is_kept_of_a_step_gives_its_parts_again() -> None:
    sides = Nodes(EvenTree(5, (2, 3)), InBins(GRID, 5))
    parts = sides.parts(7, [1, 0, 2, 1, 3])
    assert sides.parts(*sides.whole(parts)) == parts


def test_newcomers_of_a_key_are_in_no_bin() -> None:
    of = two_sided("distribution", Undecayed(), epsilon=10**9)
    releaser = of.releaser(KEY, b"")
    releaser.add(Contribution(0, "", 1, 0, 7, [7, 0, 0, 0]))
    releaser.add(contribution(of, [0]))
    assert step(of, releaser, []).counts["count"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("bins", "said"), [(1, "bins must be at least 2"), (9, "at most the 8 steps of the grid")])
def test_bins_that_the_grid_has_not_are_refused(bins: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        two_sided("distribution", Undecayed(), bins=bins)
