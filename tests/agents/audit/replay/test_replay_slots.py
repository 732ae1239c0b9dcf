"""Contributions of slots held against the events, however they were sent; and what a forger might do to them."""

import dataclasses
from collections.abc import Sequence
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
from tests.stream.simulation import config
from tests.stream.units import Event, Stage, plan_of, schedules

SLOTTED: dict[str, Any] = {
    "statistic": "mean", "algorithm": "levy", "slot": "10s", "group": "g", "max_per_group": 9, "max_groups": 3,
    "lateness": "2s",
}  # fmt: skip
PLANE = SLOTTED | {"value": ("x", "t"), "range": ((0, 1), (0, 99)), "algorithm": "few-users", "delta": "0.1"}
STEPPED: dict[str, Any] = {"statistic": "sum", "every": "5s", "max_contributions": 9, "lateness": "2s"}
slot_events = st.lists(
    st.builds(Event, st.sampled_from("ab"), st.integers(0, 35), st.sampled_from("xy"), st.sampled_from([0, 0.5, 1])),
    min_size=1, max_size=40,
)  # fmt: skip


def compared(cfg: Config, stage: Stage, messages: Sequence[Message]) -> list[str]:
    """What an audit from the events has to say of these messages."""
    mark = orjson.loads(stage.changelog[b"\x00mark"])
    again = BoundAgain(cfg, "events", plan_of, 0, mark)
    yielded, sent, findings = SentRows(stage.plan), SentRows(stage.plan), Findings()
    for _, message in again.take(stage.log):
        yielded.add(Message.decode(message.encode()))
    for message in messages:
        sent.add(Message.decode(message.encode()))
    compare(findings, "here", stage.plan, yielded, sent, again.promises().to(0))
    return [one.message.partition(":")[0] for one in findings.all()]


@given(slot_events, schedules)
def test_samples_of_slots_are_what_the_events_yield_whatever_happened_to_the_worker(
    events: list[Event], schedule: list[tuple[str, int]]
) -> None:
    cfg = config(SLOTTED, {**SLOTTED, "late": "drop"}, PLANE, STEPPED, {"algorithm": "naive", "every": "7s"})
    stage = Stage(plan_of(cfg))
    stage.produce(*events)
    stage.suffer(schedule)
    stage.clock(60)
    stage.run()
    messages = [message for taken in stage.taken for _, message in taken.messages]
    assert compared(cfg, stage, messages) == []


def test_values_of_a_sample_that_are_exchanged_are_found() -> None:
    cfg = config(PLANE)
    stage = Stage(plan_of(cfg))
    stage.run(Event("a", 7, "x", 0.25), Event("b", 25))
    messages = [message for taken in stage.taken for _, message in taken.messages]
    assert compared(cfg, stage, messages) == []
    for message in messages:
        for rows in message.contributions.values():
            for *_, cells in rows:
                cells["x"] = [sample[::-1] for sample in cells["x"]]
    assert compared(cfg, stage, messages) == ["contributions are not what the events yield"]


def forged_stage(metric: dict[str, Any]) -> tuple[Config, Stage, list[Message]]:
    """Two samples of a user in one slot, each sent when the partition fell idle; then the slot's end."""
    cfg = config(metric)
    stage = Stage(plan_of(cfg))
    for value in (0, 1):
        stage.run(Event("a", 1, "x", value))
        stage.idle()
    stage.run(Event("b", 15))
    messages = [message for taken in stage.taken for _, message in taken.messages]
    assert compared(cfg, stage, messages) == []
    return cfg, stage, messages


def test_samples_with_each_others_numbers_are_found() -> None:
    """Release sorts by them: other samples would be a user's first ones."""
    cfg, stage, messages = forged_stage(SLOTTED)
    one, other = [rows[0] for message in messages for rows in message.contributions.values()]
    forged = []
    for message in messages:
        rows = {
            key: [(*row[:2], other[2] if row == one else one[2], *row[3:]) for row in rows]
            for key, rows in message.contributions.items()
        }
        forged.append(dataclasses.replace(message, contributions=rows))
    assert compared(cfg, stage, forged) == ["contributions are not what the events yield"]


@pytest.mark.parametrize("metric", [SLOTTED, STEPPED])
def test_contributions_that_come_after_the_end_of_their_slot_are_found(metric: dict[str, Any]) -> None:
    """Release would leave out what comes then, or count it in the next step."""
    cfg, stage, messages = forged_stage(metric)
    # when what the first message brought stands in a further one instead
    index = next(index for index, one in enumerate(messages) if one.contributions or one.partials)
    first, forged = messages[index], list(messages)
    forged[index] = dataclasses.replace(first, contributions={}, partials={})
    forged.append(dataclasses.replace(first, watermarks=None, number=len(messages) + 1))
    said = "contributions came after a watermark that had said that there were no more"
    assert said in compared(cfg, stage, forged)


def test_samples_that_say_another_time_of_a_slot_are_of_that_slot() -> None:
    """Release takes them in as the slot's; so they are looked at when it is over, not later."""
    cfg, stage, messages = forged_stage(SLOTTED)
    index = next(index for index, one in enumerate(messages) if one.contributions)
    ((key, (row,)),) = messages[index].contributions.items()
    moved = (row[0] + 9_999_999, "forger", 1, 0, 1, row[5])
    messages[index] = dataclasses.replace(messages[index], contributions={key: [row, moved]})
    assert compared(cfg, stage, messages) == ["contributions are not what the events yield"]


def test_slots_that_are_over_are_forgotten_in_every_group() -> None:
    """However many users and groups there are, only those of open slots are held."""
    compiled = plan_of(config(SLOTTED))
    (metric,), (clock,) = compiled.metrics, compiled.clocks
    sent = SentRows(compiled)

    def add(watermark: int, *groups: str) -> None:
        rows = {f"{metric.label}|{group}": [(7_000_000, "user", 1, 0, 1, {"cell": [1]})] for group in groups}
        sent.add(Message("events", 0, sent.messages + 1, 0, 0, {clock.label: watermark}, False, rows))

    def held() -> list[int]:
        return [group.slots.held for group in sent.groups.values()]

    add(5_000_000, "x", "y")
    add(6_000_000, "z")
    assert held() == [1, 1, 1]
    add(12_000_000)
    assert held() == [0, 0, 0]
    # and what somebody forged is not held for longer than until the next word of the clock
    add(13_000_000, "late")
    assert held() == [0, 0, 0, 0]
