"""A mean over a workload given by hand, under any of its settings: everything in closed form."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms.continual_mean.forecast import Expected, Prospect
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.source import About, is_useful, one_mean, width_of
from shoal.mechanisms.group_outlook import GroupOutlook, GroupsOutlook
from shoal.mechanisms.life import life_of
from shoal.mechanisms.outlook import MOST_CAP, Look, Outlook, more_epsilon, spaced
from shoal.mechanisms.plan import Spec, varied
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
    def of(cls, spec: Spec, coordinate: int, stated: Stated) -> "StatedMean":
        """The workload with the metric's own settings for what was left open; other settings do not move it."""
        users, samples, of_groups = stated.users, stated.samples, None
        if stated.count(spec) > 1:
            users, here, of_groups = stated.in_a_group(spec, 0.0 if samples is None else samples)
            samples = None if samples is None else here
        given = spec.contribution_limit if samples is None else samples
        if spec.privacy_unit.is_event:
            users, given = _events(spec, stated.pattern(users, given))
        over = stated.over
        if over is None and spec.every != "contribution":
            over = life_of(spec)
        return cls(stated, coordinate, users, given, over, of_groups)

    def about(self, spec: Spec) -> About:
        spread = float(self.stated.spread)
        sample_sd = self._body(spec) * SAMPLE_SD
        pattern = self.stated.pattern(self.users, self.samples)
        sampling = sample_sd / math.sqrt(max(1, pattern.samples(None, 1)))
        sizes = tuple((self.users * share, math.ceil(size)) for share, size in pattern.classes)
        return About(self.users, self.samples, self.over, self.stated.law, spread, sampling, sizes)

    def _body(self, spec: Spec) -> float:
        """The width of what values lie in; with a sigma of the assumed law that has it for standard deviation."""
        sigma = spec.sigmas[self.coordinate]
        return (
            float(self.stated.spread) * width_of(spec, self.coordinate) if sigma is None else float(sigma) / SAMPLE_SD
        )

    def outlook(self, spec: Spec) -> Outlook:
        try:
            ahead, ticks = self._ahead(spec)
        except ValueError as refused:
            return Outlook(spec, (), refused=str(refused))
        looks = tuple(self._look(spec, ahead, tick, ticks) for tick in spaced(ticks))
        return Outlook(spec, looks, useful=self._useful(spec, ahead, looks, ticks), likely=ahead.likely(1))

    def final(self, spec: Spec) -> Look:
        ahead, ticks = self._ahead(spec)
        return self._look(spec, ahead, ticks, ticks)

    def groups(self, spec: Spec) -> GroupsOutlook | None:
        if self.of_groups is None:
            return None
        last = self.final(spec)
        return GroupsOutlook.alike(
            *self.of_groups, GroupOutlook(None, self.users, self.samples, last.left_out, last.error)
        )

    def scaled(self, spec: Spec, what: str, factor: float) -> Sequence[tuple["StatedMean", Spec]]:
        """The same source with more epsilon, users or time; with more time, the cap is as before or larger."""
        if what == "epsilon":
            return [(self, more_epsilon(spec, factor))]
        if what == "users":
            expected = None if spec.users is None else round(spec.users * factor)
            return [(replace(self, users=round(self.users * factor)), varied(spec, users=expected))]
        over = None if self.over is None else round(self.over * factor)
        life = None if spec.life is None else round(spec.life * factor)
        if spec.privacy_unit.is_event:  # each of which has one sample, however long it takes
            longer = replace(self, users=round(self.users * factor), over=over)
            return [(longer, varied(spec, life=life))]
        longer = replace(self, samples=self.samples * factor, over=over)
        caps = {spec.contribution_limit, min(MOST_CAP, round(spec.contribution_limit * factor))}
        return [(longer, varied(spec, life=life, max_contributions=cap)) for cap in sorted(caps)]

    def _ahead(self, spec: Spec) -> tuple[Prospect, int]:
        ticks = max(1, (self.over or 0) // spec.every) if isinstance(spec.every, int) else None
        pattern = self.stated.pattern(self.users, self.samples)
        mean = one_mean(spec, self.coordinate)
        return _prospect(mean, pattern, ticks, self.stated.spread), ticks or INSTANTS

    def _look(self, spec: Spec, ahead: Prospect, tick: int, ticks: int) -> Look:
        at = None if self.over is None else self.over * tick // ticks
        if isinstance(spec.every, int):
            at = spec.every * tick
        expected: Expected = ahead.at(tick / ticks)
        moved = bias(expected.left_out, self._body(spec))
        return Look(
            tick / ticks, at, expected.samples, expected.noise_sd, expected.half_interval, expected.left_out, moved
        )

    def _useful(self, spec: Spec, ahead: Prospect, looks: Sequence[Look], ticks: int) -> Look | None:
        """The first useful release, to the tick, by bisection between two looks."""
        width, before = width_of(spec, self.coordinate), 0
        for look in looks:
            tick = round(look.part * ticks)
            if is_useful(look, width):
                break
            before = tick
        else:
            return None
        while before + 1 < tick:
            middle = (before + tick) // 2
            useful = is_useful(self._look(spec, ahead, middle, ticks), width)
            before, tick = (before, middle) if useful else (middle, tick)
        return self._look(spec, ahead, tick, ticks)


@lru_cache(MOST_PROSPECTS)
def _prospect(mean: MeanParameters, pattern: Pattern, ticks: int | None, spread: Fraction) -> Prospect:
    """The releases to come of a mean; metrics of equal parameters share one, which is searched for its start once."""
    return mean.prospect(pattern, ticks, spread)


def _events(spec: Spec, pattern: Pattern) -> tuple[int, float]:
    """The units of a metric of unit event: the events that count, and how many there are for each of those."""
    counted = max(1, pattern.samples(spec.max_events_per_user, 1))
    return counted, max(1.0, pattern.samples(None, 1) / counted)
