"""What one unit's values may move, for every unit, at what bound sends: the exact sums of steps.

The noise of a decayed sum is made for a change of `cap * steps` grid steps in all steps of all groups together
(`LinearStatistic`, docs/proofs/decay.md). A unit is all events of a user, or those of a user whose own times lie in one
period, or one event. Whatever effective times, caps, drops and restarts make of them, no unit may move more than that.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.unit import Unit
from shoal.models.config.file import Config
from shoal.models.config.unit import charge, parse_unit
from shoal.stream.deltas.record import decode
from shoal.stream.state_mark import MARK
from tests.privacy.observing import Neighbours, Watched, WatchedCluster, neighbours, raws, watch_file
from tests.stream.simulation import rows_of
from tests.stream.units import STEPS, Event, Stage, moved, plan_of, run, schedules, sums
from tests.support.cover import some
from tests.support.effort import examples
from tests.support.entries import held_in

pytestmark = pytest.mark.slow

GROUPS = {"group": "g", "max_groups": 2}
EVENTS = {"unit": "event", "max_contributions": None}
CONFIGS = {
    "user": sums(**GROUPS),
    "user, many groups": sums(group="g", max_groups=9, lateness="3s"),
    "user-10s": sums(unit="user-10s", **GROUPS),
    "user-10s, late by 5s": sums(unit="user-10s", **GROUPS, lateness="5s"),
    "user-10s, dropped": sums(unit="user-10s", group="g", late="drop", lateness="4s"),
    "user-7s, steps of 5s": sums(unit="user-7s", max_contributions=1),
    "event": sums(**EVENTS, group="g"),
    "event, late by 5s": sums(**EVENTS, lateness="5s"),
    "event, two of a user": sums(**EVENTS, max_events_per_user=2, group="g"),
}
configs = pytest.mark.parametrize("cfg", CONFIGS.values(), ids=CONFIGS)


def bounds(cfg: Config) -> tuple[Unit, int]:
    """The unit, and the change that the noise is made for."""
    (metric,) = plan_of(cfg).metrics
    assert isinstance(metric.parameters, LinearStatistic)
    assert metric.parameters.sample_grid.steps == STEPS
    return metric.parts.unit, metric.parameters.max_contributions * STEPS


def unit_of(unit: Unit, events: Sequence[Event], index: int) -> Hashable:
    """Whose values those of an event are."""
    event = events[index]
    if unit.is_event:
        return index
    return event.user, 0 if unit.period is None else event.time * 1_000_000 // unit.period


def with_values(events: Sequence[Event], values: Sequence[float]) -> list[Event]:
    return [dataclasses.replace(event, value=value) for event, value in zip(events, values, strict=True)]


def by_unit(unit: Unit, events: Sequence[Event]) -> Iterator[list[int]]:
    """The events of each unit, by their places."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for index in range(len(events)):
        found[unit_of(unit, events, index)].append(index)
    yield from found.values()


@configs
def test_no_unit_moves_more_than_the_noise_is_made_for_and_some_move_as_much(cfg):
    """Brute force: streams of three events of a user, in two groups and on both sides of a period's end."""
    plan, (unit, most) = plan_of(cfg), bounds(cfg)
    largest = 0
    for pattern in some(list(product(product((3, 9, 11, 21), "xy"), repeat=3)), 103):
        events = [Event("a", time, group) for time, group in pattern]
        sent = {
            values: run(plan, with_values(events, values)).step_sums() for values in product((0, 1), repeat=len(events))
        }
        for mine in by_unit(unit, events):
            for (one, sums_of_one), (other, sums_of_other) in product(sent.items(), repeat=2):
                if all(one[n] == other[n] or n in mine for n in range(len(events))):
                    largest = max(largest, moved(sums_of_one, sums_of_other))
    assert largest == most


@pytest.mark.parametrize("most", [1, 2])
def test_a_user_with_a_limit_of_events_moves_as_much_as_the_ledger_is_charged_for(most):
    """From events to users: streams that differ in one user differ in so many events (d_E <= k d_U)."""
    cfg = sums(**EVENTS, max_events_per_user=most, group="g")
    (metric,), ledger = cfg.metric, parse_unit("user")
    epsilon, _ = charge(ledger, metric.parts.unit, metric.epsilon, metric.delta)
    plan, largest = plan_of(cfg), 0
    for pattern in product(product((3, 9), "xy"), repeat=3):
        events = [Event("a", time, group) for time, group in pattern]
        sent = [run(plan, with_values(events, values)).step_sums() for values in product((0, 1), repeat=3)]
        largest = max(largest, *(moved(first, second) for first, second in product(sent, repeat=2)))
    # then noise for one event, at epsilon, covers what all events of a user move at what is charged
    assert largest * metric.epsilon == epsilon * STEPS


