"""Two streams that differ in the values of one user leave the same traces but for noised numbers.

One key, two neighbours, through the file run and through a cluster of partitions that crash: whatever differs must be
paid for by the noise (`test_sensitivity.py`), so it must be a charged number and nothing else.
"""

from fractions import Fraction
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp.releaser import SharpReleaser
from shoal.mechanisms.selection import clip_range
from tests.privacy.observing import CONFIGS, SHARP, Neighbours, Row, WatchedCluster, neighbours, raws, watch_file
from tests.stream.simulation import config
from tests.support.effort import examples

pairs = neighbours()
busy = st.one_of(pairs, neighbours(least=80, size=120))  # users with several blocks, too
schedules = st.lists(
    st.tuples(
        st.sampled_from(["bound", "release", "crash_bound", "crash_release"]), st.integers(0, 7), st.integers(1, 9)
    ),
    max_size=30,
)


@examples(30)
@given(st.sampled_from(CONFIGS), pairs)
def test_a_file_run_shows_nothing_of_values_but_charged_numbers(cfg, pair):
    first, second = watch_file(cfg, raws(pair.first)), watch_file(cfg, raws(pair.second))
    assert first.pattern() == second.pattern()


@examples(20)
@given(st.sampled_from(CONFIGS), pairs, st.sampled_from([1, 3]), st.sampled_from([1, 4]), schedules)
def test_a_cluster_that_crashes_shows_nothing_of_values_but_charged_numbers(cfg, pair, sources, homes, schedule):
    first, second = (run_cluster(cfg, rows, sources, homes, schedule) for rows in (pair.first, pair.second))
    # then messages, state keys, tombstones, dead letters, counters and all releases agree, but for sums and noised sums
    assert first.pattern() == second.pattern()


@pytest.fixture(scope="module")
def one_clip_range():
    """The private choices of sharp, which are charged, fall on the same candidates in both streams.

    So does what it uses of releases.
    """
    with (
        patch.object(clip_range, "centre", lambda counts, epsilon, words: len(counts) // 3),
        patch.object(clip_range, "scale", lambda left, target, epsilon, words: len(left) // 3),
        patch.object(SharpReleaser, "_last_release", lambda releaser: Fraction(releaser._mean.grid.steps, 2)),
    ):
        yield


@examples(15)
@given(cfg=st.sampled_from(SHARP), pair=busy)
@pytest.mark.usefixtures("one_clip_range")
def test_given_its_clip_range_sharp_shows_nothing_of_values_but_charged_numbers(cfg, pair):
    first, second = watch_file(cfg, raws(pair.first)), watch_file(cfg, raws(pair.second))
    assert first.pattern() == second.pattern()


@examples(15)
@given(cfg=st.sampled_from(SHARP), pair=busy, sources=st.sampled_from([1, 3]), schedule=schedules)
@pytest.mark.usefixtures("one_clip_range")
def test_given_its_clip_range_nor_does_a_cluster(cfg, pair, sources, schedule):
    first, second = (run_cluster(cfg, rows, sources, 2, schedule) for rows in (pair.first, pair.second))
    assert first.pattern() == second.pattern()


def run_cluster(cfg, rows, sources, homes, schedule):
    cluster = WatchedCluster(cfg, sources, homes)
    for row in rows:
        cluster.produce_as(row.user, row.raw())
    cluster.end(b"2000-01-01T00:00:00Z")
    for action, where, amount in schedule:
        cluster.act(action, where, amount)
    cluster.drain()
    return cluster.watched()


@examples(10)
@given(st.sampled_from(CONFIGS[:3]), neighbours(st.sampled_from(["0", "1", "0.5"])), st.integers(0, 3))
def test_where_all_values_are_equal_the_general_path_is_taken(cfg, pair, flat):
    # given a stream whose values are all alike, and one where a user's are not
    number = ["0", "1", "0.5", "7"][flat]
    alike = [Row(row.user, number, row.time, row.group) for row in pair.first]
    other = [row if row.user == pair.user else same for row, same in zip(pair.second, alike, strict=True)]
    # then no count, no time, no activation tells one from the other
    assert watch_file(cfg, raws(alike)).pattern() == watch_file(cfg, raws(other)).pattern()


def test_the_streams_of_these_tests_reach_every_case():
    """What the laws above are worth: levels activate, groups are left out, caps hold, late events are dropped."""
    rows = [Row(f"user{n % 5}", "0.5", n // 4, "abc"[n % 3]) for n in range(200)]
    rows.append(Row("user1", "null", 60, "a"))
    rows.append(Row("user2", "1", 1, "a"))
    seen = [watch_file(cfg, raws(rows)) for cfg in CONFIGS]
    counters = {name for one in seen for name in one.counters}
    assert {"over_cap", "groups_left_out"} <= counters
    assert {name.rpartition(".")[2] for name in counters if name.startswith("dead")} >= {"late", "bad-value"}
    levels = [orjson.loads(one)["level"] for watched in seen for one in watched.activations]
    assert max(levels) >= 4
    assert len({orjson.loads(one)["at"] for watched in seen for one in watched.activations}) > 1
    # and sharp begins to count, with a clip range of first samples, of first blocks, and of an octave
    sharp = [orjson.loads(one) for cfg in SHARP for one in watch_file(cfg, raws(rows)).activations]
    assert {one["level"] for one in sharp} >= {0, 7, 10}
    # or with none
    lonely = raws(row for row in rows if row.user == "user0")
    alone = [orjson.loads(one) for one in watch_file(SHARP[0], lonely).activations]
    assert {one["epsilon"] for one in alone} == {0}


def test_a_second_number_for_one_field_is_not_a_second_sample():
    cfg = config({"algorithm": "naive"})
    one = watch_file(cfg, [b'{"u":"a","t":1,"x":0,"x":1}'])
    other = watch_file(cfg, [b'{"u":"a","t":1,"x":1,"x":0}'])
    assert one.pattern() == other.pattern()
    assert one.releases != other.releases


def test_pairs_are_neighbours():
    @given(pairs)
    def check(pair: Neighbours) -> None:
        for one, other in zip(pair.first, pair.second, strict=True):
            assert (one.user, one.time, one.group) == (other.user, other.time, other.group)
            assert one == other or one.user == pair.user

    check()
