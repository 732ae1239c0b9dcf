"""What topics' configurations should say, and what is said where they do not."""

import asyncio
import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topic_policies import (
    COMPACT,
    KEEP,
    LOG,
    not_asked,
    ways_to_lose,
    weak_durability,
    wrong_policies,
)
from shoal.agents.kafka.topics import _check_sources, record_loss, source_ways, wanted_topics

SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}


def test_topics_that_are_made_with_three_replicas_need_two_in_sync() -> None:
    for replication, least in ((-1, None), (1, None), (3, "2"), (5, "2")):
        wanted = wanted_topics(KafkaSettings("b", "app", replication=replication), {"events": 4})
        assert {config.get("min.insync.replicas") for _, config in wanted.values()} == {least}
        assert wanted["app.releases"][1].items() >= KEEP.items()
        assert wanted["app.release.changelog"][1].items() >= COMPACT.items()
        assert wanted["app.bound.events.changelog"][1].items() >= LOG.items()


def test_what_is_safe_is_not_warned_of() -> None:
    assert weak_durability("app", {"a": 3, "b": 2}, {"a": SAFE, "b": SAFE}) == []
    assert weak_durability("app", {"a": 3}, {}) == []  # its configuration could not be had, which is said elsewhere


def test_one_replica_one_in_sync_and_unclean_elections_are_warned_of_by_topic() -> None:
    careless = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    one, in_sync, unclean = weak_durability("app", {"a": 1, "b": 3, "c": 2}, {"a": careless, "b": SAFE, "c": careless})
    assert one.startswith("topics a have one replica; what they hold is lost with its broker")
    assert in_sync.startswith("topics c have min.insync.replicas 1; what is acknowledged may be on one broker only")
    assert unclean.startswith("topics a, c have unclean.leader.election.enable; a broker that is behind")


def test_what_is_so_of_a_whole_app_is_said_once() -> None:
    of_all = weak_durability("app", {"events": 1, "app.releases": 1, "app.contributions": 1}, {})
    assert of_all[0].startswith("topics app.*, events have one replica")
    of_one = weak_durability("app", {"events": 3, "app.releases": 1, "app.contributions": 3}, {})
    assert of_one[0].startswith("topics app.releases have one replica")


limits = st.none() | st.sampled_from(["-1", "0", "5"]) | st.integers(-1, 2**63 - 1).map(str)
policies = st.none() | st.sampled_from(["delete", "compact", "compact,delete", "delete, compact", ""])
configs = st.fixed_dictionaries(
    {
        "cleanup.policy": policies,
        "retention.ms": limits,
        "retention.bytes": limits,
        "message.timestamp.type": st.none() | st.sampled_from(["CreateTime", "LogAppendTime"]),
    }
).map(lambda config: {key: value for key, value in config.items() if value is not None})


def deletes(config: Mapping[str, str], *, seconds: int, size: int, has_successor: bool) -> bool:
    """Whether a broker may delete a record of this age, with so many bytes behind it, or with another of its key."""
    policy = config.get("cleanup.policy", "delete")
    too_old = 0 <= int(config.get("retention.ms", -1)) < 1000 * seconds
    too_large = 0 <= int(config.get("retention.bytes", -1)) < size
    return ("delete" in policy and (too_old or too_large)) or ("compact" in policy and has_successor)


@given(configs)
def test_a_topic_has_a_way_to_lose_records_exactly_if_a_broker_may_delete_one(config: dict[str, str]) -> None:
    ways, may_go = ways_to_lose(config), partial(deletes, config, seconds=2**60, size=2**64)
    assert bool(ways) == may_go(has_successor=True)
    # and compaction that is wanted is not a way to lose them
    wanted = ways_to_lose(config, compacted=True)
    assert [way.key for way in wanted] == [way.key for way in ways if way.key != "cleanup.policy"]
    assert bool(wanted) == may_go(has_successor=False)


