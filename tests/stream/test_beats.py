"""Clocks that go by beats, where presence is protected: no record moves them, and none is later than its tick."""

from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.config.file import Config
from shoal.models.errors import FailStop
from shoal.models.records import BEAT_HEADER
from shoal.models.times import iso
from shoal.stream import pieces
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import FileRun, Line, beat_line
from shoal.stream.group import GroupOutput, Released
from shoal.stream.open_ticks import open_ticks
from shoal.stream.topic import plan_topic
from tests.privacy.attended import SECOND, USUAL, present
from tests.stream.fed import message, release
from tests.stream.simulation import SECRET, STAMP, Cluster, apply, config, event
from tests.support.cover import in_a_loop
from tests.support.effort import examples

LATER = {"name": "later", "start": "1970-01-01T00:02:30Z"}
CLOCK = "t|0|fold|300000000|beats"


def bound(cfg: Config, items: dict[bytes, bytes] | None = None, *retired: str) -> BoundPartition:
    plan = plan_topic(
        cfg, "events", SECRET, source_partitions=1, contributions_partitions=1, retired=frozenset(retired)
    )
    machine = BoundPartition(plan, 0, checks_partition=False)
    machine.restore(items or {})
    if machine.next_offset is None:
        machine.start(0)
    return machine


def read(machine: BoundPartition, *records: bytes | int, stamp: int = STAMP) -> dict[bytes, bytes]:
    """Take in events, and beats of so many seconds; the changelog."""
    first = machine.next_offset or 0
    lines = [
        beat_line(offset, one * SECOND) if isinstance(one, int) else Line(offset, one, timestamp=stamp)
        for offset, one in enumerate(records, first)
    ]
    machine.process([line._replace(timestamp=stamp) for line in lines], first + len(records))
    taken = machine.take(0)
    assert taken is not None
    changelog: dict[bytes, bytes] = {}
    apply(changelog, taken.changelog)
    return changelog


