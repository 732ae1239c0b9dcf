"""The configurations that topics must and should have, so that what must stay is neither deleted nor lost.

Each difference is a sentence that names topic, key, value and remedy. Nothing here can fail.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

# Brokers delete by record timestamp and by size. What was published, and what proves it, stays.
KEEP = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
# Without small segments and early cleaning a changelog is never compacted, and recovery reads all history.
COMPACT = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 << 20),
    "segment.ms": str(600_000),
    "min.cleanable.dirty.ratio": "0.2",
    "max.compaction.lag.ms": str(3_600_000),
}
# Of a log, too, of which workers delete what nobody needs: small segments go sooner.
LOG = KEEP | {"segment.bytes": str(64 << 20), "segment.ms": str(600_000)}
POLICY, AGE, SIZE = "cleanup.policy", "retention.ms", "retention.bytes"
BY_PRODUCERS = " by the times that producers gave them"
BEYOND = "the oldest records of a larger partition may be deleted before they are read"
OF_ONE_KEY = "of records with one key, all but the last may be deleted before they are read"
# In the order in which a wrong one is named: a policy that deletes is harmless once nothing is kept for a time only.
CHECKED = (AGE, SIZE, POLICY)
SAFE_REPLICATION = 3
SAFE = {"min.insync.replicas": "2"}  # at that replication: what is acknowledged outlives any one broker

Configs = Mapping[str, Mapping[str, str]]  # by topic


class WrongPolicy(NamedTuple):
    """A topic of the app whose settings delete records that must stay, or do not compact it."""

    topic: str
    settings: Mapping[str, tuple[str | None, str]]  # by key: the value that is set, and the one that must be

    def said(self, brokers: str) -> str:
        """Sentence on the wrong settings of a topic, with one command: one alone could delete what must stay."""
        each = ", ".join(f"{key} is {actual}, must be {must}" for key, (actual, must) in self.settings.items())
        musts = {key: must for key, (_, must) in self.settings.items()}
        return f"topic {self.topic}: {each}; run {alter_command(brokers, self.topic, musts)}"


def alter_command(brokers: str, topic: str, settings: Mapping[str, str]) -> str:
    """The kafka-configs command that sets these settings of a topic, all at once."""
    added = ",".join(f"{key}={value}" for key, value in settings.items())
    alter = f"--alter --entity-type topics --entity-name {topic} --add-config {added}"
    return f"kafka-configs --bootstrap-server {brokers} {alter}"


def wrong_policies(wanted: Configs, actual: Configs) -> list[WrongPolicy]:
    """Topics by whose settings records could be deleted that must stay, or are not compacted."""
    found = []
    for name, config in actual.items():
        musts = {key: must for key in CHECKED if (must := wanted.get(name, {}).get(key)) is not None}
        wrong = {key: (config.get(key), must) for key, must in musts.items() if config.get(key) != must}
        if wrong:
            found.append(WrongPolicy(name, wrong))
    return found


def weak_durability(app: str, replicas: Mapping[str, int], configs: Configs) -> list[str]:
    """What a broken disk could take away; `replicas` by topic. The app's topics are named together, as `APP.*`."""
    ours = {name for name in replicas if name.startswith(f"{app}.")}

    def named(kind: Callable[[str], bool]) -> str:
        names = {name for name in replicas if kind(name)}
        return ", ".join(sorted(names - ours | {f"{app}.*"} if ours and ours <= names else names))

    def config(name: str, key: str) -> str | None:
        return configs.get(name, {}).get(key)

    texts = (
        (
            named(lambda name: replicas[name] == 1),
            "have one replica; what they hold is lost with its broker: use replication 3 and min.insync.replicas 2",
        ),
        (
            named(lambda name: replicas[name] > 1 and config(name, "min.insync.replicas") == "1"),
            "have min.insync.replicas 1; what is acknowledged may be on one broker only: set it to 2 by kafka-configs",
        ),
        (
            named(lambda name: config(name, "unclean.leader.election.enable") == "true"),
            "have unclean.leader.election.enable; a broker that is behind may take what was acknowledged away: set it "
            "to false with kafka-configs",
        ),
    )
    return [f"topics {names} {text}" for names, text in texts if names]


class WayToLose(NamedTuple):
    """A setting by which a broker may delete records of a topic before they are read."""

    key: str
    value: str
    cause: str  # which records
    remedy: Mapping[str, str]  # settings without this way to lose records, and without a new one
    by_others: bool = True  # whether one person's records may decide when another's are deleted


def ways_to_lose(config: Mapping[str, str], *, compacted: bool = False) -> list[WayToLose]:
    """Ways in which a topic can lose records before they are read; empty if it keeps all.

    `compacted`: that it is compacted is wanted, so that only other ways count.

    >>> [(way.key, way.remedy) for way in ways_to_lose({"cleanup.policy": "delete", "retention.ms": "3600000"})]
    [('retention.ms', {'retention.ms': '-1'})]
    """
    value = config.get(POLICY, "delete")
    policies = {one.strip() for one in value.split(",")}
    keep = {key: KEEP[key] for key in (AGE, SIZE) if int(config.get(key) or -1) >= 0}
    ways = []
    if "delete" in policies and AGE in keep:
        by_producers = config.get("message.timestamp.type") != "LogAppendTime"
        cause = f"records that are older{BY_PRODUCERS if by_producers else ''} may be deleted before they are read"
        ways.append(WayToLose(AGE, config[AGE], cause, {AGE: KEEP[AGE]}, by_producers))
    if "delete" in policies and SIZE in keep:
        ways.append(WayToLose(SIZE, config[SIZE], BEYOND, {SIZE: KEEP[SIZE]}))
    if "compact" in policies and not compacted:
        # where the policy becomes delete, limits count that did not count before
        ways.append(WayToLose(POLICY, value, OF_ONE_KEY, {POLICY: KEEP[POLICY]} | keep))
    return ways


def compacts(ways: Iterable[WayToLose]) -> bool:
    """Whether compaction is among the ways to lose records."""
    return any(way.key == POLICY for way in ways)


def wanted_compaction(topic: str, *, hides_presence: bool) -> str:
    """What it means for releases and guarantee that a source which the configuration lists is compacted."""
    guarantee = (
        "a person's records delete that person's alone as long as each record's key is its user, and how soon it "
        "compacts depends on how many records there are, so set min.compaction.lag.ms above the longest time that "
        "workers may be behind"
        if hides_presence
        else "which ones it deletes depends on keys and order and not on values, so the guarantee is unchanged"
    )
    return (
        f"topic {topic} is compacted, as [kafka] compacted allows: releases are of the records that were still there "
        f"when they were read, and depend on when the broker compacted; {guarantee}; `shoal audit replay --from "
        "events` cannot recompute its contributions"
    )


def keep_command(brokers: str, topic: str, ways: Iterable[WayToLose]) -> str:
    """The command after which a topic loses no records in these ways; without any, the one for whatever it may be."""
    together = {key: value for way in ways for key, value in way.remedy.items()}
    return alter_command(brokers, topic, together or KEEP)


def not_asked(app: str, names: Iterable[str]) -> list[str]:
    """Warnings about topics whose configuration this principal must not see; those of an app are named by prefix."""
    denied = {f"topics {app}.*" if name.startswith(f"{app}.") else f"topic {name}" for name in names}
    return [
        f"could not ask for retention and durability: DescribeConfigs on {name} is denied; grant it with kafka-acls"
        for name in sorted(denied)
    ]
