"""Whole batches, as brokers store them: the kernel reads of them what aiokafka reads, or leaves them to it."""

import random
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition, codec
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka import fast_records
from shoal.stream.kernel.batches import Batches
from shoal.stream.machine import Record
from tests.stream.kernel.lanes import CONFIGS, KERNEL, Lanes
from tests.stream.kernel.records import plain, records
from tests.stream.simulation import STAMP
from tests.support.effort import examples

TP = TopicPartition("events", 0)
CODECS = [0] + [
    n for n, has in enumerate((codec.has_gzip, codec.has_snappy, codec.has_lz4, codec.has_zstd), 1) if has()
]
CRC, ATTRIBUTES = 17, 21
APPEND_TIME, TRANSACTIONAL, CONTROL = 8, 16, 32
ABORT_MARKER = struct.pack(">hh", 0, 0)
texts = st.sampled_from([b"", b"k", b"\xff" * 200])
headers = st.lists(st.tuples(st.sampled_from(["h", "", "ü" * 40]), st.one_of(st.none(), texts)), max_size=2)
# (gap before, stamp, key, value, headers)
one_record = st.tuples(
    st.sampled_from([0, 0, 0, 1, 70]), st.sampled_from([STAMP, STAMP - 5, 0, -1, 2**62]), st.one_of(st.none(), texts),
    st.one_of(records, records, st.none()), headers,
)  # fmt: skip
attributes = st.sampled_from([0, 0, APPEND_TIME])
a_log = st.lists(st.tuples(st.lists(one_record, max_size=12), st.sampled_from(CODECS), attributes), max_size=5)


def batch(
    base: int, rows: Sequence[tuple[int, int, Any, Any, Any]], kind: int = 0, bits: int = 0, producer: int = -1
) -> tuple[bytes, int]:
    """A batch as a broker stores it, and the offset after it; a record may leave a hole before it."""
    builder = DefaultRecordBatchBuilder(2, kind, int(bool(bits & TRANSACTIONAL)), producer, 0, 0, 1 << 24)
    delta = -1
    for gap, stamp, key, value, heads in rows:
        delta += 1 + gap
        assert builder.append(delta, stamp, key, value, heads) is not None
    raw = bytearray(builder.build())
    raw[:8] = base.to_bytes(8)
    raw[ATTRIBUTES + 1] |= bits
    raw[ATTRIBUTES + 2 : ATTRIBUTES + 6] = (delta + 1).to_bytes(4)  # compaction took what came last
    return sealed(raw), base + delta + 2


def sealed(raw: bytearray) -> bytes:
    raw[CRC:ATTRIBUTES] = calc_crc32c(bytes(raw[ATTRIBUTES:])).to_bytes(4)
    return bytes(raw)


def joined(log: Sequence[tuple[Any, int, int]], base: int = 7) -> tuple[bytes, int]:
    raws = []
    for rows, kind, bits in log:
        raw, base = batch(base, rows, kind if rows else 0, bits)  # brokers leave those empty that are not compressed
        raws.append(raw)
    return b"".join(raws), base


def reading(raw: bytes, since: int, *, whole: bool, aborted: Sequence[tuple[int, int]] = ()) -> Any:
    """What a fetch hands out, and where the next begins; or the error."""
    kinds = {TP.topic: KERNEL.RecordBatch} if whole else {}
    arguments = fast_records.consumer_arguments(kinds)
    owner = fast_records._PartitionRecords(
        TP, fast_records._MemoryRecords(raw), list(aborted), since, arguments["key_deserializer"], None, True,
        READ_COMMITTED,
    )  # fmt: skip
    try:
        found = list(owner)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return fast_records.records_of(found, kinds.get(TP.topic))[0], owner.next_fetch_offset


def told(found: Any) -> Any:
    if isinstance(found, str):
        return found
    rows = [(r.offset, r.timestamp, r.key, r.value, [(n, v) for n, v in r.headers]) for r in found[0]]
    return rows, found[1]


@examples(200)
@given(a_log, st.integers(0, 100))
def test_records_are_those_that_aiokafka_reads(log: Any, skipped: int) -> None:
    # given batches with holes, stamped by producers or by the broker, plain and compressed
    raw, _ = joined(log)
    # when a fetch begins anywhere, also within a batch
    whole, single = (reading(raw, 7 + skipped, whole=is_whole) for is_whole in (True, False))
    # then records and position are the same, one by one and in slices
    assert told(whole) == told(single)
    found, one_by_one = whole[0], list(single[0])
    assert isinstance(found, Batches)
    assert all(type(part) is not list for part in found.parts)  # else aiokafka would be compared with itself
    if not skipped:
        assert len(found) == sum(len(rows) for rows, _, _ in log)
    assert len(found) == len(one_by_one)
    for first in range(0, len(found) + 2, 3):
        assert [one.offset for one in found[first : first + 4]] == [o.offset for o in one_by_one[first : first + 4]]
    if one_by_one:
        assert found[-1].offset == one_by_one[-1].offset
        assert found.nbytes >= sum(len(one.value or b"") for one in one_by_one)
    for out in (len(found), -len(found) - 1):
        with pytest.raises(IndexError):
            found[out]


