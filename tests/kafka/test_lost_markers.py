"""Kafka forgets how a transaction ended, in a partition that had no leader then (KAFKA-20734): the next owner knows.

Three brokers, and a changelog on one of them alone. That one is away while the transaction's coordinator decides.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.client import CoordinationType
from aiokafka.errors import KafkaError

from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.last_transaction import last_transaction
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.topic_ids import STATE_KEY, TopicIds, ask
from shoal.agents.kafka.transactions import Writer
from shoal.agents.worker.takeover import Takeover
from shoal.stream.machine import Outbox, StagePartition
from tests.kafka.kafka_tools import run
from tests.kafka.test_takeover_steps import Group
from tests.kafka.toy_machine import MARK, ONE, ToyDomain
from tests.support.cluster import Cluster, Node


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("kafka")) as brokers:
        yield brokers


class App:
    """A source partition whose changelog is on one broker, and its contributions on all."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.source = cluster, f"{name}-clicks"
        self.settings = KafkaSettings(cluster.bootstrap, name, partitions=1)
        self.partition = StagePartition(BOUND, self.source, 0)
        self.changelog = TopicPartition(self.settings.changelog(BOUND, self.source), 0)
        self.writers: list[Writer] = []

    async def make_topics(self) -> Node:
        """Return the broker that the changelog is on; the coordinator is another one."""
        async with admin(self.cluster) as client:
            name = self.settings.transactional_id(*self.partition)
            await last_transaction(client._client, name)  # waits for the coordinator
            coordinator = await client._client.coordinator_lookup(CoordinationType.TRANSACTION, name)
            home = next(node for node in self.cluster.nodes if node.number != coordinator)
            everywhere = (self.source, self.settings.contributions, self.settings.dead_letters)
            topics = [NewTopic(name, 1, 3) for name in everywhere]
            alone = NewTopic(self.changelog.topic, -1, -1, replica_assignments={0: [home.number]})
            await client.create_topics([*topics, alone])
        return home

    async def writer(self) -> Writer:
        writer = Writer(self.settings, self.partition, Reach(self.settings))
        self.writers.append(writer)
        await writer.fence()
        return writer

    async def begin(self, writer: Writer, position: int) -> None:
        """A transaction, all of which is in the log but for its end."""
        producer = writer._started
        await producer.begin_transaction()
        await (await producer.send(self.changelog.topic, ONE.pack(position), key=MARK, partition=0))
        await (await producer.send(self.settings.contributions, b"%d" % position, partition=0))

    async def take(self) -> tuple[int, list[bytes]]:
        """The position of the next owner, and the messages that readers see."""
        read = (self.source, self.settings.contributions)
        domain, reach = ToyDomain([self.source], self.settings.app, 1), Reach(self.settings)
        takeover = Takeover(self.settings, domain, TopicIds(self.settings, read, domain.remedy), reach, Group())
        taken = (await takeover.take([self.partition], set())).partitions[self.partition]
        self.writers.append(taken.writer)
        async with Reader(self.settings) as reader:
            sent = TopicPartition(self.settings.contributions, 0)
            end = (await reader.bounds([sent]))[sent]
            assert not await reader.with_open_transactions([sent, self.changelog])
            last = await reader.last_committed(sent, end)
        return taken.position, [last.value or b""] if last else []

    async def without_leader(self) -> None:
        async with admin(self.cluster) as client:
            while True:
                try:
                    (topic,) = await client.describe_topics([self.changelog.topic])
                except KafkaError:
                    topic = {"partitions": [{"leader": 0}]}
                if topic["partitions"][0]["leader"] < 0:
                    return
                await asyncio.sleep(0.2)


@asynccontextmanager
async def admin(cluster: Cluster) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.long
@pytest.mark.parametrize("committed", [True, False], ids=["committed", "never decided"])
def test_a_transaction_ends_everywhere_as_its_coordinator_decided(cluster: Cluster, committed: bool) -> None:
    async def story(app: App) -> None:
        # given a state, and a transaction after it
        home = await app.make_topics()
        # the source has as many records as the state will have read
        owner = await app.writer()
        ids, _ = await ask(app.settings, [app.source])
        owner.preface = [(STATE_KEY, ids[app.source].id.encode())]
        await fill(app, 2)
        await owner.write(Outbox(1, [(MARK, ONE.pack(1))], {(app.settings.contributions, 0): [(b"k", b"1", [])]}))
        await app.begin(owner, 2)
        # when its end is decided while the changelog has no leader
        cluster.kill(home)
        await app.without_leader()
        if committed:
            await owner._started.commit_transaction()
        taking = asyncio.ensure_future(app.take())
        await asyncio.sleep(3)
        await asyncio.to_thread(cluster.start, home)
        # then the next owner has the state that the messages tell of
        assert await taking == ((2, [b"2"]) if committed else (1, [b"1"]))

    run(told(App(cluster, "committed" if committed else "open"), story))


async def fill(app: App, records: int) -> None:
    writer = Writer(app.settings, StagePartition(BOUND, "filler", 0), Reach(app.settings))
    await writer.fence()
    app.writers.append(writer)
    producer = writer._started
    await producer.begin_transaction()
    for _ in range(records):
        await (await producer.send(app.source, b"1", key=b"k", partition=0))
    await producer.commit_transaction()


async def told(app: App, story) -> None:
    try:
        await asyncio.wait_for(story(app), 240)
    finally:
        await asyncio.gather(*(writer.give_up() for writer in app.writers))
