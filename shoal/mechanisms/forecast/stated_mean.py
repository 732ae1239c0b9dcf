"""A mean over a workload given by hand, under any of its settings: everything in closed form."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms.continual_mean.forecast import Prospect
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.forecast.comparison import MOST_CAP, Outlook, more_epsilon
from shoal.mechanisms.forecast.groups import GroupAhead, GroupsAhead
from shoal.mechanisms.forecast.mean_source import About, is_useful, one_mean, width_of
from shoal.mechanisms.forecast.point import Point, spaced
from shoal.mechanisms.life import life_of, stated_life
from shoal.mechanisms.parts.at import EachContribution
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import Events
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.variants import with_life, with_samples, with_users
from shoal.mechanisms.workload import Pattern, Stated, bias

MOST_PROSPECTS = 64  # that are remembered
INSTANTS = 1 << 14  # of a time without ticks
SAMPLE_SD = math.sqrt(1 / 20)  # of the assumed law, Beta(2, 2)


@dataclass(frozen=True)
class StatedMean:
    """One group of stated users; all groups are alike."""

    stated: Stated
    coordinate: int
    users: int
    samples: float  # of a user
    over: int | None  # microseconds; None: a release per contribution, for as long as it takes
    of_groups: tuple[int, int] | None  # what it is one group of: how many groups, and users of them all

    @classmethod
    def of(cls, metric: Metric, coordinate: int, stated: Stated) -> "StatedMean":
        """The workload with the metric's own settings for what was left open; other settings do not move it."""
        users, samples, of_groups = stated.users, stated.samples, None
        if stated.count(metric) > 1:
            users, here, of_groups = stated.in_a_group(metric, 0.0 if samples is None else samples)
            samples = None if samples is None else here
        given = metric.samples if samples is None else samples
        if metric.unit.is_event:
            users, given = _events(metric, stated.pattern(users, given))
        over = stated.over
        if over is None and not isinstance(metric.at, EachContribution):
            over = life_of(metric)
        return cls(stated, coordinate, users, given, over, of_groups)

    def about(self, metric: Metric) -> About:
        spread = float(self.stated.spread)
        sample_sd = self._body(metric) * SAMPLE_SD
        pattern = self.stated.pattern(self.users, self.samples)
        sampling = sample_sd / math.sqrt(max(1, pattern.samples(None, 1)))
        sizes = tuple((self.users * share, math.ceil(size)) for share, size in pattern.classes)
        return About(self.users, self.samples, self.over, self.stated.law, spread, sampling, sizes)

    def _body(self, metric: Metric) -> float:
        """The width of what values lie in; with a sigma of the assumed law that has it for standard deviation."""
        sigma = metric.by.sigma(self.coordinate)
        return (
            float(self.stated.spread) * width_of(metric, self.coordinate) if sigma is None else float(sigma) / SAMPLE_SD
        )

    def forecast(self, metric: Metric) -> "MeanForecast":
        """The metric over this workload.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        ticks = None if metric.length is None else max(1, metric.length.fits(self.over or 0))
        pattern = self.stated.pattern(self.users, self.samples)
        ahead = _prospect(one_mean(metric, self.coordinate), pattern, ticks, self.stated.spread)
        width = width_of(metric, self.coordinate)
        return MeanForecast(metric, ahead, ticks or INSTANTS, self.over, width, self._body(metric))

    def outlook(self, metric: Metric) -> Outlook:
        return self.forecast(metric).outlook()

    def final(self, metric: Metric) -> Point:
        forecast = self.forecast(metric)
        return forecast.point(forecast.ticks)

    def groups(self, metric: Metric) -> GroupsAhead | None:
        if self.of_groups is None:
            return None
        return GroupsAhead.alike(self.of_groups, GroupAhead.of(None, self.users, self.samples, self.final(metric)))

    def scaled(self, metric: Metric, what: str, factor: float) -> Sequence[tuple["StatedMean", Metric]]:
        """The same source with more epsilon, users or time; with more time, the cap is as before or larger."""
        if what == "epsilon":
            return [(self, more_epsilon(metric, factor))]
        if what == "users":
            expected = None if metric.by.users is None else round(metric.by.users * factor)
            return [(replace(self, users=round(self.users * factor)), with_users(metric, expected))]
        over = None if self.over is None else round(self.over * factor)
        life = stated_life(metric)
        lasting = metric if life is None else with_life(metric, round(life * factor))
        if metric.unit.is_event:  # each of which has one sample, however long it takes
            longer = replace(self, users=round(self.users * factor), over=over)
            return [(longer, lasting)]
        longer = replace(self, samples=self.samples * factor, over=over)
        caps = {metric.samples, min(MOST_CAP, round(metric.samples * factor))}
        return [(longer, with_samples(lasting, cap)) for cap in sorted(caps)]


@dataclass(frozen=True)
class MeanForecast:
    """One coordinate of a mean over a stated workload, release by release."""

    metric: Metric
    ahead: Prospect
    ticks: int  # of the whole time; parts of it where there is a release per contribution
    over: int | None  # microseconds
    width: float  # of the range
    body: float  # of what values lie in

    def point(self, tick: int) -> Point:
        """Release at the end of a tick."""
        at = None if self.over is None else self.over * tick // self.ticks
        if self.metric.length is not None:
            at = self.metric.length.span(tick)
        found = self.ahead.at(tick / self.ticks)
        moved = bias(found.left_out, self.body)
        part = tick / self.ticks
        return Point(at, found.samples, found.left_out, found.noise_sd, found.half_interval, moved, part=part)

    def outlook(self) -> Outlook:
        """Some releases of the whole time, and the first useful one."""
        ticks = spaced(self.ticks)
        points = tuple(map(self.point, ticks))
        useful = self._useful(dict(zip(ticks, points, strict=True)))
        return Outlook(self.metric, points, useful=useful, likely=self.ahead.likely(1))

    def _useful(self, points: Mapping[int, Point]) -> Point | None:
        """The first useful release, to the tick, by bisection between two releases."""
        before = 0
        for tick, point in points.items():
            if is_useful(point, self.width):
                break
            before = tick
        else:
            return None
        while before + 1 < tick:
            middle = (before + tick) // 2
            useful = is_useful(self.point(middle), self.width)
            before, tick = (before, middle) if useful else (middle, tick)
        return self.point(tick)


@lru_cache(MOST_PROSPECTS)
def _prospect(mean: MeanParameters, pattern: Pattern, ticks: int | None, spread: Fraction) -> Prospect:
    """The releases to come of a mean; metrics of equal parameters share one, which is searched for its start once."""
    return mean.prospect(pattern, ticks, spread)


def _events(metric: Metric, pattern: Pattern) -> tuple[int, float]:
    """The units of a metric of unit event: the events that count, and how many there are for each of those."""
    counted = max(1, pattern.samples(expect(metric.hides.limits, Events).of_a_user, 1))
    return counted, max(1.0, pattern.samples(None, 1) / counted)
