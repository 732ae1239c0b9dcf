"""What goes into a transaction."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import NodeNotReadyError

from shoal.agents.kafka import fast_records
from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transactions import Writer
from shoal.models.errors import FailStop, KafkaError
from shoal.stream.machine import LastValues, Outbox, OutRecord, Record, StagePartition
from tests.kafka.kafka_tools import make_topics, read_all
from tests.support.kafka import Kafka


def test_a_missing_name_is_refused_with_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_records, "REQUIRED", (*fast_records.REQUIRED, (AIOKafkaProducer, "_gone")))
    with pytest.raises(KafkaError, match=r"lack .*_gone; install faust-streaming==0\.15\.3"):
        fast_records.verify()


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_records, "VERSIONS", {"aiokafka": "0.15.0"})
    with pytest.raises(KafkaError, match=r"^aiokafka 0\.14\.0 are not the versions .*; install aiokafka==0\.15\.0$"):
        fast_records.verify()


class Bench:
    """A writer for partition 0 of one topic, on topics of its own."""

    def __init__(self, kafka: Kafka, **settings: Any) -> None:
        self.app = kafka.name("writer")
        self.settings = KafkaSettings(kafka.bootstrap, self.app, **settings)
        self.partition = StagePartition("bound", "in", 0)
        self.out, self.log = f"{self.app}.out", self.settings.changelog("bound", "in")
        run(make_topics(kafka.bootstrap, {self.out: 2, self.log: 1}))

    async def fenced(self) -> Writer:
        writer = Writer(self.settings, self.partition, Reach(self.settings))
        await writer.fence()
        return writer

    async def write(self, *outboxes: Outbox) -> None:
        writer = await self.fenced()
        try:
            for outbox in outboxes:
                await writer.write(outbox)
        finally:
            await writer.stop()
        async with Reader(self.settings) as reader:  # a commit is final at once, and visible a moment later
            await reader.stable_bounds([TopicPartition(self.out, 0), TopicPartition(self.out, 1)])
            await reader.stable_bounds([TopicPartition(self.log, 0)])

    def read(self, topic: str) -> dict[int, Any]:
        return asyncio.run(read_all(self.settings.brokers, topic))


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_a_broker_that_names_no_broker_yet_is_waited_for(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a broker that has just woken up: the first answer about the cluster is empty
    known, empty = AIOKafkaClient.get_random_node, [True]

    def random_node(self: AIOKafkaClient) -> int | None:
        return None if empty and empty.pop() else known(self)

    monkeypatch.setattr(AIOKafkaClient, "get_random_node", random_node)
    # when a partition is taken over, then it is asked again, and written to
    bench = Bench(kafka)
    empty[:] = [True]
    run(bench.write(Outbox(1, [(b"key", b"value")])))
    assert not empty


@pytest.mark.parametrize("locked_out", [True, False])
def test_the_old_owners_last_transaction_is_asked_for_until_it_is_locked_out(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, locked_out: bool
) -> None:
    """If the first attempt did it and heard no answer, what was asked before it; else the owner may have gone on."""
    bench, start = Bench(kafka), AIOKafkaProducer.start

    async def story() -> None:
        # given an owner whose last transaction is committed
        owner, successor = await bench.fenced(), Writer(bench.settings, bench.partition, Reach(bench.settings))
        await owner.write(Outbox(1, [(b"key", b"value")]))

        async def fails(producer: AIOKafkaProducer) -> None:
            monkeypatch.undo()
            if locked_out:
                await start(producer)
            else:
                await owner._started.begin_transaction()
                await (await owner._started.send(bench.log, b"open", key=b"open", partition=0))
            raise NodeNotReadyError

        # when a successor's first attempt fails
        monkeypatch.setattr(AIOKafkaProducer, "start", fails)
        await successor.fence()
        # then it knows how the last one ended
        assert successor._before is not None
        assert successor._before.committed == locked_out
        await asyncio.gather(owner.give_up(), successor.give_up())

    run(story())


def test_an_outbox_of_several_megabytes_is_one_transaction(kafka: Kafka) -> None:
    # given outputs for two partitions and a changelog, each several batches long
    bench = Bench(kafka)
    content: list[OutRecord] = [(b"%d" % n, b"x" * 1_000, [("h", b"%d" % n)]) for n in range(3_000)]
    log: list[tuple[bytes, bytes | None]] = [(b"%d" % n, b"y" * 500) for n in range(4_000)]
    # when it is written
    run(bench.write(Outbox(7, [*log, (b"0", None)], {(bench.out, 0): content, (bench.out, 1): content[::-1]})))
    # then all is there in order, headers and tombstones too
    out, changes = bench.read(bench.out), bench.read(bench.log)
    assert [(r.key, r.value, list(r.headers.items())) for r in out[0]] == content
    assert [(r.key, r.value, list(r.headers.items())) for r in out[1]] == content[::-1]
    assert [(r.key, r.value) for r in changes[0]] == [*log, (b"0", None)]
    # and one marker ends each partition: it was one transaction
    assert run(end(bench, bench.out)) == 3_001


async def end(bench: Bench, topic: str) -> int:
    async with Reader(bench.settings) as reader:
        tp = TopicPartition(topic, 0)
        return (await reader.bounds([tp]))[tp][1]


def test_a_record_that_no_broker_takes_ends_the_worker_before_the_transaction(kafka: Kafka) -> None:
    bench = Bench(kafka)
    # how large it is depends on what is in it, and is not told
    with pytest.raises(
        FailStop, match=r"bound of in\[0\]: to .*out\[1\]: a record is above the limit of 1044480 bytes"
    ):
        run(bench.write(Outbox(1, [(b"k", b"v")], {(bench.out, 1): [(b"k", b"x" * 1_048_400, [])]})))
    assert bench.read(bench.log) == {0: []}


def test_a_large_record_gets_a_batch_of_its_own(kafka: Kafka) -> None:
    bench = Bench(kafka)
    sizes = [10, 1_000_000, 20, 950_000]
    run(bench.write(Outbox(1, [], {(bench.out, 0): [(None, b"x" * size, []) for size in sizes]})))
    assert [len(record.value) for record in bench.read(bench.out)[0]] == sizes


def test_a_batch_that_the_broker_refuses_fails_the_transaction(kafka: Kafka) -> None:
    # given a topic that takes small batches only: aiokafka itself would commit without the refused one
    bench = Bench(kafka)
    small = f"{bench.app}.small"
    run(make_topics(kafka.bootstrap, {small: 1}, **{"max.message.bytes": "2000"}))
    with pytest.raises(Exception, match="MessageSizeTooLarge"):
        run(bench.write(Outbox(1, [(b"k", b"v")], {(small, 0): [(None, b"x" * 5_000, [])]})))
    assert bench.read(bench.log) == {0: []}


def test_offsets_that_begin_anew_end_the_worker(kafka: Kafka) -> None:
    bench = Bench(kafka)

    async def go() -> None:
        writer = await bench.fenced()
        writer.last_offsets[bench.out, 0] = 100  # what the old topic had
        try:
            await writer.write(Outbox(1, [], {(bench.out, 0): [(None, b"x", [])]}))
        finally:
            await writer.stop()

    with pytest.raises(FailStop, match=r"out\[0\] was made anew"):
        run(go())


async def last_values(reader: Reader, bounds: dict[TopicPartition, tuple[int, int]]) -> dict[bytes, bytes]:
    """What a machine whose changelog is a table would be restored from."""
    found: dict[bytes, bytes] = {}
    values, (tp,) = LastValues(found.update), bounds
    await reader.load(bounds, {tp: lambda key, value, _: values.take(key, value)})
    values.done()
    return found


def test_a_new_owner_fences_the_old_one_and_hides_its_open_transaction(kafka: Kafka) -> None:
    bench = Bench(kafka)

    async def go() -> None:
        old = await bench.fenced()
        await old.write(Outbox(1, [(b"a", b"1")]))
        await old._started.begin_transaction()
        await (await old._started.send(bench.log, b"2", key=b"a", partition=0))
        new = await bench.fenced()
        async with Reader(bench.settings) as reader:
            tp = TopicPartition(bench.log, 0)
            bounds = await reader.stable_bounds([tp])
            assert await last_values(reader, bounds) == {b"a": b"1"}
        with pytest.raises(Exception, match="fenced|epoch|Fenced"):
            await old._started.commit_transaction()
        await old.stop()
        await new.stop()

    run(go())


def test_restore_keeps_last_values_and_drops_tombstones(kafka: Kafka) -> None:
    bench = Bench(kafka)
    log: list[tuple[bytes, bytes | None]] = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), (b"b", None)]
    run(bench.write(Outbox(1, log[:3]), Outbox(2, log[3:])))

    async def load() -> dict[bytes, bytes]:
        async with Reader(bench.settings) as reader:
            tp = TopicPartition(bench.log, 0)
            return await last_values(reader, await reader.stable_bounds([tp]))

    assert run(load()) == {b"a": b"3", b"c": b"4"}


def test_the_last_committed_record_is_found_behind_markers_and_aborted_records(kafka: Kafka) -> None:
    bench = Bench(kafka)
    tp = TopicPartition(bench.out, 0)

    async def last_committed() -> Record | None:
        async with Reader(bench.settings) as reader:
            return await reader.last_committed(tp, (await reader.stable_bounds([tp]))[tp])

    assert run(last_committed()) is None
    run(bench.write(Outbox(1, [], {(bench.out, 0): [(b"k", b"%d" % n, [("n", b"%d" % n)]) for n in range(5)]})))

    async def abort() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=f"{bench.app}-x")
        await producer.start()
        for _ in range(20):
            await producer.begin_transaction()
            await (await producer.send(bench.out, b"never", partition=0))
            await producer.abort_transaction()
        await producer.stop()

    run(abort())
    last = run(last_committed())
    assert last is not None
    assert (last.value, last.headers[0]) == (b"4", ("n", b"4"))


def test_fast_and_slow_records_say_the_same(kafka: Kafka) -> None:
    bench = Bench(kafka)
    run(bench.write(Outbox(1, [], {(bench.out, 0): [(None, b"v", [("h", b"x")]), (b"k", b"", [])]})))

    async def seen(fast: bool) -> list[tuple[object, ...]]:
        arguments = fast_records.consumer_arguments() if fast else {}
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest", **arguments)
        await consumer.start()
        consumer.assign([TopicPartition(bench.out, 0)])
        rows: list[tuple[object, ...]] = []
        while len(rows) < 2:
            for found in (await consumer.getmany(timeout_ms=100)).values():
                rows += [(r.key, r.value, r.offset, r.timestamp, list(r.headers)) for r in found]
        await consumer.stop()
        return rows

    assert run(seen(True)) == run(seen(False))


def test_a_broker_that_is_there_and_does_not_answer_is_slow() -> None:
    # given a writer, and a broker that is frozen: it takes connections and says nothing
    with Kafka() as frozen:
        bench = Bench(frozen, flush_limit=2.0)

        async def go() -> None:
            writer = await bench.fenced()
            assert frozen.pid
            os.kill(frozen.pid, signal.SIGSTOP)
            try:
                await writer.write(Outbox(1, [(b"k", b"v")]))
            finally:
                os.kill(frozen.pid, signal.SIGCONT)
                await writer.stop()

        # then a transaction ends the worker after its limit, before the broker takes it for dead
        with pytest.raises(FailStop, match=r"bound of in\[0\]: broker slow; .* did not commit within 2 s"):
            run(go())
