"""What the releases of a mean will be like, before it meets a value: noise and the samples that count, over time.

Both are functions of the public parameters and of the pattern, who contributes when; so they cost nothing, and may be
floats. The noise is not estimated: it is that of the very trees, at the counts that the pattern gives. Only `Sharp`
decides by values, privately; what it decides is foretold for an assumed law of values (forecast.py).

Privacy      no value and no key comes here, so nothing is charged
Pattern      tau is the part of the time that is over, 0 .. 1. A user who gives x samples in all has given
             floor(x tau + phase); phases are spread evenly over 0 .. 1, so everything has a closed form
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.levels import Level
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp.cap import BIAS
from shoal.mechanisms.continual_mean.sharp.parameters import Sharp
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.error_bars import Scales, noise_quantile, noise_sd
from shoal.mechanisms.statistic import MeanParameters

FINE = 4  # classes of a skewed pattern in each halving of its users


@dataclass(frozen=True)
class Pattern:
    """Users who give their samples at constant rates.

    >>> pattern = Pattern.even(1000, samples=8)
    >>> pattern.reached(1, 1 / 16), pattern.reached(8, 1), pattern.samples(4, 1), pattern.samples(None, 1 / 4)
    (500, 1000, 4000, 2000)
    """

    users: int
    classes: tuple[tuple[float, float], ...]  # (part of the users, samples of each in all)

    @classmethod
    def even(cls, users: int, samples: float) -> "Pattern":
        """All give the same number; of 2.5, half of them give 2, half 3."""
        return cls(users, ((1.0, float(samples)),))

    @classmethod
    def skewed(cls, users: int, samples: float) -> "Pattern":
        """Numbers that fall like a power law of exponent 3/2, at least 1 each: a few give most.

        >>> pattern = Pattern.skewed(1000, samples=3)
        >>> pattern.samples(None, 1), pattern.reached(2, 1), pattern.reached(20, 1)
        (3000, 586, 11)
        """
        ends = _halvings(users)
        shares = [upper - lower for upper, lower in ends]
        # The mean of u**(-2/3) over u = lower .. upper.
        sizes = [3 * (upper ** (1 / 3) - lower ** (1 / 3)) / (upper - lower) for upper, lower in ends]
        return cls(users, tuple(zip(shares, _scaled(shares, sizes, float(samples)), strict=True)))

    def reached(self, samples: int, tau: float) -> int:
        """How many users have given at least so many samples."""
        parts = (share * min(max(size * tau + 1 - samples, 0.0), 1.0) for share, size in self.classes)
        return round(self.users * sum(parts))

    def samples(self, cap: int | None, tau: float) -> int:
        """Samples so far, of each user at most the first `cap`."""
        parts = (share * (size * tau if cap is None else min(size * tau, cap)) for share, size in self.classes)
        return round(self.users * sum(parts))


def _halvings(users: int) -> list[tuple[float, float]]:
    """1 .. 0, in classes that get smaller by a constant factor, down to a single user."""
    count = FINE * max(1, users.bit_length())
    ends = [2 ** (-i / FINE) for i in range(count)] + [0.0]
    return list(zip(ends, ends[1:], strict=False))


def _scaled(shares: Sequence[float], sizes: Sequence[float], mean: float) -> list[float]:
    """The sizes times a factor, at least 1 each, so that their mean is as asked; all equal if that is at most 1."""
    if mean <= 1:
        return [mean] * len(sizes)
    low, high = 0.0, mean
    for _ in range(60):
        factor = (low + high) / 2
        found = sum(share * max(1.0, factor * size) for share, size in zip(shares, sizes, strict=True))
        low, high = (factor, high) if found < mean else (low, factor)
    return [max(1.0, high * size) for size in sizes]


@dataclass(frozen=True, slots=True)
class Expected:
    """A release to come, in units of the range; no noise_sd where nothing is released."""

    samples: int  # that it rests on
    of: int  # samples that there are
    noise_sd: float | None
    half_interval: float | None  # what 95 % of the noise stays below

    @property
    def left_out(self) -> float:
        """The part of the samples so far that it does not rest on, say over the cap."""
        return 1 - self.samples / self.of if self.of else 1.0


def bias(left_out: float, width: float) -> float:
    """By experience with users who differ: what leaving out a part of the samples moves a mean by.

    At most it is that part of the range. width: of what samples are clipped to.

    >>> bias(0.5, 120.0)
    1.0
    """
    return float(BIAS) * left_out * left_out * width


class Prospect(Protocol):
    """A mean over a pattern."""

    def at(self, tau: float) -> Expected:
        """The release when the part tau of the time is over."""
        ...

    def likely(self, tau: float) -> tuple[float, float] | None:
        """What the noise's standard deviation lies between in four cases of five; None: it is no matter of chance."""
        ...


