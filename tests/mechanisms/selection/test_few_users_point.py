"""The choice of a point near many numbers: its exact law, its loss over neighbours, and that draws follow the law."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.noise.uniform import exp_enclosed, is_below_exp, wide_uniform
from shoal.mechanisms.selection.few_users_point import PointChoice, stretches
from tests.mechanisms.mechanism_cases import KEY
from tests.support.cover import in_a_loop
from tests.support.effort import examples

Law = dict[int | None, float]
NUMBERS = st.lists(st.integers(-6, 20), min_size=1, max_size=9)


def weigh(numbers: Sequence[int], radius: int, epsilon: float) -> dict[int, float]:
    """exp(epsilon s / 2) of every point that a number is near, by the definition."""
    near = Counter(point for number in numbers for point in range(number - radius, number + radius + 1))
    return {point: math.exp(epsilon / 2 * count) for point, count in near.items()}


def law(choice: PointChoice, numbers: Sequence[int], garbage: float | None = None) -> Law:
    """The output law f / Z."""
    found: Law = dict(weigh(numbers, choice.radius, float(choice.epsilon)).items())
    found[None] = (choice.garbage if garbage is None else garbage) * (2 * choice.radius + 1)
    return {point: weight / sum(found.values()) for point, weight in found.items()}


def hockey_stick(one: Law, other: Law, epsilon: float) -> float:
    """The least delta that the pair needs, the worse of both directions."""
    return max(
        sum(max(0.0, p - math.exp(epsilon) * b.get(point, 0.0)) for point, p in a.items())
        for a, b in ((one, other), (other, one))
    )


def choice_of(n: int, radius: int, epsilon: str, delta: str) -> PointChoice:
    return PointChoice(numbers=n, radius=radius, epsilon=Fraction(epsilon), delta=Fraction(delta))


@given(NUMBERS, st.integers(0, 5))
def test_stretches_are_all_points_that_a_number_is_near(numbers: list[int], radius: int) -> None:
    found = [(s.start + i, s.near) for s in stretches(sorted(numbers), radius) for i in range(s.points)]
    expected = Counter(point for number in numbers for point in range(number - radius, number + radius + 1))
    assert found == sorted(expected.items())


def test_no_neighbours_lose_more_than_epsilon_and_delta() -> None:
    """400 random pairs of neighbours, exact laws: the hockey-stick divergence reaches delta and never exceeds it."""
    rng, used = random.Random(7), []
    for _ in range(400):
        n, radius = rng.randint(1, 11), rng.randint(0, 6)
        epsilon, delta = rng.choice(("0.3", "1", "2", "5")), rng.choice(("0.001", "0.01", "0.1"))
        # given numbers in a range, of which one goes anywhere
        numbers = [rng.randint(0, 12) for _ in range(n)]
        neighbour = [rng.choice((rng.randint(0, 12), 10**6)), *numbers[1:]]
        choice = choice_of(n, radius, epsilon, delta)
        lost = hockey_stick(law(choice, numbers), law(choice, neighbour), float(epsilon))
        used.append(lost / float(delta))
    assert max(used) <= 1 + 1e-9
    # then delta is needed
    assert max(used) >= 0.9


@in_a_loop
@pytest.mark.parametrize(("epsilon", "delta"), [("0.01", "0.5"), ("0.2", "0.9"), ("3", "0.000001"), ("20", "0.01")])
def test_none_weighs_what_the_proof_asks_for(epsilon: str, delta: str) -> None:
    half, garbage = float(Fraction(epsilon)) / 2, choice_of(2, 1, epsilon, delta).garbage
    needed = max(1 / -math.expm1(-half), math.exp(half) / float(Fraction(delta)))
    assert needed <= garbage <= needed * (1 + 1e-12) + 2


def test_epsilon_beyond_all_use_is_not_used() -> None:
    choice = choice_of(3, 2, "1000000000", "0.001")
    assert choice.garbage < 10**47
    assert choice.choose([7, 7, 7], Bits(KEY).draw(0)) in range(5, 10)
    assert choice.none_at_most(Fraction(5, 9)) < 1e-80


def test_less_garbage_would_break_it() -> None:
    choice = choice_of(2, 2, "1", "0.01")
    one, other = (law(choice, numbers, garbage=choice.garbage / 2) for numbers in ([0, 0], [10**6, 0]))
    assert hockey_stick(one, other, 1.0) > 0.01


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "radius", "epsilon", "delta"),
    [
        ([5, 6, 6, 9, 30], 3, "1", "0.1"),
        ([0, 0, 0, 0], 2, "3", "0.01"),
        ([7], 1, "2", "0.2"),
        ([0, 40, 80], 0, "4", "0.3"),
    ],
)
def test_points_are_drawn_with_their_exact_law(numbers: list[int], radius: int, epsilon: str, delta: str) -> None:
    draws, bits = 4000, Bits(derive(KEY, "coverage"))
    choice = choice_of(len(numbers), radius, epsilon, delta)
    drawn = Counter(choice.choose(numbers, bits.draw(index)) for index in range(draws))
    expected = law(choice, numbers)
    assert drawn.keys() <= expected.keys()
    for point, p in expected.items():
        assert abs(drawn[point] - draws * p) <= 5 * math.sqrt(draws * p * (1 - p)) + 1e-9


def test_the_order_of_the_numbers_has_no_say() -> None:
    choice = choice_of(4, 2, "2", "0.1")
    one, other = ([choice.choose(n, Bits(KEY).draw(i)) for i in range(50)] for n in ([3, 1, 8, 2], [8, 3, 2, 1]))
    assert one == other


def rounds_of_balls(numbers: Sequence[int], choice: PointChoice) -> tuple[float, float, float]:
    """One round of the paper's sampler: the probabilities to accept a point, to give none, and to go on.

    With M = max of exp(epsilon s / 2) / s: none with probability G / (n M + G), else a uniform point of a uniform
    number's ball, kept with probability exp(epsilon s / 2) / s / M.
    """
    n, half = len(numbers), float(choice.epsilon) / 2
    most = max(math.exp(half * s) / s for s in range(1, n + 1))
    everything = (n * most + choice.garbage) * choice.ball
    point = sum(weigh(numbers, choice.radius, float(choice.epsilon)).values()) / everything
    none = choice.garbage * choice.ball / everything
    return point, none, 1 - point - none


@given(NUMBERS, st.floats(0.001, 0.9))
def test_to_stop_at_a_random_round_is_to_weigh_none_more(numbers: list[int], stop: float) -> None:
    """Each round ends with "none" with probability `stop`: the same law as with a certain, public, larger garbage."""
    choice = choice_of(len(numbers), 2, "1", "0.05")
    point, none, on = rounds_of_balls(numbers, choice)
    stopped = (stop + (1 - stop) * none) / (1 - (1 - stop) * on)
    most = max(math.exp(s / 2) / s for s in range(1, len(numbers) + 1))
    more = choice.garbage + stop / (1 - stop) * (len(numbers) * most + choice.garbage)
    assert stopped == pytest.approx(law(choice, numbers, garbage=more)[None], rel=1e-9)


def test_to_stop_after_a_fixed_number_of_rounds_would_break_it() -> None:
    """The paper's sampler with at most N rounds: no point by then reveals how rarely one is accepted, N times over."""
    choice, far = choice_of(20, 1, "3", "0.001"), [1000 * i for i in range(1, 12)]
    neighbours = [0] * 10 + far[:10], [0] * 9 + far
    lost = []
    for most in (10**6, 10**7, 2 * 10**7):
        laws: list[Law] = []
        for numbers in neighbours:
            point, _, on = rounds_of_balls(numbers, choice)
            accepted = point * (1 - on**most) / (1 - on)
            laws.append({0: accepted, None: 1 - accepted})  # all points put together: that loses no more
        lost.append(hockey_stick(laws[0], laws[1], 3.0))
    assert max(lost) > 100 * choice.delta
    # with no end but acceptance, it holds
    assert hockey_stick(law(choice, neighbours[0]), law(choice, neighbours[1]), 3.0) <= choice.delta


