"""Lower bounds, by an independent reading of their proofs: streams are made and told apart, laws compared by outcome.

docs/proofs/lower-bounds.md. Streams that a method would have to tell apart, each close to the same one, are made step
by step; and a method that is private, the Laplace mechanism, stays above the bound of a mean.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shoal.mechanisms.forecast.step_prospect import least_weights
from shoal.mechanisms.privacy.lower_bounds import Limit, decayed, mean
from shoal.mechanisms.sums.decays import Forward
from tests.support.effort import examples

Stream = list[list[int]]  # the values of the units that come in each step
Weigh = Callable[[int, int], float]  # of a step, at a step
EPSILONS = st.floats(0.05, 8)


def packing(changed: int, releases: int, together: int, steps: int) -> tuple[list[Stream], list[int]]:
    """A stream of zeros, one for each release in which the last units before it have ones, and the releases' steps."""
    block = math.ceil(changed / together)
    zeros: Stream = [[0] * together for _ in range(steps)]
    streams, ends = [zeros], []
    for release in range(1, releases + 1):
        stream, left = [list(step) for step in zeros], changed
        for step in reversed(range((release - 1) * block, release * block)):
            ones = min(together, left)
            stream[step][:ones] = [1] * ones
            left -= ones
        streams.append(stream)
        ends.append(release * block - 1)
    return streams, ends


def decayed_sum(stream: Stream, weigh: Weigh, t: int) -> float:
    return sum(weigh(step, t) * sum(stream[step]) for step in range(t + 1))


def is_proven(limit: Limit, weigh: Weigh, epsilon: float, units: int, steps: int) -> bool:
    """Whether streams that are made for some number of changes prove that no error below the limit is possible."""
    together, proves = max(1, units // steps), []
    for changed in range(1, units // limit.releases + 1):
        if math.ceil(changed / together) * limit.releases > steps:
            continue
        streams, ends = packing(changed, limit.releases, together, steps)
        away = [sum(map(sum, stream)) for stream in streams[1:]]
        gap = min(
            max(abs(decayed_sum(one, weigh, t) - decayed_sum(other, weigh, t)) for t in ends)
            for one, other in combinations(streams, 2)
        )
        impossible = limit.releases * math.exp(-epsilon * max(away)) * 2 / 3 > 1 / 3
        proves.append(impossible and gap >= 2 * limit.error * (1 - 1e-9))
    return any(proves)


@examples(100)
@given(
    st.lists(st.floats(0, 1), min_size=24, max_size=24),
    EPSILONS,
    st.integers(1, 60),
    st.integers(1, 24),
)
def test_streams_that_no_private_method_tells_apart_prove_the_limit(
    falls: list[float], epsilon: float, units: int, steps: int
) -> None:
    """Lemma 2: q streams within D changes of one, which differ by more than 2 C at a release, contradict C."""
    # given weights that never rise, and the limit
    weights = [1.0, *(math.prod(falls[: age + 1]) for age in range(steps))]
    limit = decayed(lambda ages: sum(weights[:ages]), epsilon=epsilon, units=units, steps=steps)
    assume(limit is not None)
    assert limit is not None
    # then streams that are made step by step prove it
    assert is_proven(limit, lambda step, t: weights[t - step], epsilon, units, steps)


@examples(60)
@given(st.sampled_from(["1/4", "1", "3/2", "16"]), EPSILONS, st.integers(1, 60), st.integers(1, 24))
def test_of_forward_decay_the_limit_holds_wherever_the_steps_are(
    exponent: str, epsilon: float, units: int, steps: int
) -> None:
    decay = Forward(Fraction(exponent))
    limit = decayed(least_weights(decay.sharp(1, Fraction(1)), decay), epsilon=epsilon, units=units, steps=steps)
    assume(limit is not None)
    assert limit is not None
    power = float(decay.exponent)
    assert is_proven(limit, lambda step, t: float(((step + 1) / (t + 1)) ** power), epsilon, units, steps)


def test_more_releases_and_a_smaller_epsilon_raise_the_limit_and_too_few_units_prove_nothing() -> None:
    def error(epsilon: float, units: int) -> float:
        limit = decayed(float, epsilon=epsilon, units=units, steps=units)
        return 0.0 if limit is None else limit.error

    assert error(1, 10**3) < error(1, 10**6) < error(0.1, 10**6)
    assert error(1, 1) == error(1e-9, 1000) == error(20.0, 1000) == 0


def law(samples: int, p: float) -> list[float]:
    return [math.comb(samples, k) * p**k * (1 - p) ** (samples - k) for k in range(samples + 1)]


@examples(60)
@given(st.integers(1, 6), st.integers(1, 8), EPSILONS)
def test_the_laplace_mechanism_does_not_beat_the_limit_of_a_mean(users: int, samples: int, epsilon: float) -> None:
    # given two laws whose means are just so far apart that no method should tell them
    error = max(mean([(users, samples)], epsilon)) * (1 - 1e-9)
    # when the mean of all samples is released with Laplace noise for a whole user
    scale = 1 / (users * epsilon)

    def below(x: float) -> float:
        return math.exp(x / scale) / 2 if x < 0 else 1 - math.exp(-x / scale) / 2

    def close(p: float) -> float:
        outcomes = enumerate(law(users * samples, p))
        count = users * samples
        return sum(part * (below(p + error - k / count) - below(p - error - k / count)) for k, part in outcomes)

    # then it is not within that error with probability 2/3 under both
    assert min(close(0.5 + error), close(0.5 - error)) < 2 / 3


@examples(60)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 30)), min_size=1, max_size=3), EPSILONS)
def test_the_limit_of_a_mean_follows_from_how_far_laws_are_apart(sizes: list[tuple[int, int]], epsilon: float) -> None:
    """Every user's samples are alike under both laws but for a part, and the product over users is at least 2/3."""
    private, chance = mean(sizes, epsilon)

    def apart(samples: int, error: float) -> float:
        return sum(
            max(0.0, one - other)
            for one, other in zip(law(samples, 0.5 + error), law(samples, 0.5 - error), strict=True)
        )

    alike = math.prod((1 - (1 - math.exp(-epsilon)) * apart(m, private)) ** users for users, m in sizes)
    assert alike >= 2 / 3 - 1e-9
    assert apart(sum(users * m for users, m in sizes), chance) <= 1 / 3 + 1e-9


@pytest.mark.parametrize(("users", "epsilon"), [(10, 0.01), (1, 0.4)])
def test_too_few_users_tell_nothing_however_many_samples_they_have(users: int, epsilon: float) -> None:
    """Levy et al., theorem 9: of the order of 1 / epsilon users are needed, whatever m is."""
    assert mean([(users, 10**9)], epsilon)[0] == pytest.approx(0.5)
    assert mean([(users * 100, 10**9)], epsilon)[0] < 1e-4


def test_the_limit_of_a_mean_grows_as_the_papers_say() -> None:
    """Liu et al., theorem 3: 1 / (n sqrt(m) epsilon) for privacy, 1 / sqrt(n m) for chance."""
    private, chance = mean([(1000, 100)], 0.5)
    assert mean([(2000, 100)], 0.5) == pytest.approx((private / 2, chance / math.sqrt(2)), rel=1e-3)
    assert mean([(1000, 400)], 0.5) == pytest.approx((private / 2, chance / 2), rel=1e-3)
    assert mean([(1000, 100)], 50.0)[0] < private
