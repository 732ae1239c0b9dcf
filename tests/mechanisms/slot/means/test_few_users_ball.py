"""The choice of a point near many points: its exact law, its loss over neighbours, and that draws follow the law."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import chain, product
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.noise.gaussian import DiscreteGaussian
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.noise.uniform import exp_enclosed
from shoal.mechanisms.slot.means import few_users_ball
from shoal.mechanisms.slot.means.few_users_ball import ROUNDS, BallChoice, capped, near_to, offsets_in_ball
from tests.mechanisms.mechanism_cases import KEY
from tests.support.cover import in_a_loop
from tests.support.effort import examples, tries

Point = tuple[int, ...]
Law = dict[Point | None, float]
FAR = 10**6


@cache
def ball(radius: int, coordinates: int) -> list[Point]:
    """The integer points within the radius of 0, by the definition."""
    each = range(-radius, radius + 1)
    return [point for point in product(each, repeat=coordinates) if sum(x * x for x in point) <= radius * radius]


def law(choice: BallChoice, points: Sequence[Point], garbage: float | None = None, cap: int | None = None) -> Law:
    """The output law f / Z: all points that are near any are enumerated."""
    offsets = ball(choice.radius, choice.coordinates)
    near = Counter(tuple(a + b for a, b in zip(at, offset, strict=True)) for at in points for offset in offsets)
    rate, most = float(choice.rate), choice.cap if cap is None else cap
    weights: Law = {point: math.exp(rate * min(count, most)) for point, count in near.items()}
    weights[None] = float(choice.garbage if garbage is None else garbage) * len(offsets)
    total = math.fsum(weights.values())
    return {point: weight / total for point, weight in weights.items()}


def hockey_stick(one: Law, other: Law, epsilon: float) -> float:
    """The least delta that the pair needs, the worse of both directions."""
    return max(
        math.fsum(max(0.0, p - math.exp(epsilon) * b.get(point, 0.0)) for point, p in a.items())
        for a, b in ((one, other), (other, one))
    )


def choice_of(n: int, radius: int, epsilon: str, delta: str, coordinates: int = 2) -> BallChoice:
    return BallChoice(n, radius, Fraction(epsilon), Fraction(delta), coordinates)


def random_pair(rng: random.Random) -> tuple[BallChoice, list[Point], list[Point]]:
    """Two sets of points that differ in one of them, which goes anywhere."""
    n, d = rng.randint(1, 12), rng.choice((1, 2, 2, 3))
    radius = rng.randint(1, 4 if d < 3 else 2)
    epsilon, delta = rng.choice(("0.3", "1", "2", "5")), rng.choice(("0.001", "0.01", "0.1"))

    def point() -> Point:
        return tuple(rng.randint(0, 2 * radius + 1) for _ in range(d))

    points = [point() for _ in range(n)]
    return choice_of(n, radius, epsilon, delta, d), points, [rng.choice((point(), (FAR,) * d)), *points[1:]]


def test_no_neighbours_lose_more_than_epsilon_and_delta() -> None:
    """Exact laws of random pairs of neighbours: the divergence comes near delta and never exceeds it."""
    rng, used = random.Random(7), []
    for _ in range(tries(400)):
        choice, points, neighbour = random_pair(rng)
        lost = hockey_stick(law(choice, points), law(choice, neighbour), float(choice.epsilon))
        used.append(lost / float(choice.delta))
    assert max(used) <= 1 + 1e-9
    # one point that moves far takes up nearly all of it
    assert max(used) >= 0.7


def test_less_garbage_would_break_it() -> None:
    choice = choice_of(2, 2, "1", "0.01")
    one, other = (law(choice, at, garbage=choice.garbage / 2) for at in ([(0, 0)] * 2, [(FAR, 0), (0, 0)]))
    assert hockey_stick(one, other, 1.0) > 0.01


def drawn(choice: BallChoice, points: Sequence[Point], name: int) -> Point | None:
    point = choice.choose(points, derive(KEY, "ball", name), Bits(derive(KEY, "words")).draw(name))
    return None if point is None else tuple(point)


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize(
    ("points", "radius", "epsilon", "delta"),
    [
        ([(5, 0), (6, 1), (6, 1), (9, 0), (30, 30)], 3, "1", "0.1"),
        ([(0, 0)] * 4, 2, "3", "0.01"),
        ([(7, 7)], 1, "2", "0.2"),
        ([(0, 0, 0), (1, 0, 1), (40, 0, 0)], 2, "4", "0.3"),
        ([(0, 0), (0, 1), (1, 0), (1, 1), (0, 0), (1, 2)], 2, "0.1", "0.5"),  # more near is hardly more likely
    ],
)
def test_points_are_drawn_with_their_exact_law(points: list[Point], radius: int, epsilon: str, delta: str) -> None:
    draws, choice = 4000, choice_of(len(points), radius, epsilon, delta, len(points[0]))
    counted = Counter(drawn(choice, points, number) for number in range(draws))
    expected = law(choice, points)
    assert counted.keys() <= expected.keys()
    for point, p in expected.items():
        assert abs(counted[point] - draws * p) <= 5 * math.sqrt(draws * p * (1 - p)) + 1e-9


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize(("radius", "coordinates"), [(1, 1), (3, 2), (2, 3), (1, 6)])
def test_all_points_of_a_ball_come_alike(radius: int, coordinates: int) -> None:
    inside, offsets = ball(radius, coordinates), offsets_in_ball(radius, coordinates, KEY, Bits(KEY[::-1]).draw(0))
    draws = 60 * len(inside)
    counted = Counter(tuple(next(offsets)) for _ in range(draws))
    assert counted.keys() <= set(inside)
    # chi-squared, of which the deviation is sqrt(2 k)
    spread = math.fsum((counted[point] - 60) ** 2 / 60 for point in inside)
    assert spread <= len(inside) + 5 * math.sqrt(2 * len(inside))


def test_a_point_of_a_ball_takes_few_proposals() -> None:
    """One in sqrt(pi d), in whatever dimension; of a cube it would be one in 10**15 for d = 32."""
    for d in (2, 8, 32):
        asked = Counter[int]()

        class Counting(DiscreteGaussian):
            def draw(self, index: int, asked: Counter[int] = asked) -> int:
                asked["draws"] += 1  # type: ignore[index]
                return super().draw(index)

        with patch.object(few_users_ball, "DiscreteGaussian", Counting):
            offsets = offsets_in_ball(5000, d, KEY, Bits(KEY).draw(1))
            for _ in range(60):
                next(offsets)
        assert sum(asked.values()) / 60 / d <= 1.6 * math.sqrt(math.pi * d)


@examples(60)
@given(st.lists(st.tuples(*[st.integers(-5, 5)] * 3), min_size=1, max_size=8), st.integers(1, 6))
def test_near_is_within_the_radius_and_in_no_coordinate_are_fewer(points: list[Point], radius: int) -> None:
    choice = choice_of(len(points), radius, "1", "0.1", 3)
    bound = choice._most_near(points)
    for point in product(range(-3, 4), repeat=3):
        near = sum(math.dist(point, other) <= radius for other in points)
        assert near_to(point, points, radius) == near
        assert min(near, choice.cap) <= bound <= choice.cap


def test_the_order_of_the_points_has_no_say() -> None:
    choice, points = choice_of(4, 2, "2", "0.1"), [(3, 1), (1, 1), (8, 0), (2, 2)]
    one, other = ([drawn(choice, at, name) for name in range(50)] for at in (points, points[::-1]))
    assert one == other


def test_a_proposal_that_is_not_kept_is_followed_by_another() -> None:
    # given one point, and "none" proposed by what rounding added to its weight
    choice, point = choice_of(1, 1, "1", "1/2"), (5, 5)
    bits = 64 * (2 + choice.garbage.bit_length() // 64)
    share, none = 1 << bits, exp_enclosed(Fraction(1, 2), bits)[1]
    total = share + choice.garbage * none
    words = -(-(total - 1).bit_length() // 64)
    drawn_first = (share + none - 1) << 64 * words - (total - 1).bit_length()
    first = [drawn_first >> 64 * index & (2**64 - 1) for index in reversed(range(words))]
    # when what follows does not keep it, a point is drawn like any other
    kept = [choice.choose([point], KEY, chain(first, [end], Bits(KEY).draw(2))) for end in (0, 2**64 - 1)]
    assert kept[0] is None
    assert kept[1] == choice.choose([point], KEY, Bits(KEY).draw(2))


def test_no_number_of_rounds_ends_the_loop() -> None:
    """If a last round ended it, the probability of "none" would be a power of what one point changes."""
    outcomes = chain([False] * (3 * ROUNDS), [True])
    with patch.object(few_users_ball, "is_below_exp", lambda *_: next(outcomes)):
        drawn(choice_of(1, 1, "1", "1/2"), [(5, 5)], 0)
    assert next(outcomes, None) is None


def rounds(choice: BallChoice, points: Sequence[Point], name: int) -> int:
    """Points that were proposed until one was kept, or none."""
    with patch.object(few_users_ball, "near_to", wraps=near_to) as proposed:
        drawn(choice, points, name)
    return int(proposed.call_count)


@pytest.mark.parametrize("d", [2, 8])
def test_with_a_corrupt_minority_rounds_are_few_and_the_point_is_near_the_others(d: int) -> None:
    choice = choice_of(100, 400, "16", "0.000001", d)
    rng = random.Random(d)
    good = [tuple(rng.randint(-40, 40) for _ in range(d)) for _ in range(51)]
    for bad in ([(FAR,) * d] * 49, [(FAR * i,) * d for i in range(1, 50)]):
        names = range(tries(40))
        for name in names:
            point = drawn(choice, good + bad, name)
            assert point is not None
            assert max(map(abs, point)) <= 440
        assert sum(rounds(choice, good + bad, name) for name in names) / len(names) <= 12


def test_without_the_cap_the_good_half_would_be_lost() -> None:
    """What bounds the paper's rounds, n M / ROUNDS with M over all s <= n, leaves nothing but "none"."""
    choice = choice_of(100, 2, "2", "0.000001")
    points = [(0, 0)] * 51 + [(FAR + 100 * i, 0) for i in range(49)]
    uncapped = 100 * math.exp(100) / 100 / ROUNDS
    assert law(choice, points, garbage=uncapped, cap=100)[None] > 0.999
    assert law(choice, points)[None] < 3 / ROUNDS


