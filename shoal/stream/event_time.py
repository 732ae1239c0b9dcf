"""An event clock: how far event time has got in one source partition, and what that makes of a record's time.

The horizon is the largest event time before the record, less the lateness. An event earlier than that is late: its
effective time is the horizon (it is folded), or it is refused under `late = "drop"`. Every other event's effective time
is its own.

Every source of time passes `check_ahead`: event times, clock records and beats. A time is refused if it is ahead of its
record's own timestamp by more than `max_ahead`, however near it is to the times before it. That decision reads the
record alone, so no ramp of small steps takes a clock further than one jump does. A record of a topic without a
timestamp moves no clock. Lines of a file have none, and move clocks unchecked.

Where presence is protected, no event moves the clock: a record that is there in one of two streams would move the times
of all others. It goes by the largest beat before the record, so that a record's effective time is a function of itself,
of its place and of beats.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.models.events import Refused, read_time
from shoal.models.records import BEAT_HEADER, CLOCK_HEADER
from shoal.models.times import time_of_text, valid
from shoal.stream.machine import Record
from shoal.stream.state_mark import last_beat
from shoal.stream.topic import BEATS, Clock

TEXTS_KEPT = 100_000
# Microseconds by which a beat may be ahead of its own record's stamp, at most: as much as brokers take releases that
# bear its time, whoever's clock is wrong by how much (`stamp_of` in agents/worker/outbox.py).
BEAT_AHEAD = 30 * 60 * 10**6


def check_ahead(time: int, stamp: int, max_ahead: int) -> None:
    """Refuse a time in microseconds that is too far ahead of its record's timestamp in milliseconds, -1 for none.

    Raises:
        Refused: it is, by more than `max_ahead` microseconds.
    """
    if stamp >= 0 and time - stamp * 1000 > max_ahead:
        raise Refused("too-far-ahead")


def time_in_headers(record: Record) -> tuple[str, int] | None:
    """Name and time of the header that makes a record without a value a clock record or a beat; None if none does."""
    for name, value in record.headers or ():
        if name in (CLOCK_HEADER, BEAT_HEADER):
            time = time_of_text((value or b"").decode("ascii", "replace"))  # a header may have no value
            if time is not None and valid(time) is not None:
                return name, time
    return None


def beats_ahead(clocks: Iterable[Clock]) -> int:
    """Microseconds by which a beat may be ahead of its record's timestamp: as much as every clock of beats allows."""
    return min((BEAT_AHEAD, *(clock.max_ahead for clock in clocks if clock.beats)))


class EventClock:
    """One clock of one source partition; a valid time moves it, whatever becomes of the rest of the record.

    Unless it goes by beats: then they alone do.
    """

    __slots__ = (
        "_beats", "_get", "_in_file", "_lateness", "_max_ahead", "_path", "_reading", "_texts", "clock", "latest",
        "time",
    )  # fmt: skip

    def __init__(self, clock: Clock, *, in_file: bool = True) -> None:
        """`in_file`: records are lines of a file, which move the clock without a timestamp."""
        self.clock = clock
        self.latest: int | None = None  # the largest event time so far, or the largest beat
        self.time = 0  # the last event's own, whatever its effective time
        self._get, self._path, self._reading = clock.get, clock.path or "", clock.reading
        self._lateness, self._max_ahead, self._beats = clock.lateness, clock.max_ahead, clock.beats
        self._in_file = in_file
        self._texts: dict[str, int] = {}  # times by their text: neighbours often share it, and calendars are slow

    def effective(self, event: dict[str, Any], raw: bytes, stamp: int) -> int:
        """A record's effective time; `stamp` is the record's own time in milliseconds, -1 for none.

        Raises:
            Refused: the record has no time that this clock can use.
        """
        try:
            time = _stamped(stamp) if self._get is None else self._time(self._get(event), raw)
        except Refused:
            raise
        except Exception:
            raise Refused("error") from None
        self.time = time
        check_ahead(time, stamp, self._max_ahead)
        latest = self.latest
        if latest is None or time > latest:
            if not self._beats and (stamp >= 0 or self._in_file):
                self.latest = time
            return time
        horizon = latest - self._lateness
        if time >= horizon:
            return time
        if self.clock.drops_late:
            raise Refused("late")
        return horizon

    def beat(self, time: int, stamp: int, max_ahead: int) -> None:
        """Take in a beat; to a clock that goes by records it is a record of that time.

        Raises:
            Refused: it is too far ahead, or its record has no timestamp to compare it with.
        """
        self._check(time, stamp, max_ahead)
        self.latest = time if self.latest is None else max(time, self.latest)

    def _time(self, found: Any, raw: bytes) -> int:
        if found.__class__ is not str:
            return read_time(found, raw, self._path, self._reading)
        time = self._texts.get(found)
        if time is None:
            time = read_time(found, raw, self._path, self._reading)
            if len(self._texts) >= TEXTS_KEPT:
                self._texts.clear()
            self._texts[found] = time
        return time

    def _check(self, time: int, stamp: int, max_ahead: int) -> None:
        if stamp < 0 and not self._in_file:
            raise Refused("no-time")
        check_ahead(time, stamp, max_ahead)

    @property
    def promise(self) -> int | None:
        """No later event of this partition will have an earlier effective time; None if nothing was heard."""
        return None if self.latest is None else self.latest - self._lateness

    def advance(self, time: int, stamp: int) -> None:
        """Promise the time of a clock record, as if an event that late had come; a clock of beats stays.

        Raises:
            Refused: it is too far ahead, or its record has no timestamp to compare it with.
        """
        if self._beats:
            return
        self._check(time, stamp, self._max_ahead)
        latest = time + self._lateness
        self.latest = latest if self.latest is None else max(latest, self.latest)


def kept_of_beats(clocks: Iterable[EventClock]) -> dict[str, int]:
    """The latest beat and the epoch of a partition's clocks, as its mark keeps them for clocks to come."""
    found = list(clocks)
    beats = [one.latest for one in found if one.clock.beats and one.latest is not None]
    epoch = max((one.clock.epoch for one in found), default=0)
    return ({"beat": max(beats)} if beats else {}) | ({"epoch": epoch} if epoch else {})


def restore_clocks(clocks: Iterable[EventClock], mark: Mapping[str, Any]) -> dict[str, int]:
    """Set clocks to where a mark says that they were; return the latest times of those that have no metric now.

    What such a clock has promised still holds in release, so it must not begin anew when it has a metric again. One
    that goes by beats goes by those that came meanwhile.
    """
    watermarks: dict[str, int | None] = mark["watermarks"]
    known = {one.clock.label: one for one in clocks}
    for label, event_clock in known.items():
        clock = event_clock.clock
        event_clock.latest = watermarks.get(label, last_beat(mark, clock.epoch) if clock.beats else None)
    gone = (label for label in watermarks.keys() - known.keys() if not label.endswith(BEATS))
    return {label: latest for label in sorted(gone) if (latest := watermarks[label]) is not None}


def _stamped(stamp: int) -> int:
    """Microseconds of a record's own time: any producer may have set it, to a time that no calendar has, too."""
    time = valid(stamp * 1000)
    if time is None or stamp < 0:
        raise Refused("no-time" if stamp < 0 else "bad-time")
    return time
