"""Sums, counts and means that are released at every step, and forget."""

import math
from collections import defaultdict
from datetime import datetime
from fractions import Fraction
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.models.config.file import Config
from shoal.stream.parameters import parameters_of
from shoal.stream.release import ReleasePartition
from shoal.stream.topic import plan_topic
from tests.stream.simulation import SECRET, Cluster, config, event, run_file
from tests.stream.test_equality import actions, encode, events_in_order
from tests.support.effort import examples

SURE = "1000000000"  # epsilon: so much that noise hardly is any
WINDOW = {"kind": "window", "length": "15s"}
SLOW = {"kind": "exponential", "half_life": "20s"}
FORWARD = {"kind": "forward", "exponent": 2}
POLYNOMIAL = {"kind": "polynomial", "exponent": "1.5"}
ALL = {"kind": "all-windows"}
DECAYS: list[dict[str, Any]] = [
    {"kind": "none"},
    WINDOW,
    ALL,
    SLOW,
    {"kind": "exponential", "alpha": "0.9"},
    POLYNOMIAL,
    FORWARD,  # which the patent has not
]
WEIGHTS = {  # of a step, by its age and the number of the newest one, for steps of 5 s
    "none": lambda age, t: 1.0,
    "window": lambda age, t: float(age < 3),
    "all-windows": lambda age, t: 1.0,
    "exponential": lambda age, t: 0.5 ** (age / 4),
    "polynomial": lambda age, t: (age + 1) ** -1.5,
    "forward": lambda age, t: (1 - age / t) ** 2,
}


def summed(decay: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"statistic": "sum", "decay": decay, "every": "5s"} | more


def released(cfg: Config, events: list[bytes]) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in run_file(cfg, events)]


def seconds(release: dict[str, Any]) -> int:
    return int(datetime.fromisoformat(release["at"]).timestamp())


# ---------------------------------------------------------------- what is released when

rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([0, 0.25, 1]), st.integers(0, 9), st.sampled_from("xy")),
    min_size=1, max_size=40,
)  # fmt: skip