def mean_rounds(choice: BallChoice, points: Sequence[Point]) -> float:
    """All that is proposed over all that is kept, with the most that any point may have near as it is bounded."""
    rate, most = float(choice.rate), choice._most_near(points)
    proposed = len(points) * max(math.exp(rate * most) / most, math.exp(rate)) + choice.garbage
    laws = law(choice, points)
    kept = choice.garbage / laws[None]  # Z, in balls
    return proposed / kept


@given(st.integers(0, 10**6))
def test_rounds_are_few_wherever_points_lie(seed: int) -> None:
    choice, points, _ = random_pair(random.Random(seed))
    assert mean_rounds(choice, points) <= 1 + ROUNDS


def test_rounds_are_many_only_where_points_are_neither_together_nor_apart() -> None:
    """Points all within 2 R of one another in each coordinate, of which no four have a common point near."""
    n, choice = 60, choice_of(60, 10, "3", "0.001")
    ring = [(round(18 * math.cos(2 * math.pi * i / n)), round(18 * math.sin(2 * math.pi * i / n))) for i in range(n)]
    assert 1 <= mean_rounds(choice, ring) <= 1 + ROUNDS
    assert mean_rounds(choice, [(100 * i, 0) for i in range(n)]) <= 1.1
    assert mean_rounds(choice, [(0, i % 3) for i in range(n)]) <= 3


