"""A takeover that is overtaken in the midst of it says so; what is truly wrong is told apart from that."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.errors import NodeNotReadyError, ProducerFenced
from faust.types.tuples import TP

from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import BOUND, RELEASE, KafkaSettings
from shoal.agents.kafka.topic_ids import TopicIds
from shoal.agents.kafka.transactions import TransactionGivenUp, Writer
from shoal.agents.worker.outbox import BoundMachine
from shoal.agents.worker.takeover import Overtaken, Taken, Takeover
from shoal.models.errors import FailStop
from shoal.stream.file_run import Line
from shoal.stream.machine import Outbox, OutRecord, StagePartition
from tests.kafka.kafka_tools import make_topics, run
from tests.kafka.toy_machine import MARK, ONE, PAIR, ToyDomain
from tests.stream.simulation import STAMP, config
from tests.stream.units import Event, plan_of
from tests.support.kafka import Kafka, Record

# Where a worker may be frozen once it has fenced the old owner: what it calls, one after the other.
STEPS = {
    "open transactions": (Reader, "with_open_transactions"),
    "topic ids": (TopicIds, "learn"),
    "stable ends": (Reader, "stable_bounds"),
    "states": (Reader, "load"),
    "ends of sources": (Reader, "bounds"),
    "last release": (Reader, "last_committed"),
    "admission": (ToyDomain, "admit"),
}


class Group:
    """The consumer group as a takeover sees it."""

    def __init__(self, *, moved: bool = False) -> None:
        self._moved = moved

    def moved(self) -> bool:
        return self._moved

    async def committed_offsets(self, tps: set[TP]) -> Mapping[TP, int | None]:
        return dict.fromkeys(tps)


class App:
    """One source and one contributions partition, and whoever owns them."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        name = kafka.name("steps")
        self.source, self.settings = f"{name}-clicks", KafkaSettings(kafka.bootstrap, name, partitions=1)
        self.partitions = [
            StagePartition(BOUND, self.source, 0),
            StagePartition(RELEASE, self.settings.contributions, 0),
        ]
        self.logs = [self.settings.changelog(partition.stage, partition.topic) for partition in self.partitions]
        ours = self.settings
        own = (ours.contributions, ours.releases, ours.activations, ours.dead_letters)
        run(make_topics(kafka.bootstrap, dict.fromkeys((self.source, *own, *self.logs), 1)))
        self.writers: list[Writer] = []

    def takeover(self, group: Group | None = None) -> Takeover:
        read = (self.source, self.settings.contributions, self.settings.releases, self.settings.activations)
        domain = ToyDomain([self.source], self.settings.app, 1)
        reach = Reach(self.settings)
        return Takeover(self.settings, domain, TopicIds(self.settings, read, domain.remedy), reach, group or Group())

    async def take(self, group: Group | None = None) -> Taken:
        taken = await self.takeover(group).take(self.partitions, {TP(self.settings.releases, 0)})
        self.writers += [part.writer for part in taken.partitions.values()]
        return taken

    async def work(self, events: int, published: int, *, open_end: bool = False) -> Taken:
        """Own both, read so many events and publish so much in all; at the open end a transaction is under way."""
        await asyncio.to_thread(self.kafka.produce, self.source, [Record(b"k", b"1")] * events)
        taken = await self.take()
        bound, release = (taken.partitions[partition].writer for partition in self.partitions)
        position = taken.partitions[self.partitions[0]].position
        sent = (self.settings.contributions, 0)
        await bound.write(Outbox(position + events, [(MARK, ONE.pack(position + events))], {sent: [(b"k", b"v", [])]}))
        for number in range(taken.partitions[self.partitions[1]].machine.number + 1, published + 1):  # type: ignore[attr-defined]
            out: list[OutRecord] = [(b"k", b"v", [("n", b"%d" % number)])]
            await release.write(Outbox(1, [(MARK, PAIR.pack(1, number))], {(self.settings.releases, 0): out}))
        if open_end:
            for writer in (bound, release):
                await writer._started.begin_transaction()
                await (await writer._started.send(writer.changelog[0], b"open", key=b"open", partition=0))
        return taken

    async def stop(self) -> None:
        await asyncio.gather(*(writer.give_up() for writer in self.writers))


