"""Lower bounds: the error that no method with pure epsilon-DP can stay below, so that plans tell what cannot be had.

Decayed sums  `releases` counts: with probability 2/3 all of them within an error of less than C / 2 times the sum over
              i < D of g(floor(i / k)), D the largest integer below ln(2 q) / epsilon, is impossible for some order and
              values of the units; C what one of them can move, k how many come in a step, g the weight of an age
Means         to within a of the law's mean with probability 2/3, whatever the law of the values, is impossible while
              the product over users of 1 - t(m) (1 - exp(-epsilon)) exceeds 2/3, t(m)**2 = 1 - (1 - 4 a**2)**m
Constants     all are proven in docs/proofs/lower-bounds.md; the papers state orders of growth
Privacy       functions of public parameters and the pattern: nothing is charged, and floats will do
Source        Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013), Theorem 7; George, Ramesh, Singh and Tyagi (2024),
              section 5, after Liu, Suresh, Yu, Kumar and Riley (2020) and Levy et al. (2021)
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

SURE = 2 / 3  # the probability with which a method is to be within its error
_BELOW = 1 - 1e-12  # keeps rounding on the safe side
_HALVINGS = 60


class Limit(NamedTuple):
    """The least error of a number of releases together."""

    error: float  # in units of what one unit of privacy can move
    releases: int


def decayed(weights: Callable[[int], float], *, epsilon: float, units: int, steps: int) -> Limit | None:
    """The limit for a decayed sum over so many units that come evenly; None if they are too few to tell.

    weights: the weight of the youngest steps together, as many as it is asked for.

    >>> window = lambda ages: float(min(ages, 5))
    >>> decayed(window, epsilon=1.0, units=1000, steps=1000), decayed(window, epsilon=9.0, units=9, steps=9)
    (Limit(error=2.5, releases=142), None)
    """
    together = max(1, units // steps)
    changed = _changes(min(units, steps), epsilon)
    if not changed:
        return None
    releases = min(steps // -(-changed // together), units // changed)
    changed = _changes(releases, epsilon) if releases else 0
    ages, rest = divmod(changed, together)
    weight = together * weights(ages) + rest * (weights(ages + 1) - weights(ages))
    return Limit(weight / 2, releases) if changed else None


def _changes(releases: int, epsilon: float) -> int:
    """D: the units of which a method that tells so many streams apart must see more."""
    return max(0, math.ceil(math.log(2 * releases) / epsilon * _BELOW) - 1)


def mean(sizes: Iterable[tuple[float, int]], epsilon: float) -> tuple[float, float]:
    """The least errors of a mean as parts of the range: with epsilon, and by chance alone.

    sizes: (users, samples of each) for all users.

    >>> [round(error, 5) for error in mean([(1000, 16)], 1.0)], mean([(2, 10**6)], 0.1)[0]
    ([8e-05, 0.00136], 0.5)
    """
    classes = tuple(sizes)
    loss = min(-math.expm1(-epsilon), _BELOW)

    def is_too_close(error: float) -> bool:
        kept = (users * math.log1p(-loss * _apart(error, samples)) for users, samples in classes)
        return math.fsum(kept) > math.log(SURE)

    low, high = 0.0, 0.5
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_too_close(middle) else (low, middle)
    samples = sum(users * each for users, each in classes)
    chance = math.sqrt(-math.expm1(math.log1p(-((2 * SURE - 1) ** 2)) / samples)) / 2
    return low, chance


def _apart(error: float, samples: int) -> float:
    """The most by which a user of so many samples tells a law from the one whose mean is 2 * error away."""
    return math.sqrt(-math.expm1(samples * math.log1p(-4 * error**2))) if error < 1 / 2 else 1.0
