"""Statistics of users' values under relation "values": the mean so far, and sums and means that forget."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from shoal.mechanisms import check
from shoal.mechanisms.continual_mean.accounts import MeanAccounts
from shoal.mechanisms.continual_mean.accounts import Rule as MeanRule
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.library.counters import refuse_idle
from shoal.mechanisms.library.keys import Key
from shoal.mechanisms.library.numbers import EXACT, exact, exactly
from shoal.mechanisms.library.streams import UserStream
from shoal.mechanisms.linear.sides import Indices
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.overall_accounts import Limit, OverallAccounts, blocks_of
from shoal.mechanisms.parts.of import Mean, Sum
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.sums.decays import Decay
from shoal.mechanisms.workload import Pattern

STATISTICS: Mapping[str, type[Sum | Mean]] = {cls.name: cls for cls in (Sum, Mean)}
GRID = 1 << 20  # steps over the range


@dataclass(frozen=True, kw_only=True)
class SharpMean:
    """The mean of all values so far, of users who may give many: the default mean of shoal.

    Shapes   `open(key)` makes a `UserStream`; each tick in which anything came releases one `Estimate` per group, whose
             `value` is the middle of the range until enough has come
    Units    low, high: the range, to which values are clipped, in their units; epsilon: of a user, in all groups and
             releases together; max_contributions: samples of a user that count in a group; users: expected in a group,
             horizon: releases expected; both tune accuracy alone. max_groups: where there are groups
    Raises   TypeError: a float where privacy is decided; ValueError: a parameter that is too small, or no range;
             KeyReused: the key has released another input
    Source   George, Ramesh, Singh and Tyagi (2024) for blocks; docs/proofs/sharp.md. Relation values: who contributes
             when, and in which group, is public

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import Key, SharpMean
    >>> basket = SharpMean(low=0, high=200, epsilon=Fraction(1), max_contributions=4, users=1000)
    >>> round(basket.expected_noise_sd(users=1000, samples=3, releases=30), 2)
    2.27
    >>> stream = basket.open(Key(bytes(range(32))).named("basket"))
    >>> for day in range(20):
    ...     for user in range(50 * day, 50 * day + 50):
    ...         _ = stream.add(f"user {user}", 20 + user % 7)
    ...     released = stream.close()
    >>> round(stream.latest().value, 2), round(stream.latest().noise_sd, 2), stream.latest().samples
    (21.2, 4.25, 1000)
    """

    low: EXACT
    high: EXACT
    epsilon: EXACT
    max_contributions: int
    users: int = 1
    horizon: int | None = None
    max_groups: int | None = None
    grid: int = GRID

    def __post_init__(self) -> None:
        _ = self.mean  # what it refuses, it refuses now

    @cached_property
    def mean(self) -> Sharp:
        """The public parameters as the mechanism has them; not a part of the library."""
        return Sharp(
            grid=grid_of(self.low, self.high, self.grid),
            epsilon=exact(epsilon=self.epsilon),
            max_contributions=self.max_contributions,
            users=self.users if self.max_groups is None else 1,
            groups=1 if self.max_groups is None else self.max_groups,
            clamps=True,
            horizon=self.horizon,
        )

    @property
    def loss(self) -> Loss:
        """The cost to one user of everything, whether it is released or not."""
        return Loss(Fraction(self.epsilon))

    def expected_noise_sd(self, *, users: int, samples: int, releases: int) -> float:
        """Standard deviation to expect of the noise in the last of so many releases, in the units of the range.

        Of a group with so many users, who all give so many samples; half the range while none counts yet.
        """
        check.positive(users=users, samples=samples, releases=releases)
        expected = self.mean.prospect(Pattern.even(users, samples), releases).at(1.0)
        return math.inf if expected.noise_sd is None else expected.noise_sd

    def open(self, key: Key, *, first: int = 0) -> UserStream:
        """A stream of samples under a key; `first` is the number of its first tick."""
        said = exactly(self.low, self.high, self.epsilon)
        numbers = self.max_contributions, self.users, self.horizon or 0, self.max_groups or 0, self.grid
        rule = MeanRule(self.max_contributions, self.mean.groups)
        return UserStream(
            self.mean,
            key._of_stream(("sharp", *said, *numbers)),
            lambda site, bounder: MeanAccounts(rule, bounder.add, site),
            first,
            grouped=self.max_groups is not None,
            valued=True,
        )


@dataclass(frozen=True, kw_only=True)
class DecayedStatistic:
    """Sum or mean of users' values that forgets, or never does: released at every tick, whether anything comes or not.

    Shapes   `open(key)` makes a `UserStream`; from its first sample on a group has one `Estimate` per tick
    Units    low, high: the range, to which values are clipped, in their units; decay: in ticks; epsilon, delta: of a
             user, in all groups and releases together; max_contributions: samples of a user that count, in all groups
             together, so that groups share epsilon without a split. max_groups: where there are groups
    Raises   TypeError: a float where privacy is decided; ValueError: a parameter that is too small, or no range;
             KeyReused: the key has released another input
    Source   docs/proofs/decay.md. Relation values: who contributes when, and in which group, is public

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import DecayedStatistic, Key, Window
    >>> week = DecayedStatistic(
    ...     statistic="mean", decay=Window(7), low=0, high=10, epsilon=Fraction(1), max_contributions=2
    ... )
    >>> round(week.sum_noise_sd(7), 1)
    74.8
    >>> stream = week.open(Key(bytes(range(32))).named("week"))
    >>> for user in range(500):
    ...     _ = stream.add(f"user {user}", user % 10)
    >>> estimate = stream.close()[""]
    >>> round(estimate.value, 2), round(estimate.noise_sd, 2), estimate.samples
    (4.44, 0.06, 500)
    """

    statistic: Literal["sum", "mean"]
    decay: Decay
    low: EXACT
    high: EXACT
    epsilon: EXACT
    max_contributions: int
    delta: EXACT = 0
    max_groups: int | None = None
    grid: int = GRID

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise ValueError(f"statistic is sum or mean, not {self.statistic}")
        refuse_idle(self.delta, self.stepped.mechanism)

    @cached_property
    def stepped(self) -> LinearStatistic:
        """The public parameters as the mechanism has them; not a part of the library."""
        made = LinearStatistic(
            statistic=STATISTICS[self.statistic],
            sides=Indices(self.grid),
            decay=self.decay,
            grid=grid_of(self.low, self.high, self.grid),
            epsilon=exact(epsilon=self.epsilon),
            delta=exact(delta=self.delta),
            max_contributions=self.max_contributions,
            clamps=STATISTICS[self.statistic] is Mean,
            max_gap=1_000_000,
        )
        made.sums.noise_sd(1)
        return made

    @property
    def loss(self) -> Loss:
        """The cost to one user of everything, whether it is released or not."""
        return Loss(Fraction(self.epsilon), Fraction(self.delta))

    def sum_noise_sd(self, t: int) -> float:
        """Standard deviation of the noise in a group's t-th sum, in the units of the range; of a mean it is divided by
        the decayed number of samples.
        """
        return self.stepped.bars(t)[0]

    def open(self, key: Key, *, first: int = 0) -> UserStream:
        """A stream of samples under a key; `first` is the number of its first tick."""
        said = exactly(self.low, self.high, self.epsilon, self.delta)
        numbers = self.max_contributions, self.max_groups or 0, self.grid
        steps = ("updates",) if self.stepped.of_updates else ()  # the same sums, over other steps
        has_groups = self.max_groups is not None
        limit = Limit(self.max_contributions, self.max_groups or 0, leaves_out=has_groups)
        return UserStream(
            self.stepped,
            key._of_stream(("stepped", self.statistic, *said, *numbers, *steps, *self.stepped.chosen())),
            lambda site, bounder: OverallAccounts(limit, blocks_of(bounder), site),
            first,
            grouped=has_groups,
            valued=True,
        )


def grid_of(low: EXACT, high: EXACT, steps: int) -> Grid:
    """The grid over a range of exact ends."""
    return Grid(exact(low=low), exact(high=high), steps)
