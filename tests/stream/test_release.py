"""Release, rule by rule: sequence, ticks, clocks and idleness, the guard, what survives."""

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.models.errors import FailStop
from shoal.stream.clock import SourceClock
from shoal.stream.file_run import Line
from shoal.stream.release import ReleasePartition
from shoal.stream.topic import plan_topic
from tests.stream.fed import CLOCK, IDLE, SECOND, closed, committed, message, release, restore, taken
from tests.stream.older_states import changed_and_sealed
from tests.stream.simulation import SECRET, apply, config


def test_a_tick_closes_once_the_clock_has_passed_its_end():
    machine = release()
    assert closed(machine, message(1, clock=101, at=100), message(2, clock=109, at=105)) == []
    assert closed(machine, message(3, clock=110)) == [("01:50", 2)]
    assert closed(machine, message(4, clock=119, at=112), message(5, clock=140)) == [("02:00", 3)]
    assert machine.clock_of("m0/1") == 140 * SECOND


def test_ticks_without_a_contribution_release_nothing():
    machine = release()
    assert closed(machine, message(1, at=100, clock=100), message(2, clock=10**6)) == [("01:50", 1)]


def test_the_slowest_partition_decides_and_one_that_never_spoke_holds_everything():
    machine = release(sources=2)
    assert closed(machine, message(1, at=100, clock=500)) == []
    assert closed(machine, message(1, partition=1, clock=109)) == []
    assert closed(machine, message(2, partition=1, clock=110)) == [("01:50", 1)]


def test_a_repeated_message_is_skipped_and_counted():
    machine = release()
    first, second = message(1, at=100, clock=100), message(2, at=100, clock=101)
    assert closed(machine, first, second, message(2, at=100, clock=500)) == []
    assert machine.counters["repeated_messages"] == 1
    assert closed(machine, message(3, clock=110)) == [("01:50", 2)]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_repeated_message_that_need_not_be_the_same_is_the_end(restarted):
    source = SourceClock()
    assert source.follows(message(1, offset=4), "here")
    assert source.follows(message(2, offset=5), "here")
    if restarted:
        source = SourceClock(*source.dump())
    with pytest.raises(FailStop, match=r"came again, up to its offset 7, after message 2, .*its state is older"):
        source.follows(message(2, offset=7), "here")


@example(cuts=[1, 5], again=[2, 5], kept=1, room=2, ticks=True, restarted=False)
@example(cuts=[1, 5], again=[2, 5], kept=1, room=2, ticks=False, restarted=False)
@given(
    cuts=st.sets(st.integers(1, 12), min_size=1).map(sorted),
    again=st.sets(st.integers(1, 12), min_size=1).map(sorted),
    kept=st.integers(0, 11),
    room=st.integers(1, 12),
    ticks=st.booleans(),
    restarted=st.booleans(),
)
def test_a_source_with_an_older_state_than_its_messages_never_counts_an_event_twice(
    cuts, again, kept, room, ticks, restarted
):
    """It sends again what came after its state, cut in another way, and numbers the messages as it did before."""
    source, state, counted = SourceClock(), min(kept, len(cuts) - 1), 0
    first = list(numbered(cuts, 0, 1, room, ticks))
    for sent, _, end in first:
        assert source.follows(sent, "here")
        source.hear(sent, 1)
        counted = end
    if restarted:
        source = SourceClock(*source.dump())
    begin = cuts[state - 1] if state else 0
    number = 1 + sum(end <= begin for *_, end in first)
    for sent, start, end in numbered([cut for cut in again if cut > begin], begin, number, room, ticks):
        try:
            follows = source.follows(sent, "here")
        except FailStop:
            return
        if follows:
            assert start == counted, "what this message covers begins where the last one counted ended"
            counted = end
            source.hear(sent, 1)


def numbered(cuts, begin, number, room, ticks):
    """Messages of transactions that end at these offsets, and what each covers: so many records at most."""
    for cut in cuts:
        for start in range(begin, cut, room):
            is_last = start + room >= cut
            yield message(number, offset=cut, clock=100 if ticks and is_last else None), start, min(start + room, cut)
            number += 1
        begin = cut


def test_a_source_that_begins_again_has_lost_its_users_counts():
    machine = release()
    machine.receive(message(1, at=100, clock=100))
    with pytest.raises(FailStop, match="begins again at its first message after 1; its state is lost"):
        machine.receive(message(1, at=100, clock=100))


