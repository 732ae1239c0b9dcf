"""Forecasts under relation add-remove: noise of counts and values of a key, or of a cell in a slot.

Noise is that of the very mechanism; how many samples there will be follows from the workload.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms.bins.tree import even_tree
from shoal.mechanisms.forecast.plan import extent
from shoal.mechanisms.forecast.point import Point
from shoal.mechanisms.forecast.step_workload import Steady, typical
from shoal.mechanisms.linear.distribution import mean_sd
from shoal.mechanisms.linear.estimates import LEAST_COUNT
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.linear.words import count_sd, side_sd
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Count, Distribution, Mean, Sum, Users, Variance
from shoal.mechanisms.parts.per import Keys
from shoal.mechanisms.workload import YEAR, Stated, bias

MEANS = Mean | Variance
QUOTIENTS = MEANS | Distribution
MIDDLE = math.sqrt(0.5)  # of a mean in the middle of its range, beside one at an end


@dataclass(frozen=True)
class SidesForecast:
    """A key of a metric of steps, with all the users of the workload that are in one."""

    metric: Metric
    steady: Steady

    @cached_property
    def statistic(self) -> LinearStatistic:
        return LinearStatistic.of(self.metric)

    def point(self, tick: int) -> Point:
        """Release of step `tick`."""
        metric, statistic = self.metric, self.statistic
        counted, there = self.steady.flow(metric).samples(statistic.decayed[0], statistic.decay, tick)
        missing = max(0.0, there - counted)
        if isinstance(metric.of, QUOTIENTS):
            moved = bias(missing / there if there else 0.0, extent(metric))
        else:
            moved = missing * size_of(metric)
        return Point(
            metric.every.span(tick), counted, max(0.0, 1 - counted / there) if there else 0.0,
            self._noise_sd(side_sd(metric, statistic.decayed, tick), counted), bias=moved,
            count_sd=count_sd(metric, statistic.decayed, tick),
        )  # fmt: skip

    def _noise_sd(self, side: float, counted: float) -> float | None:
        of = self.metric.of
        if isinstance(of, Count | Users):
            return side
        if isinstance(of, Sum):
            return side * max(map(abs, map(float, self.metric.ranges[0])))
        if isinstance(of, Distribution):
            tree = even_tree(of.bins)
            node = side * len(tree.shape)  # of whose levels each has a part of every sample
            is_enough = counted >= LEAST_COUNT * node * tree.total_variance**0.5
            return node * mean_sd(tree) / counted if is_enough else None
        is_enough = counted >= LEAST_COUNT * side * len(self.statistic.decayed) ** 0.5
        return extent(self.metric) * MIDDLE * side / counted if is_enough else None


def size_of(metric: Metric) -> float:
    """The expected size of what a sample adds to a count or a sum."""
    return 1.0 if isinstance(metric.of, Count | Users) else typical(metric, Fraction(1))


@dataclass(frozen=True)
class PlaceWorkload:
    """A slot of stated users, who give equally many samples in each slot that they may be in, and in each cell."""

    users: int  # in all cells
    samples: float  # of a user in a slot, in all cells, on average
    cells: int
    classes: tuple[tuple[float, float], ...]  # part of the users, samples of each beside the average

    @classmethod
    def of(cls, metric: Metric, stated: Stated) -> "PlaceWorkload":
        """The workload with the metric's own cap where samples are not stated; other settings do not move it."""
        cells = (stated.cells or stated.groups or 1) if isinstance(metric.per, Keys) else 1
        each = metric.samples / slots_of(metric) if stated.samples is None else stated.samples
        mean = float(each * slots_of(metric))  # which a user gives at once, or slot by slot: the cap is one over all
        classes = stated.pattern(stated.users, mean).classes
        return cls(stated.users, float(each), cells, tuple((share, size / mean) for share, size in classes))

    def counted(self, metric: Metric) -> float:
        """The samples of a user in a slot that count, on average."""
        most = float(metric.samples / slots_of(metric))
        return sum(share * min(self.samples * size, most) for share, size in self.classes)


@dataclass(frozen=True)
class PlaceForecast:
    """A cell of a metric of slots; all slots are alike."""

    metric: Metric
    work: PlaceWorkload
    made: LinearSlots

    def point(self, tick: int) -> Point:
        """Release of a slot that all users of the workload are in."""
        return self.release(self.work.users)

    def release(self, users: float) -> Point:
        """Release of a cell with this number of users in its slot."""
        made, width = self.made, extent(self.metric)
        each = self.work.counted(self.metric)
        counted, left_out = users * each / self.work.cells, 1 - each / self.work.samples
        noise_sd = self._noise_sd(counted) if counted >= LEAST_COUNT * made.count_sd else None
        return Point(None, counted, left_out, noise_sd, bias=bias(left_out, width), count_sd=made.count_sd)

    def _noise_sd(self, counted: float) -> float:
        """Noise of a mean in the middle of its range, or of a cumulative share on average over the bins."""
        made = self.made
        if made.of_levels is not None:
            return made.of_levels.typical_sd(counted)
        return extent(self.metric) * MIDDLE * made.count_sd / math.sqrt(len(made.sides.noised)) / counted


def slots_of(metric: Metric) -> int:
    """The slots that a unit may be in; of one without end those until the metric's, or a year of them."""
    period = metric.unit.period
    if period is None and metric.start is not None and metric.end is not None:
        period = metric.end - metric.start
    return YEAR if period is None else metric.every.fits(period)
