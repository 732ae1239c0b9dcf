"""The file runner: the same bounder and releaser over one source partition, without Kafka.

`FileRun` feeds records in line order through a `BoundPartition` and a `ReleasePartition` and hands out releases in the
order (at, metric, group, seq). Memory grows with users and with what is open, not with events.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import orjson

from shoal.mechanisms.parts.lengths import INSTANT
from shoal.models.records import BEAT_HEADER
from shoal.models.times import iso, time_of_text
from shoal.stream.bound import BoundPartition
from shoal.stream.group import GroupOutput
from shoal.stream.kernel.batches import Batches
from shoal.stream.machine import Record
from shoal.stream.release import ReleasePartition
from shoal.stream.topic import TopicPlan

CHUNK = 5_000  # records between two looks at the clock
CHUNK_BYTES = 1 << 26  # of the lines of a chunk, beyond which it has fewer

Item = TypeVar("Item")


class Line(NamedTuple):
    """One line of a file as a record: without key, headers or a timestamp of its own."""

    offset: int
    value: bytes | None
    key: None = None
    timestamp: int = -1
    headers: tuple[tuple[str, bytes], ...] = ()


def beat_line(offset: int, time: int) -> Line:
    """A beat as a record."""
    return Line(offset, None, headers=((BEAT_HEADER, iso(time).encode()),))


def line_of(offset: int, raw: bytes) -> Line:
    """A line of a file: an event, or a beat."""
    time = beat_of(raw)
    return Line(offset, raw) if time is None else beat_line(offset, time)


def has_beat(raw: bytes) -> bool:
    """Whether one of these lines may be a beat."""
    return BEAT_HEADER.encode() in raw


def beat_of(raw: bytes) -> int | None:
    """The time of a line that is a beat; None: it is an event.

    >>> beat_of(b'{"shoal-beat": "1970-01-01T00:00:01Z"}'), beat_of(b'{"shoal-beat": "now"}'), beat_of(b'{"u": 1}')
    (1000000, None, None)
    """
    if not has_beat(raw):
        return None
    try:
        event = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    is_beat = isinstance(event, dict) and list(event) == [BEAT_HEADER] and isinstance(event[BEAT_HEADER], str)
    return time_of_text(event[BEAT_HEADER]) if is_beat else None


@dataclass(slots=True)
class Output:
    """What a chunk of the input made."""

    made: list[bytes]  # releases in the order of their making, each group's by seq: for the log
    releases: list[GroupOutput]  # in the order of the file; those that an earlier time may still precede come later
    activations: list[bytes]
    dead_letters: list[bytes]
    events: int


class FileRun:
    """One run over one file; iterate `outputs` to its end."""

    def __init__(self, plan: TopicPlan, kernel: Any = None) -> None:
        self.plan = plan
        self.bound = BoundPartition(plan, 0, checks_partition=False, durable=False, kernel=kernel)
        self.bound.start(0)
        self.blocks = None if kernel is None or self.bound.kernel is None else kernel.RecordBatch  # class of lines
        self.release = ReleasePartition([plan], 0, idle_after=1, durable=False)
        self.release.start(0)
        self._held: list[GroupOutput] = []  # a heap: until nothing earlier can come

    @property
    def counters(self) -> Counter[str]:
        """What was refused, capped or late; functions of pattern."""
        return self.bound.counters + self.release.counters

    def outputs(self, lines: Iterable[Record], *, end: bool = True) -> Iterator[Output]:
        """Feed the lines; with `end`, close the last tick after them."""
        return self._outputs(chunked(lines, CHUNK, lambda line: len(line.value or b"")), end=end)

    def outputs_of(self, blocks: Iterable[Sequence[Record]], *, end: bool = True) -> Iterator[Output]:
        """Likewise of lines that come many at once, lists of records or of the kernel's class."""
        return self._outputs(_chunks(blocks), end=end)

    def _outputs(self, chunks: Iterable[Sequence[Record]], *, end: bool) -> Iterator[Output]:
        for chunk in chunks:
            self.bound.process(chunk, chunk[-1].offset + 1)
            yield self._drain(last=False)
        if end:
            self.bound.finish()
            yield self._drain(last=False)
            self._finish()
        yield self._drain(last=True)

    def _finish(self) -> None:
        """All metrics' last ticks close, as clock records in all partitions would close them.

        Where presence is protected those are the last before `end`, whatever came.
        """
        if self.plan.protects_presence:
            self.release.finish(max(metric.parts.end or 0 for metric in self.plan.metrics))
            return
        times = [(self.bound.watermark(metric.clock), metric.length or INSTANT) for metric in self.plan.metrics]
        ends = [length.end_after(time) for time, length in times if time is not None]
        if ends:
            self.release.finish(max(ends))

    def _drain(self, *, last: bool) -> Output:
        output = Output([], [], [], [], 0)
        bound = self.bound.take(wall=0)
        if bound is not None:
            output.dead_letters, output.events = bound.dead_letters, bound.events
            for _, message in bound.messages:
                self.release.receive(message)
        while True:
            self.release.work()
            while (released := self.release.take()) is not None:
                output.made += [release.value for release in released.releases]
                for release in released.releases:
                    heapq.heappush(self._held, release)
                output.activations += [activated.value for activated in released.activations]
            if not self.release.pending():
                break
        before = None if last else self._complete_before()
        while self._held and (last or (before is not None and self._held[0].at < before)):
            output.releases.append(heapq.heappop(self._held))
        return output

    def _complete_before(self) -> int | None:
        """No later release will be `at` an earlier time than this."""
        earliest: int | None = None
        for metric in self.plan.metrics:
            if metric.length is None:
                watermark = self.bound.watermark(metric.clock)
                limit = None if watermark is None else watermark - metric.parts.source.lateness
            else:
                acted = self.release.clock_of(metric.label)
                limit = None if acted is None else acted + 1
            if limit is None:
                return None
            earliest = limit if earliest is None else min(earliest, limit)
        return earliest


def chunked(items: Iterable[Item], most: int, size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Lists of `most` items, or of fewer where they have more than CHUNK_BYTES."""
    chunk, taken = list[Item](), 0
    for item in items:
        chunk.append(item)
        taken += size(item)
        if len(chunk) == most or taken > CHUNK_BYTES:
            yield chunk
            chunk, taken = [], 0
    if chunk:
        yield chunk


def _chunks(blocks: Iterable[Sequence[Record]]) -> Iterator[Sequence[Record]]:
    """Chunks as those of single lines: releases and their order in the file do not depend on them."""
    waiting = Batches(())
    for block in blocks:
        waiting = Batches((*waiting.parts, block))
        whole = len(waiting) if waiting.nbytes > CHUNK_BYTES else len(waiting) // CHUNK * CHUNK
        yield from (waiting[first : first + CHUNK] for first in range(0, whole, CHUNK))
        waiting = waiting[whole:]
    if waiting:
        yield waiting