def ticks(
    machine: BoundPartition, *records: bytes | int, stamp: int = STAMP, state: dict[bytes, bytes] | None = None
) -> list[int]:
    """Starts of the ticks in which samples count, in seconds."""
    found: list[int] = []
    for one in records:
        first = machine.next_offset or 0
        line = beat_line(first, one * SECOND) if isinstance(one, int) else Line(first, one)
        machine.process([line._replace(timestamp=stamp)], first + 1)
        taken = machine.take(0)
        assert taken is not None
        apply({} if state is None else state, taken.changelog)
        partials = [part for _, sent in taken.messages for parts in sent.partials.values() for part in parts]
        found += [start // SECOND for start, _ in partials]
    return found


def reasons(machine: BoundPartition) -> dict[str, int]:
    return {name.rpartition(".")[2]: count for name, count in machine.counters.items()}


def test_no_record_moves_a_clock_that_goes_by_beats():
    machine = bound(present({"lateness": "5s"}))
    found = ticks(machine, event("far", 1, 190), event("a", 1, 110), 130, event("b", 1, 126), event("c", 1, 110))
    assert found == [190, 110, 120, 120]  # the last one folds into the tick that the beat has open
    assert machine.watermark(0) == 130 * SECOND


def test_late_records_are_dropped_by_the_last_beat():
    machine = bound(present({"late": "drop"}))
    assert ticks(machine, event("far", 1, 190), event("a", 1, 110), 130, event("b", 1, 129)) == [190, 110]
    assert reasons(machine) == {"late": 1}


def test_records_far_ahead_are_judged_by_their_own_stamp_whatever_the_last_beat():
    cfg = present({"max_ahead": "10s"})
    early = 120_000
    assert ticks(bound(cfg), event("a", 1, 130), event("b", 1, 131), stamp=early) == [130]
    assert ticks(bound(cfg), 130, event("a", 1, 130), event("b", 1, 131), stamp=early) == [130]


def test_clock_records_move_no_clock_that_goes_by_beats():
    machine = bound(present({}))
    header = (("shoal-clock", b"1970-01-01T00:03:00Z"),)
    machine.process([Line(0, None, headers=header)], 1)
    assert (machine.watermark(0), reasons(machine)) == (None, {})


def test_a_beat_that_is_too_far_ahead_or_no_time_is_a_dead_letter():
    machine = bound(present({"max_ahead": "10s"}, {"max_ahead": "20s"}))
    read(machine, 131, 130, stamp=120_000)  # as far ahead as every metric of the topic takes
    machine.process([Line(2, None, headers=((BEAT_HEADER, b"soon"),))], 3)
    assert (machine.watermark(0), machine.watermark(1)) == (130 * SECOND, 130 * SECOND)
    assert machine.counters == {
        "dead_letters.m0.not-json": 1, "dead_letters.m1.not-json": 1,
    } | {f"dead_letters.m{index}.too-far-ahead": 1 for index in range(2)}  # fmt: skip


def test_a_beat_is_no_further_ahead_than_brokers_take_releases_of_its_time():
    machine = bound(present({"max_ahead": "30d"}))
    read(machine, 1921, 1920, stamp=120_000)
    assert (machine.watermark(0), reasons(machine)) == (1920 * SECOND, {"too-far-ahead": 1})
    read(machine, 1930, 1925, stamp=121_000)  # nor from there on
    assert machine.watermark(0) == 1920 * SECOND


def test_a_clock_that_had_no_metric_for_a_while_has_had_the_beats_of_the_others():
    # given two clocks, of which one has no metric for a while, and then that of a newer version
    one, other = {"lateness": "1s"}, {"name": "other"}
    changelog = read(bound(present(one, other)), 130)
    changelog |= read(bound(present(other), changelog, "m0/1"), 150)
    newer = present(one | {"version": 2, "start": "1970-01-01T00:03:00Z"}, other)
    assert bound(newer, changelog, "m0/1").watermark(0) == 150 * SECOND


def test_to_other_clocks_a_beat_is_a_record_of_that_time():
    machine = bound(config({"lateness": "5s", "max_ahead": "10s"}))
    read(machine, event("a", 1, 100), 110, 105, 121, stamp=110_000)
    assert machine.watermark(0) == 110 * SECOND
    assert machine.counters == {"dead_letters.m0.too-far-ahead": 1}


def test_records_before_the_start_and_after_the_end_do_not_count():
    machine = bound(present({"lateness": "20s"}))
    assert ticks(machine, event("a", 1, 99), event("a", 1, 100), event("a", 1, 200), event("a", 1, 199)) == [
        100, 190,
    ]  # fmt: skip
    assert reasons(machine) == {"before-start": 1, "after-end": 1}


def test_a_silent_partition_lets_no_clock_that_goes_by_beats_pass():
    machine = bound(present({}))
    read(machine, 130)
    machine.idle(10**9)
    assert machine.take(10**9) is None
    receiver = release(present({}), sources=2)
    receiver.receive(beaten(1, 150))
    receiver.receive(beaten(1, None, partition=1, idle=True, wall=0))
    receiver.receive(beaten(2, None, partition=1, idle=True, wall=10**6))
    assert not receiver.pending()
    (tick,) = open_ticks(receiver)
    assert (tick.reached, tick.without_beats) == (None, (1,))


def beaten(number: int, seconds: int | None, at: int | None = None, **more):
    """A message with the clock of beats."""
    made = message(number, at=at, **more)
    made.watermarks = {CLOCK: None if seconds is None else seconds * SECOND}
    return made


def test_a_metric_that_is_added_begins_at_the_first_beat_of_its_start():
    before, both = present({}), present({}, LATER)
    state = read(bound(before), event("a", 1, 160), 120, event("a", 1, 155))
    assert orjson.loads(state[b"\x00mark"])["beat"] == 120 * SECOND
    machine = bound(both, state)
    state |= read(machine, event("b", 1, 160), 149, event("c", 1, 160))
    assert orjson.loads(state[b"\x00mark"])["starts"] == {"m0/1": 0, "later/1": None}
    machine = bound(both, state)  # whatever is restored meanwhile
    sent = ticks(machine, event("d", 1, 160), 150, event("e", 1, 160), state=state)
    assert sent == [160, 160, 160]  # of the last event both metrics have a sample
    state |= read(machine, 151)
    assert orjson.loads(state[b"\x00mark"])["starts"] == {"m0/1": 0, "later/1": 7}
    assert bound(both, state).count("later", "e") == 1
    assert bound(both, state).count("later", "a") is None


def test_a_metric_that_is_added_begins_there_in_a_partition_of_which_nothing_was_read_too():
    plan = plan_topic(
        present({}, LATER), "events", SECRET, source_partitions=1, contributions_partitions=1,
        added=frozenset({"later/1"}),
    )  # fmt: skip
    machine = BoundPartition(plan, 0, checks_partition=False)
    machine.start(0)
    state = read(machine, event("a", 1, 160), 149, event("b", 1, 160), 150, event("c", 1, 160))
    assert orjson.loads(state[b"\x00mark"])["starts"] == {"m0/1": 0, "later/1": 3}
    assert [machine.count("later", user) for user in "abc"] == [None, None, 1]
    assert [machine.count("m0", user) for user in "abc"] == [1, 1, 1]


def test_a_metric_that_is_added_after_its_start_is_refused():
    state = read(bound(present({})), 150)
    with pytest.raises(FailStop, match=r"there was a beat of 1970-01-01T00:02:30Z already; .* a later `start`"):
        bound(present({}, LATER), state)


def test_contributions_for_a_closed_tick_end_the_worker():
    machine = release(present({}))
    machine.receive(beaten(1, 120))
    late = beaten(2, 130)
    late.partials = {"m0/1|": [(110 * SECOND, [0, 1, 8])]}
    with pytest.raises(FailStop, match="came for a tick that is closed"):
        machine.receive(late)


def test_ticks_of_several_metrics_are_closed_in_the_order_of_beats_however_many_come_at_once():
    cfg = present({"every": "20s", "lateness": "5s"}, {})
    orders = []
    for beats in ([210], range(100, 211)):
        machine, found = release(cfg), []
        for number, seconds in enumerate(beats, 1):
            made = beaten(number, seconds)
            made.watermarks = {CLOCK: seconds * SECOND, CLOCK.replace("t|0", "t|5000000"): (seconds - 5) * SECOND}
            machine.receive(made)
            machine.work()
            while (taken := machine.take()) is not None:
                found.append([(one.metric, one.at // SECOND) for one in taken.releases])
        orders.append([cut for cut in found if cut])
    assert orders[0] == orders[1]
    assert orders[0][:4] == [[("m1", 110)], [("m1", 120)], [("m0", 120)], [("m1", 130)]]


def test_transactions_of_a_tick_are_cut_by_what_is_released():
    cfg = present({"group": "g", "groups": ["a", "b", "c", "d", "e"]})
    machine = release(cfg)
    machine.receive(beaten(1, 120))
    cuts: list[int | None] = []
    pauses = iter([True, False] * 100)
    with patch.object(pieces, "RELEASES", 2):
        while machine.pending() or cuts[-1:] != [None]:
            machine.work(lambda: next(pauses))
            taken = machine.take()
            cuts.append(None if taken is None else len(taken.releases))
    assert [cut for cut in cuts if cut] == [2, 2, 1, 2, 2, 1]


def test_groups_that_are_not_released_cut_no_releases():
    """They cut transactions that hold no release, which no reader of releases sees."""
    taken, cuts = pieces.Pieces(written, alone=True), []
    with patch.multiple(pieces, RELEASES=2, GROUPS=3):
        taken.before_closing()
        for is_released in (False, False, False, False, True, False, False, False, False, True, True):
            taken.made.closed += 1
            taken.made.releases += [GroupOutput(0, "m", "", 0, b"", ())] * is_released
            taken.after_closing(is_open=True)
        taken.after_closing(is_open=False)
        while (one := taken.take()) is not None:
            cuts.append(len(one.releases))
    assert cuts == [0, 2, 1]


def written(made: pieces.Made) -> Released | None:
    """A transaction, if there is anything in it."""
    return Released(made.releases, [], [], 0, made.events) if made.closed else None


users = st.sampled_from([f"user{index}" for index in range(5)])
streams = st.lists(
    st.one_of(st.tuples(users, st.sampled_from([0, 0.25, 1]), st.integers(90, 210)), st.integers(90, 195)), max_size=60
)
FOUND = {"group": "g", "delta": "9e-1", "life": "100s"}  # a key of few users is shown
EQUAL = [
    present({"lateness": "3s"}, {"late": "drop", "every": "20s"}),
    present({"group": "g", "groups": ["a", "b"]}, {"decay": {"kind": "window", "length": "20s"}, "unit": "user-20s"}),
    present(FOUND | {"end": None, "life": "30s"}, FOUND | {"decay": {"kind": "window", "length": "20s"}}),
    present(FOUND | {"statistic": "count", "value": None, "unit": "user-20s", "max_groups": 2}),
]


@in_a_loop
@pytest.mark.parametrize("cfg", EQUAL, ids=range(len(EQUAL)))
@examples(40)
@given(st.data(), streams, st.integers(1, 3), st.integers(1, 3))
def test_kafka_and_a_file_run_release_the_same(cfg: Config, data, stream, sources: int, homes: int):
    """On the same records, with beats in the same places, however they are spread, cut and crashed."""
    schedule = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from(["bound", "release", "crash_bound", "crash_release"]),
                st.integers(0, 2),
                st.integers(1, 9),
            ),
            max_size=40,
        )
    )
    cluster, lines = Cluster(cfg, sources, homes), list[Line]()
    for one in [*stream, 203]:  # the last steps that a file run closes are over then, and no later ones
        if isinstance(one, int):
            lines.append(beat_line(len(lines), one * SECOND))
            for source in cluster.sources:
                source.log.append(beat_line(len(source.log), one * SECOND)._replace(timestamp=STAMP))
        else:
            raw = event(*one, g="ab"[one[2] % 2])
            lines.append(Line(len(lines), raw))
            cluster.produce([raw])
    for action, where, amount in schedule:
        cluster.act(action, where, amount)
    cluster.drain()
    run = FileRun(plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1))
    made = [release.value for output in run.outputs(lines[:-1]) for release in output.releases]
    assert cluster.releases() == made
    assert len(made) >= 10 or cfg.metric[0].delta


def test_a_file_run_closes_all_ticks_up_to_the_end_and_none_before_the_input_ends():
    plan = plan_topic(present({}), "events", SECRET, source_partitions=1, contributions_partitions=1)
    lines = [Line(0, event("a", 1, 10**6)), Line(1, event("b", 1, 150)), Line(2, event("c", 1, 100))]
    outputs = list(FileRun(plan).outputs(lines))
    assert [len(output.releases) for output in outputs] == [0, 0, 10]
    assert iso(outputs[-1].releases[-1].at) == USUAL["end"]
