"""Workloads: who contributes when, before anybody does, and what it costs to leave some of it out.

Pattern      tau is the part of the time that is over, 0 .. 1. A user who gives x samples in all has given
             floor(x tau + phase); phases are spread evenly over 0 .. 1, so everything has a closed form
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from shoal.mechanisms.parts.hides import PerCell
from shoal.mechanisms.parts.metric import Metric

YEAR = 365  # ticks or steps, where nothing says how long it will last
FINE = 4  # classes of a skewed pattern in each halving of its users
BIAS = Fraction(1, 30)  # of the range, where everything is left out


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
        """Users who all give the same number; of 2.5, half of them give 2, half 3."""
        return cls(users, ((1.0, float(samples)),))

    @classmethod
    def skewed(cls, users: int, samples: float) -> "Pattern":
        """Users whose numbers fall like a power law of exponent 3/2, at least 1 each: a few give most.

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
        """The number of users who have given at least `samples` samples."""
        parts = (share * min(max(size * tau + 1 - samples, 0.0), 1.0) for share, size in self.classes)
        return round(self.users * sum(parts))

    def samples(self, cap: int | None, tau: float) -> int:
        """The samples so far, at most the first `cap` of each user."""
        parts = (share * (size * tau if cap is None else min(size * tau, cap)) for share, size in self.classes)
        return round(self.users * sum(parts))


def _halvings(users: int) -> list[tuple[float, float]]:
    """Classes from 1 down to 0 that get smaller by a constant factor, to a single user."""
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
        reached = sum(share * max(1.0, factor * size) for share, size in zip(shares, sizes, strict=True))
        low, high = (factor, high) if reached < mean else (low, factor)
    return [max(1.0, high * size) for size in sizes]


def bias(left_out: float, width: float) -> float:
    """The bias of a mean if a part of the samples is left out, as users who differ have shown.

    At most it is that part of the range. width: of what samples are clipped to.

    >>> bias(0.5, 120.0)
    1.0
    """
    return float(BIAS) * left_out * left_out * width


@dataclass(frozen=True)
class Stated:
    """Users who give samples at constant rates, all of them from the start to the end."""

    users: int  # of all groups together
    samples: float | None  # of a user, on average, in all groups together; None: as many as may count
    over: int | None  # microseconds; None: the metric's life
    skewed: bool = False
    spread: Fraction = Fraction(1)  # part of the range that values lie in
    groups: int | None = None  # over which the users are evenly spread; None: all are in one
    cells: int | None = None  # of a slot; None: as many as count of a user

    @property
    def law(self) -> str:
        """The way in which samples are shared among users."""
        return "skewed" if self.skewed else "even"

    def pattern(self, users: int, samples: float) -> Pattern:
        return (Pattern.skewed if self.skewed else Pattern.even)(users, samples)

    def count(self, metric: Metric) -> int:
        """The number of groups of a metric that the users spread over."""
        return 1 if metric.place is None else self.groups or 1

    def groups_of_a_user(self, metric: Metric) -> int:
        """The number of groups that every user is in: as many as count."""
        limits = metric.hides.limits
        return min(self.count(metric), 1 if isinstance(limits, PerCell) else limits.keys)

    def in_a_group(self, metric: Metric, samples: float) -> tuple[int, float, tuple[int, int] | None]:
        """Users of one group, samples of each there, and (groups, users of them all), None if there is one group."""
        count = self.count(metric)
        if count == 1:
            return self.users, samples, None
        each = self.groups_of_a_user(metric)
        return max(1, round(self.users * each / count)), samples / each, (count, self.users)
