"""The central claim: releases are a pure function of the events, however they are cut, spread, interleaved or crashed.

The oracle is the file run over the same events. Sources are in time order within each partition.
"""

from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.slot import accounts as slot_accounts
from shoal.mechanisms.slot.accounts import KEPT_SAMPLES
from shoal.models.config.file import Config
from shoal.models.errors import FailStop
from shoal.stream import contributions
from shoal.stream.contributions import MESSAGE_BYTES
from tests.stream.simulation import Cluster, config, event, run_file
from tests.support.effort import examples

USERS = [f"user{index}" for index in range(6)]
events_in_order = st.lists(
    st.tuples(
        st.sampled_from(USERS), st.sampled_from([0, 0.25, 1]), st.integers(0, 7), st.sampled_from(["a", "b", None])
    ),
    max_size=60,
).map(lambda rows: [(user, x, time, group) for (user, x, _, group), time in zip(rows, clock(rows), strict=True)])


def clock(rows: list[tuple[str, float, int, str | None]]) -> list[int]:
    """Steps become times that never go back; equal times are common."""
    now, times = 100, []
    for _, _, step, _ in rows:
        now += step
        times.append(now)
    return times


def encode(rows: list[tuple[str, float, int, str | None]]) -> list[bytes]:
    """Each with a second coordinate, which most configurations do not read."""
    groups: list[dict[str, str]] = [{"g": group} if group else {} for *_, group in rows]
    return [
        event(user, x, time, y=3 * x - time % 5, **group)
        for (user, x, time, _), group in zip(rows, groups, strict=True)
    ]


# So many samples are allowed that noise leaves room for the error of a clip range: some runs choose one.
SHARP = {"algorithm": "sharp", "max_contributions": 10_000, "life": "60s"}
FEW_USERS = {"prior": "few-users", "epsilon": 2000, "delta": "1e-3"}  # four of them are enough
EVENTS = {"unit": "event", "max_contributions": None}
CONFIGS: list[Config] = [
    config({"epsilon": 4000}),  # so much that every level activates
    config({"algorithm": "naive"}),
    config({"epsilon": 9000, "max_contributions": 32, "users": 2}, {"algorithm": "naive", "every": "7s"}),
    config({"epsilon": 4000, "group": "g", "max_groups": 2}, {"algorithm": "naive", "group": "g", "every": "1s"}),
    config({"lateness": "3s"}, {"late": "drop", "every": "25s"}),
    config(
        {"algorithm": "wishful", "prior": "0.5", "max_contributions": 3},
        {"algorithm": "single-tree", "prior": "0.5", "sigma": "0.1"},
        {"algorithm": "multi-tree", "prior": "0", "group": "g", "max_groups": 2},
        {"epsilon": 4000, "sigma": "0.2"},
    ),
    config(
        {"algorithm": "wishful", "max_contributions": 3} | FEW_USERS,
        {"algorithm": "multi-tree", "sigma": "0.01", "group": "g", "max_groups": 2, "every": "3s"} | FEW_USERS,
        {"algorithm": "single-tree", "value": ("x", "y"), "range": ((0, 1), (-5, 5)), "lateness": "3s"} | FEW_USERS,
    ),
    config(SHARP | {"epsilon": 400, "grid": 64}, {"algorithm": "sharp", "every": "2s", "users": None}),
    config(
        {"algorithm": "sharp", "epsilon": 60, "sigma": "0.1", "life": "60s", "grid": 64},
        {"algorithm": "sharp", "epsilon": 900, "sigma": "0.3", "max_contributions": 7, "every": "contribution"},
        {"algorithm": "sharp", "epsilon": 900, "sigma": "0.01", "group": "g", "max_groups": 2, "every": "3s"},
    ),
    config(SHARP | {"epsilon": 2000, "group": "g", "max_groups": 2}),
    config(
        {"epsilon": 9000, "value": ("x", "y"), "range": ((0, 1), (-5, 5)), "sigma": ("0.3", "0.1")},
        {"algorithm": "naive", "value": ("y", "x"), "range": ((0, 1), (-5, 5))},
        SHARP | {"value": ("y", "x"), "range": ((-5, 5), (0, 1)), "epsilon": 800},
    ),
    config(
        SHARP | EVENTS | {"epsilon": 40, "grid": 64},
        {"algorithm": "naive", "group": "g", "every": "2s"} | EVENTS,
        SHARP | EVENTS | {"epsilon": 40, "every": "3s", "group": "g", "max_events_per_user": 2},
    ),
]
# Events up to three seconds out of order, and a lateness that allows for it.
DISORDERED = config(
    {"lateness": "3s", "every": "2s", "epsilon": 4000},
    {"lateness": "3s", "algorithm": "naive"},
    {"lateness": "3s", "algorithm": "sharp", "every": "3s", "epsilon": 400},
)

actions = st.lists(
    st.tuples(
        st.sampled_from(["bound", "release", "crash_bound", "crash_release"]), st.integers(0, 7), st.integers(1, 9)
    ),
    max_size=80,
)