def test_a_lost_message_is_the_end():
    machine = release()
    machine.receive(message(1, at=100, clock=100))
    with pytest.raises(FailStop, match="message 3 of topic events, partition 0 .* where 2 was due"):
        machine.receive(message(3))


def test_an_idle_partition_lets_older_clocks_pass_and_nothing_newer():
    machine = release(sources=2)
    # given: partition 0 was at 200 by wall time 1 s, at 300 by wall time 20 s
    closed(machine, message(1, at=100, clock=200, wall=1_000), message(2, at=250, clock=300, wall=20_000))
    # when partition 1 is idle at 5 s: what was written by -3 s may pass: nothing
    assert closed(machine, message(1, partition=1, idle=True, wall=5_000)) == []
    # at 12 s: written by 4 s: 200 may pass
    assert closed(machine, message(2, partition=1, idle=True, wall=12_000)) == [("01:50", 1)]
    assert machine.clock_of("m0/1") == 200 * SECOND
    # at 28 s: written by 20 s: 300 too
    assert closed(machine, message(3, partition=1, idle=True, wall=28_000)) == [("04:20", 2)]


def test_all_idle_long_enough_the_clock_is_the_largest_watermark():
    machine = release(sources=3)
    closed(machine, message(1, at=100, clock=300, wall=1_000))
    for partition in (1, 2):
        closed(machine, message(1, partition=partition, idle=True, wall=2_000))
    late = [message(2, clock=300, idle=True, wall=30_000)]
    late += [message(2, partition=partition, idle=True, wall=30_000) for partition in (1, 2)]
    assert closed(machine, *late) == [("01:50", 1)]


def test_waking_late_folds_into_the_open_tick_and_is_counted():
    machine = release(sources=2)
    closed(machine, message(1, at=100, clock=300, wall=1_000), message(1, partition=1, idle=True, wall=30_000))
    assert closed(machine, message(2, partition=1, at=120, clock=120, wall=31_000)) == []
    assert machine.counters["woke_late"] == 1
    caught_up = [message(2, clock=310), message(3, partition=1, clock=310)]
    assert closed(machine, *caught_up) == [("05:10", 2)]


@pytest.mark.parametrize("parts", [[(7, 3)], [(7, 1), (60, 2)], [(0, 1), (31, 1), (99, 1)]])
def test_what_wakes_late_is_counted_by_samples_as_the_number_of_parts_depends_on_values(parts):
    machine = release(config({"algorithm": "sharp"}), sources=2)
    closed(machine, message(1, at=100, clock=300, wall=1_000), message(1, partition=1, idle=True, wall=30_000))
    late = message(2, partition=1, clock=120, wall=31_000)
    flat = [cell for part, samples in parts for cell in (part, samples, samples)]
    late.partials = {"m0/1|": [(120 * SECOND, flat)]}
    closed(machine, late)
    assert machine.counters["woke_late"] == 3


def test_sources_far_ahead_of_a_slow_one_are_held_back_but_never_for_an_idle_one(monkeypatch):
    monkeypatch.setattr("shoal.stream.release.MAX_LEAD", 2)
    machine = release(config({"algorithm": "naive", "every": "1s"}), sources=3)
    assert list(machine.ahead()) == []
    ahead = [message(number, at=100 + number, clock=100 + number) for number in range(1, 4)]
    closed(machine, *ahead, message(1, partition=1, clock=50), message(1, partition=2, clock=60))
    assert sorted(machine.ahead()) == [("events", 0), ("events", 2)]
    closed(machine, message(2, partition=1, clock=50, idle=True, wall=1))
    assert list(machine.ahead()) == []
    closed(machine, message(3, partition=1, clock=200), message(2, partition=2, clock=200))
    assert list(machine.ahead()) == [], "what waited is released"


def test_past_clocks_are_forgotten_after_a_while():
    machine = release(sources=2)
    for number in range(1, 200):
        closed(machine, message(number, clock=number, wall=number * 1000))
    past = machine._clocks["events"].sources[0].past[CLOCK]
    assert len(past) < 20


