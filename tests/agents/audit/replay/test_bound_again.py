"""Contributions made again from events: those that bound sent, however it was cut, restarted and added to."""

from collections.abc import Sequence
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.audit.replay.bound_again import BoundAgain
from shoal.agents.audit.replay.contributions import SentRows, compare
from shoal.agents.audit.replay.matching import Findings
from shoal.models.config.file import Config
from shoal.models.records import Message
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import Line
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.simulation import SECRET, STAMP, config, event

METRICS: tuple[dict[str, Any], ...] = (
    {"epsilon": 4000},
    {"algorithm": "naive", "every": "7s", "lateness": "3s"},
    {"every": "contribution"},
    {"algorithm": "naive", "value": ["x", "t"], "range": [(0, 1), (0, 200)], "every": "7s"},
)


def plan(*metrics: dict[str, Any]) -> TopicPlan:
    return plan_of(config(*metrics))


def lines(times: Sequence[int]) -> list[Line]:
    return [
        Line(offset, event(f"u{offset % 3}", offset % 5 / 4, time), timestamp=STAMP)
        for offset, time in enumerate(times)
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
    clocks = again.clocks()
    # then both are the same
    findings = Findings()
    for must, found in zip(yielded, sent_of(compiled, messages), strict=True):
        compare(findings, "here", compiled, must, found, clocks)
    assert not findings.all()
    # and a row more, less or changed is a difference
    kinds = ("contributions", "partials")
    some = [(n, kind, key) for n, (_, one) in enumerate(messages) for kind in kinds for key in getattr(one, kind)]
    number, kind, key = data.draw(st.sampled_from(some))
    home, message = messages[number]
    tampered = Message.decode(message.encode())
    change(getattr(tampered, kind)[key][0])
    for must, found in zip(
        yielded, sent_of(compiled, [*messages[:number], (home, tampered), *messages[number + 1 :]]), strict=True
    ):
        compare(findings, "here", compiled, must, found, clocks)
    assert [one.where for one in findings.all()] == [f"here {key}"]


def change(found: list[Any]) -> None:
    """The last sum of a row or of a partial."""
    totals = found if isinstance(found[-1], int) else found[-1]
    if isinstance(totals[-1], list):
        totals = totals[-1]
    totals[-1] += 1


def plan_of(cfg: Config) -> TopicPlan:
    return plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=2)


@given(st.integers(0, 12), st.integers(0, 12))
def test_a_metric_that_came_later_begins_there(first: int, second: int) -> None:
    # given a partition whose second and third metric came later
    events = lines([100 + index - index % 3 for index in range(12)])
    all_three, starts = plan(*METRICS), sorted((first, second))
    machines: dict[bytes, bytes] = {}
    messages: list[tuple[int, Message]] = []
    bounds = [0, *starts, len(events)]
    for number in range(3):
        bound = BoundPartition(plan(*METRICS[: number + 1]), 0)
        bound.restore(machines)
        if bound.next_offset is None:
            bound.start(0)
        part = events[bounds[number] : bounds[number + 1]]
        bound.process(part, bounds[number + 1])
        taken = bound.take(wall=0)
        if taken is not None:
            messages += taken.messages
            machines |= {key: value for key, value in taken.changelog if value is not None}
    mark = orjson.loads(machines[b"\x00mark"])
    # when it is made again, with each metric from where the mark says
    again = BoundAgain(config(*METRICS), "events", plan_of, 0, mark)
    yielded = sent_of(all_three, list(again.take(events)))
    findings = Findings()
    for must, found in zip(yielded, sent_of(all_three, messages), strict=True):
        compare(findings, "here", all_three, must, found, again.clocks())
    assert findings.all() == []


@given(st.lists(st.integers(-20, 40), min_size=1, max_size=12), st.data())
def test_a_metric_takes_the_clock_over_from_one_that_is_retired(steps: list[int], data: st.DataObject) -> None:
    # given a metric that has moved its clock, and was retired when its next version began; events may be late
    events = lines([200 + sum(steps[: number + 1]) for number in range(len(steps))])
    start, restart = sorted((data.draw(st.integers(0, len(events))), data.draw(st.integers(0, len(events)))))
    cadence = data.draw(st.sampled_from(METRICS[:3]))
    retired = frozenset({plan(cadence).metrics[0].label})
    newer = config(cadence | {"version": 2})
    compiled = plan_topic(newer, "events", SECRET, source_partitions=1, contributions_partitions=2, retired=retired)
    state: dict[bytes, bytes] = {}
    messages: list[tuple[int, Message]] = []
    parts = ((plan(cadence), 0, start), (compiled, start, restart), (compiled, restart, len(events)))
    for version, first, end in parts:
        bound = BoundPartition(version, 0)
        bound.restore(state)
        if bound.next_offset is None:
            bound.start(0)
        bound.process(events[first:end], end)
        bound.idle(wall=0)
        taken = bound.take(wall=0)
        if taken is None:
            continue
        messages += taken.messages
        state |= {key: value for key, value in taken.changelog if value is not None}
    # when the newer version is made again, from the events since its start alone
    again = BoundAgain(newer, "events", plan_of, 0, orjson.loads(state[b"\x00mark"]))
    assert again.first == start
    yielded = sent_of(compiled, list(again.take(events[start:])))
    # then late events are folded as they were, and the clock is where it was, though no event may have come since
    findings = Findings()
    for must, found in zip(yielded, sent_of(compiled, messages), strict=True):
        compare(findings, "here", compiled, must, found, again.clocks())
    assert findings.all() == []


def test_a_metric_that_came_after_the_last_event_has_the_clock_of_the_others() -> None:
    compiled, events = plan({}, {}), lines([100, 130])
    first, second = (metric.label for metric in compiled.metrics)
    again = BoundAgain(config({}, {}), "events", plan_of, 0, {"log": "", "offset": 2, "starts": {first: 0, second: 2}})
    assert list(again.take(events))
    assert again.clocks() == {compiled.clocks[0].label: 130_000_000}


def test_a_clock_that_goes_back_or_stays_behind_is_found() -> None:
    compiled = plan({})
    label = compiled.clocks[0].label
    sent = SentRows(compiled)
    for reached in (None, 30_000_000, 20_000_000):
        sent.add(Message("events", 0, 1, 0, 0, watermarks={label: reached}))
    findings = Findings()
    compare(findings, "here", compiled, SentRows(compiled), sent, {label: 41_000_000})
    assert [one.message.partition(" of")[0] for one in findings.all()] == [
        "a watermark went back",
        "the last watermark",
    ]