@examples(38)
@given(st.sampled_from(CONFIGS), events_in_order, st.sampled_from([1, 2, 8]), st.sampled_from([1, 3, 8]), actions)
def test_any_interleaving_and_any_crash_gives_the_releases_of_the_file_run(cfg, rows, sources, homes, schedule):
    # given events, and what a run over them as one file releases
    events = encode(rows)
    expected = run_file(cfg, events)
    # when they are spread over partitions, and machines work, crash and recover in any order; releases per contribution
    # follow one source partition
    cluster = Cluster(cfg, 1 if any(metric.length is None for metric in cfg.metrics) else sources, homes)
    cluster.produce(events)
    cluster.end(b"2000-01-01T00:00:00Z")
    for action, where, amount in schedule:
        cluster.act(action, where, amount)
    cluster.drain()
    # then the releases are the same bytes
    assert cluster.releases() == expected


cuts = st.lists(st.integers(1, 3), min_size=20, max_size=30)


@examples(15)
@given(events_in_order, st.lists(st.integers(0, 3), min_size=60, max_size=60), st.sampled_from([1, 2, 8]), cuts)
def test_disorder_within_the_lateness_changes_no_byte(rows, jitter, sources, amounts):
    # given events, each of which may come a little late
    events = encode([(user, x, time - late, group) for (user, x, time, group), late in zip(rows, jitter, strict=False)])
    # when bound sends its clock at other moments, and partitions have other neighbours
    cluster = Cluster(DISORDERED, sources, 2)
    cluster.produce(events)
    cluster.end(b"2000-01-01T00:00:00Z")
    for amount in amounts:
        for source in range(sources):
            cluster.bound(source, amount)
        for home in range(2):
            cluster.release(home, 1000)
    cluster.drain()
    # then nothing was too late for its tick
    assert cluster.releases() == run_file(DISORDERED, events)
    assert all(home.machine is None or home.machine.counters["woke_late"] == 0 for home in cluster.homes)


@examples(15)
@given(events_in_order, st.sampled_from(["naive", "full", "sharp"]), actions)
def test_a_release_per_contribution_follows_one_source_partition(rows, algorithm, schedule):
    cfg = config(
        {"every": "contribution", "algorithm": algorithm, "epsilon": 400}, {"group": "g", "every": "contribution"}
    )
    events = encode(rows)
    cluster = Cluster(cfg, 1, 3)
    cluster.produce(events)
    for action, where, amount in schedule:
        if action == "bound":
            cluster.bound(0, amount)
        elif action == "release":
            cluster.release(where % 3, amount, steps=amount)
        elif action == "crash_release":
            cluster.crash_release(where % 3)
        else:
            cluster.crash_bound(0)
    cluster.drain()
    assert cluster.releases() == run_file(cfg, events)


SLOT = {"statistic": "mean", "slot": "10s"}
BACK = [
    config({"algorithm": "naive"}, SHARP | {"epsilon": 400, "grid": 64, "every": "2s"}),
    config(
        {"statistic": "sum", "every": "2s"},
        {"statistic": "mean", "every": "5s", "decay": {"kind": "none"}, "group": "g"},
    ),
    config({"algorithm": "naive", "every": "contribution"}),
    config(SLOT),
    config(SLOT, {"algorithm": "naive", "group": "g"}),
]
transactions = st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=6)
FIVE = [
    ("user0", 1, 100, "a"),
    ("user1", 0, 101, "a"),
    ("user2", 1, 102, "a"),
    ("user0", 1, 110, "a"),
    ("user1", 0, 111, "a"),
]
USUAL = {"rows": FIVE, "kept": 1, "read": 9, "restarts": False, "room": MESSAGE_BYTES, "waiting": KEPT_SAMPLES}


@examples(100)
@example(cfg=BACK[2], first=[(1, False)] * 4, again=[(9, False)], **USUAL)  # it ends before its last number
@example(cfg=BACK[3], first=[(1, False), (3, True)], again=[(3, False)], **USUAL)  # an open slot's were sent before
@given(
    cfg=st.sampled_from(BACK),
    rows=events_in_order,
    first=transactions,
    again=transactions,
    kept=st.integers(0, 5),
    read=st.integers(0, 9),
    restarts=st.booleans(),
    room=st.sampled_from([100, 200, MESSAGE_BYTES]),
    waiting=st.sampled_from([1, 3, KEPT_SAMPLES]),
)
def test_a_source_that_goes_back_to_an_older_state_changes_no_release(
    cfg, rows, first, again, kept, read, restarts, room, waiting
):
    """Its transactions are cut in another way then. If that could count anything twice, or not at all, release ends."""
    cluster = Cluster(cfg, sources=1, homes=1)
    cluster.produce(encode(rows))
    cluster.end_last_ticks()
    source, states = cluster.sources[0], [dict[bytes, bytes]()]
    with patch.object(contributions, "MESSAGE_BYTES", room), patch.object(slot_accounts, "KEPT_SAMPLES", waiting):
        for count, idle in first:
            cluster.bound(0, count, idle=idle)
            states.append(dict(source.changelog))
        cluster.release(0, read)
        if restarts:
            cluster.crash_release(0)
        cluster.crash_bound(0)
        source.changelog = states[min(kept, len(first) - 1)]
        try:
            for count, idle in again:
                cluster.bound(0, count, idle=idle)
            cluster.drain()
        except FailStop:
            return
    assert cluster.releases() == run_file(cfg, encode(rows))
