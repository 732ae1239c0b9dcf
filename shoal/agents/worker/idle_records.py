"""When an idle source partition writes an idle record: as often as the others' clocks need it, and no more often.

An idle record with wall time w lets clocks that were written until w - idle_after pass its partition
(`stream/clock.py`), and is kept for ever. So another one is worth writing only if another partition has grown since.
Every owner commits, beside its group offset, the wall time at which its clock last entered a step: from that the owner
of an idle partition learns of the others, on whichever worker they are. Where no events come, no idle records do.

Withholding an idle record can only delay a tick, never change one. It is written as soon as the others' latest step can
pass. While steps keep coming, so that there is no latest one, it is written at most every quarter of max(idle_after,
finest cadence). It is written at that pace in two more cases: when the others grow within a step, because release
remembers the past of a clock for only a few idle_after; and when a partition had records since its last idle record, so
that it no longer counts as idle.
"""

import asyncio
import time
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

from aiokafka.errors import KafkaError as ClientError
from faust.types.tuples import TP

from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.worker.partition import Partition
from shoal.stream.clock import STEPS
from shoal.stream.machine import StagePartition

LOOKS = 8  # in a time of idle_after
LEAST_PAUSE = 0.05  # seconds between two looks


class LastCommit(NamedTuple):
    """The group's offset of a partition and its note, with wall times in milliseconds."""

    offset: int
    step: int  # when its clock last entered a step
    grown: int  # when its offset was last seen to change; the step, if it never was


class Pace:
    """Decides for one idle partition whether an idle record is of use now. Wall times are in milliseconds."""

    def __init__(self, idle_after: int, cadence: int) -> None:
        self._idle_after = idle_after
        self._step = max(1, idle_after // STEPS)
        self._least = max(idle_after, cadence) // 4
        self._steps: deque[int] = deque()  # of the others' clocks, as they were seen; not yet let pass
        self._growth: deque[int] = deque()  # of the others, likewise

    def passes_at(self, wall: int) -> int:
        """From when on an idle record lets a clock pass that was written at this wall time; rounded up to a step."""
        return -(-wall // self._step) * self._step + self._idle_after

    def is_due(self, now: int, others: Collection[LastCommit], last: int | None, *, fresh: bool) -> bool:
        """Whether to write one now; `last` is when the last was written, `fresh` whether nothing has come since."""
        if not others:
            return last is None  # nothing has to pass
        step = self._note(self._steps, max(seen.step for seen in others), last)
        grown = self._note(self._growth, max(seen.grown for seen in others), last)
        paced = last is None or now >= last + self._least
        if last is None or self.passes_at(step) > last:
            return now >= self.passes_at(step) or (paced and now >= self.passes_at(self._steps[0]))
        if fresh and self.passes_at(grown) <= last:
            return False
        return paced and (not fresh or now >= self.passes_at(self._growth[0]))

    def _note(self, times: deque[int], latest: int, last: int | None) -> int:
        """Remember the latest time, and forget those that an idle record let pass already."""
        if not times or times[-1] < latest:
            times.append(latest)
        while len(times) > 1 and last is not None and self.passes_at(times[0]) <= last:
            times.popleft()
        return times[-1]


class Hosting(Protocol):
    """The part of the worker's host that is needed here."""

    settings: KafkaSettings
    partitions: dict[StagePartition, Partition]
    app: Any
    accepting: bool

    def stage_partition(self, tp: TP) -> StagePartition: ...


class Idling:
    """Writes the idle records of one worker's partitions."""

    def __init__(self, host: Hosting) -> None:
        self._host = host
        self._seen: dict[TP, LastCommit] = {}
        self._paces: dict[TP, Pace] = {}

    async def watch(self) -> None:
        """Write idle records where they are due, for ever."""
        while True:
            await asyncio.sleep(max(self._host.settings.idle_after / LOOKS, LEAST_PAUSE))
            quiet = {tp: part for tp, part in self._sources().items() if part.quiet}
            if not self._host.accepting or not quiet:
                continue
            try:
                await self._learn({tp.topic for tp in quiet})
                due = {tp for tp, part in quiet.items() if self._is_due(tp, part)}
                if due:
                    await self._tell(due)
            except (ClientError, TimeoutError):
                continue  # the assignment changed, or brokers are away

    def _sources(self) -> dict[TP, Partition]:
        """Hosted source partitions that can be idle."""
        hosted = self._host.partitions.items()
        sources = {TP(p.topic, p.number): part for p, part in hosted if p.stage == BOUND and _has_ticks(part)}
        self._paces = {tp: self._paces.get(tp) or self._pace(part) for tp, part in sources.items()}
        return sources

    def _pace(self, part: Partition) -> Pace:
        cadence = getattr(part.machine, "cadence", None) or 0
        return Pace(max(1, round(self._host.settings.idle_after * 1e6) // 1000), cadence // 1000)

    async def _learn(self, topics: set[str]) -> None:
        """Ask the group how far the clocks of these topics are."""
        commits = await self._host.app.consumer._thread.commits(topics)
        self._seen |= see(self._seen, commits, int(time.time() * 1000))

    def _is_due(self, tp: TP, part: Partition) -> bool:
        others = [seen for other, seen in self._seen.items() if other.topic == tp.topic and other != tp]
        last = getattr(part.machine, "idle_said", None)
        fresh = last is not None and last.offset == part.position
        now = int(time.time() * 1000)
        return self._paces[tp].is_due(now, others, last and last.wall, fresh=fresh)

    async def _tell(self, tps: set[TP]) -> None:
        """Ask twice in short order: only the second answer can be to a fetch that was sent after the first."""
        thread, host = self._host.app.consumer._thread, self._host
        await thread.idle(tps)
        await asyncio.sleep(4 * host.settings.fetch_wait)
        for tp, (end, wall) in (await thread.idle(tps)).items():
            part = host.partitions.get(host.stage_partition(tp))
            if host.accepting and part and part.quiet and part.expected == end:
                part.idle(wall)


def see(before: Mapping[TP, LastCommit], commits: Mapping[TP, tuple[int, str]], now: int) -> dict[TP, LastCommit]:
    """Read what owners committed; where one gave no wall time, a new offset counts as a step of now."""
    seen = {}
    for tp, (offset, note) in commits.items():
        known = before.get(tp)
        if known and known.offset == offset:
            seen[tp] = known if not note.isdecimal() else known._replace(step=int(note))
            continue
        step = int(note) if note.isdecimal() else now
        seen[tp] = LastCommit(offset, step, now if known else step)
    return seen


def _has_ticks(part: Partition) -> bool:
    """Whether idleness matters to the partition: without ticks nothing waits."""
    return getattr(part.machine, "cadence", 0) is not None