@examples(400)
@given(a_log, st.integers(0, 30), st.integers(0, 2**32), st.booleans())
def test_what_is_broken_ends_as_with_aiokafka(log: Any, skipped: int, seed: int, is_sealed: bool) -> None:
    # given batches of which a few bytes are wrong, with a checksum that says so or that was made of them
    choose = random.Random(seed)
    raws = []
    base = 7
    for rows, kind, bits in log:
        raw, base = batch(base, rows, kind, bits)
        broken = bytearray(raw)
        for _ in range(choose.choice([0, 1, 1, 2])):
            # not of the length, nor of the magic: tests of their own; aiokafka reads past the end of such
            at = choose.choice([*range(8), *range(21, min(80, len(raw))), *range(61, len(raw))])
            broken[at] = choose.choice([0, 1, 2, 0x7F, 0x80, 0xFF, broken[at] ^ 1])
        broken[ATTRIBUTES + 1] &= 0x0F  # no control batch
        raws.append(sealed(broken) if is_sealed else bytes(broken))
    raw = b"".join(raws)
    # then the outcome is the same: records, or an error with the same words
    whole, single = (told(reading(raw, 7 + skipped, whole=is_whole)) for is_whole in (True, False))
    assert whole == single


@examples(60)
@given(st.lists(one_record, min_size=1, max_size=5), st.integers(0, 400))
def test_a_batch_that_is_cut_off_is_not_there_yet(rows: Any, cut: int) -> None:
    first, then = batch(7, rows)
    second, _ = batch(then, rows)
    raw = first + second[:cut]
    assert told(reading(raw, 0, whole=True)) == told(reading(raw, 0, whole=False))


def test_no_cut_of_the_records_is_read() -> None:
    # given the bytes of a batch that end too early, though its length says otherwise
    kind: Any = KERNEL.RecordBatch
    raw, _ = batch(0, [(0, STAMP, b"k", b'{"u": 1}', [("h", b"v")])] * 3)
    # then the kernel does not take it, wherever they end
    assert len(kind.read(raw, 0, len(raw), None, 0)) == 3
    for end in range(len(raw)):
        assert kind.read(raw, 0, end, None, 0) is None
        assert kind.read(raw[:end], 0, len(raw), None, 0) is None
    assert kind.read(raw, len(raw) + 5, 3, None, 0) is None
    assert kind.read(raw, 2**63, 2**63 + 70, None, 0) is None


def test_compressed_and_older_batches_are_told_apart() -> None:
    kind: Any = KERNEL.RecordBatch
    rows: list[Any] = [(0, STAMP, None, b'{"u": 1, "pad": "%s"}' % (b"x" * 500), [])]
    packed, _ = batch(0, rows, kind=1)
    assert kind.read(packed, 0, len(packed), None, 0) is None  # without what is in it
    assert len(kind.read(packed, 0, len(packed), bytes(codec.gzip_decode(packed[61:])), 0)) == 1
    unpacked, _ = batch(0, rows)
    assert kind.read(unpacked, 0, len(unpacked), unpacked[61:], 0) is None  # what is in nothing
    older = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    older.append(0, STAMP, b"k", b"v")
    raw = bytes(older.build())
    assert kind.read(raw + bytes(61), 0, len(raw), None, 0) is None
    assert told(reading(raw, 0, whole=True)) == told(reading(raw, 0, whole=False))


def test_of_an_unknown_codec_aiokafka_says_so() -> None:
    raw = bytearray(batch(0, [(0, STAMP, None, b"v", [])])[0])
    raw[ATTRIBUTES + 1] |= 7
    whole, single = (reading(sealed(raw), 0, whole=is_whole) for is_whole in (True, False))
    assert whole == single == "UnsupportedCodecError: UnsupportedCodecError: Unknown compression codec 0x07"


def test_aborted_transactions_and_markers_are_passed_over() -> None:
    # given two producers of transactions, of which one was aborted, and markers
    row: list[Any] = [(0, STAMP, None, b"v", [])]
    raws, base = [], 7
    for rows, bits, producer in (
        (row, TRANSACTIONAL, 1), (row, TRANSACTIONAL, 2), (row, 0, -1),
        ([(0, STAMP, ABORT_MARKER, b"", [])], TRANSACTIONAL | CONTROL, 1), (row, TRANSACTIONAL, 1),
    ):  # fmt: skip
        raw, base = batch(base, rows, 0, bits, producer)
        raws.append(raw)
    # then nothing of the aborted one is handed out
    aborted = [(1, 7)]
    whole, single = (told(reading(b"".join(raws), 7, whole=is_whole, aborted=aborted)) for is_whole in (True, False))
    assert whole == single
    assert [row[0] for row in whole[0]] == [9, 11, 15]


@pytest.mark.parametrize("name", ["naive", "several metrics", "add-remove"])
@examples(60)
@given(a_log, st.lists(st.integers(1, 9), min_size=1), st.integers(0, 2**16))
def test_both_lanes_send_the_same_of_batches(name: str, log: Any, cuts: list[int], seed: int) -> None:
    # given a log as aiokafka reads it, for the twin, and as batches
    choose = random.Random(seed)
    raw, _ = joined(log)
    whole, single = reading(raw, 7, whole=True)[0], list(reading(raw, 7, whole=False)[0])
    lanes = Lanes.of(CONFIGS[name])
    # when they are cut anywhere
    first = 0
    while first < len(single):
        size = cuts[first % len(cuts)]
        lanes.process(single[first : first + size], whole[first : first + size])
        first += size
        if choose.random() < 0.5:
            lanes.take()
    # then all that leaves is the same
    lanes.take()


@examples(40)
@given(st.lists(plain, min_size=1, max_size=40), st.sampled_from(CODECS))
def test_plain_records_of_batches_are_all_the_kernels(raws: list[bytes], kind: int) -> None:
    raw, _ = joined([([(0, STAMP, None, one, [])], kind, 0) for one in raws])
    whole: Sequence[Record] = reading(raw, 0, whole=True)[0]
    lanes = Lanes.of(CONFIGS["sharp"])
    lanes.process(list(whole), whole)
    assert lanes.kernel.read_by_kernel == len(raws)
    lanes.take()
