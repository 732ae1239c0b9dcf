"""A survey: what a topic's metrics could use of a file, before anything is registered or published of it.

It reads every record as `bound` would, and keeps no accounts. In come records in their order; what comes out are
functions of their pattern: how many no metric could use, with the first reasons, and how many come so late that they
would be refused or counted in a tick that is not their own.

Late records are no fault where the configuration says what becomes of them, by `late` or `lateness`; that a file is in
no order is one. Lags tell the two apart: in a file without an order most are a good part of all its time.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from shoal.models.events import Refusal, parse
from shoal.stream.bound import BoundPartition
from shoal.stream.event_time import LATE, EventClock
from shoal.stream.kernel.reader import MOST_IN_A_RUN
from shoal.stream.source.intake import sample_reader
from shoal.stream.topic import Metric, TopicPlan

KEPT = 3  # troubles
YEAR = 31_557_600 * 10**6  # microseconds: 365.25 days
FAR = 10  # a lag of more than one part in so many of the file's time is no lateness that a configuration meant


@dataclass(frozen=True)
class Trouble:
    """Why a record can be used by no metric, by the word of one."""

    number: int  # the caller's, of the record
    reason: str
    metric: Metric
    raw: bytes

    @property
    def is_garbled(self) -> bool:
        """Whether it is refused because it is no UTF-8."""
        if self.reason != "not-json":
            return False
        try:
            self.raw.decode()
        except UnicodeDecodeError:
            return True
        return False


@dataclass(frozen=True)
class Gap:
    """A time in which no record is; `before` and `after` number records on its two sides."""

    years: int  # it is longer
    before: int
    after: int


class Survey:
    """Counts over the records of one file."""

    def __init__(self, plan: TopicPlan, kernel: Any = None) -> None:
        """`kernel`: its module, if lines are to be looked through in it."""
        self.records = 0
        self.usable = 0  # by one metric at least
        self.late = 0
        self.garbled = 0  # refused, and no UTF-8: of a table that is in another encoding
        self.first_garbled = 0  # the number of the first
        self._unmeant = 0  # of the late, those of a metric that says nothing of lateness
        self._lags: Counter[int] = Counter()  # of the others: upper bits of the lag -> records
        self._first: int | None = None  # of the times that were read
        self._last = -(2**63)
        self._years: dict[int, int] = {}  # a year of event time -> the first record in it
        self.user = plan.metrics[0].parts.source.user  # of all metrics of a topic
        self.max_ahead = max(clock.max_ahead for clock in plan.clocks)
        self.troubles: list[Trouble] = []
        self._needs = _needs_of(plan)
        self._clocks = [
            (EventClock(clock), [one for one in self._needs if one.clock == clock.index]) for clock in plan.clocks
        ]
        self._kernel = None
        if kernel is not None:  # whose accounts stay empty
            self._kernel = BoundPartition(plan, 0, checks_partition=False, durable=False, kernel=kernel).kernel

    @property
    def refused(self) -> int:
        """Records that no metric can use."""
        return self.records - self.usable

    @property
    def by_metric(self) -> dict[str, int]:
        """How many records each metric can use."""
        return {metric.name: one.count for one in self._needs for metric in one.metrics}

    @property
    def disordered(self) -> int:
        """Late records that are no lateness that the configuration speaks of."""
        span = self._last - (self._first or 0)
        return self._unmeant + sum(count for lag, count in self._lags.items() if lag * FAR > span)

    @property
    def latest(self) -> int | None:
        """The latest time of a record, in microseconds; None if no time was read."""
        return None if self._first is None else self._last

    @property
    def reads_dates_as_seconds(self) -> bool:
        """Whether the first and the last time are seconds in 1970 with the digits of a calendar date, as 20240131."""
        return self._first is not None and _is_date(self._first) and _is_date(self._last)

    @property
    def longest_gap(self) -> Gap | None:
        """The longest, in whatever order the records come; None if all are in one year."""
        pairs = pairwise(sorted(self._years))
        gaps = [Gap(after - before - 1, self._years[before], self._years[after]) for before, after in pairs]
        return max(gaps, key=lambda gap: gap.years, default=None)

    def forget_order(self) -> None:
        """The records will come in another order: of their times."""
        self.late = self._unmeant = 0
        self._lags.clear()

    def _stretch(self, time: int) -> None:
        self._first = time if self._first is None else min(self._first, time)
        self._last = max(self._last, time)

    @property
    def takes_blocks(self) -> bool:
        """Whether lines can be looked through many at once."""
        return self._kernel is not None

    def look_through(self, lines: Any, first: int) -> None:
        """Take in lines of a file, of the kernel's class; the first has this number, the others follow."""
        at, run = 0, 1
        while self._kernel is not None and at < len(lines):
            left, times, years = self._kernel.survey(lines, at, [clock for clock, _ in self._clocks], YEAR)
            taken = left - at
            self.records += taken
            self.usable += taken
            for need in self._needs:
                need.count += taken
            for time in times or ():
                self._stretch(time)
            for year, number in years.items():
                self._years.setdefault(year, first + number)
            run = 1 if taken else min(2 * run, MOST_IN_A_RUN)
            at = min(left + run, len(lines))
            for number in range(left, at):
                self.look(first + number, lines[number].value)

    def look(self, number: int, raw: bytes) -> int | None:
        """Take in one record; its time, by any clock that can read it. One loop, for a million records come by."""
        self.records += 1
        is_usable = is_late = is_unmeant = False
        lag = 0
        time: int | None = None
        trouble: tuple[Refusal, _Need] | None = None
        event = parse(raw)
        if type(event) is Refusal:
            self._refuse(Trouble(number, event.reason, self._needs[0].metrics[0], raw))
            return None
        for event_clock, needs in self._clocks:
            effective: int | Refusal | None = event_clock.effective(event, raw, -1)
            if type(effective) is Refusal:
                if effective != LATE:
                    trouble = trouble or (effective, needs[0])
                    continue
                effective = None
            time = event_clock.time
            if self._first is None or not self._first <= time <= self._last:
                self._stretch(time)
            self._years.setdefault(time // YEAR, number)
            for need in needs:
                sample = need.read(event, raw)
                if type(sample) is Refusal:
                    trouble = trouble or (sample, need)
                    continue
                need.count += 1
                is_usable = True
                if effective != time and need.displaces(time, effective):
                    is_late, is_unmeant = True, is_unmeant or need.is_unmeant
                    lag = max(lag, (event_clock.latest or time) - time)
        self.usable += is_usable
        if is_late:
            self.late += 1
            self._unmeant += is_unmeant
            self._lags[_coarse(lag)] += not is_unmeant
        if trouble is not None and not is_usable:
            self._refuse(Trouble(number, trouble[0].reason, trouble[1].metrics[0], raw))
        return time

    def _refuse(self, trouble: Trouble) -> None:
        if trouble.is_garbled:
            self.garbled += 1
            self.first_garbled = self.first_garbled or trouble.number
        if len(self.troubles) < KEPT:
            self.troubles.append(trouble)


class _Need:
    """What some metrics of one clock read alike of an event: they need to be asked once."""

    __slots__ = ("clock", "count", "is_unmeant", "metrics", "read")

    def __init__(self, metrics: list[Metric]) -> None:
        one = metrics[0]
        self.metrics = metrics
        self.clock, self.read = one.clock, sample_reader(one)
        self.count = 0  # of records that they can use
        self.is_unmeant = not all(metric.states_lateness for metric in metrics)

    def displaces(self, time: int, effective: int | None) -> bool:
        """Whether a late event is refused, or counts in a tick or period that is not its own, in one of them."""
        return any(_is_displaced(metric, time, effective) for metric in self.metrics)


def _is_date(time: int) -> bool:
    """Whether a time is a number of seconds that is written as YYYYMMDD, of a year from 1900 to 2099.

    >>> _is_date(20240131 * 10**6), _is_date(20241331 * 10**6), _is_date(1_704_067_200 * 10**6)
    (True, False, False)
    """
    digits, rest = divmod(time, 10**6)
    month, day = digits // 100 % 100, digits % 100
    return not rest and 1900 <= digits // 10_000 < 2100 and 1 <= month <= 12 and 1 <= day <= 31


def _coarse(lag: int) -> int:
    """The lag, but for its lower bits: there are few such numbers, however many lags.

    >>> _coarse(5), _coarse(1_000_003)
    (5, 999424)
    """
    low = max(0, lag.bit_length() - 8)
    return lag >> low << low


def _needs_of(plan: TopicPlan) -> list[_Need]:
    found: dict[tuple[object, ...], list[Metric]] = {}
    for metric in plan.metrics:
        key = metric.clock, metric.parts.source.user, metric.parts.place, metric.parts.fields
        found.setdefault(key, []).append(metric)
    return [_Need(metrics) for metrics in found.values()]


def _is_displaced(metric: Metric, time: int, effective: int | None) -> bool:
    if effective is None or metric.length is None:
        return True
    lengths = (metric.length, metric.parts.unit.length)
    return any(one.index(time) != one.index(effective) for one in lengths if one is not None)