@st.composite
def streams(draw: st.DrawFn, size: int = 40) -> list[Event]:
    """Two users' events in and out of order, far too many for their caps."""
    one = st.builds(Event, st.sampled_from("ab"), st.integers(-12, 40), st.sampled_from("xyz"))
    spread = draw(st.sampled_from([1, 4, 12, 60]))
    return sorted(draw(st.lists(one, min_size=1, max_size=size)), key=lambda event: event.time // spread)


@examples(63)
@given(st.sampled_from(list(CONFIGS.values())), streams(), st.data(), schedules)
def test_nor_does_any_in_longer_streams_through_restarts_and_drops(cfg, events, data, schedule):
    unit, most = bounds(cfg)
    # given two streams that differ in all values of one unit
    mine = data.draw(st.sampled_from(list(by_unit(unit, events))))
    values = st.sampled_from([0, 0.5, 1, -3, 7])
    one = [data.draw(values) for _ in events]
    other = [1 - value if n in mine else value for n, value in enumerate(one)]
    # when both go through the same crashes
    first, second = (crashing(cfg, with_values(events, values), schedule) for values in (one, other))
    # then the same is counted, and what is counted moves by no more than the noise is made for
    assert pattern(first) == pattern(second)
    assert first.samples() == second.samples()
    assert moved(first.step_sums(), second.step_sums()) <= most


def crashing(cfg: Config, events: Sequence[Event | bytes], schedule: Sequence[tuple[str, int]]) -> Stage:
    """A run with crashes anywhere."""
    stage = Stage(plan_of(cfg))
    stage.produce(*events)
    stage.suffer(schedule)
    stage.idle()
    return stage


def pattern_of(key: bytes, value: bytes | None) -> object:
    """What a record of bound's log says of whom, without what it says."""
    return [
        (section[:4], [name for name, _ in held_in(section.entries, section.width)])
        for section in decode(key, value or b"").sections()
    ]


def pattern(stage: Stage) -> dict[str, object]:
    """Everything that no value may move."""
    seen = Watched(counters=stage.counters)
    for taken in stage.taken:
        seen.dead_letters += taken.dead_letters
        seen.messages += taken.messages
        seen.state_keys.append(
            [(key, value if key == MARK else pattern_of(key, value)) for key, value in taken.changelog]
        )
    return seen.pattern()


@examples(25)
@given(st.sampled_from(list(CONFIGS.values())), neighbours(), schedules)
def test_what_bound_does_shows_nothing_of_values_but_exact_sums(cfg, pair: Neighbours, schedule):
    # given all values of a user changed, in all spellings of numbers: more than any unit's
    first, second = (crashing(cfg, raws(rows), schedule) for rows in (pair.first, pair.second))
    # then messages, names in the changelog, marks, dead letters and counters are the same bytes
    assert pattern(first) == pattern(second)


@examples(15)
@given(st.sampled_from(list(CONFIGS.values())), neighbours(), st.sampled_from([1, 3]))
def test_nor_do_releases_and_the_state_behind_them(cfg, pair: Neighbours, sources):
    assert watch_file(cfg, raws(pair.first)).pattern() == watch_file(cfg, raws(pair.second)).pattern()
    seen = []
    for rows in (pair.first, pair.second):
        cluster = WatchedCluster(cfg, sources, 2)
        for row in rows:
            cluster.produce_as(row.user, row.raw())
        cluster.end(b"1970-01-01T00:03:00Z")
        cluster.drain()
        seen.append(cluster.watched())
    assert seen[0].pattern() == seen[1].pattern()


# ---------------------------------------------------------------- time travel


def test_a_late_event_moves_neither_the_period_it_is_in_nor_the_one_it_is_folded_into():
    """An attack: days that are over have a fresh account, days that are open have the account of others."""
    stage = Stage(plan_of(sums(unit="user-10s")))
    # given a user who used the first period's cap, and somebody else, in the next period
    stage.run(Event("a", 1), Event("a", 2), Event("b", 15))
    # when the user comes with what happened in the first period, again and again, and dies in between
    for _ in range(3):
        stage.run(*(Event("a", 2) for _ in range(5)), every=2)
        stage.crash()
    # then none of it counts, though late events are folded
    assert stage.samples() == {("", 0): 2, ("", 15): 1}
    # and the user has the whole cap of the next period
    stage.run(*(Event("a", 16) for _ in range(5)))
    assert stage.samples() == {("", 0): 2, ("", 15): 3}
    assert stage.counters["over_cap"] == 3


def test_an_account_lives_as_long_as_lateness_lets_anybody_come_back():
    """An attack: the clock runs ahead, and comes back within the lateness."""
    stage = Stage(plan_of(sums(unit="user-10s", lateness="20s")))
    stage.run(Event("a", 9), Event("a", 9), Event("b", 29), every=1)
    stage.crash()
    # when W is 9 the first period is open still, and its account is there
    stage.run(Event("a", 9), Event("a", 8), every=1)
    assert sum(stage.samples().values()) == 3
    assert stage.counters == {"over_cap": 2}
    # when W is 10 nothing counts there any more, and the account is gone
    stage.run(Event("b", 30), Event("a", 9))
    assert stage.counters["dead_letters.m0.late"] == 1
    assert not [key for key in stage.state if key.endswith(b"a")]


def test_a_clock_record_brings_nobody_a_second_cap():
    stage = Stage(plan_of(sums(unit="user-10s", lateness="5s"))).run(Event("a", 9), Event("a", 9))
    for seconds in (9, 10, 11):
        stage.clock(seconds)
        stage.run(Event("a", 9))
        stage.crash()
    assert stage.samples() == {("", 5): 2}


def test_values_of_one_event_are_in_one_contribution():
    stage = Stage(plan_of(sums(**EVENTS))).run(*(Event("a", 1, value=n) for n in range(2)))
    (message,) = [message for taken in stage.taken for _, message in taken.messages]
    assert [row[4:] for _, row in rows_of(message)] == [(2, STEPS)]
    assert not stage.state, "nothing is kept of anybody"