@pytest.fixture
def app(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setattr("shoal.agents.worker.takeover.SECOND_LOOK", 0.1)
    return App(kafka)


def wait_briefly_for_open_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for transactions to end: one that stays open is there from now on."""
    monkeypatch.setattr("shoal.agents.kafka.changelog.STABLE_LIMIT", 0.3)


def in_the_app(app: App, story: Callable[[], Awaitable[object]]) -> None:
    async def told() -> None:
        try:
            await story()
        finally:
            await app.stop()

    run(told())


def freeze(monkeypatch: pytest.MonkeyPatch, step: str, when: str, meanwhile: Callable[[], Awaitable[object]]) -> None:
    """At this step, once, the rest of the world goes on for a while."""
    owner, name = STEPS[step]
    call = getattr(owner, name)
    frozen: list[bool] = []

    async def sleep() -> None:
        if not frozen:
            frozen.append(True)
            await meanwhile()
            wait_briefly_for_open_transactions(monkeypatch)

    async def called(*arguments: Any, **options: Any) -> Any:
        if when == "before":
            await sleep()
        result = await call(*arguments, **options)
        if when == "after":
            await sleep()
        return result

    monkeypatch.setattr(owner, name, called)


@pytest.mark.parametrize(("when", "step"), [("before", "open transactions"), *(("after", step) for step in STEPS)])
def test_a_takeover_that_is_overtaken_says_so_and_accuses_nobody(
    app: App, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:

    async def story() -> None:
        # given a state, and a worker that stops dead in its takeover, while another one takes over and publishes
        await app.work(5, published=1)
        freeze(monkeypatch, step, when, partial(app.work, 50, published=4, open_end=True))
        # when it wakes up, then it says that it was overtaken, or goes on and hears it at its first transaction
        try:
            taken = await app.take()
        except Overtaken:
            return
        for part in taken.partitions.values():
            with pytest.raises(ProducerFenced):
                await part.writer.write(Outbox(1, [(MARK, b"never")]))

    in_the_app(app, story)


def test_a_takeover_settles_nothing_that_belongs_to_another_owner(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def overtaken(_reader: Reader, partitions: Any) -> list[TopicPartition]:
        monkeypatch.undo()
        await app.work(5, published=1)
        return list(partitions)

    async def story() -> None:
        await app.work(5, published=1)
        monkeypatch.setattr(Reader, "with_open_transactions", overtaken)
        with pytest.raises(Overtaken, match="could not be settled"):
            await app.take()

    in_the_app(app, story)


def test_a_takeover_reads_again_what_the_old_owner_still_deletes_of_a_log(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, toy, load, looks = plan_of(config({"algorithm": "naive"})), ToyDomain.machine, Reader.load, list[int]()

    def machine(self: ToyDomain, partition: StagePartition) -> Any:
        return toy(self, partition) if partition.stage == RELEASE else BoundMachine(app.settings, plan, 0)

    async def story() -> None:
        # given an owner that made some transactions, the last of which has all that is needed
        raw = Event("anna", 1).raw()
        await asyncio.to_thread(app.kafka.produce, app.source, [Record(b"k", raw)] * 5)
        owner = (await app.take()).partitions[app.partitions[0]]
        for offset in range(5):
            owner.machine.process([Line(offset, raw, timestamp=STAMP)], offset + 1)
            outbox = owner.machine.outbox()
            assert outbox is not None
            await owner.writer.write(outbox)
        needed = owner.writer.changelog_began
        assert needed > 3

        # when what it asked to delete goes while the next one reads, which has heard where the log begins
        async def read_late(reader: Reader, *arguments: Any) -> None:
            looks.append(1)
            if len(looks) == 1:
                await delete(app, needed)
            await load(reader, *arguments)

        monkeypatch.setattr(Reader, "load", read_late)
        successor = (await app.take()).partitions[app.partitions[0]].machine
        # then that one looks again, and finds everything
        assert len(looks) == 2
        assert (successor.next_offset, successor.look_up(("m0", "anna"))) == (5, 5)

    monkeypatch.setattr(ToyDomain, "machine", machine)
    in_the_app(app, story)


def test_a_takeover_that_the_group_has_passed_by_accuses_nobody(app: App) -> None:
    async def story() -> None:
        await lie(app, published=9)
        with pytest.raises(Overtaken, match="the group has moved on"):
            await app.take(Group(moved=True))

    in_the_app(app, story)


def test_a_takeover_that_cannot_ask_who_owns_it_accuses_nobody(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(_writer: Writer) -> bool:
        raise NodeNotReadyError

    async def story() -> None:
        await lie(app, published=9)
        monkeypatch.setattr(Writer, "is_fenced", silent)
        with pytest.raises(Overtaken, match="cannot say"):
            await app.take()

    in_the_app(app, story)


async def lie(app: App, **claims: int) -> None:
    """A state that claims what is not there."""
    partitions = (await app.work(5, published=1)).partitions
    bound, release = (partitions[partition].writer for partition in app.partitions)
    if "read" in claims:
        await bound.write(Outbox(0, [(MARK, ONE.pack(claims["read"]))]))
    if "published" in claims:
        await release.write(Outbox(0, [(MARK, PAIR.pack(1, claims["published"]))]))


async def delete(app: App, before: int) -> None:
    """Delete the beginning of bound's changelog."""
    client = AIOKafkaAdminClient(bootstrap_servers=app.kafka.bootstrap)
    await client.start()
    await client.delete_records({TopicPartition(app.logs[0], 0): RecordsToDelete(before_offset=before)})
    await client.close()


async def cut(app: App) -> None:
    """The beginning of bound's changelog is deleted."""
    await app.work(5, published=1)
    await delete(app, 1)


async def leave_open(app: App) -> None:
    """Somebody else writes to a changelog, in a transaction that has no end."""
    await app.work(5, published=1)
    stranger = Writer(app.settings, StagePartition(BOUND, "another", 0), Reach(app.settings))
    app.writers.append(stranger)
    await stranger.fence()
    await stranger._started.begin_transaction()
    await (await stranger._started.send(app.logs[0], b"x", key=b"x", partition=0))


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (partial(lie, read=1_000), "ends at 5 but 1000 were read: the topic lost records"),
        (partial(lie, published=9), "the state has published 9, the topic ends with 1"),
        (cut, r"bound.*changelog\[0\]: its first records were deleted, by retention or by hand"),
        (leave_open, "a transaction of an unknown producer is open"),
    ],
    ids=["a source that is shorter than what was read", "other releases", "a beginning cut off", "an open stranger"],
)
def test_what_is_truly_wrong_is_refused_at_the_second_look(
    app: App, monkeypatch: pytest.MonkeyPatch, act: Callable[[App], Awaitable[None]], words: str
) -> None:
    looks: list[int] = []
    learn = TopicIds.learn

    async def looked(self: TopicIds) -> object:
        looks.append(1)
        return await learn(self)

    async def story() -> None:
        await act(app)
        if act is leave_open:
            wait_briefly_for_open_transactions(monkeypatch)
        monkeypatch.setattr(TopicIds, "learn", looked)
        with pytest.raises(FailStop, match=words):
            await app.take()
        assert len(looks) == 2

    in_the_app(app, story)


