"""An event clock: how far event time has got in one source partition, and what that makes of a record's time.

The horizon is the largest event time before the record, less the lateness. An event earlier than that is late: its
effective time is the horizon (it is folded), or it is refused under `late = "drop"`. Every other event's effective time
is its own.

Every source of time passes `is_ahead`: event times, clock records and beats. A time is refused if it is ahead of its
record's own timestamp by more than `max_ahead`, however near it is to the times before it. That decision reads the
record alone, so no ramp of small steps takes a clock further than one jump does. A record of a topic without a
timestamp moves no clock. Lines of a file have none, and move clocks unchecked.

Where presence is protected, no event moves the clock: a record that is there in one of two streams would move the times
of all others. It goes by the largest beat before the record, so that a record's effective time is a function of itself,
of its place and of beats.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.models.events import ERROR, Refusal
from shoal.models.records import BEAT_HEADER, CLOCK_HEADER
from shoal.models.times import time_of_text, valid
from shoal.stream.machine import Record
from shoal.stream.state_mark import last_beat
from shoal.stream.topic import BEATS, Clock

NO_TIME, BAD_TIME, TOO_FAR_AHEAD, LATE = map(Refusal, ("no-time", "bad-time", "too-far-ahead", "late"))
# Microseconds by which a beat may be ahead of its own record's stamp, at most: as much as brokers take releases that
# bear its time, whoever's clock is wrong by how much (`stamp_of` in agents/worker/outbox.py).
BEAT_AHEAD = 30 * 60 * 10**6


def is_ahead(time: int, stamp: int, max_ahead: int) -> bool:
    """Whether a time is more than `max_ahead` after its record's timestamp, in milliseconds, -1 for none."""
    return stamp >= 0 and time - stamp * 1000 > max_ahead


def _stamped(stamp: int) -> int | Refusal:
    """The time of a record's timestamp, which any producer may have set, to a time that no calendar has, too."""
    if stamp < 0:
        return NO_TIME
    time = valid(stamp * 1000)
    return BAD_TIME if time is None else time


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

    __slots__ = ("_beats", "_in_file", "_lateness", "_max_ahead", "_read", "clock", "latest", "time")

    def __init__(self, clock: Clock, *, in_file: bool = True) -> None:
        """`in_file`: records are lines of a file, which move the clock without a timestamp."""
        self.clock = clock
        self.latest: int | None = None  # the largest event time so far, or the largest beat
        self.time = 0  # the last event's own, whatever its effective time
        self._read, self._in_file = clock.read_time, in_file
        self._lateness, self._max_ahead, self._beats = clock.lateness, clock.max_ahead, clock.beats

    def effective(self, event: dict[str, Any], raw: bytes, stamp: int) -> int | Refusal:
        """A record's effective time, if it has a time that this clock can use.

        `stamp` is the record's own time in milliseconds, -1 for none.
        """
        try:
            time = _stamped(stamp) if self._read is None else self._read(event, raw)
        except Exception:  # a record that breaks the reader is bad input, too
            return ERROR
        if type(time) is Refusal:
            return time
        self.time = time
        if is_ahead(time, stamp, self._max_ahead):
            return TOO_FAR_AHEAD
        latest = self.latest
        if latest is None or time > latest:
            if not self._beats and (stamp >= 0 or self._in_file):
                self.latest = time
            return time
        horizon = latest - self._lateness
        if time >= horizon:
            return time
        return LATE if self.clock.drops_late else horizon

    def beat(self, time: int, stamp: int, max_ahead: int) -> Refusal | None:
        """Take in a beat, unless it is refused; to a clock that goes by records it is a record of that time."""
        refusal = self._refusal(time, stamp, max_ahead)
        if refusal is None:
            self.latest = time if self.latest is None else max(time, self.latest)
        return refusal

    def advance(self, time: int, stamp: int) -> Refusal | None:
        """Promise the time of a clock record, as if an event that late had come; a clock of beats stays."""
        if self._beats:
            return None
        refusal = self._refusal(time, stamp, self._max_ahead)
        if refusal is None:
            latest = time + self._lateness
            self.latest = latest if self.latest is None else max(latest, self.latest)
        return refusal

    def _refusal(self, time: int, stamp: int, max_ahead: int) -> Refusal | None:
        if stamp < 0 and not self._in_file:
            return NO_TIME
        return TOO_FAR_AHEAD if is_ahead(time, stamp, max_ahead) else None

    @property
    def promise(self) -> int | None:
        """No later event of this partition will have an earlier effective time; None if nothing was heard."""
        return None if self.latest is None else self.latest - self._lateness


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
