"""What releases say that they withhold: all that came to them, by the events, less what they rest on."""

import dataclasses
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.config.file import Config
from shoal.models.times import time_of_text
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.simulation import SECRET, Cluster, config, event, run_file
from tests.stream.test_equality import EVENTS, FEW_USERS, SHARP, actions, encode, events_in_order
from tests.support.cover import in_a_loop
from tests.support.effort import examples

GROUPS = {"group": "g", "max_groups": 1}
PLANE = {"value": ("x", "y"), "range": ((0, 1), (-5, 5))}
METRICS: list[dict[str, Any]] = [
    {"algorithm": "naive", "max_per_group": 3, "every": "7s"} | GROUPS,
    {"algorithm": "full", "epsilon": 4000},
    SHARP | {"epsilon": 400, "grid": 64, "every": "2s"},
    SHARP | {"epsilon": 800, "max_contributions": 64} | PLANE,
    {"algorithm": "multi-tree", "prior": "0", "sigma": "0.2", "every": "3s"} | GROUPS,
    {"algorithm": "wishful", "max_contributions": 3} | FEW_USERS,
    {"algorithm": "naive", "group": "g", "every": "2s", "max_events_per_user": 2} | EVENTS,
    {"algorithm": "sharp", "epsilon": 40, "delta": "0.1", "max_events_per_user": 4} | EVENTS,
]
LATE = [metric | {"lateness": "3s"} for metric in METRICS]


def telling(metrics: list[dict[str, Any]]) -> Config:
    return config(*(metric | {"withheld": True} for metric in metrics))


CFG = telling(METRICS)


def came(cfg: Config, events: list[bytes], release: dict[str, Any]) -> int:
    """How many of the events are of the release's metric and group, and before it."""
    grouped = next(metric.group is not None for metric in cfg.metric if metric.name == release["metric"])
    there = [one for one in map(orjson.loads, events) if not grouped or one.get("g") == release["group"] is not None]
    return sum(one["t"] * 10**6 < (time_of_text(release["at"]) or 0) for one in there)


def share(withheld: int, there: int) -> dict[str, float]:
    return {"samples": withheld, "share": withheld / there}


@examples(40)
@given(events_in_order)
def test_what_came_is_what_counts_and_what_is_withheld(rows):
    events = encode(rows)
    for release in map(orjson.loads, run_file(CFG, events)):
        there = came(CFG, events, release)
        assert release["withheld"] == share(there - release["samples"], there)


@examples(20)
@given(events_in_order, st.lists(st.integers(0, 3), min_size=60, max_size=60))
def test_late_samples_come_at_their_own_time_or_with_the_block_that_they_are_in(rows, jitter):
    # given events that come late, none by more than the lateness: a block may close before the time of a sample in it
    cfg = telling(LATE)
    events = encode([(user, x, time - late, group) for (user, x, time, group), late in zip(rows, jitter, strict=False)])
    for release in map(orjson.loads, run_file(cfg, events)):
        there = max(came(cfg, events, release), release["samples"])
        assert release["withheld"] == share(there - release["samples"], there)


@examples(15)
@given(events_in_order)
def test_claim_c_1_less_than_half_is_withheld_of_blocks_that_need_not_wait(rows):
    # given a cap that nobody reaches, and priors that are there from the beginning
    blocks = [{"algorithm": name, "prior": "0.5", "max_contributions": 64} for name in ("single-tree", "multi-tree")]
    for release in map(orjson.loads, run_file(telling(blocks), encode(rows))):
        assert release["withheld"]["samples"] < release["samples"]
        assert release["withheld"]["share"] < 1 / 2


def test_a_block_may_count_before_the_time_of_a_sample_in_it():
    # given a user's third sample, in a later tick than the fourth, which closes their block
    cfg = telling([{"algorithm": "single-tree", "prior": "0.5", "lateness": "20s"}])
    events = [event("ann", 1, time) for time in (105, 106, 113, 107)]
    # then the first release rests on all four, and withholds none
    (first,) = map(orjson.loads, run_file(cfg, events))
    assert (first["samples"], first["withheld"]) == (4, share(0, 4))


