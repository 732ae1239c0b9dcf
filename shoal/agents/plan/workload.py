"""A workload that is stated: so many users, so many samples of each, for so long; everything in closed form."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from shoal.agents.plan.groups import GroupOutlook, GroupsOutlook, alike
from shoal.agents.plan.mean import LOOKS, About, Look, Outlook, Workload, is_useful, one_mean
from shoal.mechanisms.continual_mean.forecast import Expected, Prospect
from shoal.mechanisms.workload import Pattern, bias
from shoal.models.config.metric import MetricSection

YEAR = 365  # ticks, where nothing says how long it will last
INSTANTS = 1 << 14  # of a time without ticks
SAMPLE_SD = math.sqrt(1 / 20)  # of the assumed law, Beta(2, 2)


@dataclass(frozen=True)
class Stated:
    """Users who give samples at constant rates, all of them from the start to the end."""

    users: int  # of all groups together
    samples: float | None  # of a user, on average, in all groups together; None: as many as may count
    over: int | None  # microseconds; None: the metric's horizon, or a year of ticks
    skewed: bool
    spread: Fraction
    private: bool = True
    count: int = 1  # groups, over which the users are evenly spread
    of_groups: tuple[int, int] | None = None  # what this is one group of: how many groups, and users of them all

    def in_a_group(self, section: MetricSection) -> "Stated":
        """What of it is in one group, if every user is in as many as count."""
        if self.count == 1:
            return self
        each = self.groups_of_a_user(section)
        return replace(
            self,
            users=max(1, round(self.users * each / self.count)),
            samples=None if self.samples is None else self.samples / each,
            count=1,
            of_groups=(self.count, self.users),
        )

    def groups_of_a_user(self, section: MetricSection) -> int:
        """So many they are in."""
        return min(self.count, section.max_groups_per_user)

    def groups(self, section: MetricSection, coordinate: int) -> GroupsOutlook | None:
        """All alike."""
        if self.of_groups is None:
            return None
        last = self.final(section, coordinate)
        one = GroupOutlook(None, self.users, self._samples(section), last.left_out, last.error)
        return alike(*self.of_groups, one)

    def settled(self, section: MetricSection) -> "Stated":
        """With the metric's own cap, horizon and cadence where nothing else was stated."""
        one = self.in_a_group(section)
        return replace(one, samples=one._samples(section), over=one._over(section))

    def outlook(self, section: MetricSection, coordinate: int) -> Outlook:
        """What comes of a metric's settings, over time."""
        try:
            ahead, ticks = self._ahead(section, coordinate)
        except ValueError as refused:
            return Outlook(section, (), None, str(refused))
        width = self._width(section, coordinate)
        looks = tuple(self._look(section, ahead, tick, ticks, width) for tick in spaced(ticks))
        return Outlook(section, looks, self._useful(section, ahead, looks, ticks, width), likely=ahead.likely(1))

    def final(self, section: MetricSection, coordinate: int) -> Look:
        """The last of its looks."""
        ahead, ticks = self._ahead(section, coordinate)
        return self._look(section, ahead, ticks, ticks, self._width(section, coordinate))

    def about(self, section: MetricSection, coordinate: int) -> About:
        """What is stated or assumed."""
        samples = self._pattern(section).samples(None, 1)
        over = self._over(section)
        sigma = section.sigmas[coordinate]
        spread = float(self.spread) * self._width(section, coordinate) * SAMPLE_SD if sigma is None else float(sigma)
        sampling = spread / math.sqrt(max(1, samples))
        pattern = "skewed" if self.skewed else "even"
        return About(self.users, self._samples(section), over, pattern, float(self.spread), sampling)

    def scaled(self, section: MetricSection, what: str, factor: float) -> Sequence[tuple["Workload", MetricSection]]:
        """The same with more epsilon, users or time; with more time, with the same cap and with a larger one."""
        if what == "epsilon":
            more = Fraction(factor).limit_denominator(1 << 20)
            return [(self, section.model_copy(update={"epsilon": section.epsilon * more}))]
        if what == "users":
            expected = None if section.users is None else round(section.users * factor)
            users = section.model_copy(update={"users": expected})
            return [(replace(self, users=round(self.users * factor)), users)]
        over = self._over(section)
        longer = replace(
            self, samples=self._samples(section) * factor, over=None if over is None else round(over * factor)
        )
        horizon = None if section.horizon is None else round(section.horizon * factor)
        caps = {section.cap, min(1 << 20, round(section.cap * factor))}
        return [
            (longer, section.model_copy(update={"horizon": horizon, "max_contributions": cap})) for cap in sorted(caps)
        ]

    def _samples(self, section: MetricSection) -> float:
        return section.cap if self.samples is None else self.samples

    def _pattern(self, section: MetricSection) -> Pattern:
        return (Pattern.skewed if self.skewed else Pattern.even)(self.users, self._samples(section))

    def _over(self, section: MetricSection) -> int | None:
        if self.over is not None or section.every == "contribution":
            return self.over
        assert isinstance(section.every, int)  # noqa: S101 - the other kind of cadence
        return section.horizon or YEAR * section.every

    def _ahead(self, section: MetricSection, coordinate: int) -> tuple[Prospect, int]:
        over, ticks = self._over(section), None
        if isinstance(section.every, int):
            ticks = max(1, (over or 0) // section.every)
        mean = one_mean(section, coordinate)
        return mean.prospect(self._pattern(section), ticks, self.spread), ticks or INSTANTS

    def _width(self, section: MetricSection, coordinate: int) -> float:
        low, high = section.ranges[coordinate]
        return float(high - low)

    def _look(self, section: MetricSection, ahead: Prospect, tick: int, ticks: int, width: float) -> Look:
        found, over = ahead.at(tick / ticks), self._over(section)
        at = None if over is None else over * tick // ticks
        if isinstance(section.every, int):
            at = section.every * tick
        return look(tick / ticks, at, found, bias(found.left_out, width * float(self.spread)))

    def _useful(
        self, section: MetricSection, ahead: Prospect, looks: Sequence[Look], ticks: int, width: float
    ) -> Look | None:
        """The first useful release, to the tick."""
        before = 0
        for one in looks:
            tick = round(one.part * ticks)
            if is_useful(one, width):
                break
            before = tick
        else:
            return None
        while before + 1 < tick:
            middle = (before + tick) // 2
            useful = is_useful(self._look(section, ahead, middle, ticks, width), width)
            before, tick = (before, middle) if useful else (middle, tick)
        return self._look(section, ahead, tick, ticks, width)


def look(part: float, at: int | None, found: Expected, bias: float) -> Look:
    """A release with its bias."""
    return Look(part, at, found.samples, found.noise_sd, found.half_interval, found.left_out, bias)


def spaced(ticks: int) -> list[int]:
    """Some of 1 .. ticks: half of them equally far apart, half of them in equal ratios."""
    if ticks <= LOOKS:
        return list(range(1, ticks + 1))
    half = LOOKS // 2
    equal = {ticks * i // half for i in range(1, half + 1)}
    return sorted(equal | {max(1, round(ticks ** (i / half))) for i in range(half)})
