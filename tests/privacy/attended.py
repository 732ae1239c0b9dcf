"""A worker whose metrics protect presence, as it is seen from outside with one unit's records and without them.

A node's noise z in the one stream and z + R d in the other, where d is what the unit sent, make the same noisy sums of
both. All that is published or shown must then be the same bytes, for only noisy sums, and what finds keys, may depend
on records. That is looked at in two ways:

    scripted    every noisy sum is a number that its key, side and step decide. What else depends on what the unit sent?
    cancelled   noise is what it is, and the unit's samples add 0. Does what the others sent count as without the unit?

Both streams are cut, interleaved and crashed in ways of their own: load depends on how many records there are.
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import orjson

from shoal.agents.lane import TWIN
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.candidates import Candidates, weight_of
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from shoal.mechanisms.selection.upper_end import UpperEnd
from shoal.mechanisms.statistic import Block, Contribution
from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.forward import ForwardSum
from shoal.mechanisms.sums.running import RunningSum
from shoal.mechanisms.sums.table import TableSum
from shoal.mechanisms.sums.window import WindowSum
from shoal.models.config.file import Config
from shoal.models.records import BEAT_HEADER, CLOCK_HEADER
from shoal.models.times import iso
from shoal.stream.contributions import Queue
from shoal.stream.file_run import Line
from shoal.stream.machine import Outbox, StagePartition
from tests.privacy.hosted import Hosted, compiled
from tests.support.metric_keys import with_usual

SECOND = 10**6
LATER = 10**12  # a record's timestamp beyond the times of usual events and beats
SUMS: tuple[Any, ...] = (RunningSum, WindowSum, DecayedSteps, ForwardSum, TableSum)
USUAL = {
    "topic": "events", "user": "u", "value": "x", "time": "t", "statistic": "mean", "relation": "add-remove",
    "range": (0, 1), "epsilon": 1, "max_contributions": 3, "grid": 16, "every": "10s",
    "start": "1970-01-01T00:01:40Z", "end": "1970-01-01T00:03:20Z",
}  # fmt: skip


def present(*metrics: dict[str, Any], **web: Any) -> Config:
    """A configuration of metrics that protect presence."""
    named = [with_usual({"name": f"m{index}"} | metric, USUAL) for index, metric in enumerate(metrics)]
    said = [{key: value for key, value in one.items() if value is not None} for one in named]
    return Config.model_validate({"privacy": {"epsilon": 100}, "metric": said, "web": web})


@dataclasses.dataclass(frozen=True)
class Sent:
    """A record of a source partition: an event's bytes, or None and a header."""

    partition: int
    raw: bytes | None
    unit: str = ""  # "" of beats and clock records
    stamp: int = LATER
    header: tuple[str, int] | None = None  # name, and a time in seconds
    seconds: float | None = None  # an event's own time, where it has one

    def line(self, offset: int) -> Line:
        headers = () if self.header is None else ((self.header[0], iso(self.header[1] * SECOND).encode()),)
        return Line(offset, self.raw, timestamp=self.stamp, headers=headers)


def beat(partition: int, seconds: int, stamp: int = LATER) -> Sent:
    return Sent(partition, None, header=(BEAT_HEADER, seconds), stamp=stamp)


def clock_record(partition: int, seconds: int, unit: str) -> Sent:
    """What no beater writes: one unit's client did."""
    return Sent(partition, None, unit, header=(CLOCK_HEADER, seconds))


def sample(partition: int, unit: str, seconds: float, value: float = 0.5, stamp: int = LATER, **more: Any) -> Sent:
    raw = orjson.dumps({"u": unit, "x": value, "t": seconds, **more})
    return Sent(partition, raw, unit, stamp, seconds=seconds)


class Attended(Hosted):
    """A hosted worker that keeps what leaves it, as readers of topics see it."""

    def __init__(self, cfg: Config, sources: int = 1, homes: int = 1) -> None:
        self.published: dict[tuple[str, int], list[Any]] = {}
        # `cancelled` reaches into the queue of the twin.
        super().__init__(*(compiled(cfg, sources, homes, topic) for topic in cfg.topics), looks=False, lane=TWIN)
        self._wall = 10**12  # after all that is released

    def _time(self) -> float:
        """How much was published: when that was depends on load."""
        return sum(len(records) for each in self.published.values() for _, _, records in each)

    def send(self, records: Iterable[Sent]) -> None:
        for one in records:
            log = self._events[one.partition]
            log.append(one.line(len(log)))

    async def _write(self, partition: StagePartition, outbox: Outbox) -> None:
        await super()._write(partition, outbox)
        for target, records in outbox.records.items():
            if target[0] in (self.settings.releases, self.settings.activations):
                stamp = self._wall if outbox.stamp is None else outbox.stamp
                self.published.setdefault(target, []).append((stamp, outbox.events, records))

    def shown(self) -> list[Any]:
        """/metrics, /health, /ready and /readyz, now."""
        self._looks, before = True, self.seen
        self.seen = []
        self.look()
        self._looks, self.seen, seen = False, before, self.seen
        return [*seen[:3], *seen[4:]]  # not who is held back: only the host knows

    def told(self) -> dict[str, Any]:
        """All that left this worker."""
        return {"published": self.published, "shown": self.shown()}


