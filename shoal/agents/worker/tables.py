"""Faust's tables: read-only views of the state that this worker holds, named as the changelog topics behind them.

    app.tables["shoal.bound.purchases.changelog"]["basket", "ann"]          a user's samples of a metric so far
    app.tables["shoal.bound.purchases.changelog"]["basket", "ann", "north"]     in one group or cell
    app.tables["shoal.release.changelog"]["basket", "north"]                a group's last release, and its statistic
    app.tables["shoal.release.changelog"]["basket", "north", 3]             what level 3 of that statistic holds

A metric without groups has the group None. A worker answers for the partitions that it works on, and raises KeyError
for all other keys. Values are the state itself, without noise: nothing of it may be published. Storage and recovery are
ours: machines hold the state, `takeover.py` restores it from the changelogs, transactions write it there.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

import faust
from faust.tables.manager import TableManager as FaustTableManager

from shoal.agents.kafka.settings import BOUND, RELEASE
from shoal.agents.worker.host import Host

Key = tuple[Any, ...]
READ_ONLY = "state changes only through the stream"
NOT_LISTED = "the state is too large to list; read the changelog topic"


class StateTable(faust.Table[Key | str, Any]):
    """The state of one stage and input topic, as far as it is on this worker."""

    host: Host
    stage: str
    topic: str

    def __getitem__(self, key: Key | str) -> Any:
        names = key if isinstance(key, tuple) else (key,)
        for partition, part in self.host.partitions.items():
            if (partition.stage, partition.topic) == (self.stage, self.topic):
                value = part.machine.look_up(names)
                if value is not None:
                    return value
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except KeyError:
            return False
        return True

    def _refuse_writing(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(READ_ONLY)

    def _refuse_listing(self) -> NoReturn:
        raise TypeError(NOT_LISTED)

    # Whatever else changes a Faust table calls one of these before it writes to the changelog.
    on_key_set = on_key_del = on_clear = raw_update = send_changelog = _refuse_writing
    __iter__ = __len__ = keys = values = items = copy = _refuse_listing

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"


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


def declare_tables(app: Any, host: Host, partitions: Mapping[str, int]) -> None:
    """Add one table per changelog; `partitions` are those of the input topics."""
    inputs = [(BOUND, topic) for topic in host.domain.sources] + [(RELEASE, host.settings.contributions)]
    for stage, topic in inputs:
        name, count = host.settings.changelog(stage, topic), partitions[topic]
        changelog = app.topic(
            name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw",
            partitions=count, compacting=stage == RELEASE,
        )  # fmt: skip
        table = StateTable(app, name=name, partitions=count, changelog_topic=changelog)
        table.host, table.stage, table.topic = host, stage, topic
        app.tables.add(table)
