"""Holds the contributions topic against the events: the same rows, however they were cut into messages.

In come two sets of messages, those that the events yield and those of the topic; out come findings. What is kept of
either is a fingerprint per source partition, contributions partition and group, not the rows:

    blocks    digest of the rows, in order; where a message ends does not matter
    partials  sum over cells of samples * a(tick, cell) + total * b(tick, cell) mod 2**127 - 1, with a and b drawn for
              this audit (of several coordinates, each has a b of its own): how a tick's samples are split into partials
              does not matter, and any other sums give another fingerprint but for a chance of 2**-127
    samples   of slots: sum over samples of a(slot, cell, user, place among that user's in the cell) * (value + 1), of
              several coordinates with an a for each; of each slot that is over. How they were cut into pieces does not
              matter, but each piece has the number that follows, by which release puts them in order
    clocks    never go back, have entered the step that the last event entered, and nothing comes for a tick or slot
              that they have said is over: release would leave it out, or count it in another one
"""

import secrets
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from shoal.agents.audit.replay.matching import Findings
from shoal.models.records import Message, Partial, Row
from shoal.stream.topic import Clock, TopicPlan

PRIME = 2**127 - 1
_SALT = secrets.token_bytes(32)  # not noise: coefficients that whoever wrote the topic could not know


