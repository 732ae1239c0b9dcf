"""Releases of a decayed variance: their error against the one that each states, and against two halves of epsilon.

Every step holds the same samples, so that the variance is known without noise, whatever the weights. They lie in pairs
around their mean, which is in the middle of the range, half way to an end, or at the end.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from benchmarks.decay.measuring import KEY, Ratio
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.sides import Products
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.of import Variance
from shoal.mechanisms.statistic import Contribution, Estimate
from shoal.mechanisms.sums.decays import Decay, Exponential, Window

GRID = Grid(Fraction(0), Fraction(1), 1 << 16)  # the finest that a variance may have
EPSILON = Fraction(1)
SAMPLES = 100  # of a step
KEYS, FEW_KEYS = 200, 10
LOOKS = 32  # releases of a key
MEANS = (("middle", Fraction(1, 2)), ("half way", Fraction(1, 4)), ("end", Fraction(0)))
DECAYS: tuple[tuple[str, Decay, int], ...] = (  # what, and the steps after which it holds about all it will hold
    ("window 2^6", Window(1 << 6), 1 << 6),
    ("window 2^10", Window(1 << 10), 1 << 10),
    ("alpha 0.9", Exponential(Fraction(9, 10)), 100),
    ("alpha 0.99", Exponential(Fraction(99, 100)), 1000),
)


@dataclass(frozen=True)
class Spread:
    """What was found of the releases under one decay, with samples around one mean."""

    decay: str
    mean: str
    mechanism: str
    samples: float  # decayed number of them in the last release
    stated: float  # root of the mean square of `noise_sd`, in units of the squared range
    ratio: float  # mean square of the errors, over that of `noise_sd`
    error: float  # standard error of the ratio
    covered: float  # share of the releases between `low` and `high`
    halves: float  # standard deviation by formula if each sum had half of epsilon, over that with the joint bound
    keys: int

    @property
    def agrees(self) -> bool:
        """Whether the error is the stated one within 5 % or 3 standard errors, and intervals cover 94 % or more."""
        return abs(self.ratio - 1) <= max(0.05, 3 * self.error) and self.covered >= 0.94


def spreads(*, quick: bool) -> list[Spread]:
    """The releases of all decays and means, or those of short ones from few keys."""
    decays, keys = (DECAYS[::2], FEW_KEYS) if quick else (DECAYS, KEYS)
    return [_spread(*decay, mean, where, keys) for decay in decays for mean, where in MEANS]


def _spread(name: str, decay: Decay, begin: int, mean: str, where: Fraction, keys: int) -> Spread:
    of = LinearStatistic(
        statistic=Variance, sides=Products(GRID.steps), decay=decay, grid=GRID, epsilon=EPSILON, max_contributions=1
    )
    ratio, truth, stated, covered = Ratio(), float(where**2), 0.0, 0
    for number in range(keys):
        releases = list(_releases(of, begin, where, f"{name} {mean} {number}".encode()))
        square = sum(release.noise_sd["variance"] ** 2 for release in releases)
        ratio.add(sum((release.value["variance"] - truth) ** 2 for release in releases), square)
        stated += square
        covered += sum(release.low["variance"] <= truth <= release.high["variance"] for release in releases)
    looks, samples = keys * LOOKS, float(releases[-1].samples)
    return Spread(
        name, mean, of.mechanism, samples, math.sqrt(stated / looks), ratio.value, ratio.error, covered / looks,
        _halves(of, begin, float(1 - 2 * where)), keys,
    )  # fmt: skip


def _releases(of: Any, begin: int, where: Fraction, group: bytes) -> Iterator[Estimate]:
    """A group's releases from step `begin` on, some in as many steps again."""
    far = int(2 * where * GRID.steps)  # half of the samples are 0, the others as far on the other side of the mean
    total = of.packing.unpack(SAMPLES // 2 * of.packing.pack([far]), SAMPLES)
    releaser, stride = of.releaser(KEY, group), begin // LOOKS
    for step in range(begin + LOOKS * stride):
        releaser.add(Contribution(0, "", 0, 0, SAMPLES, total))
        releaser.close()
        if step >= begin and (step - begin) % stride == 0:
            yield releaser.estimate()


def _halves(of: LinearStatistic, t: int, off: float) -> float:
    """How much larger the noise is where each sum is made with half of epsilon, to first order in it."""

    def noise(epsilons: tuple[Fraction, Fraction]) -> float:
        sums = of.made(GRID.steps, epsilons[0] / EPSILON), of.made(GRID.steps**2 // 4, epsilons[1] / EPSILON)
        first, second = GRID.width_value(sums[0].noise_sd(t)), GRID.squares.width_value(sums[1].noise_sd(t))
        return math.hypot(off * first, second)

    return noise((EPSILON / 2, EPSILON / 2)) / noise((of.decayed[0].epsilon, of.decayed[1].epsilon))