def test_what_was_wrong_at_the_first_look_only_is_no_reason(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the end of a partition, asked of a leader that has just been elected."""
    bounds, asked = Reader.bounds, []

    async def behind(self: Reader, partitions: Any) -> Any:
        found = await bounds(self, partitions)
        asked.append(found)
        shorter = {tp: (first, first if tp.topic == app.source else end) for tp, (first, end) in found.items()}
        return shorter if len(asked) <= 2 else found

    async def story() -> None:
        await app.work(5, published=1)
        monkeypatch.setattr(Reader, "bounds", behind)
        taken = await app.take()
        assert taken.partitions[app.partitions[0]].position == 5

    in_the_app(app, story)


def test_to_ask_who_owns_a_partition_disturbs_nobody(app: App) -> None:
    async def story() -> None:
        first = (await app.work(1, published=1)).partitions[app.partitions[0]].writer
        assert not await first.is_fenced()
        await first.write(Outbox(2, [(MARK, ONE.pack(1))]))
        second = (await app.take()).partitions[app.partitions[0]].writer
        assert await first.is_fenced()
        assert not await second.is_fenced()
        await second.write(Outbox(2, [(MARK, ONE.pack(1))]))

    in_the_app(app, story)


def test_what_was_given_up_is_never_sent_later(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records went out, and its commit hung: the next owner finds nothing of it."""

    async def story() -> None:
        owner = await app.work(1, published=1)
        writer = owner.partitions[app.partitions[0]].writer
        monkeypatch.setattr(writer._started, "commit_transaction", asyncio.Event().wait)
        monkeypatch.setattr("shoal.agents.kafka.transactions.Writer._limited", impatient)
        with pytest.raises(TransactionGivenUp, match="did not commit within"):
            await writer.write(Outbox(7, [(MARK, ONE.pack(7))]))
        await writer.give_up()
        assert (await app.take()).partitions[app.partitions[0]].position == 1

    limited = Writer._limited

    async def impatient(self: Writer, task: Any) -> None:
        object.__setattr__(self._settings, "flush_limit", 1.0)
        await limited(self, task)

    in_the_app(app, story)
