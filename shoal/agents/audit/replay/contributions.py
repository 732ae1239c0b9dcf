"""Holds the contributions topic against the events: the same rows, however they were cut into messages.

In come two sets of messages, those that the events yield and those of the topic; out come findings. What is kept of
either is a fingerprint per source partition, contributions partition and group, not the rows (`fingerprints.py`). And
of the topic's clocks:

    clocks    never go back, have entered the step that the last event entered, and nothing comes for a tick or slot
              that they have said is over: release would leave it out, or count it in another one
"""

from collections.abc import Iterable, Mapping, Set
from operator import itemgetter
from typing import Any

import orjson

from shoal.agents.audit.replay.fingerprints import Blocks, Partials, Samples
from shoal.agents.audit.replay.matching import Findings
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.lengths import INSTANT, Even
from shoal.models.records import Message, Row, Written
from shoal.stream.group import label_of
from shoal.stream.topic import Clock, TopicPlan

TIME = itemgetter(0)  # of a row or partial


class GroupSent:
    """The fingerprints of one group's contributions."""

    __slots__ = ("blocks", "partials", "slots")

    def __init__(self) -> None:
        self.blocks, self.partials, self.slots = Blocks(), Partials(), Samples()

    def print(self, length: Even, promise: int) -> tuple[bytes, bytes, dict[int, int]]:
        """All three; a slot has this length, and counts if it was over by the promise."""
        return self.blocks.print, self.partials.print, self.slots.over(length, promise)

    @property
    def samples(self) -> int:
        return self.blocks.samples + self.partials.samples + self.slots.samples


class SlottedGroups:
    """The groups of one metric with slots, which forget a slot once the metric's clock has said that it is over."""

    def __init__(self, length: Even, clock: str) -> None:
        self.clock = clock
        self._length = length
        self._open: int | None = None  # the slot that is open by the clock
        self._told: list[Samples] = []  # groups that have heard so
        self._new: list[Samples] = []

    def add(self, group: Samples) -> None:
        self._new.append(group)

    def hear(self, watermark: int) -> None:
        """Have groups forget what is over: all of them when another slot is open than before, else the new ones."""
        is_open = self._length.index(watermark)
        for group in self._new if is_open == self._open else self._told + self._new:
            group.forget(self._length, watermark)
        self._open = is_open
        self._told += self._new
        self._new = []


class SentRows:
    """What one source partition sent to one contributions partition."""

    def __init__(self, plan: TopicPlan, kernel: Any = None) -> None:
        """`kernel`: what wrote the messages, if they come as it wrote them; it looks through its JSON itself."""
        self.messages = 0
        self.groups: dict[str, GroupSent] = {}
        self.watermarks: dict[str, int | None] = {}
        self.went_back = self.came_late = False
        self._retired = plan.retired
        self._slots = {label: SlottedGroups(*slot) for label, slot in slots_of(plan).items()}
        self._ticks = ticks_of(plan)
        self._kernel = None if self._slots else kernel

    def add(self, message: Message) -> None:
        """Take in the next message; what it says of retired metrics is left out."""
        self.messages += 1
        if not self._add_written(message.contributions):
            for key, rows in message.contributions.items():
                if (group := self._group(key)) is not None:
                    if rows:
                        self._note_time(key, min(map(TIME, rows)))
                    (group.slots if label_of(key) in self._slots else group.blocks).add(rows)
        for key, partials in message.partials.items():
            if (group := self._group(key)) is not None:
                if partials:
                    self._note_time(key, min(map(TIME, partials)))
                group.partials.add(partials)
        for clock, watermark in (message.watermarks or {}).items():
            self._hear(clock, watermark)

    def _group(self, key: str) -> GroupSent | None:
        """The fingerprints of a group; None for a retired metric."""
        group = self.groups.get(key)
        if group is None and (label := label_of(key)) not in self._retired:
            group = self.groups[key] = GroupSent()
            if (slotted := self._slots.get(label)) is not None:
                slotted.add(group.slots)
        return group

    def _add_written(self, contributions: Mapping[str, list[Row]]) -> bool:
        """Take in rows as the kernel wrote them, without making objects of them; False if they are not of that form."""
        runs = None
        if self._kernel is not None and isinstance(contributions, Written):
            raw, runs = memoryview(contributions.raw), self._kernel.runs(contributions.raw)
        if runs is None:
            return False
        for name, begin, end, samples, earliest in runs:
            key: str = orjson.loads(name)
            if (group := self._group(key)) is not None:
                self._note_time(key, earliest)
                group.blocks.take(raw[begin:end], samples)
        return True

    def _note_time(self, key: str, earliest: int) -> None:
        """Note whether this came for a tick that was said to be over."""
        length, clock = self._ticks.get(label_of(key), (None, ""))
        promise = self.watermarks.get(clock)
        if length is not None and promise is not None:
            self.came_late |= length.end_after(earliest) <= promise

    def _hear(self, clock: str, watermark: int | None) -> None:
        before = self.watermarks.get(clock)
        self.went_back |= before is not None and (watermark is None or watermark < before)
        self.watermarks[clock] = watermark
        if watermark is not None:
            for slotted in self._slots.values():
                if slotted.clock == clock:
                    slotted.hear(watermark)


def compare(
    findings: Findings,
    where: str,
    plan: TopicPlan,
    yielded: SentRows,
    sent: SentRows,
    clocks: Iterable[tuple[Clock, int | None]],
    gapped: Set[str] = frozenset(),
) -> None:
    """Compare what the events yield with the topic; `clocks` with what each may promise after the last event.

    Metrics that are `gapped` are left out: records of theirs are gone.
    """
    slots, nothing = slots_of(plan), GroupSent()
    for key in sorted(key for key in yielded.groups.keys() | sent.groups.keys() if label_of(key) not in gapped):
        due, there = yielded.groups.get(key, nothing), sent.groups.get(key, nothing)
        length, clock_label = slots.get(label_of(key), (INSTANT, ""))
        over = length, sent.watermarks.get(clock_label) or 0
        if due.print(*over) != there.print(*over):
            counts = f"the events yield {due.samples} samples, the topic has {there.samples}"
            findings.add("contributions", f"{where} {key}", f"contributions are not what the events yield: {counts}")
    if sent.went_back:
        findings.add("clock", where, "a watermark went back")
    if sent.came_late:
        findings.add("clock", where, "contributions came after a watermark that had said that there were no more")
    for clock, reached in clocks:
        last = sent.watermarks.get(clock.label)
        if clock.cadences and _steps(clock, reached) != _steps(clock, last):
            findings.add("clock", where, f"the last watermark of clock {clock.label} is not that of the events")


def slots_of(plan: TopicPlan) -> dict[str, tuple[Even, str]]:
    """Length of a slot and label of the clock, for each metric with slots."""
    return {
        metric.label: (metric.length, plan.clocks[metric.clock].label)
        for metric in plan.metrics
        if metric.length is not None and kind_of(metric.parts).shared
    }


def ticks_of(plan: TopicPlan) -> dict[str, tuple[Even | None, str]]:
    """Length of a tick, step or slot and label of the clock, for each metric."""
    return {metric.label: (metric.length, plan.clocks[metric.clock].label) for metric in plan.metrics}


def _steps(clock: Clock, watermark: int | None) -> list[int] | None:
    """A source tells its watermark whenever that enters a new step of some cadence, or with contributions."""
    return None if watermark is None else [length.index(watermark) for length in clock.cadences]
