"""Batches that are written: the kernel's are those of aiokafka, byte for byte."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.fast_records import AnyRecord, build_batches
from shoal.agents.lane import find_lane
from shoal.models.errors import FailStop
from tests.support.effort import examples

LIMIT, MOST = 2_000, 1_500
Producer = tuple[int, int, int]
BYTES = st.binary(max_size=200) | st.integers(0, 1_600).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=20)), max_size=3)
RECORDS = st.lists(st.tuples(st.none() | BYTES, st.none() | BYTES, HEADERS), max_size=150)
KERNEL = find_lane().module.NewBatch


@pytest.fixture(scope="module")
def producer() -> Iterator[AIOKafkaProducer]:
    """One that is never connected."""
    with asyncio.Runner() as runner:

        async def make() -> AIOKafkaProducer:
            return AIOKafkaProducer(transactional_id="t", max_batch_size=MOST)

        made = runner.run(make())
        yield made
        runner.run(made.stop())


def built(
    producer: AIOKafkaProducer, records: Sequence[AnyRecord], kernel: Any, stamp: int = 0, of: Producer = (1, 1, 0)
) -> list[Any]:
    """(records, size, bytes) of each batch; what is refused, if anything is."""
    try:
        batches = build_batches(producer, records, LIMIT, stamp, kernel)
    except FailStop as refused:
        return [str(refused)]
    for batch in batches:
        batch._set_producer_state(*of)
    return [(batch.record_count(), batch.size(), bytes(batch._build()), bytes(batch._build())) for batch in batches]


@examples(200)
@given(
    records=RECORDS,
    stamp=st.integers(0, 2**62),
    of=st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)),
)
def test_the_kernel_writes_the_batches_that_aiokafka_writes(
    producer: AIOKafkaProducer, records: list[AnyRecord], stamp: int, of: Producer
) -> None:
    # given records, some of which fill a batch alone, or are too large
    # when both fill batches with them, then these are the same
    assert built(producer, records, KERNEL, stamp, of) == built(producer, records, None, stamp, of)


@pytest.mark.parametrize("size", range(MOST - 90, MOST - 60))
def test_both_begin_a_new_batch_with_the_same_byte(producer: AIOKafkaProducer, size: int) -> None:
    records: list[AnyRecord] = [(None, None, []), (None, bytes(size), [])]
    assert built(producer, records, KERNEL) == built(producer, records, None)


@pytest.mark.parametrize("kernel", [None, KERNEL])
def test_a_record_above_the_limit_is_refused(producer: AIOKafkaProducer, kernel: Any) -> None:
    assert built(producer, [(None, b"1", []), (b"k", bytes(LIMIT), [])], kernel) == [
        f"a record is above the limit of {LIMIT} bytes per record"
    ]


def test_many_records_are_cut_by_their_bytes(producer: AIOKafkaProducer) -> None:
    batches = built(producer, [(b"k", bytes(100), [])] * 100, KERNEL)
    assert sum(count for count, *_ in batches) == 100
    assert MOST - 120 < max(size for _, size, *_ in batches) < MOST
