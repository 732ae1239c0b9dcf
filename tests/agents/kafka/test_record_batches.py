"""What a real broker stores, read in whole batches and record by record."""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition, codec

from shoal.agents.kafka import fast_records
from shoal.agents.lane import lane_named
from shoal.stream.kernel.batches import Batches
from tests.kafka.kafka_tools import run
from tests.support.kafka import Kafka

HAS = {"gzip": codec.has_gzip, "snappy": codec.has_snappy, "lz4": codec.has_lz4, "zstd": codec.has_zstd}
PACKED = [None, *(name for name, has in HAS.items() if has())]
Row = tuple[Any, ...]


async def fill(brokers: str, topic: str) -> None:
    """Transactions of producers of all kinds, every other one aborted, with tombstones and headers in between."""
    for number, packed in enumerate(PACKED * 2):
        producer = AIOKafkaProducer(
            bootstrap_servers=brokers, transactional_id=f"{topic}-{number}", compression_type=packed, linger_ms=20
        )
        await producer.start()
        for is_kept in (True, False, True):
            await producer.begin_transaction()
            sent = [
                await producer.send(topic, b'{"u": %d, "pad": "%s"}' % (one, b"x" * 50), b"k%d" % one, partition=0)
                for one in range(7)
            ]
            sent.append(await producer.send(topic, None, b"k", partition=0, headers=[("shoal-clock", b"now")]))
            await asyncio.gather(*sent)
            await (producer.commit_transaction() if is_kept else producer.abort_transaction())
        await producer.stop()


async def seen(brokers: str, topic: str, *, whole: bool) -> list[tuple[list[Row], int]]:
    """What is read from each offset on, and the position at its end."""
    kinds = {topic: lane_named("kernel").module.RecordBatch} if whole else {}
    consumer = AIOKafkaConsumer(
        bootstrap_servers=brokers, isolation_level="read_committed", auto_offset_reset="none", max_poll_records=9,
        fetch_max_wait_ms=5, **fast_records.consumer_arguments(kinds),
    )  # fmt: skip
    await consumer.start()
    tp, found = TopicPartition(topic, 0), []
    consumer.assign([tp])
    end = (await consumer.end_offsets([tp]))[tp]
    for since in range(0, end, 5):
        consumer.seek(tp, since)
        rows: list[Row] = []
        while await consumer.position(tp) < end:
            for fetched in (await consumer.getmany(tp, timeout_ms=50)).values():
                records, _ = fast_records.records_of(fetched, kinds.get(topic))
                assert isinstance(records, Batches) == whole
                rows += [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in records]
        found.append((rows, await consumer.position(tp)))
    await consumer.stop()
    return found


@pytest.mark.parametrize("stamps", ["CreateTime", "LogAppendTime"])
def test_a_log_is_read_in_batches_as_in_records(kafka: Kafka, stamps: str) -> None:
    # given committed and aborted transactions of all codecs, stamped by producers or by the broker
    topic = kafka.create_topic(kafka.name("log"), 1, {"message.timestamp.type": stamps})
    run(fill(kafka.bootstrap, topic))
    # when it is read from every fifth offset on
    whole, single = (run(seen(kafka.bootstrap, topic, whole=is_whole)) for is_whole in (True, False))
    # then offsets, stamps, keys, values, headers and positions are the same, and aborted records are not there
    assert whole == single
    assert len(whole[0][0]) == len(PACKED) * 2 * 2 * 8