class Blocks:
    """A fingerprint of rows whose order counts."""

    __slots__ = ("_digest", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._digest = blake2b(digest_size=32)

    def add(self, rows: Iterable[Row]) -> None:
        rows = list(rows)  # of one group, all of one message
        if not rows:
            return
        self.samples += sum(row[4] for row in rows)
        self._digest.update(orjson.dumps(rows)[1:-1] + b",")

    @property
    def print(self) -> bytes:
        return self._digest.digest()


class Partials:
    """A fingerprint of partials, whose sums per tick and cell count.

    >>> split, whole = Partials(), Partials()
    >>> split.add([(60, [0, 2, 30]), (0, [0, 1, 5, 7, 1, 2]), (60, [0, 1, 12])])
    >>> whole.add([(0, [7, 1, 2, 0, 1, 5]), (60, [0, 3, 42])])
    >>> split.print == whole.print, split.samples
    (True, 5)
    """

    __slots__ = ("_sum", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._sum = 0

    def add(self, partials: Iterable[Partial]) -> None:
        for start, flat in partials:
            numbers = iter(flat)
            for cell, samples, total in zip(numbers, numbers, numbers, strict=True):
                self.samples += samples
                for lane, number in enumerate([samples, *total] if isinstance(total, list) else [samples, total]):
                    self._sum = (self._sum + _coefficient(start, cell, lane) * number) % PRIME

    @property
    def print(self) -> bytes:
        return self._sum.to_bytes(16, "big")


class Samples:
    """A fingerprint of samples of slots; a user's order within a cell counts.

    >>> split, whole = Samples(), Samples()
    >>> split.add([(0, "u", 1, 0, 2, {"a": [5], "b": [7]}), (0, "u", 3, 0, 1, {"a": [6]})])
    >>> whole.add([(0, "u", 1, 0, 3, {"b": [7], "a": [5, 6]})])
    >>> split.over(60, 60) == whole.over(60, 60), split.over(60, 59), split.samples
    (True, {}, 3)
    """

    __slots__ = ("_numbers", "_open", "_positions", "_sums", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._numbers: dict[tuple[int, str], int] = {}  # of a user's last sample in the slot
        self._open: int | None = None  # the slot that was open when something was forgotten last
        self._sums: dict[int, int] = {}  # by slot's start
        self._positions: dict[tuple[int, str, str], int] = {}

    def add(self, rows: Iterable[Row]) -> None:
        for start, user, number, level, count, cells in rows:
            self.samples += count
            last = self._numbers.get((start, user), 0)
            if (number, level, count) != (last + 1, 0, sum(map(len, cells.values()))):  # bound sends no such row
                self._sums[start] = (self._sums.get(start, 0) + _coefficient(start, user, number)) % PRIME
            self._numbers[start, user] = last + count
            for cell, values in cells.items():
                first = self._positions.get((start, user, cell), 0)
                self._positions[start, user, cell] = first + len(values)
                for position, value in enumerate(values, first):
                    more = _sample_print(value, start, cell, user, position)
                    self._sums[start] = (self._sums.get(start, 0) + more) % PRIME

    def forget(self, length: int, promise: int) -> None:
        """Forget slots that were over by the promise: nothing more comes for them."""
        if promise // length == self._open:
            return
        self._open = promise // length
        self._positions = {
            name: position for name, position in self._positions.items() if _end(name[0], length) > promise
        }
        self._numbers = {name: number for name, number in self._numbers.items() if _end(name[0], length) > promise}

    def over(self, length: int, promise: int) -> dict[int, int]:
        """Fingerprints of the slots that were over by the promise."""
        return {start: sum_ for start, sum_ in self._sums.items() if _end(start, length) <= promise}


def _sample_print(value: Any, *name: int | str) -> int:
    """The part of a sample in a slot's fingerprint; one of several coordinates is a list."""
    if isinstance(value, list):
        return sum(_sample_print(number, *name, axis) for axis, number in enumerate(value))
    return _coefficient(*name) * (int(value) + 1)


def _end(time: int, length: int) -> int:
    """The end of the slot that a time is in; a slot's stated start may be forged."""
    return (time // length + 1) * length


def _coefficient(*name: int | str) -> int:
    drawn = blake2b(orjson.dumps(name), key=_SALT, digest_size=16)
    return int.from_bytes(drawn.digest(), "big")


class GroupSent:
    """The fingerprints of one group's contributions."""

    __slots__ = ("blocks", "partials", "slots")

    def __init__(self) -> None:
        self.blocks, self.partials, self.slots = Blocks(), Partials(), Samples()

    def print(self, length: int, promise: int) -> tuple[bytes, bytes, dict[int, int]]:
        """All three; a slot has this length, and counts if it was over by the promise."""
        return self.blocks.print, self.partials.print, self.slots.over(length, promise)

    @property
    def samples(self) -> int:
        return self.blocks.samples + self.partials.samples + self.slots.samples


class SentRows:
    """What one source partition sent to one contributions partition."""

    def __init__(self, plan: TopicPlan) -> None:
        self.messages = 0
        self.groups: dict[str, GroupSent] = {}
        self.watermarks: dict[str, int | None] = {}
        self.went_back = self.came_late = False
        self._retired = plan.retired
        self._slots = slots_of(plan)
        self._ticks = ticks_of(plan)

    def add(self, message: Message) -> None:
        """Take in the next message; what it says of retired metrics is left out."""
        self.messages += 1
        for key in dict.fromkeys((*message.contributions, *message.partials)):
            label = key.partition("|")[0]
            if label not in self._retired:
                group = self.groups.setdefault(key, GroupSent())
                rows, partials = message.contributions.get(key, ()), message.partials.get(key, ())
                times: list[Any] = [row[0] for row in (*rows, *partials)]
                self.came_late |= bool(times) and self._is_over(label, min(times))
                (group.slots if label in self._slots else group.blocks).add(rows)
                group.partials.add(partials)
        for clock, watermark in (message.watermarks or {}).items():
            before = self.watermarks.get(clock)
            self.went_back |= before is not None and (watermark is None or watermark < before)
            self.watermarks[clock] = watermark
            for key, group in self.groups.items() if self._slots else ():
                length, own_clock = self._slots.get(key.partition("|")[0], (0, ""))
                if own_clock == clock and watermark is not None:
                    group.slots.forget(length, watermark)

    def _is_over(self, label: str, time: int) -> bool:
        """Whether the tick of a time was said to be over."""
        every, clock = self._ticks.get(label, (None, ""))
        promise = self.watermarks.get(clock)
        if every is None or promise is None:
            return False
        return _end(time, every) <= promise


def compare(
    findings: Findings,
    where: str,
    plan: TopicPlan,
    yielded: SentRows,
    sent: SentRows,
    clocks: Mapping[str, int | None],
) -> None:
    """Compare what the events yield with the topic; `clocks` is what may be promised after the last event."""
    slots, nothing = slots_of(plan), GroupSent()
    for key in sorted(yielded.groups.keys() | sent.groups.keys()):
        due, there = yielded.groups.get(key, nothing), sent.groups.get(key, nothing)
        length, clock_label = slots.get(key.partition("|")[0], (1, ""))
        over = length, sent.watermarks.get(clock_label) or 0
        if due.print(*over) != there.print(*over):
            counts = f"the events yield {due.samples} samples, the topic has {there.samples}"
            findings.add("contributions", f"{where} {key}", f"contributions are not what the events yield: {counts}")
    if sent.went_back:
        findings.add("clock", where, "a watermark went back")
    if sent.came_late:
        findings.add("clock", where, "contributions came after a watermark that had said that there were no more")
    for clock in plan.clocks:
        reached, last = clocks.get(clock.label), sent.watermarks.get(clock.label)
        if clock.cadences and _steps(clock, reached) != _steps(clock, last):
            findings.add("clock", where, f"the last watermark of clock {clock.label} is not that of the events")


def slots_of(plan: TopicPlan) -> dict[str, tuple[int, str]]:
    """Length of a slot and label of the clock, for each metric with slots."""
    return {
        metric.label: (metric.section.slot, plan.clocks[metric.clock].label)
        for metric in plan.metrics
        if metric.section.kind.shared and metric.section.slot is not None
    }


def ticks_of(plan: TopicPlan) -> dict[str, tuple[int | None, str]]:
    """Length of a tick, step or slot and label of the clock, for each metric."""
    return {metric.label: (metric.every, plan.clocks[metric.clock].label) for metric in plan.metrics}


def _steps(clock: Clock, watermark: int | None) -> list[int] | None:
    """A source tells its watermark whenever that enters a new step of some cadence, or with contributions."""
    return None if watermark is None else [watermark // every for every in clock.cadences]