@given(configs)
def test_each_remedy_ends_its_way_to_lose_records_and_opens_none(config: dict[str, str]) -> None:
    before = {way.key for way in ways_to_lose(config)}
    for way in ways_to_lose(config):
        after = {one.key for one in ways_to_lose({**config, **way.remedy})}
        assert after <= before - {way.key}
    everything = {key: value for way in ways_to_lose(config) for key, value in way.remedy.items()}
    assert ways_to_lose(config | everything) == []
    # and what is harmless is left as it is
    assert all(config.get(key, "delete") != value for key, value in everything.items())


def test_a_source_that_can_lose_records_is_named_with_one_command() -> None:
    settings, command = KafkaSettings("b:9092", "app"), "run kafka-configs --bootstrap-server b:9092 --alter"

    def said(config: dict[str, str], **changes: Any) -> str:
        changed = dataclasses.replace(settings, **changes)
        return record_loss(changed, "events", source_ways(changed, "events", config))

    to_events = f"to keep them, {command} --entity-type topics --entity-name events --add-config"
    assert said({"retention.ms": "-1"}) == ""
    assert said({"retention.bytes": "7", "message.timestamp.type": "LogAppendTime", "retention.ms": "5"}) == (
        "topic events: retention.ms = 5: records that are older may be deleted before they are read, and "
        "retention.bytes = 7: the oldest records of a larger partition may be deleted before they are read; "
        f"{to_events} retention.ms=-1,retention.bytes=-1"
    )
    assert said({"cleanup.policy": "compact", "retention.ms": "604800000", "retention.bytes": "-1"}) == (
        "topic events: cleanup.policy = compact: of records with one key, all but the last may be deleted before they "
        'are read; to read it as it is, set [kafka] compacted = ["events"]; '
        f"{to_events} cleanup.policy=delete,retention.ms=-1"
    )
    # and of a topic that is listed only what compaction does not delete
    both = {"cleanup.policy": "compact,delete", "retention.ms": "5"}
    assert said(both, compacted=("events",)).startswith("topic events: retention.ms = 5: records that are older by the")
    assert said(both, compacted=("events",)).endswith("--add-config retention.ms=-1")
    assert '[kafka] compacted = ["other", "events"]; ' in said(both, compacted=("other",))


def test_a_wrong_policy_comes_with_one_command_that_sets_all_of_it_right() -> None:
    command = (
        "kafka-configs --bootstrap-server b:9092 --alter --entity-type topics --entity-name app.releases --add-config"
    )
    # given one wrong setting, then the command has that one alone
    (wrong,) = wrong_policies({"app.releases": KEEP}, {"app.releases": KEEP | {"retention.ms": "5"}, "events": {}})
    assert wrong.said("b:9092") == f"topic app.releases: retention.ms is 5, must be -1; run {command} retention.ms=-1"
    # given a compacted topic, whose retention begins to count where it is not compacted any more
    compacted = {"cleanup.policy": "compact", "retention.ms": "604800000", "retention.bytes": "-1"}
    (wrong,) = wrong_policies({"app.releases": KEEP}, {"app.releases": compacted})
    # then one command sets both at once
    assert wrong.said("b:9092") == (
        "topic app.releases: retention.ms is 604800000, must be -1, cleanup.policy is compact, must be delete; "
        f"run {command} retention.ms=-1,cleanup.policy=delete"
    )


def test_configurations_that_are_denied_are_named_once_for_an_app() -> None:
    one, two = not_asked("app", ["app.releases", "events", "app.contributions"])
    assert "DescribeConfigs on topic events is denied" in one
    assert "DescribeConfigs on topics app.* is denied" in two


def test_where_presence_is_protected_nobody_asks_how_old_records_are() -> None:
    """There is no broker here: a worker that does not start would tell that somebody has sent an old record."""
    hiding = KafkaSettings("127.0.0.1:1", "app", hides_presence=True)
    (warning,) = asyncio.run(_check_sources(hiding, {"events": {"retention.ms": "3600000"}}, {"events": 1}))
    assert "may be deleted before they are read, so that one person's records may decide" in warning
