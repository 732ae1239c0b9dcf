"""When a partition makes its transactions. What Kafka does with them is tested with brokers (`tests/kafka/`)."""

import asyncio
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.transactions import Writer
from shoal.agents.kafka.transport import Batch
from shoal.agents.worker.partition import REST, SLICE, Partition, rest_after
from shoal.stream.file_run import Line
from shoal.stream.machine import Outbox, StagePartition
from tests.kafka.toy_machine import ToyBound
from tests.support.effort import examples

HOUR = 3600.0
SETTINGS = KafkaSettings("localhost:1", "app", linger=HOUR, patience=HOUR)
PLACE = StagePartition(BOUND, "events", 0)


class Written(Writer):
    """Keeps what it is given to commit, and has no broker."""

    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__(settings, PLACE, Reach(settings))
        self.covered: list[int] = []
        self.came = asyncio.Event()

    async def write(self, outbox: Outbox) -> None:
        self.covered.append(outbox.next_offset)
        self.came.set()


def hosted(settings: KafkaSettings) -> tuple[Partition, Written]:
    writer = Written(settings)
    partition = Partition(settings, PLACE, ToyBound(PLACE, settings.contributions, 1), writer)
    partition.inbox.share = 1 << 30
    partition.begin(0, durable=False)
    partition.machine.start(0)
    return partition, writer


def batch(first: int, end: int, left: int = 0) -> Batch:
    return Batch(first, end, [Line(offset, b"1", timestamp=0) for offset in range(first, end)], left=left)


def test_what_is_processed_is_written_at_once_and_not_when_the_linger_ends() -> None:
    async def story() -> None:
        # given a partition that may gather for an hour
        partition, writer = hosted(SETTINGS)
        partition.run()
        # when so much comes that it is processed in several slices
        partition.accept(batch(0, 3 * SLICE))
        # then the end of the work wakes the transaction
        await asyncio.wait_for(_until(writer, 3 * SLICE), 60)
        assert partition.committed == 3 * SLICE
        await partition.close()

    asyncio.run(story())


def test_far_behind_a_transaction_is_made_when_it_is_large() -> None:
    async def story() -> None:
        # given a partition that is far behind, and nothing that ends its patience
        settings = replace(SETTINGS, max_records=2 * SLICE)
        partition, writer = hosted(settings)
        partition.run()
        # when less than a transaction came, it waits
        partition.accept(batch(0, SLICE, left=10 * SLICE))
        while partition.position < SLICE:
            await asyncio.sleep(0)
        assert not writer.covered
        # and when enough came, it is made
        partition.accept(batch(SLICE, 2 * SLICE, left=9 * SLICE))
        await asyncio.wait_for(_until(writer, 2 * SLICE), 60)
        assert writer.covered == [2 * SLICE]
        await partition.close()

    asyncio.run(story())


def test_a_partition_that_gathers_is_drained_without_waiting() -> None:
    async def story() -> None:
        # given a partition that gathers for an hour
        partition, writer = hosted(replace(SETTINGS, max_records=2 * SLICE))
        partition.run()
        partition.accept(batch(0, 10, left=10 * SLICE))
        while partition.position < 10:
            await asyncio.sleep(0)
        # when it is to go, then what it has is written first
        await asyncio.wait_for(partition.drain(), 60)
        assert writer.covered == [10]
        await partition.close()

    asyncio.run(story())


async def _until(writer: Written, covered: int) -> None:
    while writer.covered[-1:] != [covered]:
        writer.came.clear()
        await writer.came.wait()


@examples(50)
@given(seconds=st.floats(0, 100), busy=st.floats(0, 3), more=st.floats(0, 3))
def test_who_is_busier_rests_longer_between_transactions(seconds: float, busy: float, more: float) -> None:
    rest = rest_after(seconds, busy)
    assert REST[0] * seconds <= rest <= rest_after(seconds, busy + more) <= REST[1] * seconds
