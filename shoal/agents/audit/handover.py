"""Which releases of file runs the workers have yet to reproduce, as the ledger has it.

Workers that take a version over from file runs publish nothing new of it until all that the log had is reproduced, in
every partition of the contributions, by whichever worker owns it. The version's row in the ledger lists the partitions
that have done so, and is asked as long as a version waits. If the database is away, the version waits for it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.log import Group, Head
from shoal.agents.audit.owners import Ownership, Version
from shoal.models.records import record_key
from shoal.stream.topic import TopicPlan


class VersionPartition(NamedTuple):
    """One version in one partition of the contributions."""

    version: Version
    partition: int


class MadeAgain:
    """The versions of one worker whose new releases wait, and what it knows of other workers."""

    def __init__(
        self,
        ledger: Ledger,
        app: str,
        partitions: int,
        owners: Mapping[Version, Ownership],
        versions: Iterable[Version],
    ) -> None:
        self._ledger, self._app, self._partitions = ledger, app, partitions
        self._versions = frozenset(versions)
        self._learn(owners)

    def _learn(self, owners: Mapping[Version, Ownership]) -> None:
        known = {version: owners[version].made_again for version in self._versions & owners.keys()}
        self._open = {version: partitions for version, partitions in known.items() if partitions is not None}

    @property
    def open(self) -> set[Version]:
        """Versions whose new releases are withheld, since some partition has not made all again."""
        return set(self._open)

    def is_clear(self, label: str) -> bool:
        """Whether all partitions have made a metric's releases again; `label` is its name and version."""
        metric, _, version = label.rpartition("/")
        return (metric, int(version)) not in self._open

    def ask(self, made: Iterable[VersionPartition]) -> None:
        """Report to the ledger what partitions of this worker have made again, and learn of the others."""
        new: dict[Version, set[int]] = {}
        for version, partition in made:
            if partition not in self._open.get(version, {partition}):
                new.setdefault(version, set()).add(partition)
        self._learn(self._ledger.made_again(self._app, new, partitions=self._partitions))


def heads_by_home(heads: Mapping[Group, Head], plans: Iterable[TopicPlan]) -> dict[int, dict[str, dict[str, int]]]:
    """For each contributions partition, by label: the last logged release of every group that it releases."""
    homes: dict[int, dict[str, dict[str, int]]] = {}
    for home, label, group in _homes(heads, plans):
        homes.setdefault(home, {}).setdefault(label, {})[group.group] = heads[group].seq
    return homes


def levels_by_home(
    activated: Iterable[tuple[Group, int]], plans: Iterable[TopicPlan]
) -> dict[int, dict[str, dict[str, set[int]]]]:
    """Likewise: the levels of every group that the log has activations of."""
    levels: dict[Group, set[int]] = {}
    for group, level in activated:
        levels.setdefault(group, set()).add(level)
    homes: dict[int, dict[str, dict[str, set[int]]]] = {}
    for home, label, group in _homes(levels, plans):
        homes.setdefault(home, {}).setdefault(label, {})[group.group] = levels[group]
    return homes


def _homes(groups: Iterable[Group], plans: Iterable[TopicPlan]) -> Iterator[tuple[int, str, Group]]:
    """Of each group that is configured: its contributions partition, and its metric's label."""
    metrics = {
        (metric.section.name, metric.section.version): (plan, metric) for plan in plans for metric in plan.metrics
    }
    for group in groups:
        known = metrics.get(group[:2])
        if known is not None:
            plan, metric = known
            # What shares its releases has them where its samples are.
            key = record_key(group.metric, None if metric.section.kind.shared else group.group)
            yield plan.home_of(key), metric.label, group
