"""Event clocks: one rule for every source of time, and no clock further than the timestamps of its records allow."""

from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.config.file import Config
from shoal.models.records import BEAT_HEADER, CLOCK_HEADER
from shoal.models.times import iso
from shoal.stream.bound import BoundPartition
from shoal.stream.event_time import BEAT_AHEAD
from shoal.stream.file_run import Line
from shoal.stream.topic import plan_topic
from tests.privacy.attended import SECOND, present
from tests.stream.simulation import SECRET, config, event
from tests.support.effort import examples

AHEAD = 600  # seconds
NOW = 1_000_000  # seconds
MEAN = {"max_ahead": f"{AHEAD}s", "lateness": "7s", "algorithm": "naive"}
PRESENT = {"max_ahead": f"{AHEAD}s", "lateness": "7s", "end": None, "life": "100d"}
BOTH = {"values": config(MEAN), "add-remove": present(PRESENT)}


def bound(cfg: Config, *, checks_partition: bool = True) -> BoundPartition:
    plan = plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1)
    machine = BoundPartition(plan, 0, checks_partition=checks_partition)
    machine.start(0)
    return machine


def record(offset: int, header: str, time: int, stamp: int) -> Line:
    """An event or, with a header, a clock record or a beat; `time` and `stamp` in seconds, a stamp of -1 for none."""
    stamp = stamp * 1000 if stamp >= 0 else -1
    if not header:
        return Line(offset, event("a", 1, time), timestamp=stamp)
    return Line(offset, None, timestamp=stamp, headers=((header, iso(time * SECOND).encode()),))


def feed(machine: BoundPartition, records: Sequence[tuple[str, int, int]]) -> list[tuple[int, str]]:
    """Take in records of (header, time, stamp); offsets and reasons of the dead letters."""
    first = machine.next_offset or 0
    machine.process([record(offset, *one) for offset, one in enumerate(records, first)], first + len(records))
    taken = machine.take(0)
    letters = [orjson.loads(letter) for letter in taken.dead_letters] if taken else []
    return [(letter["offset"] - first, letter["reason"]) for letter in letters]


HEADERS = st.sampled_from(["", CLOCK_HEADER, BEAT_HEADER])
# Steps of a stamp, and how far the time is ahead of it: ramps, jumps, and neighbours of the limits.
STEPS = st.tuples(
    HEADERS,
    st.integers(-5, 900),
    st.integers(-2000, 2000) | st.sampled_from([AHEAD, AHEAD + 1, BEAT_AHEAD // SECOND, 10**9]),
)


@pytest.mark.parametrize("relation", BOTH)
@examples(200)
@given(st.lists(STEPS, max_size=30))
def test_neither_jump_nor_ramp_takes_a_clock_further_than_the_stamps_allow(relation, steps):
    machine, stamp, records = bound(BOTH[relation]), NOW, []
    for header, step, ahead in steps:
        stamp += step
        records.append((header, stamp + ahead, stamp))
    refused = feed(machine, records)
    # then a clock promises nothing that is further ahead than one of the stamps allows
    latest = machine.watermark(0)
    if latest is not None:
        assert latest - 7 * SECOND <= (max(stamp for _, _, stamp in records) + AHEAD) * SECOND
    # and whether a record is too far ahead, the record says alone
    alone = [offset for offset, one in enumerate(records) if (0, "too-far-ahead") in feed(bound(BOTH[relation]), [one])]
    assert [offset for offset, reason in refused if reason == "too-far-ahead"] == alone


@pytest.mark.parametrize("header", ["", CLOCK_HEADER, BEAT_HEADER])
def test_a_bomb_moves_no_clock_and_is_a_dead_letter(header):
    machine = bound(BOTH["values"])
    assert feed(machine, [("", NOW, NOW), (header, NOW + 10**9, NOW)]) == [(1, "too-far-ahead")]
    assert machine.watermark(0) == NOW * SECOND
    assert feed(machine, [("", NOW + 1, NOW + 1)]) == []


@pytest.mark.parametrize("header", [CLOCK_HEADER, BEAT_HEADER])
def test_what_one_clock_takes_is_no_dead_letter_though_others_stay(header):
    machine = bound(config(MEAN | {"max_ahead": "10s"}, MEAN))
    assert feed(machine, [(header, NOW + 11, NOW)]) == []
    assert machine.watermark(0) is None
    assert machine.watermark(1) is not None
    assert feed(machine, [(header, NOW + AHEAD + 1, NOW)]) == [(0, "too-far-ahead")] * 2


@pytest.mark.parametrize("header", ["", CLOCK_HEADER, BEAT_HEADER])
def test_a_record_without_a_stamp_moves_no_clock_of_a_topic(header):
    machine = bound(BOTH["values"])
    letters = feed(machine, [("", NOW, NOW), (header, NOW + 50, -1)])
    assert letters == ([(1, "no-time")] if header else [])
    assert machine.watermark(0) == NOW * SECOND


def test_lines_of_a_file_move_clocks_however_far_ahead_they_are():
    machine = bound(BOTH["values"], checks_partition=False)
    assert feed(machine, [("", NOW, -1), ("", NOW + 10**9, -1)]) == []
    assert machine.watermark(0) == (NOW + 10**9) * SECOND


@pytest.mark.parametrize(
    ("every", "limit"),
    [("contribution", 300), ("10s", 300), ("20m", 1200), ("1h", 3600), ("1d", 3600)],
)
def test_by_default_a_time_is_ahead_by_no_more_than_the_cadence_from_five_minutes_to_an_hour(every, limit):
    (section,) = config({"every": every, "algorithm": "naive"}).metric
    assert section.parts.source.max_ahead == limit * SECOND
