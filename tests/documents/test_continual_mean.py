"""Means on blocks against an independent reading of George, Ramesh, Singh and Tyagi (2024): release by release.

Noise is replaced by a function of scale and place, so that a wrong scale, or a draw in the wrong node, shows.
"""

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.blocks import samples_in
from shoal.mechanisms.continual_mean.full import AS_PRINTED, Full
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.statistic import Activation, Contribution
from tests.documents import continual_mean_reading as reading
from tests.documents.continual_mean_reading import Arrival, Given
from tests.mechanisms.mechanism_cases import KEY, Sample, contributions
from tests.support.cover import in_a_loop
from tests.support.effort import examples

STEPS = 1 << 20
PRIOR = Fraction(2, 5)
FAILURE = Fraction(9, 10)  # so that intervals are narrow, and clip


def place(index: int) -> float:
    """What is drawn in a node, for a scale of 1."""
    return (index * 7 % 5 - 2) / 100


@pytest.fixture(autouse=True)
def _known_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "draw", lambda noise, index: round(noise.scale * place(index)))


def over_unit(cls: type[MeanParameters], n: int, m: int, epsilon: int, **more: Any) -> MeanParameters:
    grid = Grid(Fraction(0), Fraction(1), STEPS)
    return cls(grid=grid, epsilon=Fraction(epsilon), max_contributions=m, users=n, failure=FAILURE, **more)


def streams(n: int, m: int) -> Iterator[list[Arrival]]:
    """Users one after the other, in turn, and at random; each has its own part of ones, some all or none."""
    order = [f"{user:032x}" for user in range(n) for _ in range(m)]
    for seed in range(6):
        rng = random.Random(seed)
        if seed == 1:
            order = [f"{user:032x}" for _ in range(m) for user in range(n)]
        elif seed > 1:
            rng.shuffle(order)
        ones = {user: rng.choice([0.0, 0.3, 0.6, 1.0]) for user in sorted(set(order))}
        yield [Arrival(user, float(rng.random() < ones[user])) for user in order]


def released(parameters: MeanParameters, arrivals: list[Arrival]) -> tuple[list[float | None], list[Activation]]:
    """shoal's mean after every sample, and all priors."""
    samples = [Sample(t, user, round(value * STEPS)) for t, (user, value) in enumerate(arrivals)]
    sent: dict[int, Contribution] = {block.effective: block for block in contributions(parameters, samples)}
    releaser, means = parameters.releaser(KEY, b""), list[float | None]()
    priors: list[Activation] = []
    for t in range(len(arrivals)):
        if t in sent:
            priors += releaser.add(sent[t])
        estimate = releaser.estimate()
        means.append(estimate.value if estimate else None)
    return means, priors


def assert_same(ours: list[float | None], read: reading.Means) -> None:
    for mean, expected in zip(ours, read, strict=True):
        assert mean == (expected if expected is None else pytest.approx(expected, rel=2e-5, abs=2e-5))


def test_algorithm_1_publishes_the_same_partial_sums() -> None:
    tree = BinaryTree(100, 3, Fraction(2))
    counter, read = tree.counter(lambda epoch: KEY), reading.BinaryMechanism(3 * reading.depth(100) / 2, place)
    for t in range(1, 101):
        read.feed(1000 * t)
        assert sum(1000 * i for i in range(1, t + 1)) + counter.noise(t) == pytest.approx(read.sum(), abs=7)


def test_algorithm_2() -> None:
    for arrivals in streams(5, 12):
        ours, _ = released(over_unit(Naive, 5, 12, 3), arrivals)
        assert_same(ours, reading.naive(arrivals, 5, 12, 3, place))


@in_a_loop
@pytest.mark.parametrize(
    ("cls", "read"),
    [(Wishful, reading.wishful), (SingleTree, reading.single_tree), (MultiTree, reading.multi_tree)],
    ids=["3", "4", "5"],
)
@pytest.mark.parametrize(("n", "m"), [(3, 256), (6, 40)])
def test_algorithms_3_4_and_5(cls: type[MeanParameters], read: Any, n: int, m: int) -> None:
    told = Given(n, m, 3, float(FAILURE), float(PRIOR))
    for arrivals in streams(n, m):
        ours, _ = released(over_unit(cls, n, m, 3, prior=PRIOR), arrivals)
        assert_same(ours, read(arrivals, told, place))


