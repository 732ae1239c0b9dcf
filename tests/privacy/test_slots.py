"""What one unit can move of slots and cells: the shares of epsilon of all that it moves are no more than epsilon.

The oracle is the difference of two runs over neighbours: a release that differs has met the unit's values, and has a
share of epsilon of its own. Late events, idle partitions that wake, crashes, caps: whatever happens, the sum holds.
"""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.models.config.file import Config
from tests.privacy.observing import Neighbours, Row, WatchedCluster, neighbours, raws
from tests.stream.simulation import config, run_file
from tests.support.cover import in_a_loop
from tests.support.effort import examples

SLOT = {"statistic": "mean", "slot": "5s", "group": "g", "max_per_group": 3, "epsilon": 30}
PERIODS = {"user-slot": 5, "user-10s": 10, "user-20s": 20, "user": 10**9}
KINDS: list[dict[str, Any]] = [
    {"max_groups": 2, "algorithm": "baseline"},
    {"max_groups": 2, "algorithm": "array-averaging", "across_cells": "split"},
    {"max_groups": 3, "statistic": "variance"},
    {"max_groups": 1, "algorithm": "array-averaging", "min_users": 2},
    {"unit": "user-10s", "max_slots": 1, "algorithm": "baseline"},
    {"unit": "user-20s", "max_slots": 3, "max_groups": 2, "across_cells": "split", "algorithm": "baseline"},
    {"unit": "user", "max_slots": 2, "max_groups": 2, "algorithm": "array-averaging", "lateness": "4s"},
    {"unit": "user", "max_slots": 3, "algorithm": "baseline", "late": "drop"},
]
configs = st.sampled_from([config(SLOT | kind, idle_after="1s") for kind in KINDS])
# Values far apart, so that whatever meets them differs.
pairs = neighbours(st.sampled_from(["0", "1", "0.125", "0.875", "0.5"]))
lonely = neighbours(st.sampled_from(["0", "1"]), size=30, users=["a", "b"])
schedules = st.lists(
    st.tuples(
        st.sampled_from(["bound", "release", "idle", "idle", "crash_bound", "crash_release"]),
        st.integers(0, 7), st.integers(1, 9),
    ),
    max_size=60,
)  # fmt: skip


def of_one_unit(pair: Neighbours, period: int, which: int) -> Neighbours:
    """Only the values of one of the user's units differ."""
    changed = tuple(
        other if one.time // period == which % 3 or period > 100 else one
        for one, other in zip(pair.first, pair.second, strict=True)
    )
    return Neighbours(pair.user, pair.first, changed)


def spent(first: list[bytes], second: list[bytes]) -> Fraction:
    """The shares of epsilon of all releases that differ."""
    total = Fraction(0)
    for one, other in zip(first, second, strict=True):
        if one != other:
            share = orjson.loads(one)["cell_epsilon"]
            assert share == orjson.loads(other)["cell_epsilon"]
            total += Fraction(share)
    return total


def most(cfg: Config) -> Fraction:
    return cfg.metric[0].epsilon * (1 + Fraction(1, 10**12))  # shares are floats where they are published


@examples(38)
@given(configs, st.one_of(pairs, lonely), st.integers(0, 2))
def test_in_a_file_run_a_unit_moves_no_more_than_it_may(cfg, pair, which):
    pair = of_one_unit(pair, PERIODS[cfg.metric[0].parts.unit.name], which)
    assert spent(run_file(cfg, raws(pair.first)), run_file(cfg, raws(pair.second))) <= most(cfg)


@examples(38)
@given(configs, st.one_of(pairs, lonely), st.integers(0, 2), st.sampled_from([1, 3]), schedules)
def test_nor_where_partitions_fall_idle_and_wake_too_late(cfg, pair, which, sources, schedule):
    pair = of_one_unit(pair, PERIODS[cfg.metric[0].parts.unit.name], which)
    first, second = (run_cluster(cfg, rows, sources, schedule) for rows in (pair.first, pair.second))
    assert spent(first, second) <= most(cfg)


@in_a_loop
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_unit_in_more_slots_and_cells_than_count_spends_all_it_has(kind: dict[str, Any]) -> None:
    # given somebody with a value in every slot and cell, and in each cell somebody else
    first = [Row(user, "0", time, cell) for time in range(0, 100, 5) for cell in "abcd" for user in ("u", f"of {cell}")]
    second = [replace(row, number="1") if row.user == "u" else row for row in first]
    cfg = config(SLOT | kind, idle_after="1s")
    pair = of_one_unit(Neighbours("u", tuple(first), tuple(second)), PERIODS[cfg.metric[0].parts.unit.name], 1)
    # then what moves when a unit's values do has all of its epsilon, and no more
    moved = spent(run_file(cfg, raws(pair.first)), run_file(cfg, raws(pair.second)))
    assert most(cfg) / (1 + Fraction(1, 10**9)) < moved <= most(cfg)


def run_cluster(cfg: Config, rows: Any, sources: int, schedule: Any) -> list[bytes]:
    """Events come bit by bit; in between a partition may have nothing more, for as long as others pass it."""
    cluster, waiting = WatchedCluster(cfg, sources, 1), list(rows)
    for action, where, amount in schedule:
        cluster.wall += 700
        for row in waiting[:amount]:
            cluster.produce_as(row.user, row.raw())
        del waiting[:amount]
        if action == "idle":
            cluster.bound(where % sources, 10**6)
            cluster.bound(where % sources, 10**6)
        else:
            cluster.act(action, where, amount)
    for row in waiting:
        cluster.produce_as(row.user, row.raw())
    cluster.end(b"2000-01-01T00:00:00Z")
    cluster.drain()
    return cluster.seen.releases


def test_these_streams_reach_units_that_spend_all_they_have():
    reached: dict[str, Fraction] = defaultdict(Fraction)

    @settings(max_examples=300, database=None)  # few do: with fewer examples it is a matter of luck
    @given(configs, lonely, st.integers(0, 2))
    def look(cfg: Config, pair: Neighbours, which: int) -> None:
        name = cfg.metric[0].parts.unit.name
        one = of_one_unit(pair, PERIODS[name], which)
        share = spent(run_file(cfg, raws(one.first)), run_file(cfg, raws(one.second))) / cfg.metric[0].epsilon
        reached[name] = max(reached[name], share)

    look()
    assert min(reached["user-slot"], reached["user"]) > Fraction(999, 1000)
