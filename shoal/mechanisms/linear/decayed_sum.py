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

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from shoal.mechanisms import check
from shoal.mechanisms.error_bars import coverage_of, six_digits
from shoal.mechanisms.grid import LARGEST, Grid, grid_of
from shoal.mechanisms.linear.decay import decay_of, rest_of
from shoal.mechanisms.linear.sides import Indices, Samples
from shoal.mechanisms.linear.stepped import PlannedStatistic
from shoal.mechanisms.linear.sums import LinearSums
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Mean, PublicCount, Sum
from shoal.mechanisms.statistic import NO_ESTIMATE, Estimate, clamped_within
from shoal.mechanisms.sums.decays import AnyWindow
from shoal.mechanisms.sums.patent.all_window_sum import AllWindowSum, answer
from shoal.mechanisms.sums.running import Last, RunningSum
from shoal.mechanisms.sums.sums import DecayedSum, Summer

ONE = Grid(Fraction(0), Fraction(1), 2)  # of counts, which have no range
EXACT = (0.0, 0.0)  # error bars


class Step(NamedTuple):
    """The numbers that a step of a sum that does not forget has published, for windows."""

    samples: int  # since the beginning
    nodes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Stepped(PlannedStatistic):
    """All public parameters of a sum, count or mean that is released at every step."""

    statistic: type[Sum] | type[PublicCount] | type[Mean]
    grid: Grid = ONE
    epsilon: Fraction = Fraction(0)  # 0 of a count alone

    def __post_init__(self) -> None:
        if self.statistic is PublicCount:
            check.positive(max_contributions=self.max_contributions)
        else:
            super().__post_init__()

    @cached_property
    def sums(self) -> DecayedSum:
        """The decayed sum of a group; for a count its weights alone are used."""
        width = self.max_contributions * self.grid.steps
        epsilon = Fraction(self.epsilon) if self.epsilon else Fraction(1)
        return self.made(width, epsilon)

    @property
    def decayed(self) -> tuple[DecayedSum, ...]:
        return (self.sums,)

    @property
    def mechanism(self) -> str:
        return "exact" if self.statistic is PublicCount else self.sums.mechanism

    @property
    def is_exact(self) -> bool:
        return self.statistic is PublicCount

    def breadth(self, spread: Fraction = Fraction(1)) -> float | None:
        return float((self.grid.high - self.grid.low) * spread) if self.statistic is Mean else None

    def noise_of(self, sd: float, half: float | None, n: float) -> tuple[float | None, float | None]:
        if self.statistic is Sum:
            return sd, half
        return (sd / n, None if half is None else half / n) if n else (None, None)

    # ---------------------------------------------------------------- of a metric's parts

    @classmethod
    def of(cls, metric: Metric) -> "Stepped":
        what = expect(metric.of, Mean, Sum, PublicCount)
        made = cls(
            statistic=type(what),
            decay=decay_of(metric),
            algorithm=metric.by.name,
            epsilon=metric.budget.epsilon,
            delta=metric.budget.delta,
            max_contributions=metric.samples,
            grid=ONE if isinstance(what, PublicCount) else grid_of(what.values),
            clamps=isinstance(what, Mean) and what.clamp,
            max_gap=rest_of(metric),
            coverage=coverage_of(metric.by.bars.simultaneous),
        )
        made.sums.noise_sd(1)  # whatever it refuses, it refuses now
        return made

    def releaser(self, key: bytes, group: bytes) -> "StepReleaser":
        return StepReleaser(self, key, group)

    @property
    def windows(self) -> AnyWindow | None:
        """The decayed sum if its releases tell the sum over any window, else None."""
        return self.sums if isinstance(self.sums, RunningSum | AllWindowSum) else None

    def estimate(
        self, noisy: int, samples: int, bars: tuple[float, ...], details: Mapping[str, Any] | None = None
    ) -> Estimate | None:
        """The estimate from a noisy sum of grid indices and the number of samples; None for a mean without samples.

        Both count in units of 1 / `denominator`; `bars` are of the sum, in units of the range.
        """
        parts = self.sums.denominator
        n = samples if parts == 1 else samples / parts
        if self.statistic is PublicCount:
            return Estimate(n, 0.0, n, n, {"samples": n}, details or {})
        sd, half = bars
        if self.statistic is Sum:
            value = self.grid.sum_value(noisy, samples, parts)
        elif n:
            value = self.grid.mean_value(noisy, samples)
            sd, half = sd / n, half / n
        else:
            return None
        low, high = max(value - half, -LARGEST), min(value + half, LARGEST)
        value, low, high = clamped_within(value, low, high, self._ends)
        return Estimate(value, sd, low, high, {"samples": n}, details or {})

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
        if self.statistic is PublicCount:
            return self.estimate(0, ends[0] - ends[1], EXACT)
        noisy = answer(sums.parts(end, length, last), lambda t: released(t).nodes)
        sd = six_digits(math.sqrt(sums.window_variance(end, length, last)))
        half = sums.window_quantile(end, length, last, self.coverage)
        bars = self.grid.width_value(sd), self.grid.width_value(half)
        return self.estimate(noisy, ends[0] - ends[1], bars)


class StepReleaser(LinearSums):
    """One group's sums, step by step.

    >>> from shoal.mechanisms.statistic import Contribution
    >>> from shoal.mechanisms.sums.decays import Window
    >>> releaser = Stepped(statistic=PublicCount, decay=Window(2), max_contributions=9).releaser(bytes(32), b"")
    >>> for samples in (3, 4, 0):
    ...     _, _ = releaser.add(Contribution(0, "", 0, 0, samples, 0)), releaser.close()
    ...     print(releaser.estimate().value)
    3
    7
    4
    """

    __slots__ = ("_stepped",)

    def __init__(self, stepped: Stepped, key: bytes, group: bytes) -> None:
        noised: tuple[Summer, ...] = ()
        if stepped.statistic is not PublicCount:
            noised = (stepped.sums.summer(lambda number: derive(key, group, "tree", "step", 0, 0, number)),)
        sides = Indices(stepped.grid.steps) if noised else Samples(public=1)
        super().__init__(sides, (stepped.sums.counts(), *noised), of_updates=stepped.of_updates)
        self._stepped = stepped

    def estimate(self) -> Estimate:
        """The release of the last complete step; without a value for a mean without samples."""
        stepped = self._stepped
        samples, *noisy = self.released
        bars = stepped.bars(self.t) if noisy else EXACT
        mechanism = {"mechanism": stepped.mechanism}
        estimate = stepped.estimate(sum(noisy), samples, bars, mechanism | self._nodes())
        return replace(NO_ESTIMATE, details=mechanism) if estimate is None else estimate

    def _nodes(self) -> dict[str, Any]:
        """The noised sums, in grid steps, from which the sum over any window is added up."""
        nodes: tuple[int, ...] | None = getattr(self.summers[-1], "released", None)
        return {} if nodes is None else {"nodes": [node_text(node) for node in nodes]}


def node_text(node: int) -> int | str:
    """A noised sum as JSON has it: an integer, or where that has no 64 bits its decimal text.

    >>> node_text(-5), node_text(1 << 63)
    (-5, '9223372036854775808')
    """
    return node if -(1 << 63) <= node < 1 << 63 else str(node)