def test_a_bound_on_the_papers_rounds_would_lose_the_good_half() -> None:
    """With 49 of 100 numbers elsewhere; G >= n M failure / 2 bounds the rounds, and leaves nothing else to release."""
    numbers, choice = [0] * 51 + [10**6 + 100 * i for i in range(49)], choice_of(100, 2, "2", "0.000001")
    bounded = 100 * math.exp(100) / 100 * 0.001 / 2
    assert law(choice, numbers, garbage=bounded)[None] > 0.999
    assert law(choice, numbers)[None] < 1e-6


@given(st.integers(1, 2**200))
def test_a_wide_uniform_number_is_the_leading_bits(below: int) -> None:
    bits = (below - 1).bit_length()
    words = -(-bits // 64)
    # given words that stand for the largest number of so many bits, then for 0
    drawn = wide_uniform(below, chain([(1 << 64) - 1] * words, repeat(0)))
    assert drawn == (below - 1 if below == 1 << bits else 0)


@examples(15)
@given(st.fractions(0, 30, max_denominator=1000), st.sampled_from([1, 10, 64, 128, 300]))
def test_powers_are_enclosed(exponent: Fraction, bits: int) -> None:
    least, most = exp_enclosed(exponent, bits)
    assert most - least <= 1
    # the series, exactly, for the reciprocal: 1 / sum of exponent**k / k!
    term, total = Fraction(1), Fraction(0)
    for k in range(1, 200):
        total, term = total + term, term * exponent / k
    assert Fraction(least, 1 << bits) <= 1 / total
    assert Fraction(most, 1 << bits) >= 1 / (total + Fraction(1, 10**90))


def test_where_a_number_is_not_decided_more_bits_are_drawn() -> None:
    # given the one integer part that lies on both sides of exp(-1) * 2**10
    least, most = exp_enclosed(Fraction(1), 10)
    further = exp_enclosed(Fraction(1), 74)[0] - (least << 64)
    assert most == least + 1
    for words, below in (
        ([further - 1], True),
        ([further + 1], False),
        ([further, 0], True),
        ([further, 2**64 - 1], False),
    ):
        assert is_below_exp(least, Fraction(1), 10, iter(words)) is below


def test_a_proposal_that_is_not_kept_is_followed_by_another() -> None:
    # given a choice between "none", of weight 4 exp(-1/2) * 2**128, rounded up, and the point 5
    choice = choice_of(1, 0, "1", "1/2")
    weight, bits = exp_enclosed(Fraction(1, 2), choice.bits)[1], choice.bits
    total = choice.garbage * weight + (1 << bits)

    def words(drawn: int) -> list[int]:
        drawn <<= 192 - (total - 1).bit_length()
        return [drawn >> 128, drawn >> 64 & (2**64 - 1), drawn & (2**64 - 1)]

    assert (choice.garbage, bits, -(-(total - 1).bit_length() // 64)) == (4, 128, 3)
    # when "none" is proposed by what rounding added to it, then the point
    rounding = choice.garbage * weight - weight
    drawn = choice.choose([5], iter([*words(rounding), 2**64 - 1, *words(total - 1)]))
    # then it is the point; without that rounding it would have been "none"
    assert drawn == 5
    assert choice.choose([5], iter(words(rounding + 1))) is None


@in_a_loop
@pytest.mark.parametrize("n", [1, 3, 40, 2000])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "30"])
def test_none_is_no_likelier_than_told(n: int, epsilon: str) -> None:
    # given numbers at both ends of what is near one point
    choice = choice_of(n, 8, epsilon, "0.001")
    told = choice.none_at_most(Fraction(9, 17))
    if n * float(Fraction(epsilon)) < 1000:
        assert law(choice, [0, 8] * (n // 2) + [8] * (n % 2))[None] <= told * (1 + 1e-9)
    assert 0 <= told < 1


@in_a_loop
@pytest.mark.parametrize("change", [{"numbers": 0}, {"radius": -1}, {"epsilon": Fraction(0)}, {"delta": Fraction(0)}])
def test_what_makes_no_sense_is_refused(change: dict[str, Fraction | int]) -> None:
    good = {"numbers": 1, "radius": 1, "epsilon": Fraction(1), "delta": Fraction(1, 9)}
    with pytest.raises(ValueError, match=next(iter(change))):
        PointChoice(**(good | change))  # type: ignore[arg-type]
