"""An open transaction of a producer is named where it holds a source partition back, and not after its end."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import structlog
from aiokafka import AIOKafkaProducer

from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import admin
from shoal.agents.open_transactions import LASTING, OpenTransaction, Standing, open_transactions
from shoal.agents.worker.conditions import conditions
from shoal.agents.worker.outbox import BoundMachine
from shoal.agents.worker.watch import Watching
from shoal.stream.machine import StagePartition
from tests.agents.worker.test_watch import Stage
from tests.kafka.kafka_tools import run
from tests.stream.simulation import Cluster, config
from tests.support.kafka import Kafka, Record

ONE = OpenTransaction("events", 2, 7, 4001, 0.0)


@asynccontextmanager
async def hanging(kafka: Kafka, topic: str, partition: int) -> AsyncIterator[None]:
    """A transaction with a record in a partition, open within the block."""
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=kafka.name("hangs")) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"{}", partition=partition)
        yield
        await producer.abort_transaction()


async def found(settings: KafkaSettings, *places: tuple[str, int]) -> list[OpenTransaction]:
    async with admin(settings) as client:
        return await open_transactions(client, places)


async def until_none(settings: KafkaSettings, *places: tuple[str, int]) -> None:
    """Wait for the marker of a transaction that has ended: it is written a moment later."""
    async with asyncio.timeout(30):
        while await found(settings, *places):
            await asyncio.sleep(0.1)


def test_the_first_open_transaction_of_each_partition_is_found(kafka: Kafka) -> None:
    settings = KafkaSettings(kafka.bootstrap, kafka.name("app"))
    topic = kafka.create_topic(kafka.name("events"), 3)
    kafka.produce(topic, [Record(b"", b"{}", None, n % 3) for n in range(30)])
    kafka.produce(topic, [Record(b"", b"{}", None, 1)], kafka.name("ends"))
    places = [(topic, number) for number in range(3)]

    async def story() -> None:
        await until_none(settings, *places)
        async with hanging(kafka, topic, 2), hanging(kafka, topic, 2):
            (one,) = await found(settings, *places)
            assert (one.topic, one.partition, one.offset) == (topic, 2, 10)
            assert abs(one.written - time.time()) < 60
            # and only where it was asked
            assert await found(settings, (topic, 0), (topic, 1), (kafka.name("nowhere"), 0)) == []
            assert await found(settings) == []
        await until_none(settings, *places)

    run(story())


def test_a_worker_says_once_which_transaction_holds_a_partition_back(kafka: Kafka) -> None:
    # given a worker that reads two partitions, in one of which a transaction stood open a minute ago
    settings = KafkaSettings(kafka.bootstrap, kafka.name("app"))
    topic, stage = kafka.create_topic(kafka.name("events"), 2), Stage(settings)
    plan = Cluster(config({"every": "10s"}), 2, 1).plan
    for number in range(2):
        part = SimpleNamespace(machine=BoundMachine(settings, plan, number))
        stage.host.partitions[StagePartition("bound", topic, number)] = part
    watching, readiness = Watching(stage.readiness), stage.readiness

    async def story() -> None:
        async with hanging(kafka, topic, 1):
            readiness.standing.note(await found(settings, (topic, 1)), time.monotonic() - LASTING)
            assert readiness.held_back() == {}
            # when it still does, then one line names it
            for _ in range(2):
                await watching.ask_transactions()
                watching.look(0)
            (failing,) = (one for one in conditions(readiness) if one.name == "transactions")
            assert not failing.ok
            assert failing.text.startswith(f"{topic}[1]: a transaction of producer id ")
            assert f"abort --topic {topic} --partition 1 --start-offset 0." in failing.text
            # unless the number of records before it reveals presence
            stage.domain.discreet = True
            assert readiness.held_back() == {}
            assert "transactions" not in {one.name for one in conditions(readiness)}
            stage.domain.discreet = False
        await until_none(settings, (topic, 1))
        await watching.ask_transactions()
        assert readiness.held_back() == {}

    with structlog.testing.capture_logs() as logged:
        run(story())
    assert [line["event"] for line in logged] == ["open_transaction"]


def test_a_transaction_lasts_if_it_is_the_same_at_each_look() -> None:
    standing = Standing()
    standing.note([ONE], 100)
    standing.note([ONE._replace(written=1.0)], 100 + LASTING - 1)
    assert (standing.lasting(), standing.seconds()) == ([], {("events", 2): LASTING - 1})
    standing.note([ONE], 100 + LASTING)
    assert standing.lasting() == [ONE]
    # the next transaction of the same producer is another
    standing.note([ONE._replace(offset=9)], 101 + LASTING)
    assert (standing.lasting(), standing.seconds()) == ([], {("events", 2): 0})
