"""Faust tables for declaration and introspection; storage and recovery are ours.

Each changelog appears as a Faust table under the names that Faust users expect. Faust never reads, writes or restores
them: the machines hold the state, `host.py` restores it, transactions write it. `table[key]` answers from the
partitions that this worker hosts, and raises KeyError for keys of other workers' partitions.
"""

from collections.abc import Iterator
from typing import Any

import faust
from faust.tables.manager import TableManager as FaustTableManager

from shoal.agents.kafka.settings import BOUND, RELEASE
from shoal.agents.worker.host import Host


class PartitionTable(faust.Table[bytes, bytes]):
    """Read-only view of the state of one stage and input topic, on this worker.

    Keys and values are the raw bytes of the changelog.
    """

    host: Host
    stage: str
    topic: str

    def __getitem__(self, key: bytes) -> bytes:
        for place, part in self.host.partitions.items():
            if (place.stage, place.topic) == (self.stage, self.topic):
                value = part.machine.lookup(key)
                if value is not None:
                    return value
        raise KeyError

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except KeyError:
            return False
        return True

    def __setitem__(self, key: bytes, value: object) -> None:
        raise TypeError(READ_ONLY)

    def __delitem__(self, key: bytes) -> None:
        raise TypeError(READ_ONLY)

    def __iter__(self) -> Iterator[bytes]:
        raise TypeError("the state is too large to list; read the changelog topic")


READ_ONLY = "state changes only through the stream"


class TableManager(FaustTableManager):
    """Declares tables without subscribing to their changelogs: Faust's own recovery has nothing to do."""

    def __bool__(self) -> bool:
        return False  # "no tables": the recovery service goes straight to `on_rebalance_complete`

    async def on_start(self) -> None:
        """Start at once: all tables are known."""
        await self._update_channels()
        await self.recovery.start()

    async def _update_channels(self) -> None:
        self._tables_finalized.set()
        self._tables_registered.set()


def declare_tables(app: Any, host: Host, partitions: dict[str, int]) -> None:
    """Add one table per changelog; `partitions` are those of the input topics."""
    inputs = [(BOUND, topic) for topic in host.domain.sources] + [(RELEASE, host.settings.contributions)]
    for stage, topic in inputs:
        name = f"{stage}.{topic}" if stage == BOUND else stage
        count = partitions[topic]
        changelog = app.topic(
            host.settings.changelog(stage, topic),
            key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw",
            partitions=count, compacting=True,
        )  # fmt: skip
        table = PartitionTable(app, name=name, partitions=count, changelog_topic=changelog)
        table.host, table.stage, table.topic = host, stage, topic
        app.tables.add(table)
