"""Release where configurations change: topics and metrics that are unknown, new, retired, or were passed over."""

from collections.abc import Callable

import pytest

from shoal.models.errors import FailStop
from shoal.models.records import Message
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import Line
from shoal.stream.release import ReleasePartition
from shoal.stream.table.inventory import REACHED
from shoal.stream.topic import plan_topic
from tests.stream.fed import CLOCK, IDLE, SECOND, committed, message, release, restore, taken
from tests.stream.simulation import SECRET, STAMP, apply, config, event


def more(number: int, *labels: str, clock: int = 100) -> Message:
    """Of another topic; rows of these metrics at second 100, and a clock."""
    rows = {f"{label}|": [(100 * SECOND, "", 0, 0, 1, 1)] for label in labels}
    return Message("more", 0, number, 0, 0, {CLOCK: clock * SECOND}, False, rows)


def state_of(machine: ReleasePartition) -> tuple[object, ...]:
    """What the next transaction would say of it."""
    found = machine.take()
    return (found and found.changelog, found and found.releases)


@pytest.mark.parametrize("unknown", [more(1), more(1, "b/1"), message(2, at=101, key="b/1|")])
def test_a_message_of_an_unknown_topic_or_metric_is_the_end_before_it_counts(unknown):
    # given two machines in one state
    machine, other = release(), release()
    for one in (machine, other):
        one.process([Line(0, message(1, at=100, clock=101).encode())], 1)
        one.work()
    # when one of them meets what a newer configuration has sent
    machine.process([Line(1, unknown.encode())], 2)
    with pytest.raises(FailStop, match=r"(topic more|metric b/1) is in use.*start this worker with the newer config"):
        machine.work()
    # then the state is not past it, and knows nothing of it
    assert machine.next_offset == 1
    assert state_of(machine) == state_of(other)


def test_a_topic_whose_metrics_are_retired_is_followed_so_that_it_can_be_read_again():
    # given a state that met a topic whose metrics were retired since: nothing of it counts
    retired = frozenset({"b/1"})
    changelog, machine = committed()
    machine = restore(changelog, retired=retired, former={"more": 1})
    machine.process([Line(3, more(1, "b/1").encode()), Line(4, more(2, clock=500).encode())], 5)
    machine.work()
    released = taken(machine)
    assert released.releases == []
    apply(changelog, released.changelog)
    # when its state goes through a worker that meets nothing of it, and then the topic is read for another metric
    machine = restore(changelog, retired=retired, former={"more": 1})
    machine.process([Line(5, message(4, clock=200).encode())], 6)
    machine.work()
    apply(changelog, taken(machine).changelog)
    cfg = config({"algorithm": "naive"}, {"algorithm": "naive", "name": "c", "topic": "more"})
    plans = [
        plan_topic(cfg, topic, SECRET, source_partitions=1, contributions_partitions=1, retired=retired)
        for topic in cfg.topics
    ]
    machine = ReleasePartition(plans, 0, idle_after=IDLE)
    machine.restore(changelog)
    # then it goes on behind what was there, and misses what is missing
    with pytest.raises(FailStop, match="message 4 of topic more, partition 0 .* where 3 was due"):
        machine.receive(more(4, "c/1"))
    machine.receive(more(3, "c/1", clock=600))
    machine.work()
    assert [one.metric for one in taken(machine).releases] == ["c"]


def test_a_state_that_knows_a_topic_which_is_neither_configured_nor_retired_is_refused():
    changelog, machine = committed()
    machine = restore(changelog, former={"more": 1})
    machine.process([Line(3, more(1).encode())], 4)
    machine.work()
    apply(changelog, taken(machine).changelog)
    with pytest.raises(FailStop, match="topic more is in use, this configuration lacks it"):
        restore(changelog)


def two_topics(**more: object) -> ReleasePartition:
    """Metric m0 on `events`, metric b on `more`, which has two partitions."""
    cfg = config({"algorithm": "naive"}, {"algorithm": "naive", "name": "b", "topic": "more"} | more)
    plans = [
        plan_topic(cfg, topic, SECRET, source_partitions=count, contributions_partitions=1)
        for topic, count in (("events", 1), ("more", 2))
    ]
    return ReleasePartition(plans, 0, idle_after=IDLE)


def test_a_new_topic_begins_without_clocks():
    changelog, _ = committed()
    machine = two_topics()
    machine.restore(changelog)
    assert machine.clock_of("m0/1") == 110 * SECOND
    assert machine.clock_of("b/1") is None


def of_more(number: int, partition: int, at: int) -> Message:
    return Message(
        "more",
        partition,
        number,
        0,
        0,
        {CLOCK: at * SECOND},
        False,
        {"b/1|": [(at * SECOND, f"{at:032x}", 0, 0, 1, 1)]},
    )


MIXED = [
    message(1, at=100, clock=100), of_more(1, 0, 100), of_more(2, 0, 105), message(2, at=105, clock=110),
    of_more(1, 1, 101), of_more(3, 0, 120), message(3, clock=125), of_more(2, 1, 130), of_more(4, 0, 140),
]  # fmt: skip
LOG = [Line(offset, one.encode()) for offset, one in enumerate(MIXED)]


def run(machine: ReleasePartition, log: list[Line], changelog: dict[bytes, bytes], *, cut: int) -> list[bytes]:
    """Read the log in transactions of so many messages, each behind a restart; what is released."""
    released = []
    while (start := machine.next_offset or 0) < len(log):
        machine.process(log[start : start + cut], min(len(log), start + cut))
        machine.work()
        found = taken(machine)
        apply(changelog, found.changelog)
        released += [one.value for one in found.releases]
        machine = two_topics()
        machine.restore(changelog)
    return released


SLOTTED = {"statistic": "mean", "algorithm": "baseline", "slot": "10s", "group": "g", "max_groups": 2}
OTHER = {"algorithm": "naive", "name": "other"}


def after_one() -> Callable[[], bool]:
    """A function that is false once, and true from then on."""
    asked = iter([False])
    return lambda: next(asked, True)


@pytest.mark.parametrize("is_over", [False, True])
def test_a_metric_whose_slot_was_closed_in_pieces_may_be_retired_then_and_later(is_over):
    # given a state in which a slot is being closed, cell by cell, or was
    cfg = config(SLOTTED | {"epsilon": 5000}, OTHER)
    machine, changelog = release(cfg), dict[bytes, bytes]()
    bound = BoundPartition(plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1), 0)
    bound.start(0)
    events = [event(f"u{n}", 0.5, 140 if n == 99 else 100, g="abcd"[n % 4]) for n in range(100)]
    bound.process([Line(n, raw, timestamp=STAMP) for n, raw in enumerate(events)], 100)
    sent = bound.take(0)
    assert sent is not None
    for _, each in sent.messages:
        machine.receive(each)
    while machine.pending() and (is_over or REACHED not in {name[:1] for name in changelog}):
        machine.work(after_one())
        if (made := machine.take()) is not None:
            apply(changelog, made.changelog)
    assert REACHED in {name[:1] for name in changelog}
    # when it is retired, then others go on; and a file that lacks it is refused in words
    machine = restore(changelog, config(OTHER), retired=frozenset({"m0/1"}))
    assert {metric.label for metric, *_ in machine.heads()} == ({"other/1"} if is_over else set())
    with pytest.raises(FailStop, match="metric m0/1 is in use, this configuration lacks it"):
        restore(changelog, config(OTHER))
