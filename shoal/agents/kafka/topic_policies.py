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
# In the order in which a wrong one is named: a policy that deletes is harmless once nothing is kept for a time only.
CHECKED = ("retention.ms", "retention.bytes", "cleanup.policy")
SAFE_REPLICATION = 3
SAFE = {"min.insync.replicas": "2"}  # at that replication: what is acknowledged outlives any one broker

Configs = Mapping[str, Mapping[str, str]]  # by topic


class WrongPolicy(NamedTuple):
    """A topic of the app whose settings delete records that must stay, or do not compact it."""

    topic: str
    settings: Mapping[str, tuple[str | None, str]]  # by key: the value that is set, and the one that must be

    def said(self, brokers: str) -> str:
        """What is wrong, and one command for all of it: one setting alone could delete what must stay."""
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


def finite_retention(config: Mapping[str, str]) -> dict[str, int]:
    """The limits after which a broker deletes records of a topic."""
    if "delete" not in config.get("cleanup.policy", "delete"):
        return {}
    limits = {key: int(config.get(key) or -1) for key in ("retention.ms", "retention.bytes")}
    return {key: value for key, value in limits.items() if value >= 0}


def losses(config: Mapping[str, str]) -> str:
    """How a source topic loses events, in words; empty if it keeps all."""
    limits = dict[str, str | int](finite_retention(config))
    if "compact" in config.get("cleanup.policy", ""):
        limits["cleanup.policy"] = config["cleanup.policy"]
    return ", ".join(f"{key} = {value}" for key, value in limits.items())


def not_asked(app: str, names: Iterable[str]) -> list[str]:
    """Warnings about topics whose configuration this principal must not see; those of an app are named by prefix."""
    denied = {f"topics {app}.*" if name.startswith(f"{app}.") else f"topic {name}" for name in names}
    return [
        f"could not ask for retention and durability: DescribeConfigs on {name} is denied; grant it with kafka-acls"
        for name in sorted(denied)
    ]