class Scripted:
    """A summer of which each noisy sum is a number that its subkey and its step decide."""

    def __init__(self, summer: Any, name: bytes) -> None:
        self._summer, self._name = summer, name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._summer, attribute)

    def add(self, total: int) -> int:
        self._summer.add(total)
        draw = hashlib.sha256(b"%s %d" % (self._name, self._summer.t)).digest()
        return int.from_bytes(draw[:2], "big")


@contextmanager
def scripted() -> Iterator[None]:
    """All noisy sums are scripted."""
    with ExitStack() as patches:
        for each in SUMS:
            patches.enter_context(patch.object(each, "summer", _scripted(each)))
        patches.enter_context(patch.object(LinearSlots, "noisy", _noisy))
        yield


@contextmanager
def cancelled(unit: str, period: range | None = None) -> Iterator[None]:
    """What counts of a unit, or of a user's period of these seconds, is sent as if it were nothing: no samples, a sum
    of 0, no newcomer.
    """
    merge = Queue._merge

    def merged(queue: Queue, group: str | None, effective: int, user: bytes, block: Block) -> None:
        nothing = Block(block[0], block[1], 0, 0, block[4])
        is_its = user == unit.encode() and (period is None or effective // SECOND in period)
        merge(queue, group, effective, user, nothing if is_its else block)

    with patch.object(Queue, "_merge", merged):
        yield


def _noisy(self: LinearSlots, key: bytes, cell: bytes, slot: int, sums: Iterable[int]) -> list[int]:
    names = (b"%s %s %d %d" % (key, cell, slot, index) for index, _ in enumerate(sums))
    return [int.from_bytes(hashlib.sha256(name).digest()[:2], "big") for name in names]


def _scripted(sums: Any) -> Any:
    make = sums.summer

    def summer(self: Any, subkey: Any) -> Any:
        made = make(self, subkey)
        return made if isinstance(made, Scripted) else Scripted(made, subkey(0))

    return summer


@contextmanager
def clipped_somehow() -> Iterator[None]:
    """When a key's clip range is chosen, and which, are said by the words of its draws alone, whatever came."""

    def is_due(self: Any, units: int, rho: int, words: Iterator[int]) -> bool:
        return next(words) % 3 == 0

    def choose(self: Any, numbers: Any, words: Iterator[int]) -> int:
        return next(words) % len(numbers)

    with patch.multiple(UpperEnd, is_due=is_due, choose=choose):
        yield


@contextmanager
def shown_at(steps: Mapping[str, int]) -> Iterator[None]:
    """Keys that have a newcomer are shown at these steps, counted from the first, whatever their number is."""

    def draw(self: Any, group: str, candidate: Any, tick: int) -> None:
        self._waking.pop(group, None)
        step = self._first + steps.get(group, -1)
        if candidate.weight and step >= tick:
            self._wake(group, step)

    with patch.object(Candidates, "_draw", draw):
        yield


@contextmanager
def shown_in_every_slot(cells: Iterable[str]) -> Iterator[None]:
    """Cells that have a newcomer in a slot are shown there if they are among these, whatever their number is."""

    def is_shown(
        self: LinearSlots, of: Any, key: bytes, cell: str, slot: int, contributions: Iterable[Contribution]
    ) -> bool:
        return cell in cells and any(weight_of(one.total) for one in contributions if one.number == NEWCOMERS)

    with patch.object(LinearSlots, "is_shown", is_shown):
        yield


Schedule = list[tuple[str, int, int]]


def told(
    cfg: Config, phases: Iterable[Iterable[Sent]], schedules: Iterable[Schedule], sources: int = 2, homes: int = 2
) -> list[Any]:
    """What a worker tells after each phase of a stream, of which each is cut as its schedule says."""
    worker, found = Attended(cfg, sources, homes), []
    for phase, schedule in zip(phases, schedules, strict=True):
        worker.send(phase)
        for action, where, amount in schedule:
            worker.act(action, where, amount)
        worker.drain()
        found.append(worker.told())
    return found


def told_of_an_addition(
    before: Config, after: Config, phases: tuple[list[Sent], list[Sent]], schedule: Schedule, sources: int = 2
) -> dict[str, Any]:
    """What a worker tells that is started again with another configuration, wherever it is by then."""
    worker = Attended(before, sources)
    worker.send(phases[0])
    for action, where, amount in schedule:
        worker.act(action, where, amount)
    there = {metric.label for metric in worker.plan.metrics}
    plan = compiled(after, sources)
    added = frozenset(metric.label for metric in plan.metrics if metric.label not in there)  # as the ledger says
    worker.deploy(dataclasses.replace(plan, added=added))
    worker.send(phases[1])
    worker.drain()
    return worker.told()


def without(phases: Iterable[Iterable[Sent]], unit: str, period: range | None = None) -> list[list[Sent]]:
    """The neighbouring stream: none of a unit's records, or none of those whose own time lies in a period."""

    def is_its(one: Sent) -> bool:
        return one.unit == unit and (period is None or (one.seconds is not None and one.seconds // 1 in period))

    return [[one for one in phase if not is_its(one)] for phase in phases]
