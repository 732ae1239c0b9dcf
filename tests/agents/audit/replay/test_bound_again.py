"""Contributions made again from events: those that bound sent, however it was cut, restarted and added to."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.audit.replay.bound_again import BoundAgain
from shoal.agents.audit.replay.contributions import SentRows, compare
from shoal.agents.audit.replay.matching import Findings
from shoal.models.config.file import Config
from shoal.models.records import Message
from shoal.models.times import iso
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import Line
from shoal.stream.state_mark import MARK
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.simulation import SECRET, STAMP, config, event
from tests.support.effort import examples

HOUR = 3600 * 10**6
METRICS: tuple[dict[str, Any], ...] = (
    {"epsilon": 4000},
    {"algorithm": "naive", "every": "7s", "lateness": "3s"},
    {"every": "contribution"},
    {"algorithm": "naive", "value": ["x", "t"], "range": [(0, 1), (0, 200)], "every": "7s"},
)


def plan(*metrics: dict[str, Any]) -> TopicPlan:
    return plan_of(config(*metrics))


def lines(times: Sequence[int], first: int = 0) -> list[Line]:
    return [
        Line(offset, event(f"u{offset % 3}", offset % 5 / 4, time), timestamp=STAMP)
        for offset, time in enumerate(times, first)
    ]


def sent_of(compiled: TopicPlan, messages: Sequence[tuple[int, Message]]) -> list[SentRows]:
    both = [SentRows(compiled), SentRows(compiled)]
    for home, message in messages:
        both[home].add(Message.decode(message.encode()))
    return both


steps = st.lists(st.integers(-2, 6), min_size=1, max_size=40)


@given(steps, st.lists(st.integers(1, 9), min_size=1), st.data())
def test_contributions_are_what_the_events_yield_however_they_are_cut(
    deltas: list[int], cuts: list[int], data: st.DataObject
) -> None:
    # given what a source partition sent in transactions of any size
    compiled = plan(*METRICS)
    events = lines([100 + sum(deltas[: index + 1]) for index in range(len(deltas))])
    bound = BoundPartition(compiled, 0)
    bound.start(0)
    messages: list[tuple[int, Message]] = []
    at = 0
    while at < len(events):
        part = events[at : at + cuts[at % len(cuts)]]
        at += len(part)
        bound.process(part, at)
        taken = bound.take(wall=at)
        assert taken is not None
        messages += taken.messages
    mark = {"log": "", "offset": at, "starts": {metric.label: 0 for metric in compiled.metrics}}
    # when it is made again from the events
    again = BoundAgain(config(*METRICS), "events", plan_of, 0, mark)
    yielded = sent_of(compiled, list(again.take(events)))
    clocks = again.promises()
    # then both are the same
    findings = Findings()
    for home, (must, found) in enumerate(zip(yielded, sent_of(compiled, messages), strict=True)):
        compare(findings, "here", compiled, must, found, clocks.to(home))
    assert not findings.all()
    # and a row more, less or changed is a difference
    kinds = ("contributions", "partials")
    some = [(n, kind, key) for n, (_, one) in enumerate(messages) for kind in kinds for key in getattr(one, kind)]
    number, kind, key = data.draw(st.sampled_from(some))
    place, message = messages[number]
    tampered = Message.decode(message.encode())
    change(getattr(tampered, kind)[key][0])
    sent = sent_of(compiled, [*messages[:number], (place, tampered), *messages[number + 1 :]])
    for home, (must, found) in enumerate(zip(yielded, sent, strict=True)):
        compare(findings, "here", compiled, must, found, clocks.to(home))
    assert [one.where for one in findings.all()] == [f"here {key}"]


def change(found: list[Any]) -> None:
    """The last sum of a row or of a partial."""
    totals = found if isinstance(found[-1], int) else found[-1]
    if isinstance(totals[-1], list):
        totals = totals[-1]
    totals[-1] += 1


def plan_of(cfg: Config, retired: Iterable[str] = ()) -> TopicPlan:
    return plan_topic(
        cfg, "events", SECRET, source_partitions=1, contributions_partitions=2, retired=frozenset(retired)
    )


CLOCKS: tuple[dict[str, Any], ...] = (  # what a metric may be: three clocks, with ticks or without
    {"algorithm": "naive", "every": "7s", "lateness": "3s"},
    {"algorithm": "naive", "every": "5s", "lateness": "3s"},
    {"every": "contribution"},
    {"every": "contribution", "lateness": "3s", "late": "drop", "max_ahead": "20s"},
    {"algorithm": "naive", "every": "7s", "lateness": "3s", "late": "drop", "max_ahead": "20s"},
)


@dataclass
class Partition:
    """A source partition under one configuration after the other, and what it has sent."""

    events: list[Line]
    state: dict[bytes, bytes] = field(default_factory=dict)
    messages: list[tuple[int, Message]] = field(default_factory=list)
    next_offset: int = 0

    def run(self, compiled: TopicPlan, to: int, *, idle: bool = False) -> None:
        """A transaction of a worker that was started with this configuration."""
        bound = BoundPartition(compiled, 0)
        bound.restore(self.state)
        if bound.next_offset is None:
            bound.start(0)
        bound.process(self.events[self.next_offset : to], to)
        self.next_offset = to
        if idle:
            bound.idle(wall=0)
        taken = bound.take(wall=0)
        if taken is not None:
            self.messages += taken.messages
            self.state |= {key: value for key, value in taken.changelog if value is not None}

    def findings(self, cfg: Config, compiled: TopicPlan) -> list[str]:
        """What a replay from the events says of it."""
        mark, findings = orjson.loads(self.state[MARK]), Findings()
        again = BoundAgain(cfg, "events", plan_of, 0, mark)
        yielded = sent_of(compiled, list(again.take(self.events[again.first : self.next_offset])))
        promises = again.promises()
        for home, (must, found) in enumerate(zip(yielded, sent_of(compiled, self.messages), strict=True)):
            compare(findings, "here", compiled, must, found, promises.to(home))
        return [one.message for one in findings.all()]


@given(st.integers(0, 12), st.integers(0, 12))
def test_a_metric_that_came_later_begins_there(first: int, second: int) -> None:
    # given a partition whose second and third metric came later
    partition = Partition(lines([100 + index - index % 3 for index in range(12)]))
    for number, end in enumerate((*sorted((first, second)), 12), 1):
        partition.run(plan(*METRICS[:number]), end)
    # when it is made again, with each metric from where the mark says, then it is what was sent
    assert partition.findings(config(*METRICS), plan(*METRICS)) == []


@examples(200)
@given(st.lists(st.integers(-20, 40), min_size=1, max_size=12), st.data())
def test_no_history_of_deploys_is_taken_for_a_forgery(steps: list[int], data: st.DataObject) -> None:
    # given metrics that come, go and come in newer versions, each with some clock; events may be late, or none since
    partition = Partition(lines([200 + sum(steps[: number + 1]) for number in range(len(steps))]))
    versions, kinds, retired = Counter[str](), dict[str, dict[str, Any]](), set[str]()
    partition.run(plan(data.draw(st.sampled_from(CLOCKS)) | {"name": "first"}), data.draw(st.integers(1, len(steps))))
    retired.add("first/1")
    for _ in range(data.draw(st.integers(1, 4))):
        for name in data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)):
            if name in kinds:
                retired.add(f"{name}/{versions[name]}")
            versions[name] += 1
            kinds[name] = data.draw(st.sampled_from(CLOCKS)) | {"name": name, "version": versions[name]}
        if len(kinds) > 1 and data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(kinds)))
            retired.add(f"{gone}/{versions[gone]}")
            del kinds[gone]
        cfg = config(*kinds.values())
        compiled = plan_of(cfg, retired)
        partition.run(
            compiled, data.draw(st.integers(partition.next_offset, len(steps))), idle=data.draw(st.booleans())
        )
    # when the last configuration's part of it is made again, then it is what was sent, and clocks are where they were
    assert partition.findings(cfg, compiled) == []


def test_restarts_keep_the_time_that_a_clock_had_where_a_metric_began() -> None:
    # given a metric that began with its clock at 100 s, and a restart with the clock at 150 s
    partition = Partition(lines([100, 101, 150, 151]))
    first, second = (CLOCKS[0] | {"name": name} for name in "ab")
    partition.run(plan(first), 1)
    partition.run(plan(first, second), 3)
    alone = config(second)
    partition.run(plan_of(alone, ["a/1"]), 4)
    # when the metric is made again without the one that had moved the clock, then its events are in their own ticks
    assert partition.findings(alone, plan_of(alone, ["a/1"])) == []


PRESENCE: dict[str, Any] = {
    "relation": "add-remove", "statistic": "mean", "every": "1h", "max_contributions": 2, "epsilon": 1,
    "lateness": "1m", "users": None, "algorithm": None, "failure": None,
}  # fmt: skip


def beat(offset: int, hour: float, written: float) -> Line:
    header = ("shoal-beat", iso(round(hour * HOUR)).encode())
    return Line(offset, None, timestamp=round(written * HOUR) // 1000, headers=(header,))


def presence(name: str, hour: float, **more: Any) -> dict[str, Any]:
    return PRESENCE | {"name": name, "start": iso(round(hour * HOUR))} | more


@pytest.fixture
def beats() -> Partition:
    """A partition that had beats at nine and ten o'clock, one 18 minutes ahead of its stamp, and an event."""
    return Partition([beat(0, 9, 9), beat(1, 10, 10), beat(2, 11.3, 11), *lines([10 * 3600 + 5], first=3)])


