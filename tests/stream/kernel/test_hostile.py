"""What somebody might send to break a reader, and what old or odd brokers store: both lanes do the same."""

import random
from typing import Any

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from tests.stream.kernel.lanes import CONFIGS, Lanes
from tests.stream.kernel.records import HOSTILE
from tests.stream.kernel.test_batches import (
    ATTRIBUTES,
    CODECS,
    CONTROL,
    CRC,
    TRANSACTIONAL,
    a_log,
    batch,
    joined,
    one_record,
    reading,
    sealed,
    told,
)
from tests.stream.simulation import STAMP, event
from tests.support.cover import in_a_loop
from tests.support.effort import examples

LONG = [b'{"u": "%s", "x": 1, "t": 130, "g": "a"}', b'{"u": "a", "x": 1, "t": 130, "g": "a", "pad": "%s"}']
OLDER = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)]  # formats, and codecs that they knew
bodies = st.lists(st.one_of(st.none(), st.sampled_from([b"", b"v", event("bob", 1, 130)])), min_size=1, max_size=6)


def test_aiokafka_has_every_codec() -> None:
    """Else those that it lacks would not be tried."""
    assert CODECS == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["naive", "groups", "several metrics", "sums of a day", "found keys"])
def test_both_lanes_send_the_same_of_every_hostile_record(name: str) -> None:
    # given each among plain records, with keys and headers of any bytes, in a batch of each codec in turn
    plain = event("bob", 0.5, 130, g="a")
    raws = [*HOSTILE, *(shape % (b"x" * 10_000_000) for shape in LONG)]
    lanes, offset = Lanes.of(CONFIGS[name]), 0
    for number, raw in enumerate(raws):
        rows: list[Any] = [
            (0, STAMP, None, plain, []),
            (0, STAMP, b"\xff\x00", raw, [("", None), ("h", b"\x00\xff"), ("h", b"")]),
            (0, STAMP, b"", plain, []),
        ]
        made, _ = batch(offset, rows, CODECS[number % len(CODECS)])
        twin, kernel = (reading(made, offset, whole=is_whole)[0] for is_whole in (False, True))
        lanes.process(list(twin), kernel)
        lanes.take()
        offset += len(rows)
    # then the kernel took at least those that are plain
    assert (lanes.kernel.read_by_kernel or 0) >= 2 * len(raws)


def older(magic: int, kind: int, base: int, rows: list[bytes | None]) -> bytes:
    """Messages of format 0 or 1, in which several messages are one batch only if they are compressed."""
    builder = LegacyRecordBatchBuilder(magic, kind, 1 << 20)
    for number, value in enumerate(rows):
        builder.append(base + number, STAMP, b"k", value)
    return bytes(builder.build())


@examples(100)
@given(
    st.lists(st.tuples(st.sampled_from(OLDER), bodies), min_size=1, max_size=3),
    a_log,
    st.integers(0, 9),
    st.integers(0, 2**32),
)
def test_older_formats_are_read_as_by_aiokafka(old: Any, log: Any, skipped: int, seed: int) -> None:
    # given a log whose first batches are older than the others, and of which a byte may be wrong
    choose, base, raws = random.Random(seed), 0, []
    for (magic, kind), rows in old:
        raws.append(older(magic, kind, base, rows))
        base += len(rows)
    raw = bytearray(b"".join(raws))
    if choose.random() < 0.5:
        raw[choose.randrange(17, len(raw))] ^= 1 << choose.randrange(8)
    newer, _ = joined(log, base)
    # then both read the same, or end with the same error
    whole, single = (told(reading(bytes(raw) + newer, skipped, whole=is_whole)) for is_whole in (True, False))
    assert whole == single


def test_records_that_have_no_time_are_counted_alike_by_both_lanes() -> None:
    # given messages of format 0, which has no timestamps, plain and compressed
    raws = [older(0, kind, number, [event("bob", 0.5, 130)]) for number, kind in enumerate((0, 1, 2))]
    twin, kernel = (reading(b"".join(raws), 0, whole=is_whole)[0] for is_whole in (False, True))
    assert [(record.timestamp, record.timestamp_type, record.checksum) for record in twin] == [(-1, None, None)] * 3
    # then both lanes take them as records without a time of their own
    lanes = Lanes.of(CONFIGS["naive"])
    lanes.process(list(twin), kernel)
    assert lanes.twin.backlog == 3
    lanes.take()


@examples(100)
@given(st.lists(st.tuples(st.lists(one_record, min_size=1, max_size=3), st.booleans()), min_size=1, max_size=5),
       st.integers(0, 2**32))  # fmt: skip
def test_control_batches_of_any_content_are_passed_over_as_by_aiokafka(log: Any, seed: int) -> None:
    # given batches of transactions, and control batches in which anything stands
    choose, base, raws = random.Random(seed), 7, []
    for rows, is_control in log:
        bits = TRANSACTIONAL | (CONTROL if is_control else 0)
        raw, base = batch(base, rows, 0, bits, choose.choice([-1, 1, 2]))
        raws.append(raw)
    aborted = [(producer, choose.randrange(7, base)) for producer in choose.sample([1, 2], choose.randint(0, 2))]
    # then records, position and errors are the same
    raw = b"".join(raws)
    whole, single = (told(reading(raw, 7, whole=is_whole, aborted=aborted)) for is_whole in (True, False))
    assert whole == single


@in_a_loop
@pytest.mark.parametrize("kind", CODECS)
def test_of_a_wrong_checksum_both_say_the_same(kind: int) -> None:
    good, after = batch(0, [(0, STAMP, None, event("bob", 1, 130), [])] * 3, kind)
    for at in (CRC, CRC + 3, ATTRIBUTES + 1, len(good) - 1):
        bad = bytearray(batch(after, [(0, STAMP, None, event("bob", 2, 131), [])] * 3, kind)[0])
        bad[at] ^= 0x40
        whole, single = (told(reading(good + bytes(bad), 0, whole=is_whole)) for is_whole in (True, False))
        assert whole == single
        assert whole.startswith("CorruptRecordException")


@in_a_loop
@pytest.mark.parametrize("kind", CODECS[1:])
def test_of_compressed_records_that_are_cut_off_both_say_the_same(kind: int) -> None:
    """Their checksum is right, so it is the codec that says so, or there are fewer records than the batch promises."""
    whole_batch, _ = batch(0, [(0, STAMP, None, event("bob", n, 130), []) for n in range(40)], kind)
    for end in range(62, len(whole_batch), 7):
        raw = bytearray(whole_batch[:end])
        raw[8:12] = (end - 12).to_bytes(4)
        whole, single = (told(reading(sealed(raw), 0, whole=is_whole)) for is_whole in (True, False))
        assert whole == single
        assert isinstance(whole, str)
