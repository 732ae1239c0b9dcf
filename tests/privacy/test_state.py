"""A user's count is never forgotten: whoever starts again at 0 has the cap twice, and epsilon with it."""

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.agents.kafka import fail_stop
from shoal.models.errors import FailStop
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import Line
from shoal.stream.state_mark import MARK
from tests.privacy.observing import WatchedCluster
from tests.stream.simulation import STAMP, Cluster, config, names_of, rows_of
from tests.support.cover import in_a_loop
from tests.support.effort import examples

CFG = config({"algorithm": "naive", "group": "g", "max_groups": 2, "max_per_group": 2}, {"max_contributions": 4})
# Ids that a careless encoding would take for one another, or for a key of something else.
IDS = [
    "a",
    "a\x00",
    "\x00a",
    "\x00mark",
    "\x00",
    "1",
    "a\x00b",
    "am0/1\x00a",
    "gm0/1\x00a",
    "é",
    "e\u0301",
    "",
    "A",
    " a",
]


def event(user: str, group: str, time: int = 1) -> bytes:
    return orjson.dumps({"u": user, "g": group, "x": 1, "t": time})


def committed(events: list[bytes]) -> dict[bytes, bytes]:
    cluster = Cluster(CFG, 1, 1)
    cluster.sources[0].log = [Line(n, raw, timestamp=STAMP) for n, raw in enumerate(events)]
    cluster.drain()
    return cluster.sources[0].changelog


def restored(changelog: dict[bytes, bytes]) -> BoundPartition:
    machine = BoundPartition(Cluster(CFG, 1, 1).plan, 0)
    machine.restore(changelog)
    return machine


@given(st.data())
def test_a_changelog_that_lost_a_user_is_refused(data):
    """Regression: only a changelog without any record was noticed; the user of a lost one started at count 0."""
    changelog = committed([event(user, group) for user in "abc" for group in "xy"])
    lost = data.draw(st.sets(st.sampled_from(sorted(changelog.keys() - {MARK})), min_size=1))
    restored(changelog)
    with pytest.raises(FailStop, match="users would start again at count 0"):
        restored({key: value for key, value in changelog.items() if key not in lost})


def test_where_counts_are_hidden_the_message_about_lost_users_has_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fail_stop, "_discretion", True)
    said = set()
    for users in ("abc", "abcdefghijkl"):
        changelog = committed([event(user, group) for user in users for group in "xy"])
        lost = min(changelog.keys() - {MARK})
        with pytest.raises(FailStop) as refused:
            restored({key: value for key, value in changelog.items() if key != lost})
        said.add(fail_stop.describe(refused.value, "here"))
    assert len(said) == 1


@examples(13)
@given(st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=60), st.integers(1, 9))
@example([("anna", "x")] * 5, 1)
def test_counts_and_groups_survive_any_restart_and_are_nobody_elses(pairs, every):
    # given odd ids as users and groups, one partition, and a crash after every few events
    cluster = WatchedCluster(CFG, 1, 1)
    cluster.sources[0].log = [Line(n, event(*pair), timestamp=STAMP) for n, pair in enumerate(pairs)]
    for _ in range(0, len(pairs), every):
        cluster.bound(0, every)
        cluster.crash_bound(0)
    cluster.drain()
    # then what counts is what a dictionary of pairs and a cap make of it
    expected: dict[tuple[str, str], int] = {}
    for user, group in pairs:
        known = {g for u, g in expected if u == user}
        if user and group and (group in known or len(known) < 2):
            expected[user, group] = min(2, expected.get((user, group), 0) + 1)
    sums: dict[str, int] = {}
    for _, message in cluster.seen.messages:
        for key, row in rows_of(message):
            label, _, name = key.partition("|")
            if label == "m0/1":
                sums[name] = sums.get(name, 0) + row[4]
    by_group: dict[str, int] = {}
    for (_, group), count in expected.items():
        by_group[group] = by_group.get(group, 0) + count
    assert sums == by_group


@in_a_loop
@pytest.mark.parametrize("user", [name for name in IDS if name])
def test_a_user_reaches_one_partition_only_whatever_the_id(user):
    # given the same user in every partition of a topic
    cluster = Cluster(CFG, 7, 1)
    for source in cluster.sources:
        source.log = [Line(n, event(user, "x", n), timestamp=STAMP) for n in range(3)]
    cluster.drain()
    # then one partition keeps an account, and the others refuse all
    holding = [source for source in cluster.sources if names_of(source.changelog)]
    assert len(holding) == 1
    others = [source.machine for source in cluster.sources if source not in holding]
    assert all(m is not None and m.counters["dead_letters.m0.wrong-partition"] == 3 for m in others)


def test_an_integer_and_its_text_are_one_user():
    events = [b'{"u":%s,"g":"x","x":1,"t":1}' % user for user in (b"17", b'"17"', b"17", b'"\\u0031\\u0037"')]
    changelog = committed(events)
    assert len([name for name in names_of(changelog) if name.startswith(b"am0/1")]) == 1
    machine = restored(changelog)
    machine.process([Line(4, events[0], timestamp=STAMP)], 5)
    assert machine.counters["over_cap"] == 2, "of both metrics"


@in_a_loop
@pytest.mark.parametrize(
    ("stamp", "reason"), [(-1, "no-time"), (-(10**9), "no-time"), (10**15, "bad-time"), (2**62, "bad-time")]
)
def test_a_record_whose_own_time_no_calendar_has_stops_nothing(stamp, reason):
    """Regression: it was an OverflowError at the release, at every restart again."""
    cluster = Cluster(config({"algorithm": "naive", "time": None, "every": "contribution"}), 1, 1)
    cluster.sources[0].log = [Line(0, event("a", "x"), timestamp=stamp), Line(1, event("a", "x"), timestamp=1000)]
    cluster.drain()
    machine = cluster.sources[0].machine
    assert machine is not None
    assert machine.counters == {f"dead_letters.m0.{reason}": 1}
    assert [orjson.loads(one)["at"] for one in cluster.releases()] == ["1970-01-01T00:00:01Z"]