@pytest.mark.parametrize("second", [10, 20])
def test_all_metrics_accept_the_same_beats_also_one_that_waits(beats: Partition, second: int) -> None:
    # given a metric that waits for its start, which one beat reaches or none, and allows beats less ahead
    first, later = presence("a", 0, max_ahead="1h"), presence("b", second, max_ahead="10m")
    beats.run(plan(first), 1)
    both = config(first, later)
    beats.run(plan_of(both), 4)
    assert orjson.loads(beats.state[MARK])["starts"] == {"a/1": 0, "b/1": 1 if second == 10 else None}
    # when it is made again, then a beat 18 minutes ahead has moved neither clock, as for the worker
    assert beats.findings(both, plan_of(both)) == []
    # and what was said by any of them is held against it
    for label in (clock.label for clock in plan_of(both).clocks):
        _, last = beats.messages[-1]
        said = dict(last.watermarks or {})
        last.watermarks = said | {label: (said[label] or 0) + HOUR}
        assert beats.findings(both, plan_of(both)) == [f"the last watermark of clock {label} is not that of the events"]
        last.watermarks = said


def test_a_metric_that_began_at_a_beat_needs_no_other(beats: Partition) -> None:
    # given a metric that began at a beat, and another that was retired since
    first, later = (presence(name, hour, max_ahead="30m", lateness="2m") for name, hour in (("a", 0), ("b", 10)))
    beats.events[0] = beat(0, 9.8, 9.8)
    beats.run(plan(first), 1)
    beats.run(plan(first, later), 2)
    assert orjson.loads(beats.state[MARK])["starts"]["b/1"] == 1
    alone = config(later)
    # then the beat is taken again
    assert beats.findings(alone, plan_of(alone, ["a/1"])) == []