@pytest.mark.parametrize(("n", "m", "epsilon"), [(4, 256, 2000), (6, 64, 700), (9, 17, 300)])
def test_algorithm_6_with_the_medians_of_algorithm_7(n: int, m: int, epsilon: int) -> None:
    activated = 0
    for arrivals in streams(n, m):
        ours, activations = released(over_unit(Full, n, m, epsilon), arrivals)
        priors = {activation.level: activation.prior for activation in activations}

        def choose(level: int, costs: dict[float, int], priors: dict[int, Any] = priors) -> float:
            # with so large an epsilon the choice is a median, of which there may be several
            nearest = min(costs, key=lambda y: abs(y - priors[level]))
            assert nearest == pytest.approx(priors[level], abs=1e-9)
            assert costs[nearest] == min(costs.values())
            return nearest

        read = reading.Full(n, m, epsilon, float(FAILURE), choose)
        assert_same(ours, read.means(arrivals, place))
        activated += len(priors)
    assert activated >= 12


@pytest.mark.parametrize("first", [False, True], ids=["after", "before"])
def test_levels_activate_where_condition_11_holds(first: bool) -> None:
    """72 users with 24 samples each and 128 with 7: the paper's line 9 activates levels 2 to 4.

    Whole blocks hold less than k arrays of level 4, which Theorem 3.4 needs; and they hold half of them.
    """
    n, m, epsilon, failure = 200, 24, Fraction(25, 2), Fraction(1, 1000)
    counts = [24] * 72 + [7] * 128
    parameters = Full(
        grid=Grid(Fraction(0), Fraction(1), STEPS), epsilon=epsilon, max_contributions=m, users=n, failure=failure
    )
    top, most = 5, max(counts)
    # given (11): enough users for arrays of M_t / 2 samples
    needed = 16 / float(epsilon) * 2 * top * math.log(3 * top * math.sqrt(most) / float(failure))
    assert sum(min(most / 2, count) for count in counts) >= most / 2 * needed
    # and line 9 as printed, for the level of floor(log M_t)
    arrays = reading.arrays_needed(4, top, float(epsilon), float(failure))
    assert sum(min(count, 8) for count in counts) >= 8 * arrays > sum(reading.offered(count, 4) for count in counts)
    # when all have come, whoever is first
    ordered = list(enumerate(counts))[:: -1 if first else 1]
    arrivals = [Arrival(f"{user:032x}", 1.0) for user, count in ordered for _ in range(count)]
    _, priors = released(parameters, arrivals)
    # then all levels that anyone has reached are active, and more: half of the samples count
    assert [prior.level for prior in priors] == [2, 3, 4, 5]
    closed = [sum(count >= 2**level for count in counts) for level in range(5)]
    assert samples_in(closed) / sum(counts) > 0.5
    # and by as many arrays as printed, which older versions keep, level 4 waited
    _, priors = released(replace(parameters, sensitivity=AS_PRINTED), arrivals)
    assert [prior.level for prior in priors] == [2, 3]


@examples(100)
@given(
    counts=st.lists(st.integers(1, 300), min_size=1, max_size=300),
    epsilon=st.sampled_from([1, 10, 40, 78]),
    failure=st.sampled_from([Fraction(9, 10), Fraction(1, 1000)]),
)
def test_line_9_and_condition_11_imply_that_blocks_fill_the_arrays(
    counts: list[int], epsilon: int, failure: Fraction
) -> None:
    """At any time, hence no level activates later than as printed."""
    parameters = over_unit(Full, len(counts), 300, epsilon)
    parameters = replace(parameters, failure=failure)
    assert isinstance(parameters, Full)
    for level in parameters.levels[2:]:
        size, offers = level.array_size, sum(reading.offered(count, level.index) for count in counts)
        shares = 16 * 2 * parameters.top / epsilon * math.log(3 * parameters.top * 2 ** (level.index / 2) / failure)
        assert shares >= 2
        if sum(min(count, size) for count in counts) >= size * shares:  # (11) at M_t = 2**l; line 9 rounds k up
            assert offers >= size * level.arrays


def test_half_of_the_arrays_are_as_sure_as_claimed() -> None:
    """Claim E.1 for one array of a user: all bins outside those of the arrays together are chosen with beta at most."""
    for epsilon, failure in itertools.product((1, 20, 78, 300, 3000), (Fraction(9, 10), Fraction(1, 1000))):
        parameters = replace(over_unit(Full, 9, 1 << 16, epsilon), failure=failure)
        assert isinstance(parameters, Full)
        for level in parameters.levels[2:]:
            # the best of them costs half of the arrays at most, the others all; a rate of epsilon / 2
            missed = level.bins * math.exp(-float(parameters.prior_epsilon) / 2 * math.ceil(level.arrays / 2))
            assert missed <= parameters.prior_failure


def test_claim_c_1_at_any_time_half_of_the_samples_are_released() -> None:
    for arrivals in streams(7, 33):
        sent: dict[str, int] = defaultdict(int)
        for t, block in enumerate(reading.blocks(arrivals), start=1):
            if block:
                sent[block[0]] += reading.weight(block[1])
            assert 2 * sum(sent.values()) >= t
