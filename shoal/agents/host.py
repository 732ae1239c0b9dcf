"""Owns the partitions of a worker: takes them over, gives them up, keeps them fed.

In come Faust's signals and batches; out come running partitions. Order of a takeover: fence, then read the end, then
load, then admit, then process. A partition's state survives a rebalance only if the group's generation grew by one
since it was known to be ours; then nobody else can have owned it. All failures end the worker.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError as ClientError
from faust.types.tuples import TP

from shoal.agents.identities import STATE_KEY, Identities, check_state
from shoal.agents.idling import Idling
from shoal.agents.machine import Domain, Place, Record
from shoal.agents.partition import Partition
from shoal.agents.reach import Reach
from shoal.agents.restore import Reader
from shoal.agents.settings import AUDIT, BOUND, RELEASE, KafkaSettings
from shoal.agents.sink import Sink
from shoal.agents.stopping import fail_stop
from shoal.agents.transactions import Writer
from shoal.agents.transport import Batch
from shoal.models.errors import FailStop, KafkaError

log = structlog.get_logger("shoal.worker")

WATCH_EVERY = 1.0
INBOX = "inbox"
LEAD = "lead"


class Host:
    """The partitions of one worker."""

    def __init__(self, settings: KafkaSettings, domain: Domain) -> None:
        self.settings, self.domain = settings, domain
        self.partitions: dict[Place, Partition] = {}
        self.reach = Reach(settings)
        read = (*domain.sources, settings.contributions, settings.releases, settings.activations)
        self.identities = Identities(settings, read)
        self.sink = Sink(domain.sink, self.hold, self.let_go)
        self.app: Any = None
        self.accepting = False
        self.stopping = False
        self.stale = 0  # batches dropped because they did not follow the last one
        self.reseeks = 0
        self.revocations = 0
        self.on_owned: list[Callable[[], None]] = []
        self._holds: dict[TP, set[str]] = {}
        self._seeking: dict[TP, asyncio.Task[None]] = {}
        self._stuck: dict[TP, int] = {}
        self._idling = Idling(self)
        self._tasks: list[asyncio.Task[None]] = []

    # -- where things are

    def stage(self, topic: str) -> str:
        """The stage that reads a topic."""
        return self.settings.stage(topic)

    def place(self, tp: TP) -> Place:
        """The place of a topic's partition."""
        return Place(self.stage(tp.topic), tp.topic, tp.partition)

    def positions(self, assigned: set[TP]) -> dict[TP, int]:
        """Where to read on, for partitions that are hosted."""
        known = {TP(p.topic, p.partition): part.expected for p, part in self.partitions.items()}
        known |= {tp: feed.expected for tp, feed in self.sink.feeds.items()}
        return {tp: offset for tp, offset in known.items() if tp in assigned}

    def committed(self) -> dict[TP, int]:
        """Offsets for the group: behind all that is durable.

        Nothing for a partition without state: an offset says that a state must be there.
        """
        done = {TP(p.topic, p.partition): part.committed for p, part in self.partitions.items() if part.durable}
        return done | {tp: feed.done for tp, feed in self.sink.feeds.items()}

    def note(self, tp: TP) -> str:
        """What stands beside a group offset: when the partition's clock last entered a step, for `idling.py`."""
        part = self.partitions.get(self.place(tp))
        wall = getattr(part.machine, "clock_wall", None) if part else None
        return "" if wall is None else str(wall)

    # -- holding partitions back

    def held(self) -> set[TP]:
        """Partitions that must not be read now."""
        return {tp for tp, reasons in self._holds.items() if reasons}

    def hold(self, tp: TP, reason: str) -> None:
        """Stop reading a partition until the same reason is let go; it costs no record."""
        reasons = self._holds.setdefault(tp, set())
        if not reasons:
            self.app.consumer.pause_partitions({tp})
        reasons.add(reason)

    def let_go(self, tp: TP, reason: str) -> None:
        """Take back one reason; without reasons the partition is read again."""
        reasons = self._holds.get(tp, set())
        if reason in reasons:
            reasons.discard(reason)
            if not reasons and self.accepting and tp in self.app.consumer.assignment():
                self.app.consumer.resume_partitions({tp})

    # -- batches in

    def accept(self, message: Any) -> None:
        """Take a batch from an agent: never waits, and never lets a batch in that does not follow the last."""
        tp, batch = TP(message.topic, message.partition), message.value
        try:
            if not self.accepting:
                self.stale += 1
            elif self.stage(tp.topic) == AUDIT:
                self._accept_audit(tp, batch)
            else:
                self._accept(tp, batch)
        except Exception as error:
            fail_stop(error, f"{tp.topic}[{tp.partition}]")  # Faust would count the batch as done and go on

    def _accept(self, tp: TP, batch: Batch) -> None:
        part = self.partitions.get(self.place(tp))
        if part is None:
            self.stale += 1
        elif batch.start != part.expected:
            self._out_of_turn(tp, batch, part.expected)
        else:
            part.accept(batch)
            if part.full:
                self.hold(tp, INBOX)

    def _accept_audit(self, tp: TP, batch: Batch) -> None:
        feed = self.sink.feeds.get(tp)
        if feed is None:
            self.stale += 1
        elif not self.sink.accept(tp, batch):
            self._out_of_turn(tp, batch, feed.expected)

    def _out_of_turn(self, tp: TP, batch: Batch, expected: int) -> None:
        self.stale += 1
        held = bool(self._holds.get(tp))  # then the watchdog reads it again, when it is let go
        if not held and (batch.start is None or batch.start > expected):
            self._seek(tp)

    def _seek(self, tp: TP) -> None:
        """Something upstream lost a batch: read it again, never skip it."""
        if tp not in self._seeking:
            self.reseeks += 1
            self._seeking[tp] = asyncio.create_task(self._seek_back(tp))

    async def _seek_back(self, tp: TP) -> None:
        try:
            offset = self.positions({tp}).get(tp)
            if offset is not None and self.accepting:
                await self.app.consumer.seek_one(tp, offset)
        except Exception as error:
            if self.accepting:  # otherwise a rebalance overtook us, which seeks by itself
                fail_stop(error, f"seeking in {tp.topic}[{tp.partition}]")
        finally:
            del self._seeking[tp]

    # -- taking over and giving up

    async def on_revoked(self, _app: object, revoked: set[TP], **_: object) -> None:
        """Signal: a rebalance begins, all partitions are revoked. Commit what is processed."""
        self.accepting = False
        self.revocations += 1
        try:
            await asyncio.gather(*(part.drain() for part in self.partitions.values()))
            await self.app.consumer.force_commit()
            self.sink.drop()
            self._holds.clear()
        except Exception as error:
            fail_stop(error, "rebalance")

    async def on_rebalance_complete(self, _app: object, **_: object) -> None:
        """Signal: awaited by Faust before it seeks and reads on."""
        if self.stopping:
            return
        try:
            await self._take_over()
        except Exception as error:
            fail_stop(error, "takeover")

    async def _take_over(self) -> None:
        consumer, generation = self.app.consumer, self.app.consumer_generation_id
        assigned = {self.place(tp): tp for tp in consumer.assignment()}
        hosted = {place for place in assigned if place.stage != AUDIT}
        kept = {p: part for p, part in self.partitions.items() if p in hosted and part.generation >= generation - 1}
        dropped = [part for place, part in self.partitions.items() if place not in kept]
        self.partitions = kept
        await asyncio.gather(*(part.writer.stop() for part in dropped))
        began, revocations = time.monotonic(), self.revocations
        new = sorted(hosted - set(kept))
        taken = await self._recover(new, {tp for place, tp in assigned.items() if place.stage == AUDIT})
        self.partitions |= taken
        for part in self.partitions.values():
            part.generation = generation
        if self.stopping or self.revocations != revocations:
            return  # the next takeover keeps what we loaded: workers that flap must make progress
        for part in self.partitions.values():
            part.run()
        self.accepting = True
        self._begin_watching()
        log.info(
            "owns", generation=generation, new=[str(p) for p in new], gone=[str(part.place) for part in dropped],
            all=len(self.partitions), seconds=round(time.monotonic() - began, 3),
        )  # fmt: skip
        for tell in self.on_owned:
            tell()

    async def _recover(self, places: list[Place], audit: set[TP]) -> dict[Place, Partition]:
        if not places and not audit:
            self.sink.assign({})
            return {}
        writers = {place: Writer(self.settings, place, self.reach) for place in places}
        await asyncio.gather(*(writer.fence() for writer in writers.values()))
        while True:
            try:
                async with Reader(self.settings) as reader:
                    taken = {p: part for p, part in zip(places, await self._restore(reader, writers), strict=True)}
                    self.sink.assign(await self._audit_positions(reader, audit))
                    return taken
            except KafkaError:  # no broker answers
                await self.reach.wait()
            except ClientError as error:
                if not error.retriable and await self.reach.ask():
                    raise
                await asyncio.sleep(0.3)
                await self.reach.wait()

    async def _restore(self, reader: Reader, writers: dict[Place, Writer]) -> list[Partition]:
        identities = await self.identities.learn()
        logs = {place: TopicPartition(*writer.changelog) for place, writer in writers.items()}
        outputs = {p: TopicPartition(self.settings.releases, p.partition) for p in writers if p.stage == RELEASE}
        stable = await reader.stable_bounds([*logs.values(), *outputs.values()])
        sources = await reader.bounds(TopicPartition(p.topic, p.partition) for p in writers)
        states = await reader.load({tp: stable[tp] for tp in logs.values()})
        restored = []
        for place, writer in writers.items():
            last = None
            if place in outputs:
                last = await reader.last_committed(outputs[place], stable[outputs[place]])
            for tp in (logs[place], *(outputs[p] for p in (place,) if p in outputs)):
                writer.last_offsets[tp.topic, tp.partition] = stable[tp][1] - 1
            saved, now = states[logs[place]].pop(STATE_KEY, None), identities[place.topic]
            check_state(place.topic, saved, now)
            writer.preface = [] if saved else [(STATE_KEY, now.id.encode())]
            source = sources[TopicPartition(place.topic, place.partition)]
            restored.append(await self._admit(place, writer, states.pop(logs[place]), source, last))
        return restored

    async def _admit(
        self, place: Place, writer: Writer, state: dict[bytes, bytes], source: tuple[int, int], last: Record | None
    ) -> Partition:
        machine = self.domain.machine(place)
        machine.restore(state)
        if machine.next_offset is None:
            machine.start(source[0])
        position = machine.next_offset if machine.next_offset is not None else source[0]
        check_position(TP(place.topic, place.partition), position, source)
        await self.domain.admit(place, machine, last)
        part = Partition(self.settings, place, machine, writer)
        part.begin(position, durable=bool(state))
        part.on_low = lambda: self.let_go(TP(place.topic, place.partition), INBOX)
        return part

    async def _audit_positions(self, reader: Reader, tps: set[TP]) -> dict[TP, int]:
        if not tps:
            return {}
        committed = await self.app.consumer._thread.committed_offsets(tps)
        bounds = await reader.bounds(TopicPartition(*tp) for tp in tps)
        positions = {}
        for tp in tps:
            offset, (first, end) = committed[tp], bounds[TopicPartition(*tp)]
            positions[tp] = first if offset is None else offset
            check_position(tp, positions[tp], (first, end))
        return positions

    # -- watching

    def _begin_watching(self) -> None:
        loops = (
            self._watch,
            self._idling.watch,
            self.identities.watch,
            self.domain.watch,
            self.domain.watch_deployment,
        )
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._guard(loop)) for loop in loops]

    async def _guard(self, loop: Callable[[], Any]) -> None:
        try:
            await loop()
        except Exception as error:
            fail_stop(error, "watching")

    async def _watch(self) -> None:
        """A lost *last* batch leaves no later one to show the gap: compare what was fetched with what arrived."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            await self.reach.ask()  # so that an outage is said even when there is nothing to do
            self._pace()
            for part in self.partitions.values():
                part.wake()
            chain = self.app.consumer._thread.chain
            waiting = self.positions(self.app.consumer.assignment()) if self.accepting else {}
            late = {tp: n for tp, n in waiting.items() if chain.get(tp, n) > n and not self._holds.get(tp)}
            for tp, offset in late.items():
                if self._stuck.get(tp) == offset:
                    self._seek(tp)
            self._stuck = late

    def _pace(self) -> None:
        """Hold back sources that are far ahead of others, and let go of those that no longer are."""
        ahead = self.domain.ahead() if self.accepting else set()
        for place in self.partitions:
            if place.stage == BOUND:
                act = self.hold if place in ahead else self.let_go
                act(TP(place.topic, place.partition), LEAD)

    async def stop(self) -> None:
        """Commit what is processed and disconnect the producers."""
        self.stopping, self.accepting = True, False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(part.close() for part in self.partitions.values()))
        if self.app.consumer._thread.chain:  # it has read, so it is in the group
            await self.app.consumer.force_commit()
        await self.sink.stop()


def check_position(tp: TP, position: int, bounds: tuple[int, int]) -> None:
    """Refuse to read on where records are missing."""
    first, end = bounds
    name = f"{tp.topic}[{tp.partition}]"
    if position < first:
        raise FailStop(f"{name}: offsets {position} to {first - 1} are gone; retention deleted them before their time")
    if position > end:
        raise FailStop(f"{name}: ends at {end} but {position} were read; the topic was made anew: use a new app name")