def test_a_closing_may_be_cut_anywhere_and_goes_on_after_a_crash():
    # given a tick of many groups, of which a first transaction closes some
    cfg = config({"algorithm": "naive", "group": "g"})
    machine = release(cfg)
    for number, group in enumerate("abcdefgh", 1):
        machine.receive(message(number, at=100, key=f"m0/1|{group}"))
    machine.receive(message(9, clock=110))
    changelog: dict[bytes, bytes] = {}
    released: list[str] = []

    def commit() -> None:
        found = taken(machine)
        apply(changelog, found.changelog)
        released.extend(orjson.loads(one.value)["group"] for one in found.releases)

    pieces = iter([False, False, True])
    machine.work(lambda: next(pieces))
    commit()
    assert released == ["a", "b"]
    # when the worker dies and a successor restores what was committed
    plan = plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1)
    machine = ReleasePartition([plan], 0, idle_after=IDLE)
    machine.restore(changelog)
    assert machine.pending(), "before any other message"
    while machine.pending():
        machine.work()
    commit()
    # then each group is released once
    assert released == list("abcdefgh")


def test_work_gives_the_loop_back_and_reads_records_in_order():
    machine = release()
    lines = [Line(0, message(1, at=100, clock=100).encode()), Line(1, message(2, clock=110).encode())]
    machine.process(lines, 5)
    assert machine.pending()
    machine.work(lambda: True)
    assert machine.next_offset == 0, "no time, no work"
    while machine.pending():
        machine.work()
    assert machine.next_offset == 5
    assert machine.backlog == 3
    assert len(taken(machine).releases) == 1
    assert machine.take() is None


def test_an_empty_release_partition_has_nothing_to_hand_out():
    plan = plan_topic(config({}), "events", SECRET, source_partitions=1, contributions_partitions=1)
    machine = ReleasePartition([plan], 0, idle_after=IDLE)
    machine.restore({})
    assert machine.next_offset is None
    assert machine.take() is None


def test_the_last_committed_release_must_be_the_states():
    changelog, machine = committed()
    again = restore(changelog)
    last = {"n": b"1", "chain": machine.published_chain.hex().encode()}
    again.check_last(last)
    with pytest.raises(FailStop, match="holds no release"):
        again.check_last(None)
    with pytest.raises(FailStop, match="ends with release 7 of another history"):
        again.check_last({"n": b"7", "chain": b"00"})
    with pytest.raises(FailStop, match="another history"):
        again.check_last({})
    release().check_last(None)
    assert [(metric.label, group, seq) for metric, group, seq, _ in again.heads()] == [("m0/1", "", 1)]


def test_up_to_what_is_published_a_release_may_only_be_recomputed():
    # given what is published already, in a ledger, say
    _, original = committed()
    machine = release()
    for each in (message(1, at=100, clock=100), message(2, clock=110)):
        machine.receive(each)
    while machine.pending():
        machine.work()
    value = taken(machine).releases[0].value
    # then the same bytes pass, and others are the end
    same = release(published=lambda label, group, seq: value)
    assert closed(same, message(1, at=100, clock=100), message(2, clock=110)) == [("01:50", 1)]
    other = release(published=lambda label, group, seq: value)
    with pytest.raises(FailStop, match="already published with other bytes"):
        closed(other, message(1, at=100, clock=100, samples=2), message(2, clock=110))
    new = release(published=lambda label, group, seq: None)
    assert closed(new, message(1, at=100, clock=100), message(2, clock=110)) == [("01:50", 1)]


@pytest.mark.parametrize(
    ("change", "text"), [({"log": "other"}, "belongs to audit log other"), ({"clocks": {"events": []}}, "knows 0 part")]
)
def test_state_that_is_not_ours_is_refused(change, text):
    changelog, _ = committed()
    with pytest.raises(FailStop, match=text):
        restore(changed_and_sealed(changelog, **change))


def test_state_without_a_mark_is_refused():
    changelog, _ = committed()
    del changelog[b"\x00mark"]
    with pytest.raises(FailStop, match="no mark"):
        restore(changelog)


def test_a_metric_that_is_not_configured_is_the_end_unless_it_is_retired():
    changelog, _ = committed(config({"algorithm": "naive"}, {"algorithm": "naive", "every": "5s"}))
    other = config({"algorithm": "naive", "name": "other"})
    with pytest.raises(FailStop, match="metric m0/1 is in use, this configuration lacks it"):
        restore(changelog, other)
    machine = restore(changelog, other, retired=frozenset({"m0/1"}))
    machine.receive(message(4, at=120))
    assert list(machine.heads()) == []


def test_a_clamped_metric_publishes_within_its_range_and_says_how_noisy_it_is():
    machine = release(config({"algorithm": "naive", "clamp": True, "epsilon": "0.01"}))
    machine.receive(message(1, at=100, clock=110))
    while machine.pending():
        machine.work()
    found = orjson.loads(taken(machine).releases[0].value)
    assert 0 <= found["value"] <= 1
    assert found["low"] < -100 < 100 < found["high"]
