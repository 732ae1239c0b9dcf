"""Noise of several integers at once: its law, its size, and that it is a function of key and coordinate."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.error_bars import OfCube, noise_quantile, noise_sd
from shoal.mechanisms.noise import cube, laplace
from shoal.mechanisms.noise.cube import CubeNoise, eulerian, radius, tail, variance
from shoal.mechanisms.noise.keyed import Bits
from tests.support.cover import covered, in_a_loop
from tests.support.effort import examples, tries

SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(40)]
DIMENSIONS = range(1, 9)


@lru_cache
def law_of_radius(d: int, scale: Fraction) -> list[float]:
    """P(R = k), from (2k + 1)**d exp(-k / scale)."""
    weights = [(2 * k + 1) ** d * math.exp(-k / scale) for k in range(math.ceil((50 + 4 * d) * scale) + 9)]
    return [weight / math.fsum(weights) for weight in weights]


def law_of_coordinate(d: int, scale: Fraction) -> list[float]:
    """P(x_i = t) for t = 0, 1, ...: uniform in -R .. R."""
    parts = [p / (2 * k + 1) for k, p in enumerate(law_of_radius(d, scale))]
    return list(itertools.accumulate(reversed(parts)))[::-1]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_law_is_the_exponential_of_the_largest_coordinate(d: int) -> None:
    """A uniform point of a cube of radius R, over all R: hence what a neighbour can tell is bounded by its largest."""
    scale = Fraction(3, 2)
    over = law_of_radius(d, scale)
    density = [math.fsum(p / (2 * k + 1) ** d for k, p in enumerate(over) if k >= size) for size in range(6)]
    for size, at in enumerate(density):
        assert at == pytest.approx(density[0] * math.exp(-size / scale), rel=1e-9)
    # of all points near 0 and all shifts by at most s, the ratio is exp(s / scale) at most, and that is reached
    worst = 0.0
    for point in itertools.product(range(-2, 3), repeat=d):
        for shift in itertools.product(range(-2, 3), repeat=d):
            one, other = (max(map(abs, at)) for at in (point, map(sum, zip(point, shift, strict=True))))
            worst = max(worst, abs(math.log(density[one] / density[other])))
    assert worst == pytest.approx(2 / scale, rel=1e-9)


@in_a_loop
@covered(strength=1)
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(5)])
def test_draws_follow_the_law(d: int, scale: Fraction) -> None:
    count = tries(4_000)
    radii, first, last = Counter[int](), Counter[int](), Counter[int]()
    for index in range(count):
        noise = CubeNoise(d, scale, index.to_bytes(32, "big"))
        radii[noise.radius()] += 1
        first[noise.draw(0)] += 1
        last[noise.draw(d - 1)] += 1
    signed = {sign * t: p for t, p in enumerate(law_of_coordinate(d, scale)) for sign in (1, -1)}
    for found, law in ((radii, dict(enumerate(law_of_radius(d, scale)))), (first, signed), (last, signed)):
        assert set(found) <= set(law)
        expected = [(found[at], count * p) for at, p in law.items() if count * p > 5]
        misfit = math.fsum((seen - mean) ** 2 / mean for seen, mean in expected)
        assert misfit < len(expected) + 5 * math.sqrt(2 * len(expected))


def test_a_top_is_too_much_by_what_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """With weights of few bits rounding up is much, and the law is the same."""
    monkeypatch.setattr(cube, "_BITS", 2)
    scale, count = Fraction(1, 2), tries(4_000)
    offsets = Counter(cube._offset(2, scale, Bits(index.to_bytes(32, "big")).draw(0)) for index in range(count))
    weights = [b * math.exp(-2 * s) for s, b in enumerate(eulerian(2))]
    for s, weight in enumerate(weights):
        mean = count * weight / sum(weights)
        assert abs(offsets[s] - mean) < 5 * math.sqrt(mean)


def test_the_weights_are_those_of_the_offset() -> None:
    for d in DIMENSIONS:
        # Worpitzky: (2k + 1)**d is the sum of B(d, s) over the ways in which d + 1 numbers sum to k - s
        for k in range(12):
            ways = sum(b * math.comb(k - s + d, d) for s, b in enumerate(eulerian(d)) if s <= k)
            assert ways == (2 * k + 1) ** d
        assert sum(eulerian(d)) == 2**d * math.factorial(d)


@in_a_loop
@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("scale", SCALES)
def test_variance_and_quantile_are_those_of_the_law(d: int, scale: Fraction) -> None:
    law = law_of_coordinate(d, scale)
    exact = 2 * math.fsum(t * t * p for t, p in enumerate(law))
    assert variance(d, scale) == pytest.approx(exact, rel=1e-9)
    assert noise_sd(OfCube(d, scale)) == pytest.approx(math.sqrt(exact), rel=1e-5)
    for coverage in (0.5, 0.95, 0.999):
        within, reach = law[0], 0
        while within < coverage:
            reach += 1
            within += 2 * law[reach]
        assert abs(noise_quantile(OfCube(d, scale), coverage) - reach) <= 1  # the law of real numbers, half a step off


def test_one_coordinate_is_a_laplace_draw() -> None:
    for scale in SCALES:
        assert variance(1, scale) == pytest.approx(laplace.variance(scale), rel=1e-12)
        assert noise_quantile(OfCube(1, scale)) == noise_quantile(((scale, 1),))
    assert tail(1, 2.5) == math.exp(-2.5)
    assert variance(3, Fraction(1, 10**30)) == 0


def minus(p: list[int], q: list[int]) -> list[int]:
    return [one - two for one, two in itertools.zip_longest(p, q, fillvalue=0)]


def times(p: list[int], q: list[int]) -> list[int]:
    found = [0] * (len(p) + len(q) - 1)
    for (i, one), (j, two) in itertools.product(enumerate(p), enumerate(q)):
        found[i + j] += one * two
    return found


def slope(p: list[int]) -> list[int]:
    return [power * one for power, one in enumerate(p)][1:]


@in_a_loop
@pytest.mark.parametrize("d", range(2, 8))
def test_the_size_is_below_half_of_d_plus_one_scales_by_polynomials(d: int) -> None:
    """The bound less the mean of |x_i| falls towards 0 as q rises to 1: docs/proofs/slots.md, "Size"."""
    below = minus(list(eulerian(d + 1)), times([1, -2, 1], list(eulerian(d - 1))))
    above = times([2 * (d + 1)], times([1, -1], list(eulerian(d))))
    left = minus(times(slope(above), below), times(above, slope(below)))
    sign = minus(times([0, 1], left), times([-1], times(below, below)))
    for _ in range(2):  # (1 - q) divides it twice
        sign = list(itertools.accumulate(sign))
        assert sign.pop() == 0
    assert sign.pop(0) == 0  # and q once
    while not sign[-1]:
        sign.pop()
    # its ends may have a number above 0 beside them: not enough of it, by the discriminant of three neighbours
    assert sign == sign[::-1]
    assert [place for place, number in enumerate(sign) if number > 0] == ([1, len(sign) - 2] if d > 2 else [])
    shared = 2 if len(sign) == 5 else 1  # both ends have the middle
    assert sign[1] ** 2 < 4 * sign[0] * sign[2] // shared


@pytest.mark.parametrize("d", [2, 8])
def test_the_size_is_below_half_of_d_plus_one_scales(d: int) -> None:
    for power in range(-16, 21, 6):
        scale = Fraction(round(2 ** (power / 4) * 1000), 1000)
        law = law_of_coordinate(d, scale)
        size = 2 * math.fsum(t * p for t, p in enumerate(law))
        assert size <= float(scale) * (d + 1) / 2
        if scale > 5:
            assert size == pytest.approx(float(scale) * (d + 1) / 2, rel=1e-2)


@examples(20)
@given(st.integers(1, 8), st.fractions(Fraction(1, 10**9), 10**30), st.binary(min_size=32, max_size=32))
def test_a_coordinate_is_a_function_of_the_key_alone(d: int, scale: Fraction, key: bytes) -> None:
    noise = CubeNoise(d, scale, key)
    backwards = [CubeNoise(d, scale, key).draw(axis) for axis in reversed(range(d))]
    assert [noise.draw(axis) for axis in range(d)] == backwards[::-1]
    assert max(map(abs, backwards)) <= noise.radius() == radius(d, scale, Bits(key).draw(0))
    for axis in (-1, d):
        with pytest.raises(ValueError, match="coordinate must be at least 0"):
            noise.draw(axis)


@pytest.mark.parametrize("given_", [(0, Fraction(1)), (2, Fraction(0)), (2, Fraction(-1))])
def test_what_makes_no_sense_is_refused(given_: tuple[int, Fraction]) -> None:
    with pytest.raises(ValueError, match="must be greater than 0"):
        CubeNoise(*given_, bytes(32))