@dataclass(frozen=True)
class Counted:
    """Any algorithm but sharp: its trees at the counts of the pattern."""

    mean: MeanParameters
    pattern: Pattern

    def at(self, tau: float) -> Expected:
        """The release when the part tau of the time is over."""
        samples, scales = counted(self.mean, self.pattern, tau)
        return expected(self.mean, samples, self.pattern.samples(None, tau), scales)

    def likely(self, tau: float) -> None:
        """Nothing here is drawn."""


def expected(mean: MeanParameters, samples: int, of: int, scales: Scales) -> Expected:
    """The release on so many samples with noise of these scales; the same numbers as in the release itself."""
    if not samples:
        return Expected(0, of, None, None)
    width = mean.grid.width_value
    return Expected(samples, of, width(noise_sd(scales)) / samples, width(noise_quantile(scales)) / samples)


def counted(mean: MeanParameters, pattern: Pattern, tau: float) -> tuple[int, Scales]:
    """(samples that count, what the noise of their sum consists of)."""
    cap = mean.max_contributions
    if isinstance(mean, Naive):
        samples = pattern.samples(cap, tau)
        return samples, mean.tree.scales(samples)
    if isinstance(mean, Wishful):
        units = pattern.reached(cap, tau)
        return units * cap, mean.tree.scales(units)
    closed = [pattern.reached(1 << level, tau) for level in range(cap.bit_length())]
    samples = sum(blocks.weight(level) * count for level, count in enumerate(closed))
    if isinstance(mean, SingleTree):
        return samples, mean.tree.scales(sum(closed))
    if isinstance(mean, MultiTree):
        return samples, _by_level(mean.levels, closed)
    if isinstance(mean, Full):
        active = list(_active(mean, closed))
        return sum(blocks.weight(level) * count for level, count in enumerate(active)), _by_level(mean.levels, active)
    raise TypeError(f"{type(mean).__name__} is not planned here")


def _by_level(levels: Sequence[Level], counts: Sequence[int]) -> Scales:
    return tuple(one for level, count in zip(levels, counts, strict=False) for one in level.tree.scales(count))


def _active(mean: Full, closed: Sequence[int]) -> Iterator[int]:
    """Blocks of the levels that count: those without a prior, then as long as the blocks below hold enough for one."""
    ready = 0
    for index, count in enumerate(closed):
        if index >= mean.first or mean.sigma is not None:
            level = mean.levels[max(index, mean.first)]  # with sigma, level 0 waits for the prior of level 1
            below = ready if index else closed[0]
            if below < level.array_size * level.arrays:
                return
        yield count
        ready += blocks.weight(index) * count


def prospect(mean: MeanParameters, pattern: Pattern, releases: int | None, spread: Fraction = Fraction(1)) -> Prospect:
    """What comes of the mean.

    releases: over the whole time, evenly; None: one per contribution. spread: part of the range that values lie in.
    """
    if isinstance(mean, Sharp):
        from shoal.mechanisms.continual_mean.sharp.forecast import SharpProspect

        return SharpProspect(mean, pattern, releases, spread)
    return Counted(mean, pattern)
