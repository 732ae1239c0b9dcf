"""Accounts by unit: one cap over all groups, periods that begin and end, events that have no account."""

from collections.abc import Iterator

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.errors import FailStop
from shoal.stream.bound import BoundPartition
from shoal.stream.deltas import rolling
from shoal.stream.file_run import FileRun, Line
from shoal.stream.state_mark import MARK
from tests.stream.simulation import STAMP, Cluster, config, names_of, run_file
from tests.stream.test_equality import actions, encode, events_in_order
from tests.stream.units import Event, Stage, plan_of, schedules, sums
from tests.support.effort import examples

PERIOD = {"unit": "user-10s"}
GROUPS = {"group": "g", "max_groups": 2}


@pytest.fixture(autouse=True, scope="module")
def little_at_a_time() -> Iterator[None]:
    """Else all of so small a state is written again in each transaction, and hides what was not written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "LEAST", 1)
        yield


def reasons(stage: Stage) -> list[str]:
    return [orjson.loads(letter)["reason"] for taken in stage.taken for letter in taken.dead_letters]


# ---------------------------------------------------------------- one cap over all groups


def test_one_cap_holds_for_all_groups_of_a_user_together():
    stage = Stage(plan_of(sums(group="g", max_groups=5, max_contributions=3)))
    stage.run(*(Event("a", 1, group) for group in "xxyzx"), Event("b", 1, "x"))
    assert stage.samples() == {("x", 0): 3, ("y", 0): 1}
    assert stage.counters == {"over_cap": 2}


def test_raising_the_number_of_groups_does_not_raise_what_a_user_may_move():
    for groups in (2, 3, 1000):
        stage = Stage(plan_of(sums(group="g", max_groups=groups)))
        stage.run(*(Event("a", 1, f"{n}") for n in range(10)))
        assert sum(stage.samples().values()) == 2


def test_further_groups_are_left_out_by_arrival_and_counted_as_such():
    stage = Stage(plan_of(sums(**GROUPS, max_contributions=4)))
    stage.run(*(Event("a", 1, group) for group in "xyzxyzx"))
    assert stage.samples() == {("x", 0): 2, ("y", 0): 2}
    assert stage.counters == {"groups_left_out": 2, "over_cap": 1}


def test_means_without_a_decay_keep_a_cap_for_each_group():
    machine = BoundPartition(plan_of(config({"algorithm": "naive", "max_per_group": 2} | GROUPS)), 0)
    machine.start(0)
    machine.process([Line(n, Event("a", 1, "xy"[n % 2]).raw(), timestamp=STAMP) for n in range(9)], 9)
    assert machine.counters == {"over_cap": 5}


def test_user_and_group_are_never_confused():
    stage = Stage(plan_of(sums(group="g")))
    stage.run(Event("ab", 1, "c"), Event("a", 1, "bc"), Event("a", 1, "bc"), Event("a", 1, "c"))
    assert stage.samples() == {("c", 0): 1, ("bc", 0): 2}
    assert stage.counters == {"groups_left_out": 1}


def test_a_user_must_be_in_one_partition():
    plan = plan_of(sums(**PERIOD), sources=4)
    stages = [Stage(plan, partition=index).run(Event("anna", 1), Event("anna", 11)) for index in range(4)]
    assert sorted(len(reasons(stage)) for stage in stages) == [0, 2, 2, 2]
    assert {reason for stage in stages for reason in reasons(stage)} == {"wrong-partition"}


PRESENT = {"relation": "add-remove", "start": "1970-01-01"}


@pytest.mark.parametrize("relation", [{}, PRESENT])
def test_a_late_record_is_late_wherever_its_user_belongs(relation):
    plan, found = plan_of(sums(**PERIOD | relation), sources=4), []
    # given four partitions, one of which is anna's, at 00:12
    for index in range(4):
        stage = Stage(plan, partition=index)
        stage.clock(12, "shoal-beat")
        # when anna's record of the period before comes
        found += reasons(stage.run(Event("anna", 3)))
    # then lateness is the first of two reasons elsewhere, too
    assert found == ["late"] * 4


@pytest.mark.parametrize("unit", ["user", "user-10s", "event"])
def test_what_cannot_be_used_is_refused_and_touches_nothing(unit, monkeypatch):
    cap = {} if unit != "event" else {"max_contributions": None}
    stage = Stage(plan_of(sums(unit=unit, group="g", **cap)))
    stage.run(b'{"u":"a","t":1,"g":"x"}', b'{"u":1.5,"t":1,"g":"x","x":1}', b'{"u":"a","t":1,"x":1}')
    assert reasons(stage) == ["no-value", "bad-user", "no-group"]

    def broken(*_: object) -> None:
        raise RuntimeError("a bug in reading")

    monkeypatch.setattr("shoal.stream.topic.read_value", broken)
    stage.run(Event("a", 1))
    assert reasons(stage)[3:] == ["error"]
    assert not stage.state
    assert not stage.samples()


# ---------------------------------------------------------------- periods


def test_cap_and_groups_are_fresh_in_each_period():
    stage = Stage(plan_of(sums(**PERIOD, **GROUPS, lateness="100s")))
    stage.run(*(Event("a", time, group) for time in (1, 12, 9, 19, -1) for group in "xyzx"))
    # then in each of three periods, one before the epoch, two samples count, in the first two groups
    by_period = {(group, second // 10): n for (group, second), n in stage.samples().items()}
    assert by_period == {(group, period): 1 for group in "xy" for period in (-1, 0, 1)}
    assert stage.counters == {"groups_left_out": 5, "over_cap": 9}


def test_an_event_counts_in_the_period_of_its_own_time_or_not_at_all():
    # given events that are late: some of them within the period that they are folded into
    stage = Stage(plan_of(sums(**PERIOD)))
    stage.run(Event("a", 3), Event("a", 1), Event("a", 14), Event("b", 11), Event("b", 9), Event("b", -1))
    # then those count, and those of an earlier period are dead letters though late events are folded
    assert stage.samples() == {("", 0): 2, ("", 10): 2}
    assert reasons(stage) == ["late", "late"]


def test_lateness_keeps_a_period_open_and_its_end_closes_it():
    stage = Stage(plan_of(sums(**PERIOD, lateness="5s")))
    # W is 9: both count, the second in its own period; then W is 10
    stage.run(Event("a", 14), Event("b", 9), Event("c", 7), Event("a", 15), Event("b", 9))
    assert stage.samples() == {("", 10): 1, ("", 5): 2, ("", 15): 1}
    assert reasons(stage) == ["late"]


def test_dropping_late_events_is_the_same_for_periods():
    stage = Stage(plan_of(sums(**PERIOD, late="drop")))
    stage.run(Event("a", 13), Event("a", 12), Event("a", 9), Event("a", 13), Event("a", 13))
    assert stage.samples() == {("", 10): 2}
    assert reasons(stage) == ["late", "late"]


def test_metrics_with_other_units_fold_what_is_late_for_a_period():
    two = sums(**PERIOD).metric[0]
    cfg = sums().model_copy(update={"metric": (two, two.model_copy(update={"name": "m1", "unit": "user"}))})
    stage = Stage(plan_of(cfg)).run(Event("a", 13), Event("a", 9))
    assert stage.samples() == {("", 10): 3}
    assert reasons(stage) == ["late"]


# ---------------------------------------------------------------- what is dropped when


def test_a_period_is_forgotten_once_no_event_can_count_in_it():
    stage = Stage(plan_of(sums(**PERIOD, **GROUPS, lateness="3s")))
    stage.run(Event("a", 1, "x"), Event("a", 1, "y"), Event("b", 12))
    assert len(stage.state) == 5, "W is 9"
    stage.run(Event("b", 13))
    assert len(stage.state) == 2, "W is 10"
    assert stage.machine.users == 1


def test_a_clock_record_forgets_too():
    stage = Stage(plan_of(sums(**PERIOD, lateness="3s"))).run(Event("a", 1))
    stage.clock(9)
    assert len(stage.run().state) == 1
    stage.clock(10)
    assert not stage.run().state
    assert orjson.loads(stage.changelog[MARK])["accounts"] == {"m0/1": [0, 0]}


def test_unit_user_is_never_forgotten():
    # given so many that a transaction writes few of them again
    users = [f"u{n}" for n in range(20)]
    stage = Stage(plan_of(sums(**GROUPS))).run(*(Event(user, 1) for user in users for _ in range(2)))
    # when an hour goes by, and the worker dies
    stage.clock(3000)
    stage.run()
    stage.crash()
    stage.run(*(Event(user, 1) for user in users))
    # then each still has its account and its group, and no sample left
    assert len(stage.state) == 40
    assert stage.counters == {"over_cap": 20}


def test_a_file_run_forgets_and_has_no_changelog():
    run = FileRun(plan_of(sums(**PERIOD, **GROUPS)))
    run.bound.process([Line(n, Event("a", n).raw()) for n in range(100)], 100)
    taken = run.bound.take(wall=0)
    assert taken is not None
    assert [key for key, _ in taken.changelog] == [MARK]
    assert run.bound.users == 1


def test_what_is_over_goes_at_once_and_a_restart_knows():
    stage = Stage(plan_of(sums(**PERIOD, **GROUPS)))
    # given 20 accounts and 20 groups of them, in two periods
    for time in (1, 11):
        stage.run(*(Event(f"u{n}", time) for n in range(10)))
        assert stage.machine.users == 10
    # when both are over, and the worker dies
    stage.clock(20)
    stage.run()
    stage.crash()
    # then nothing is left, nor does anything come back
    assert not stage.state
    assert stage.machine.users == 0
    assert orjson.loads(stage.changelog[MARK])["accounts"]["m0/1"] == [0, 0]


def test_memory_is_that_of_the_open_periods():
    stage = Stage(plan_of(sums(**PERIOD, lateness="30s"), sources=1))
    stage.run(*(Event(f"u{n}", n) for n in range(3000)), every=10)
    assert stage.machine.users <= 30 + 10 + 10
    assert len(stage.state) <= 30 + 10 + 10


@given(st.data())
def test_a_changelog_that_lost_a_record_is_refused(data):
    stage = Stage(plan_of(sums(**PERIOD, **GROUPS, lateness="15s")))
    stage.run(*(Event(user, time, group) for time in (1, 11, 21) for user in "ab" for group in "xy"), every=2)
    lost = data.draw(st.sets(st.sampled_from(sorted(stage.changelog.keys() - {MARK})), min_size=1))
    again = BoundPartition(stage.plan, 0)
    with pytest.raises(FailStop, match="users would start again at count 0"):
        again.restore({key: value for key, value in stage.changelog.items() if key not in lost})


def test_a_users_samples_of_the_latest_period_can_be_looked_up():
    stage = Stage(plan_of(sums(**PERIOD, **GROUPS, lateness="15s"))).run(Event("a", 1), Event("a", 11), Event("a", 11))
    assert [stage.machine.count("m0", user) for user in ("a", "b")] == [2, None]
    stage.run(Event("b", 1))
    assert [stage.machine.count("m0", user) for user in ("a", "b")] == [2, 1]
    assert stage.machine.count("m0", "a", "x") is None


# ---------------------------------------------------------------- restarts


events = st.lists(
    st.builds(Event, st.sampled_from("ab"), st.integers(-5, 30), st.sampled_from("xyz")), min_size=10, max_size=60
).map(lambda found: sorted(found, key=lambda one: one.time // 15))
configs = st.sampled_from([
    sums(**PERIOD), sums(**PERIOD, **GROUPS), sums(**PERIOD, **GROUPS, lateness="12s", max_contributions=3),
    sums(unit="user-7s", late="drop", lateness="4s"), sums(**GROUPS), sums(unit="event", max_contributions=None),
])  # fmt: skip


@examples(38)
@given(configs, events, schedules)
def test_restarts_anywhere_change_nothing_that_is_sent(cfg, found, schedule):
    # given what one transaction makes of a stream
    plan = plan_of(cfg)
    whole = Stage(plan).run(*found)
    # when another run is cut into transactions, and dies anywhere
    cut = Stage(plan)
    cut.produce(*found)
    cut.suffer(schedule)
    # then sums, samples and dead letters are the same
    assert (cut.step_sums(), cut.samples()) == (whole.step_sums(), whole.samples())
    assert [letter for taken in cut.taken for letter in taken.dead_letters] == [
        letter for taken in whole.taken for letter in taken.dead_letters
    ]
    # and so is the state, once what is over is forgotten
    cut.idle()
    whole.idle()
    assert names_of(cut.changelog) == names_of(whole.changelog)


# ---------------------------------------------------------------- to the releases

WINDOW = {"statistic": "sum", "every": "5s", "decay": {"kind": "window", "length": "10s"}, "max_contributions": 2}
RELEASED = [
    config(WINDOW | PERIOD, WINDOW | {"unit": "user-1m", "every": "7s", "decay": None} | GROUPS, WINDOW | GROUPS),
    config(WINDOW | {"unit": "event", "max_contributions": None, "group": "g"}, WINDOW | PERIOD | {"lateness": "4s"}),
]


@examples(13)
@given(st.sampled_from(RELEASED), events_in_order, st.sampled_from([1, 2, 8]), st.sampled_from([1, 3]), actions)
def test_any_interleaving_and_any_crash_gives_the_releases_of_the_file_run(cfg, rows, sources, homes, schedule):
    found = encode(rows)
    expected = run_file(cfg, found)
    cluster = Cluster.after(cfg, found, sources, homes, schedule)
    assert cluster.releases() == expected