def test_whose_samples_are_withheld():
    """Each for a reason of its own, and counted again, as a sample that counts, once its block is full."""
    cfg = telling([{"algorithm": "single-tree", "prior": "0.5", "max_per_group": 4} | GROUPS])

    def said(*events: tuple[str, str]) -> list[tuple[Any, ...]]:
        times = range(100, 200, 10)
        made = run_file(cfg, [event(user, 1, at, g=group) for (user, group), at in zip(events, times, strict=False)])
        fields = map(orjson.loads, made)
        return [(one["group"], one["at"][14:19], one["samples"], one["withheld"]["samples"]) for one in fields]

    # in an open block, until it closes: the tick of the third sample has no release, for nothing counts in it
    assert said(*[("ann", "a")] * 4) == [("a", "01:50", 1, 0), ("a", "02:00", 2, 0), ("a", "02:20", 4, 0)]
    assert said(*[("ann", "a")] * 3, ("bob", "a"))[-1] == ("a", "02:20", 3, 1)
    # over the cap
    assert said(*[("ann", "a")] * 6, ("bob", "a"))[-1] == ("a", "02:50", 5, 2)
    # of a user who is in another group, also before anyone else is in this one
    assert said(("ann", "a"), ("ann", "b"), ("ann", "b"), ("bob", "b"))[1:] == [("b", "02:20", 1, 2)]
    assert said(("ann", "a"), ("ann", "b")) == [("a", "01:50", 1, 0)]
    # a record that is refused has not come
    unusable = [event("ann", 1, 100, g="a"), event("ann", 1, 100), b"{", event("bob", None, 100, g="a")]  # type: ignore[arg-type]
    (release,) = map(orjson.loads, run_file(cfg, unusable))
    assert release["withheld"] == share(0, 1)


def named_alike(told: TopicPlan, plain: TopicPlan) -> TopicPlan:
    """The first plan, with the second one's keys: then both have the same noise."""
    pairs = zip(told.metrics, plain.metrics, strict=True)
    metrics = tuple(dataclasses.replace(one, key=other.key, pseudonym=other.pseudonym) for one, other in pairs)
    return dataclasses.replace(told, metrics=metrics)


@examples(20)
@given(events_in_order)
def test_it_adds_a_field_to_releases_and_changes_nothing_else(rows):
    # given metrics whose releases say what they withhold, others that are alike but for this, and the same noise
    told, plain = (
        plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1)
        for cfg in (CFG, config(*METRICS))
    )
    # when both run over the same events
    lines = [Line(offset, raw) for offset, raw in enumerate(encode(rows))]
    runs = [list(FileRun(plan).outputs(iter(lines))) for plan in (named_alike(told, plain), plain)]
    # then releases, activations and dead letters are the same, but for the field
    releases, expected = ([orjson.loads(one.value) for output in run for one in output.releases] for run in runs)
    for release in releases:
        del release["withheld"]
    assert releases == expected
    activations, others = ([value for output in run for value in output.activations] for run in runs)
    assert activations == others
    letters, theirs = ([letter for output in run for letter in output.dead_letters] for run in runs)
    assert letters == theirs


@examples(20)
@given(events_in_order, st.sampled_from([1, 2, 8]), st.sampled_from([1, 3]), actions)
def test_any_interleaving_and_any_crash_gives_the_releases_of_the_file_run(rows, sources, homes, schedule):
    events = encode(rows)
    assert Cluster.after(CFG, events, sources, homes, schedule).releases() == run_file(CFG, events)


@in_a_loop
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric["algorithm"])
def test_what_came_survives_a_crash_after_every_message(metric):
    # given users whose blocks are open, who are over their caps, ticks in which nothing counts, and a newcomer
    cfg = telling([metric])
    events = [event(f"user{n % 3}", 0.5, 100 + 5 * (n // 2), g="ab"[n % 5 < 2], y=1) for n in range(50)]
    events += [event(f"newcomer{n}", 0.5, 300, g="a", y=1) for n in range(2)]
    # when every event and every message is a transaction, and a crash follows it
    cluster = Cluster(cfg, 2, 2)
    cluster.produce(events)
    cluster.end_last_ticks()
    for _ in range(60):
        for where in range(2):
            cluster.bound(where, 1)
            cluster.crash_bound(where)
            for _ in range(4):  # a machine that was restored first looks at what was due, then it reads on
                cluster.release(where, 1)
                cluster.release(where, 1)
                cluster.crash_release(where)
    releases = cluster.releases()
    # then all releases are those of a run without any
    assert releases == run_file(cfg, events)
    assert orjson.loads(releases[-1])["withheld"]["samples"] > 0


def test_lone_counts_add_up_over_users_and_ticks_and_say_nobody_s_name():
    # given many samples over the cap, of several users, in one tick
    cfg = telling([{"algorithm": "full", "max_contributions": 1}])
    cluster = Cluster(cfg, 1, 1)
    cluster.produce([event(f"user{n % 4}", n % 2, 100) for n in range(400)])
    # when they are sent
    cluster.bound(0, 1000)
    (line,) = cluster.homes[0].log
    message = orjson.loads(line.value or b"")
    # then as one number, beside the users' blocks
    assert [sum(row[4] for row in rows) for rows in message["c"].values()] == [4]
    assert message["s"] == {"m0/1|": [[100_000_000, [255 << 8, 396, 0]]]}
