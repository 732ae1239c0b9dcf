"""Sums, counts and means that are released at every step of event time, and may forget: one decayed sum per group.

    sum     low * n_t + (high - low) / steps * F_t      F_t: the decayed sum of grid indices with its noise (decays.py)
    mean    low + (high - low) / steps * F_t / n_t      n_t: the decayed number of samples, which is public
    count   n_t, exact: under the relation "values" it costs nothing

Guarantee    that of the decayed sum: all releases of all groups together; the time and order of samples may react
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         at most m samples, whatever groups and steps they are in: a user's, a user's of one period, or one event
Sensitivity  L1, exact: a unit's samples move all groups' sums together by at most m * grid steps, so that groups share
             epsilon without a split: noise of different groups is independent, and losses add up like the changes
Noise        of the decayed sum, from subkeys of the group
Proof        docs/proofs/decay.md
Source       Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013), for algorithm "patent"
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple

from shoal.mechanisms import check
from shoal.mechanisms.accounts import Site
from shoal.mechanisms.decayed_sum import SUMS, keys
from shoal.mechanisms.decayed_sum.accounts import EventAccounts, Rule, UnitAccounts
from shoal.mechanisms.decayed_sum.groups import StepGroups
from shoal.mechanisms.error_bars import six_digits
from shoal.mechanisms.grid import LARGEST, Grid
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.spec import Spec
from shoal.mechanisms.statistic import (
    LEAST_EPSILON,
    NO_ESTIMATE,
    Activation,
    Bounder,
    Contribution,
    Estimate,
    OneByOne,
    OnGrid,
    clamped,
)
from shoal.mechanisms.sums.decays import AnyWindow, Decay, Window
from shoal.mechanisms.sums.patent.all_window_sum import AllWindowSum, answer
from shoal.mechanisms.sums.running import Last, RunningSum
from shoal.mechanisms.sums.sums import DecayedSum, Summer

Name = Literal["sum", "count", "mean"]
BARS_KEPT = 1 << 14  # groups of a metric ask for the same ones
ONE = Grid(Fraction(0), Fraction(1), 2)  # of counts, which have no range
EXACT = (0.0, 0.0)  # error bars


class Step(NamedTuple):
    """The numbers that a step of a sum that does not forget has published, for windows."""

    samples: int  # since the beginning
    nodes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Stepped(OnGrid):
    """All public parameters of a sum, count or mean that is released at every step."""

    statistic: Name
    decay: Decay
    algorithm: str = "sharp"
    grid: Grid = ONE
    epsilon: Fraction = Fraction(0)  # 0 of a count alone
    delta: Fraction = Fraction(0)
    max_contributions: int = 1  # m: of a unit, in all groups together
    clamps: bool = False  # a mean that is published lies in the range
    max_gap: int = 1  # steps without a sample in which a group is released all the same
    _bars: dict[int, tuple[float, float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.positive(max_contributions=self.max_contributions)
        if self.statistic != "count":
            check.positive(epsilon=self.epsilon)
            if self.epsilon < LEAST_EPSILON:
                raise ValueError(f"epsilon must be at least {LEAST_EPSILON}: below it the noise is beyond all numbers")

    @cached_property
    def sums(self) -> DecayedSum:
        """The decayed sum of a group; for a count its weights alone are used."""
        width = self.max_contributions * self.grid.steps
        epsilon = Fraction(self.epsilon) if self.epsilon else Fraction(1)
        if self.algorithm == "patent":
            return self.decay.patent(width, epsilon)
        return self.decay.sharp(width, epsilon, Fraction(self.delta))

    def bars(self, t: int) -> tuple[float, float]:
        """Standard deviation of the noise of release t and the 95 % quantile of its size, in units of the range."""
        bars = self._bars.get(t)
        if bars is None:
            if len(self._bars) >= BARS_KEPT:
                self._bars.clear()
            sd, half = self.sums.noise_sd(t), self.sums.noise_quantile(t)
            bars = self._bars[t] = self.grid.width_value(sd), self.grid.width_value(half)
        return bars

    @property
    def mechanism(self) -> str:
        """The name that a release gives the mechanism that made it."""
        return "exact" if self.statistic == "count" else self.sums.mechanism

    # ---------------------------------------------------------------- of a metric's keys

    statistics: ClassVar[tuple[str, ...]] = ("mean", "sum", "count")
    algorithms: ClassVar[tuple[str, ...]] = SUMS
    apart: ClassVar[bool] = False
    shared: ClassVar[bool] = False

    takes, check = staticmethod(keys.takes), staticmethod(keys.check)
    is_clamped, clauses = staticmethod(keys.is_clamped), staticmethod(keys.clauses)

    @staticmethod
    def defaults(statistic: str) -> dict[str, Any]:
        return {"epsilon": 0} if statistic == "count" else {}

    @classmethod
    def of(cls, spec: Spec) -> "Stepped":
        count = spec.statistic == "count"
        made = cls(
            statistic=spec.statistic,  # type: ignore[arg-type]  # one of the three: the keys were checked
            decay=keys.decay_of(spec),
            algorithm=spec.algorithm,
            epsilon=spec.epsilon,
            delta=spec.delta,
            max_contributions=spec.contribution_limit,
            grid=ONE if count else Grid(*spec.ranges[0], spec.grid),
            clamps=keys.is_clamped(spec),
            max_gap=spec.max_gap,
        )
        made.sums.noise_sd(1)  # whatever it refuses, it refuses now
        return made

    @staticmethod
    def accounts(spec: Spec, bounder: Bounder, site: Site) -> EventAccounts | UnitAccounts:
        unit = spec.privacy_unit
        if unit.is_event:
            return EventAccounts(bounder.add, site)
        rule = Rule(spec.contribution_limit, spec.max_groups_per_user, unit.period)
        return UnitAccounts(rule, bounder.add, site)

    # ---------------------------------------------------------------- what it is

    def chosen(self) -> list[str]:
        """The decayed sum that was chosen, as the digest of the parameters has it.

        It is chosen by floats: another machine that chose another one would draw other noise under the same names.
        """
        return [self.mechanism, hashlib.sha256(self.sums.shape().encode()).hexdigest()]

    @property
    def rest(self) -> int:
        """Steps of silence after which a group rests: `max_gap`, but never while a window still holds anything."""
        return max(self.max_gap, self.decay.length if isinstance(self.decay, Window) else 1)

    def bounder(self) -> OneByOne:
        return OneByOne(self.max_contributions)

    def in_groups(self, key: bytes) -> StepGroups:
        return StepGroups(partial(self.releaser, key), self.rest)

    def releaser(self, key: bytes, group: bytes) -> "StepReleaser":
        return StepReleaser(self, key, group)

    @property
    def windows(self) -> AnyWindow | None:
        """The decayed sum if its releases tell the sum over any window, else None."""
        return self.sums if isinstance(self.sums, RunningSum | AllWindowSum) else None

    def estimate(
        self, noisy: int, samples: int, bars: tuple[float, float], details: Mapping[str, Any] | None = None
    ) -> Estimate | None:
        """The estimate from a noisy sum of grid indices and the number of samples; None for a mean without samples.

        Both count in units of 1 / `denominator`; `bars` are of the sum, in units of the range.
        """
        parts = self.sums.denominator
        n = samples if parts == 1 else samples / parts
        if self.statistic == "count":
            return Estimate(n, 0.0, n, n, {"samples": n}, details or {})
        sd, half = bars
        if self.statistic == "sum":
            value = self.grid.sum_value(noisy, samples, parts)
        elif n:
            value = self.grid.mean_value(noisy, samples)
            sd, half = sd / n, half / n
        else:
            return None
        low, high = max(value - half, -LARGEST), min(value + half, LARGEST)
        return Estimate(clamped(value, self._ends), sd, low, high, {"samples": n}, details or {})

    @property
    def _ends(self) -> tuple[float, float] | None:
        return (float(self.grid.low), float(self.grid.high)) if self.clamps else None

    def window(self, end: int, length: int, last: Last, released: Callable[[int], Step]) -> Estimate | None:
        """The sum, count or mean over the last `length` of the steps 1 .. end, from releases alone.

        Raises:
            ValueError: this decay has no such windows.
        """
        sums = self.windows
        if sums is None:
            raise ValueError("only sums that do not forget tell windows afterwards")
        ends = [released(t).samples if t else 0 for t in (last(end), last(end - length))]
        if self.statistic == "count":
            return self.estimate(0, ends[0] - ends[1], EXACT)
        noisy = answer(sums.parts(end, length, last), lambda t: released(t).nodes)
        sd = six_digits(math.sqrt(sums.window_variance(end, length, last)))
        bars = self.grid.width_value(sd), self.grid.width_value(sums.window_quantile(end, length, last))
        return self.estimate(noisy, ends[0] - ends[1], bars)


class StepReleaser:
    """One group's sums, step by step: `add` within a step, `close` at its end, `skip` over steps that release nothing.

    >>> from shoal.mechanisms.sums.decays import Window
    >>> releaser = Stepped(statistic="count", decay=Window(2), max_contributions=9).releaser(bytes(32), b"")
    >>> for samples in (3, 4, 0):
    ...     _, _ = releaser.add(Contribution(0, "", 0, 0, samples, 0)), releaser.close()
    ...     print(releaser.estimate().value)
    3
    7
    4
    """

    __slots__ = ("_counts", "_noisy", "_public", "_samples", "_stepped", "_sums", "_total")

    def __init__(self, stepped: Stepped, key: bytes, group: bytes) -> None:
        self._stepped = stepped
        self._counts: Summer = stepped.sums.counts()
        self._sums: Summer | None = None
        if stepped.statistic != "count":
            self._sums = stepped.sums.summer(lambda number: derive(key, group, "tree", "step", 0, 0, number))
        self._samples = self._total = 0  # of the open step
        self._noisy = self._public = 0  # the last step's release, and decayed number of samples

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        self._samples += contribution.samples
        self._total += contribution.total
        return ()

    def close(self) -> tuple[Activation, ...]:
        self._public = self._counts.add(self._samples)
        if self._sums is not None:
            self._noisy = self._sums.add(self._total)
        self._samples = self._total = 0
        return ()

    def skip(self, steps: int) -> None:
        """Pass `steps` steps that publicly hold nothing, and release nothing."""
        for summer in self._summers:
            summer.skip(steps)

    @property
    def _summers(self) -> tuple[Summer, ...]:
        return (self._counts,) if self._sums is None else (self._sums, self._counts)

    # ---------------------------------------------------------------- out

    def estimate(self) -> Estimate:
        """The release of the last complete step; without a value for a mean without samples."""
        stepped = self._stepped
        bars = EXACT if self._sums is None else stepped.bars(self._sums.t)
        mechanism = {"mechanism": stepped.mechanism}
        estimate = stepped.estimate(self._noisy, self._public, bars, mechanism | self._nodes())
        return replace(NO_ESTIMATE, details=mechanism) if estimate is None else estimate

    def _nodes(self) -> dict[str, Any]:
        """The noised sums, in grid steps, from which the sum over any window is added up."""
        nodes: tuple[int, ...] | None = getattr(self._summers[0], "released", None)
        return {} if nodes is None else {"nodes": [node_text(node) for node in nodes]}

    # ---------------------------------------------------------------- state

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """The steps of a window in which anything came, with the number and sum of their samples."""
        sums = {} if self._sums is None else self._sums.kept
        rows = (_row(step, n, sums.get(step, 0)) for step, n in self._counts.kept.items())
        return {(row.level, row.pseudonym): row for row in rows}

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """The steps added to `kept` and those dropped, since the last call or restore.

        Which steps there are goes by their samples: whether a sum is 0 would tell of values.
        """
        added, dropped = self._counts.take_changes()
        sums = {} if self._sums is None else self._sums.take_changes()[0]
        return [_row(step, n, sums.get(step, 0)) for step, n in added.items()], [(0, str(step)) for step in dropped]

    def head(self) -> list[Any]:
        """[counts, sums]."""
        return [self._counts.head(), None if self._sums is None else self._sums.head()]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        rows = list(kept)
        counts, sums = head
        self._counts.restore(counts, {row.effective: row.samples for row in rows})
        if self._sums is not None:
            self._sums.restore(sums, {row.effective: row.total for row in rows if row.total})


def node_text(node: int) -> int | str:
    """A noised sum as JSON has it: an integer, or where that has no 64 bits its decimal text.

    >>> node_text(-5), node_text(1 << 63)
    (-5, '9223372036854775808')
    """
    return node if -(1 << 63) <= node < 1 << 63 else str(node)


def _row(step: int, samples: int, total: int) -> Contribution:
    """A step as a contribution that is kept; its effective time is its number."""
    return Contribution(step, str(step), 0, 0, samples, total)
