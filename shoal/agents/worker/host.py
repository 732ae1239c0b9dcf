"""Owns the partitions of a worker: takes them over, gives them up, and gives them batches.

A partition keeps its state over a rebalance only if the group's generation has grown by one since the partition was
last known to be ours: then nobody else can have owned it. A partition whose transaction was given up drops its state
and is taken over again (`takeover.py`). All other failures end the worker.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import structlog
from faust.types.tuples import TP

from shoal.agents.kafka.fail_stop import fail_stop, stop_on_failure, unless_discreet
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import AUDIT, BOUND, KafkaSettings
from shoal.agents.kafka.topic_ids import TopicIds
from shoal.agents.kafka.transport import Batch
from shoal.agents.worker.audit_feed import Sink
from shoal.agents.worker.idle_records import Idling
from shoal.agents.worker.inbox import Inbox, fetch_bytes, share_out, unflushed
from shoal.agents.worker.partition import Partition
from shoal.agents.worker.takeover import Overtaken, Takeover
from shoal.agents.worker.timings import Timings
from shoal.models.errors import FailStop
from shoal.stream.machine import Domain, StagePartition

log = structlog.get_logger("shoal.worker")

WATCH_EVERY = 1.0
INBOX = "inbox"
LEAD = "lead"
LOST = "lost"


class Host:
    """The partitions of one worker."""

    def __init__(self, settings: KafkaSettings, domain: Domain) -> None:
        self.settings, self.domain = settings, domain
        self.batches = domain.batches
        self.partitions: dict[StagePartition, Partition] = {}
        self.reach = Reach(settings)
        self.timings = Timings(settings)
        read = (*domain.sources, settings.contributions, settings.releases, settings.activations)
        self.topic_ids = TopicIds(settings, read, domain.remedy)
        self.sink = Sink(domain.sink, self.hold, self.let_go)
        self.sink.on_delivered = self.timings.delivered
        self.app: Any = None
        self.accepting = False
        self.stopping = False
        self.stale = 0  # batches dropped because they did not follow the last one
        self.revocations = 0
        self.on_owned: list[Callable[[], None]] = []
        self._holds: dict[TP, set[str]] = {}
        self._seeking: dict[TP, asyncio.Task[None]] = {}
        self._stuck: dict[TP, int] = {}
        self._idling = Idling(self)
        self._changes = Changes()
        self._tasks: list[asyncio.Task[None]] = []

    # -- where things are

    def stage_partition(self, tp: TP) -> StagePartition:
        return StagePartition(self.settings.stage(tp.topic), tp.topic, tp.partition)

    def positions(self, assigned: set[TP]) -> dict[TP, int]:
        """Offsets from which hosted partitions are read on."""
        known = {TP(p.topic, p.number): part.expected for p, part in self.partitions.items()}
        known |= {tp: feed.expected for tp, feed in self.sink.feeds.items()}
        return {tp: offset for tp, offset in known.items() if tp in assigned}

    def committed(self) -> dict[TP, int]:
        """Offsets to commit for the group: those after the last durable records.

        None for a partition without state, because an offset says that there must be a state.
        """
        done = {TP(p.topic, p.number): part.committed for p, part in self.partitions.items() if part.durable}
        return done | {tp: feed.done for tp, feed in self.sink.feeds.items()}

    def note(self, tp: TP) -> str:
        """The note beside a group offset: when the partition's clock last entered a step, for `idle_records.py`."""
        part = self.partitions.get(self.stage_partition(tp))
        wall = getattr(part.machine, "clock_wall", None) if part else None
        return "" if wall is None else str(wall)

    # -- holding partitions back

    def held(self) -> set[TP]:
        """Partitions that must not be read now."""
        return {tp for tp, reasons in self._holds.items() if reasons}

    def hold(self, tp: TP, reason: str) -> None:
        """Stop reading a partition until `let_go` is called with the same reason; no record is lost."""
        reasons = self._holds.setdefault(tp, set())
        if not reasons:
            self.app.consumer.pause_partitions({tp})
        reasons.add(reason)

    def let_go(self, tp: TP, reason: str) -> None:
        """Withdraw a reason to hold a partition; one without reasons is read again."""
        reasons = self._holds.get(tp, set())
        if reason in reasons:
            reasons.discard(reason)
            if not reasons and self.accepting and tp in self.app.consumer.assignment():
                self.app.consumer.resume_partitions({tp})

    # -- batches in

    def accept(self, message: Any) -> None:
        """Take a batch from an agent. Never waits, and drops a batch that does not follow the last one."""
        tp, batch = TP(message.topic, message.partition), message.value
        with stop_on_failure(f"{tp.topic}[{tp.partition}]"):  # Faust would count the batch as done and go on
            if not self.accepting:
                self.stale += 1
            elif self.settings.stage(tp.topic) == AUDIT:
                self._accept_audit(tp, batch)
            else:
                self._accept(tp, batch)

    def _accept(self, tp: TP, batch: Batch) -> None:
        part = self.partitions.get(self.stage_partition(tp))
        if part is None:
            self.stale += 1
        elif batch.start != part.expected:
            self._out_of_turn(tp, batch, part.expected)
        else:
            part.accept(batch)
            if part.inbox.full:
                self.hold(tp, INBOX)

    def _accept_audit(self, tp: TP, batch: Batch) -> None:
        feed = self.sink.feeds.get(tp)
        if feed is None:
            self.stale += 1
        elif not self.sink.accept(tp, batch):
            self._out_of_turn(tp, batch, feed.expected)

    def _out_of_turn(self, tp: TP, batch: Batch, expected: int) -> None:
        self.stale += 1
        held = bool(self._holds.get(tp))  # then the watchdog has it read again, once it is let go
        if not held and (batch.start is None or batch.start > expected):
            self._seek(tp)

    def _seek(self, tp: TP) -> None:
        """Have a batch read again that got lost between fetch and host; it is never skipped."""
        if tp not in self._seeking:
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
        with stop_on_failure("rebalance"):
            await asyncio.gather(*(part.drain() for part in self.partitions.values()))
            await self.app.consumer.force_commit()
            self.sink.drop()
            self._holds.clear()

    async def on_rebalance_complete(self, _app: object, **_: object) -> None:
        """Signal: awaited by Faust before it seeks and reads on."""
        if self.stopping:
            return
        with stop_on_failure("takeover"):
            await self._take_over()

    async def _take_over(self) -> None:
        """Keep partitions that nobody else can have owned since, take over new ones, and continue reading.

        1. Split the assigned partitions into those that are kept and new ones. Stop those that are no longer ours, or
           may have had another owner.
        2. Take over the new ones (`takeover.py`). If somebody else may own one, ask the group again.
        3. Adopt them: they are ours in this generation.
        4. Run them, unless the group has moved on meanwhile: then the next takeover keeps what was loaded.
        """
        consumer, generation = self.app.consumer, self.app.consumer_generation_id
        # 1
        assigned = {self.stage_partition(tp): tp for tp in consumer.assignment()}
        hosted = {partition for partition in assigned if partition.stage != AUDIT}
        kept = {p: part for p, part in self.partitions.items() if p in hosted and part.generation >= generation - 1}
        dropped = [part for partition, part in self.partitions.items() if partition not in kept]
        self.partitions = kept
        self._changes.dropped(part.partition for part in dropped)
        await asyncio.gather(*(part.writer.stop() for part in dropped))
        # 2
        began, group = time.monotonic(), HostGroup(self)
        new = sorted(hosted - set(kept))
        takeover = Takeover(self.settings, self.domain, self.topic_ids, self.reach, group)
        try:
            taken = await takeover.take(new, {tp for partition, tp in assigned.items() if partition.stage == AUDIT})
        except Overtaken as overtaken:
            log.warning("fenced", reason=str(overtaken), doing="asking the group again; nothing of it is visible")
            if not group.moved():
                self._rejoin()
            return
        # 3
        self.sink.assign(taken.audit)
        self._adopt(taken.partitions)
        self._changes.adopted(new)
        self._share_memory()
        if new:
            self.timings.restores.add(time.monotonic() - began)
        for part in self.partitions.values():
            part.generation = generation
        # 4
        if self.stopping or group.moved():
            return  # what was loaded stays, so that workers make progress however often the group changes
        for part in self.partitions.values():
            part.run()
        self.accepting = True
        self._begin_watching()
        new_ones, gone = self._changes.told()
        log.info(
            "owns", generation=generation, new=new_ones, gone=gone, all=len(self.partitions),
            **unless_discreet(seconds=round(time.monotonic() - began, 3)),
        )  # fmt: skip
        for tell in self.on_owned:
            tell()

    def _adopt(self, partitions: dict[StagePartition, Partition]) -> None:
        for partition, part in partitions.items():
            tp = TP(partition.topic, partition.number)
            part.writer.kernel = self.domain.new_batches
            part.on_low = partial(self.let_go, tp, INBOX)
            part.on_lost = partial(self._lose, part)
            part.on_committed = partial(self.timings.committed, partition)
            self.partitions[partition] = part

    @property
    def inboxes(self) -> list[Inbox]:
        """The inboxes of all partitions; together they take no more than `inbox_bytes`, and a batch each."""
        return [part.inbox for part in self.partitions.values()] + [feed.inbox for feed in self.sink.feeds.values()]

    def _share_memory(self) -> None:
        inboxes = self.inboxes
        share_out(self.settings.inbox_bytes, inboxes)
        self.app.consumer._thread.limit_fetches(fetch_bytes(self.settings.fetch_bytes, len(inboxes)))
        bound = [part for partition, part in self.partitions.items() if partition.stage == BOUND]
        for part in bound:
            part.most = unflushed(self.settings.max_unflushed, self.settings.worker_unflushed, len(bound))

    def _lose(self, part: Partition, reason: str) -> None:
        """Take a partition over anew whose transaction was given up, and whose state is therefore ahead of the log.

        This goes through the group, which alone knows whether the partition is still ours: by fencing first we could
        fence its new owner.
        """
        if self.partitions.get(part.partition) is not part:
            return
        log.warning("gave_up", partition=str(part.partition), reason=reason, doing="taking it over anew")
        del self.partitions[part.partition]
        self.timings.given_up[part.partition.stage] += 1
        if self.accepting:
            self.hold(TP(part.partition.topic, part.partition.number), LOST)
            self._rejoin()

    def _rejoin(self) -> None:
        if not self.stopping:
            self.app.consumer._thread.rejoin()

    # -- watching

    def _begin_watching(self) -> None:
        loops = (
            self._watch,
            self._idling.watch,
            self.topic_ids.watch,
            self._watch_deployment,
        )
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._guard(loop)) for loop in loops]

    async def _guard(self, loop: Callable[[], Any]) -> None:
        with stop_on_failure("watching"):
            await loop()

    async def _watch_deployment(self) -> None:
        """Leave the group at once when the app has another configuration, so that the others do not wait for us."""
        try:
            await self.domain.watch_deployment()
        except FailStop:
            await self.app.consumer._thread.leave()
            raise

    async def _watch(self) -> None:
        """Compare what was fetched with what arrived: if the last batch is lost, no later one shows the gap."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            await self.reach.ask()  # so that an outage is logged even if there is nothing to do
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
        for partition in self.partitions:
            if partition.stage == BOUND:
                act = self.hold if partition in ahead else self.let_go
                act(TP(partition.topic, partition.number), LEAD)

    async def stop(self) -> None:
        """Commit what is processed, and disconnect the producers."""
        self.stopping, self.accepting = True, False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(part.close() for part in self.partitions.values()))
        if self.app.consumer._thread.chain:  # the consumer has read, so it is in the group
            await self.app.consumer.force_commit()
        await self.sink.stop()


class HostGroup:
    """The consumer group as a takeover sees it."""

    def __init__(self, host: Host) -> None:
        self._host, self._revocations = host, host.revocations

    def moved(self) -> bool:
        return self._host.revocations != self._revocations

    async def committed_offsets(self, tps: set[TP]) -> dict[TP, int | None]:
        """The group's committed offsets; None where it has none."""
        offsets: dict[TP, int | None] = await self._host.app.consumer._thread.committed_offsets(tps)
        return offsets


class Changes:
    """Partitions taken over or given up since the last line `owns`, also by takeovers that a rebalance interrupted.

    >>> changes = Changes()
    >>> changes.adopted(["a", "b"])
    >>> changes.dropped(["b"])
    >>> changes.adopted(["c"])
    >>> changes.told()
    (['a', 'c'], [])
    >>> changes.dropped(["a"])
    >>> changes.adopted(["a"])
    >>> changes.told()
    (['a'], ['a'])
    """

    def __init__(self) -> None:
        self._new: dict[str, None] = {}
        self._gone: dict[str, None] = {}

    def adopted(self, partitions: Iterable[object]) -> None:
        """Note partitions that were taken over."""
        self._new |= dict.fromkeys(map(str, partitions))

    def dropped(self, partitions: Iterable[object]) -> None:
        """Note partitions that were given up; one that no line has named yet came and went unnamed."""
        for name in map(str, partitions):
            if name in self._new:
                del self._new[name]
            else:
                self._gone[name] = None

    def told(self) -> tuple[list[str], list[str]]:
        """Return and forget the names of the partitions taken over and of those given up, in order."""
        told = [*self._new], [*self._gone]
        self._new, self._gone = {}, {}
        return told
