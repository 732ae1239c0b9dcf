"""Section 4 of George, Ramesh, Singh and Tyagi (2024): many coordinates with a delta, as printed and as built."""

import math
from fractions import Fraction

import pytest

from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.privacy.accounting import Loss, advanced
from shoal.mechanisms.privacy.zcdp import largest_rho

EPSILON = Fraction(1)


def printed_share(count: int, delta: Fraction) -> Fraction:
    """The epsilon of each of so many coordinates: epsilon / sqrt(8 d ln(1 / delta)), from [DRV10, Theorem III.3]."""
    return EPSILON / Fraction(math.sqrt(8 * count * math.log(1 / delta)))


def noise(count: int, share: Fraction, rho: Fraction | None = None) -> float:
    """Standard deviation of the last sum of Algorithm 2 in one of the coordinates."""
    grid = Grid(Fraction(0), Fraction(1), 1 << 20)
    return math.sqrt(Naive(grid=grid, epsilon=share, max_contributions=16, users=1000, rho=rho).late_variance)


@pytest.mark.parametrize("delta", [Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**9)])
def test_as_printed_a_delta_pays_from_eight_times_its_logarithm_and_gaussian_noise_from_three(delta: Fraction) -> None:
    from_here = math.ceil(8 * math.log(1 / delta))
    for count in (1, 2, 3, 8, 32, from_here - 1, from_here, 2 * from_here):
        share, rho = printed_share(count, delta), largest_rho(EPSILON, delta) / count
        # given shares that do compose to (epsilon, delta)
        assert advanced([Loss(share)] * count, delta).epsilon <= EPSILON
        assert (share >= EPSILON / count) == (count >= from_here)
        # then what is built has less noise than either, and both grow like the root
        built = noise(count, EPSILON / count, rho)
        assert built < noise(count, share) / 4
        assert (built < noise(count, EPSILON / count)) or count < 3
        assert built == pytest.approx(math.sqrt(count) * noise(1, EPSILON, rho * count), rel=1e-3)
