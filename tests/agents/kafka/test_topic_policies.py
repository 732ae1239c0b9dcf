"""What topics' configurations should say, and what is said where they do not."""

import asyncio

from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topic_policies import COMPACT, KEEP, LOG, losses, not_asked, weak_durability, wrong_policies
from shoal.agents.kafka.topics import _check_retention, wanted_topics

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


def test_losses_of_a_source_are_limits_and_compaction() -> None:
    assert losses({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}) == ""
    assert losses({"cleanup.policy": "delete", "retention.ms": "5"}) == "retention.ms = 5"
    assert losses({"cleanup.policy": "compact,delete", "retention.bytes": "7"}) == (
        "retention.bytes = 7, cleanup.policy = compact,delete"
    )
    assert losses({"cleanup.policy": "compact", "retention.ms": "5"}) == "cleanup.policy = compact"


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
    (warning,) = asyncio.run(_check_retention(hiding, {"events": {"retention.ms": "3600000"}}, {"events": 1}))
    assert "retention.ms = 3600000; events must be read before" in warning