@examples(15)
@given(
    rows,
    st.tuples(st.sampled_from(DECAYS[:4] + DECAYS[5:]), st.sampled_from(["sum", "count", "mean", "variance"])).filter(
        lambda pair: pair != (ALL, "variance")
    ),
)
def test_every_step_from_a_groups_first_has_the_decayed_sum_of_what_came(rows, pair):
    decay, statistic = pair
    # given events in two groups, and so much epsilon that noise is nothing
    events = []
    sums: dict[tuple[str, int], float] = defaultdict(float)
    squares: dict[tuple[str, int], float] = defaultdict(float)
    counts: dict[tuple[str, int], float] = defaultdict(float)
    now = 100
    for user, x, pause, group in rows:
        now += pause
        events.append(event(user, x, now, g=group))
        sums[group, now // 5] += x
        squares[group, now // 5] += x * x
        counts[group, now // 5] += 1
    cfg = config(summed(decay, statistic=statistic, epsilon=SURE, max_contributions=99, group="g", max_groups=2))
    found = released(cfg, events)
    # then each group has a release at the end of every step, from its first to the last of all
    last = now // 5
    for group in {row[3] for row in rows}:
        first = min(step for name, step in counts if name == group)
        mine = [one for one in found if one["group"] == group]
        assert [seconds(one) // 5 - 1 for one in mine] == list(range(first, last + 1))
        # and it is the weighted sum of all steps so far
        for step, one in zip(range(first, last + 1), mine, strict=True):
            weigh = WEIGHTS[decay["kind"]]
            total, square, n = (
                math.fsum(weigh(step - s, step - first + 1) * held[group, s] for s in range(first, step + 1))
                for held in (sums, squares, counts)
            )
            assert one["samples"] == pytest.approx(n, rel=1e-5)
            if statistic in ("mean", "variance") and not n:
                assert one["value"] is None
                continue
            mean = total / (n or 1)
            both = {"mean": mean, "variance": square / (n or 1) - mean**2}
            expected = {"sum": total, "count": n, "mean": mean, "variance": both}[statistic]
            assert one["value"] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_a_release_says_which_mechanism_made_it():
    events = [event("a", 1, 100)]
    made = [
        (summed({"kind": "none"}), "blue"),
        (summed(WINDOW), "per-step"),
        (summed({"kind": "window", "length": "20480s"}), "hats"),
        (summed(FORWARD), "blue"),
        (summed(FORWARD, life="50s"), "per-step"),
        (summed(WINDOW, algorithm="patent"), "patent"),
        (summed({"kind": "window", "length": "320s"}, delta="0.01"), "square-root"),
        (summed(WINDOW, statistic="count"), "exact"),
    ]
    for metric, mechanism in made:
        (release,) = released(config(metric), events)
        assert release["mechanism"] == mechanism
    assert (release["epsilon"], release["noise_sd"], release["value"]) == (0, 0, 1)


def test_a_mean_over_a_window_in_which_nothing_came_is_no_release():
    events = [event("a", 1, 100), event("b", 1, 130)]
    cfg = config(summed(WINDOW, statistic="mean", epsilon=SURE))
    assert [one["value"] is None for one in released(cfg, events)] == [False] * 3 + [True] * 3 + [False]


def test_a_decayed_mean_is_clamped_and_a_sum_never_is():
    # given much noise, which is another in each of ten groups
    events = [event("a", 1, 100 + n // 10, g=f"g{n % 10}") for n in range(400)]
    noisy = summed({"kind": "none"}, epsilon="0.001", group="g", max_groups=10)
    # then
    assert {one["value"] for one in released(config(noisy | {"statistic": "mean"}), events)} == {0.0, 1.0}
    assert any(one["value"] < 0 for one in released(config(noisy), events))


def test_a_count_needs_no_value_no_range_and_no_epsilon():
    counted = {"value": None, "epsilon": 7, "statistic": "count", "every": "5s"}
    cfg = config(counted, counted | {"value": "x"})
    found = released(cfg, [event("a", 1, 100), event("b", 0, 101), b'{"u":"c","t":102}', b'{"u":"d","x":"no","t":102}'])
    assert [(one["value"], one["epsilon"]) for one in found] == [(4, 0), (2, 0)]
    assert cfg.metric[0].epsilon == 0


def test_a_group_rests_after_max_gap_and_wakes_where_it_is():
    # given a group that is silent for longer than max_gap, which is never below the window
    cfg = config(summed(WINDOW, epsilon=SURE, max_gap=1), summed(SLOW, epsilon=SURE, max_gap=4))
    found = released(cfg, [event("a", 1, 100), event("a", 1, 200)])
    # then it has releases for so many silent steps, and at the one in which it wakes
    steps = {name: [seconds(one) // 5 - 1 for one in found if one["metric"] == name] for name in ("m0", "m1")}
    assert steps == {"m0": [20, 21, 22, 23, 40], "m1": [20, 21, 22, 23, 24, 40]}
    # and what it forgot goes by time
    window, slow = (next(one for one in reversed(found) if one["metric"] == name) for name in ("m0", "m1"))
    assert window["value"] == pytest.approx(1, abs=1e-3)
    assert slow["value"] == pytest.approx(1 + 0.5**5, abs=1e-3)


# ---------------------------------------------------------------- the same bytes

CONFIGS = [
    *(config(summed(decay)) for decay in DECAYS),
    *(config(summed(decay, algorithm="patent", group="g", max_groups=2)) for decay in DECAYS[1:-1]),
    config(
        summed(WINDOW, statistic="mean", lateness="3s"),
        summed(SLOW, statistic="count", every="2s", value=None),
        summed(ALL, group="g", max_groups=2, every="7s"),
        {"algorithm": "sharp"},
    ),
    config(summed(WINDOW, max_gap=1), summed(SLOW, max_gap=2, late="drop"), summed(ALL, algorithm="patent", max_gap=2)),
    config(summed({"kind": "window", "length": "320s"}, delta="0.01")),
    *(config(summed(decay, statistic="variance", group="g", max_groups=2)) for decay in DECAYS if decay != ALL),
    config(
        summed(WINDOW, statistic="variance", lateness="3s", max_gap=1, algorithm="patent"),
        summed(SLOW, statistic="variance", every="2s", unit="event", max_contributions=None),
        summed(WINDOW),
    ),
]


@examples(30)
@given(st.sampled_from(CONFIGS), events_in_order, st.sampled_from([1, 2, 8]), st.sampled_from([1, 3]), actions)
def test_any_interleaving_and_any_crash_gives_the_releases_of_the_file_run(cfg, rows, sources, homes, schedule):
    # given events with long silences, and what a run over them as one file releases
    events = encode([(user, x, time + 60 * (time > 120), group) for user, x, time, group in rows])
    expected = run_file(cfg, events)
    # when they are spread over partitions, and machines work, crash and recover in any order
    cluster = Cluster.after(cfg, events, sources, homes, schedule)
    # then the releases are the same bytes
    assert cluster.releases() == expected


def test_what_a_crash_restores_is_small(monkeypatch):
    """State is bounded: a window's steps, one head for each group."""
    cfg = config(summed({"kind": "window", "length": "20s"}), summed(SLOW), summed(ALL))
    cluster = Cluster(cfg, 1, 1)
    cluster.produce([event("a", 1, 100 + n) for n in range(300)])
    sizes = []
    for _ in range(30):
        cluster.bound(0, 10)
        cluster.release(0, 100)
        sizes.append(len(cluster.homes[0].changelog))
    assert max(sizes) <= 1 + 3 + 4 + 3  # mark, heads, the window's steps, what waits
    assert len(cluster.homes[0].releases) > 150


# ---------------------------------------------------------------- long silences


@pytest.mark.slow
def test_a_first_event_in_1970_is_followed_by_all_steps_until_today_in_pieces():
    steps = 25_000
    # given a group that began at the epoch, and one that begins today
    cfg = config(summed(SLOW, group="g"))
    cluster = Cluster(cfg, 1, 1)
    cluster.produce([event("a", 1, 0, g="x"), event("b", 1, 5 * steps, g="y")])
    cluster.end_last_ticks()
    cluster.bound(0, 10)
    # when a transaction takes a piece, and there are crashes in between
    sizes = []
    for _ in range(steps // 4_001 + 1):
        cluster.release(0, 10, steps=4_001)
        cluster.crash_release(0)
        sizes.append(len(cluster.homes[0].releases))
    # then every step was released, once
    found = [orjson.loads(one) for one in cluster.homes[0].releases]
    assert [one["seq"] for one in found if one["group"] == "x"] == list(range(1, steps + 2))
    assert len(set(sizes)) == len(sizes)


def test_thousands_of_groups_come_out_in_the_order_of_their_names_step_by_step():
    names = [f"g{n}" for n in range(2000)]
    cfg = config(summed(WINDOW, group="g"))
    found = released(
        cfg, [event(f"u{n}", 1, 100, g=name) for n, name in enumerate(names)] + [event("u0", 1, 111, g="g0")]
    )
    assert [(one["at"], one["group"]) for one in found] == sorted((one["at"], one["group"]) for one in found)
    assert len(found) == 3 * len(names)


# ---------------------------------------------------------------- what is agreed


def test_the_mechanism_with_its_shape_is_agreed():
    """Floats choose it: were another one chosen elsewhere, the key would draw other noise under the same names."""
    cfg = config(summed({"kind": "window", "length": "20480s"}))
    said = orjson.loads(parameters_of(cfg, cfg.metric[0].parts))
    assert said["mechanism"][0] == "hats"
    others = [config(summed({"kind": "window", "length": f"{length}s"})) for length in (20475, 20485)]
    assert said["mechanism"] not in [
        orjson.loads(parameters_of(one, one.metric[0].parts))["mechanism"] for one in others
    ]


def test_a_mean_without_a_decay_has_no_mechanism_to_agree_on():
    said = orjson.loads(parameters_of(config({}), config({}).metric[0].parts))
    assert not {"decay", "mechanism"} & {*said, *said["at"]}


def test_state_without_this_metrics_steps_cannot_be_another_ones():
    """A window's state is refused by nobody but its own metric version: the label is in every key."""
    plan = plan_topic(config(summed(WINDOW)), "events", SECRET, source_partitions=1, contributions_partitions=1)
    machine = ReleasePartition([plan], 0, idle_after=1)
    machine.start(0)
    assert machine.clock_of("m0/1") is None
    mechanism = plan.metrics[0].parameters
    assert isinstance(mechanism, LinearStatistic)
    assert mechanism.rest == 1_000_000
    assert Fraction(plan.metrics[0].parts.budget.epsilon) == 1