def test_rounds_would_tell_more_than_what_is_returned() -> None:
    """Half of the points on one axis, half on the other, nearly all far apart: one who leaves makes rounds fewer."""
    choice = choice_of(100, 2, "1", "0.000001")
    points = [(0, 100 * i) for i in range(1, 50)] + [(0, 0)] * 2 + [(100 * i, 0) for i in range(1, 50)]
    many, fewer = mean_rounds(choice, points), mean_rounds(choice, [(FAR, FAR), *points[1:]])
    assert ROUNDS <= many <= ROUNDS + 1
    # P(more than k rounds) of both: these are geometric
    lost = max((1 - 1 / many) ** k - math.e * (1 - 1 / fewer) ** k for k in range(0, 10 * ROUNDS, 100))
    assert lost > 0.03


@in_a_loop
@pytest.mark.parametrize("epsilon", ["0.01", "1", "30", "1000"])
@pytest.mark.parametrize("n", [1, 3, 40, 2000])
def test_none_weighs_what_the_proof_asks_for(n: int, epsilon: str) -> None:
    choice, cap = choice_of(n, 2, epsilon, "0.01"), capped(n)
    rate = float(choice.rate)
    logs = [rate - math.log(0.01), -math.log(-math.expm1(-rate)), math.log(n / ROUNDS) + rate]
    logs.append(math.log(n / ROUNDS / cap) + rate * cap)
    assert 0 <= math.log(choice.garbage) - max(logs) <= 1e-9 + math.log1p(2 / math.exp(min(max(logs), 50)))
    # and no more of "none" than told, if all balls share all
    assert choice.none_at_most(0.0) >= 0


def test_none_is_no_likelier_than_told() -> None:
    # given points that share the middle of their balls: 25 of 49, by count
    choice = choice_of(30, 4, "1", "0.001")
    points = [(1, 0)] * 15 + [(-1, 0)] * 15
    inside = set(ball(4, 2))
    shared = sum((x - 1, y) in inside and (x + 1, y) in inside for x in range(-6, 7) for y in range(-6, 7))
    told = choice.none_at_most(math.log(len(inside) / shared))
    assert law(choice, points)[None] <= told


@in_a_loop
@pytest.mark.parametrize(
    "change", [{"numbers": 0}, {"radius": 0}, {"epsilon": Fraction(0)}, {"delta": Fraction(0)}, {"coordinates": 0}]
)
def test_what_makes_no_sense_is_refused(change: dict[str, Fraction | int]) -> None:
    good = {"numbers": 1, "radius": 1, "epsilon": Fraction(1), "delta": Fraction(1, 9), "coordinates": 2}
    with pytest.raises(ValueError, match=next(iter(change))):
        BallChoice(**(good | change))  # type: ignore[arg-type]
