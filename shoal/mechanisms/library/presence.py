"""Statistics under relation add-remove: that somebody is there is protected, with all that they do."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from shoal.mechanisms.library.counters import refuse_idle
from shoal.mechanisms.library.keys import Key
from shoal.mechanisms.library.numbers import EXACT, exact, exactly
from shoal.mechanisms.library.statistics import GRID, grid_of
from shoal.mechanisms.library.streams import UserStream
from shoal.mechanisms.linear.bounding import newcomers
from shoal.mechanisms.linear.sides import hidden_sides
from shoal.mechanisms.linear.statistic import ONE, LinearStatistic
from shoal.mechanisms.overall_accounts import Limit, Once, OverallAccounts, blocks_of
from shoal.mechanisms.parts.lengths import INSTANT
from shoal.mechanisms.parts.of import Count, Mean, Sum, Users
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from shoal.mechanisms.sums.decays import Decay, Undecayed, Window

STATISTICS: Mapping[str, type[Count | Users | Sum | Mean]] = {cls.name: cls for cls in (Count, Users, Sum, Mean)}
Said = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class KeySelection:
    """How groups are found that nobody declared: one is shown once its users outnumber a noisy threshold.

    Shapes   given to `PresenceStatistic(selection=...)`; `threshold(tick)`: a float
    Units    epsilon, delta: of a user, beside what is spent on what is released; keys: groups of a user that it is
             counted for, with weights like 1, 1/2, 1/3, ... that add up to 1; horizon: ticks expected, which share half
             of delta; each doubling of it has half of what is left. ends: the stream does, with the horizon, which then
             has all of delta. Thresholds are in users
    Raises   TypeError: a float; ValueError: a parameter that is not above 0, or a delta of 1 or more
    Source   docs/proofs/first-crossing.md

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import KeySelection
    >>> selection = KeySelection(epsilon=Fraction(1), delta=Fraction(1, 10**9), horizon=365)
    >>> selection.threshold(1), selection.loss
    (29.0, Loss(epsilon=Fraction(1, 1), delta=Fraction(1, 1000000000)))
    """

    epsilon: EXACT
    delta: EXACT
    horizon: int
    keys: int = 1
    ends: bool = False

    def __post_init__(self) -> None:
        _ = self.crossing  # what it refuses, it refuses now

    @cached_property
    def crossing(self) -> FirstCrossing:
        """The public parameters as the mechanism has them; not a part of the library."""
        weights, unit = falling(self.keys)
        return FirstCrossing(
            exact(epsilon=self.epsilon), exact(delta=self.delta), self.horizon, weights, unit, self.ends
        )

    @property
    def loss(self) -> Loss:
        """The cost to one user of finding all groups."""
        return Loss(self.crossing.epsilon, self.crossing.delta)

    def threshold(self, tick: int) -> float:
        """The users in one group, each with a weight of 1, at which it is likely to be shown at this tick, from 1."""
        return self.crossing.threshold(tick) / self.crossing.unit


@dataclass(frozen=True, kw_only=True)
class PresenceStatistic:
    """Count, users, sum or mean, of which nobody can tell whether you were there: released at every tick.

    Shapes   `open(key)` makes a `UserStream`; every declared group (one without a name where there are none) has an
             `Estimate` at every tick, another one from the tick on that shows it. Its counts have noise too
    Units    low, high: the range of a sum or mean, in the units of its values; decay: in ticks; users are counted once
             each (Undecayed), or once per tick (Window(1)). epsilon, delta: of a user in all groups and releases
             together, beside those of `selection`; max_contributions: samples of a user that count, in all groups
             together; of users so far groups that one counts in
    Raises   TypeError: a float where privacy is decided; ValueError: a parameter that is too small, missing, or of no
             use; KeyReused: the key has released another input
    Source   docs/proofs/two-sided.md. Relation add-remove: all of a user is there, or nothing

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import Key, KeySelection, PresenceStatistic
    >>> found = KeySelection(epsilon=Fraction(1), delta=Fraction(1, 10**9), horizon=30)
    >>> visitors = PresenceStatistic(statistic="users", epsilon=Fraction(1), max_contributions=1, selection=found)
    >>> visitors.loss, round(visitors.count_sd(30), 1)
    (Loss(epsilon=Fraction(2, 1), delta=Fraction(1, 1000000000)), 5.5)
    >>> stream = visitors.open(Key(bytes(range(32))).named("visitors"))
    >>> for user in range(200):
    ...     _ = stream.add(f"user {user}", group="bonn" if user else "a small village")
    >>> {town: estimate.value for town, estimate in stream.close().items()}
    {'bonn': 195}
    """

    statistic: Literal["count", "users", "sum", "mean"]
    epsilon: EXACT
    max_contributions: int
    decay: Decay = Undecayed()
    delta: EXACT = 0
    low: EXACT | None = None
    high: EXACT | None = None
    groups: tuple[str, ...] | None = None
    selection: KeySelection | None = None
    grid: int = GRID

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise ValueError(f"statistic is one of {', '.join(STATISTICS)}, not {self.statistic}")
        needs_range = self._has_values
        if any((end is not None) != needs_range for end in (self.low, self.high)):
            raise ValueError(f"a {self.statistic} " + ("needs low and high" if needs_range else "has no low and high"))
        if self.groups is not None and self.selection is not None:
            raise ValueError("groups are declared or found: give groups or selection, not both")
        if self._class is Users and not self._once:
            raise ValueError("users are counted once each, Undecayed(), or once per tick, Window(1)")
        refuse_idle(self.delta, self.sided.mechanism)

    @property
    def _class(self) -> type[Count | Users | Sum | Mean]:
        return STATISTICS[self.statistic]

    @property
    def _has_values(self) -> bool:
        return issubclass(self._class, Sum | Mean)

    @property
    def _once(self) -> Once | None:
        """Whether a user is counted once in each group, or once per tick; None: with each sample."""
        if self._class is not Users:
            return None
        if isinstance(self.decay, Undecayed):
            return "key"
        return "step" if self.decay == Window(1) else None

    @cached_property
    def sided(self) -> LinearStatistic:
        """The public parameters as the mechanism has them; not a part of the library."""
        grid = ONE if self.low is None or self.high is None else grid_of(self.low, self.high, self.grid)
        grid, sides = hidden_sides(self._class, grid)
        made = LinearStatistic(
            statistic=self._class,
            sides=sides,
            decay=self.decay,
            epsilon=exact(epsilon=self.epsilon),
            delta=exact(delta=self.delta),
            max_contributions=self.max_contributions,
            grid=grid,
            clamps=self._class is Mean,
            groups=("",) if self.groups is None else self.groups,
        )
        made.sums.noise_sd(1)
        return made

    @property
    def loss(self) -> Loss:
        """The cost to one user of everything, that of finding groups included."""
        released = Loss(self.sided.epsilon, self.sided.delta)
        return released if self.selection is None else released + self.selection.loss

    def count_sd(self, t: int) -> float:
        """Standard deviation of the noise of a group's count in its t-th release: of samples, or of users."""
        sums = self.sided.decayed
        return math.sqrt(len(sums)) * sums[0].noise_sd(t) / (sums[0].width / self.max_contributions)

    def open(self, key: Key, *, first: int = 0) -> UserStream:
        """A stream of samples under a key; `first` is the number of its first tick."""
        crossing = None if self.selection is None else self.selection.crossing
        made = replace(self.sided, first=first, selection=crossing)
        weights = () if crossing is None else crossing.weights
        limit = Limit(
            self.max_contributions,
            keys=self.max_contributions if self._once == "key" else len(weights),
            start=first,
            declared=None if self.groups is None else frozenset(self.groups),
            newcomers=newcomers(weights),
            step=INSTANT,
            once=self._once,
        )
        return UserStream(
            made,
            key._of_stream(("presence", self.statistic, *self._said(), *made.chosen())),
            lambda site, bounder: OverallAccounts(limit, blocks_of(bounder), site),
            first,
            grouped=self.groups is not None or crossing is not None,
            valued=self._has_values,
        )

    def _said(self) -> Said:
        """The parameters, as the names of keys spell them."""
        chosen = self.selection
        found: Said = (
            ()
            if chosen is None
            else (*exactly(chosen.epsilon, chosen.delta), chosen.horizon, chosen.keys, int(chosen.ends))
        )
        ends: Said = () if self.low is None or self.high is None else (*exactly(self.low, self.high), self.grid)
        declared: Said = () if self.groups is None else (len(self.groups), *sorted(self.groups))
        return (
            *exactly(self.epsilon, self.delta), self.max_contributions, "range", *ends, "groups", *declared,
            "selection", *found,
        )  # fmt: skip