def test_a_clock_that_a_message_leaves_out_is_not_forgotten() -> None:
    # given a forged message that does not name the clock, with a row for a tick that is over
    compiled = plan({})
    label, key = compiled.clocks[0].label, f"{compiled.metrics[0].label}|"
    sent = SentRows(compiled)
    told: tuple[dict[str, int | None], ...] = {label: 100_000_000}, {}, {label: 100_000_000}
    for number, marks in enumerate(told, 1):
        rows = {key: [(10_000_000, "p", 1, 0, 1, 0)]} if not marks else {}
        sent.add(Message("events", 0, number, 0, 0, contributions=rows, watermarks=marks))
    # then it came late
    assert (sent.came_late, sent.went_back) == (True, False)


def test_a_metric_that_came_after_the_last_event_has_the_clock_of_the_others() -> None:
    compiled, events = plan({}, {}), lines([100, 130])
    first, second = (metric.label for metric in compiled.metrics)
    again = BoundAgain(config({}, {}), "events", plan_of, 0, {"log": "", "offset": 2, "starts": {first: 0, second: 2}})
    assert list(again.take(events))
    assert [(clock.label, time) for clock, time in again.promises().clocks] == [(compiled.clocks[0].label, 130_000_000)]


def test_a_clock_that_goes_back_or_stays_behind_is_found() -> None:
    compiled = plan({})
    label = compiled.clocks[0].label
    sent = SentRows(compiled)
    for reached in (None, 30_000_000, 20_000_000):
        sent.add(Message("events", 0, 1, 0, 0, watermarks={label: reached}))
    findings = Findings()
    compare(findings, "here", compiled, SentRows(compiled), sent, [(compiled.clocks[0], 41_000_000)])
    assert [one.message.partition(" of")[0] for one in findings.all()] == [
        "a watermark went back",
        "the last watermark",
    ]
