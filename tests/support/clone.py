"""What an app left in Kafka and SQL, again under another name, so that a test can tamper with any byte of it.

A clone's topics hold the same records without transactions, hence at other offsets; its marks say so. Its log is a
copy of the SQLite file. The events stay where they are: they are read by both.
"""

import asyncio
import shutil
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.support.deployment import Deployment

MARK = b"\x00mark"
Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]


class Original:
    """All committed records of a deployment's own topics, read once."""

    def __init__(self, deployment: Deployment, sources: dict[str, int], homes: int) -> None:
        self.deployment, self.sources, self.homes = deployment, sources, homes
        counts = {f"bound.{deployment.topic(name)}.changelog": count for name, count in sources.items()}
        self.counts = counts | dict.fromkeys(("contributions", "releases", "activations", "release.changelog"), homes)
        self.records = asyncio.run(_read(deployment, self.counts))


class Clone:
    """A copy in the making: change `records`, `marks` and `config`, then `publish`, then tamper with `log`."""

    def __init__(self, original: Original, folder: Path) -> None:
        self.original, self.folder = original, folder
        self.app = original.deployment.kafka.name("clone")
        self.records = {log: list(records) for log, records in original.records.items() if "changelog" not in log[0]}
        self.marks = {log: _mark(records) for log, records in original.records.items() if "changelog" in log[0]}
        self.config = folder / "shoal.toml"
        self.config.write_text(original.deployment.config.read_text().replace(original.deployment.app, self.app))
        for name in original.sources:
            self.change_config(f"{self.app}-{name}", original.deployment.topic(name))
        shutil.copy(original.deployment.key, folder)
        for file in original.deployment.folder.glob("shoal.db*"):
            shutil.copy(file, folder)
        for table in ("metric_version", "owner", "partition_count", "release", "activation"):
            self.log(f"UPDATE {table} SET app = ?", self.app)
        old, new = f"{original.deployment.app}.contributions", f"{self.app}.contributions"
        self.log("UPDATE partition_count SET topic = ? WHERE topic = ?", new, old)

    def change_config(self, old: str, new: str) -> None:
        text = self.config.read_text()
        assert old in text
        self.config.write_text(text.replace(old, new))

    def log(self, statement: str, *values: object) -> int:
        """Change the audit log; how many rows."""
        with sqlite3.connect(self.folder / "shoal.db") as connection:
            return connection.execute(statement, values).rowcount

    def rows(self, query: str) -> list[Any]:
        with sqlite3.connect(self.folder / "shoal.db") as connection:
            return connection.execute(query).fetchall()

    def contribution(self, home: int, number: int) -> dict[str, Any]:
        """A message, as JSON; write it back with `put_contribution`."""
        found: dict[str, Any] = orjson.loads(self.records["contributions", home][number][1] or b"")
        return found

    def put_contribution(self, home: int, number: int, message: dict[str, Any]) -> None:
        self.records["contributions", home][number] = (None, orjson.dumps(message), [])

    def publish(self) -> None:
        """Write it to Kafka."""
        for (name, p), mark in self.marks.items():
            if name == "release.changelog" and mark:
                mark["offset"] += len(self.records["contributions", p])
        asyncio.run(self._write())

    async def _write(self) -> None:
        bootstrap = self.original.deployment.kafka.bootstrap
        admin, producer = (
            AIOKafkaAdminClient(bootstrap_servers=bootstrap),
            AIOKafkaProducer(bootstrap_servers=bootstrap),
        )
        await asyncio.gather(admin.start(), producer.start())
        try:
            topics = [NewTopic(f"{self.app}.{name}", count, 1) for name, count in self.original.counts.items()]
            assert all(code == 0 for _, code, *_ in (await admin.create_topics(topics)).topic_errors)
            marks: dict[tuple[str, int], list[Record]] = {
                log: [(MARK, orjson.dumps(mark), [])] for log, mark in self.marks.items() if mark
            }
            sent = [
                await producer.send(f"{self.app}.{name}", value, key, p, headers=headers)
                for (name, p), records in (self.records | marks).items()
                for key, value, headers in records
            ]
            await asyncio.gather(*sent)
        finally:
            await asyncio.gather(admin.close(), producer.stop())


def _mark(changelog: list[Record]) -> dict[str, Any]:
    """The last one; a release mark's offset becomes the distance to the end of the contributions."""
    mark: dict[str, Any] = orjson.loads(changelog[-1][1] or b"{}") if changelog else {}
    if "count" in mark:
        mark["offset"] = 0
    return mark


async def _read(deployment: Deployment, counts: dict[str, int]) -> dict[tuple[str, int], list[Record]]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=deployment.kafka.bootstrap, isolation_level="read_committed", enable_auto_commit=False
    )
    await consumer.start()
    try:
        names = {
            TopicPartition(f"{deployment.app}.{n}", p): (n, p) for n, count in counts.items() for p in range(count)
        }
        consumer.assign(list(names))
        await consumer.seek_to_beginning(*names)
        ends = await consumer.end_offsets(list(names))
        found: dict[tuple[str, int], list[Record]] = defaultdict(list, {log: [] for log in names.values()})
        while any([await consumer.position(tp) < end for tp, end in ends.items()]):
            for tp, records in (await consumer.getmany(timeout_ms=100)).items():
                found[names[tp]] += [(one.key, one.value, list(one.headers)) for one in records]
        return found
    finally:
        await consumer.stop()
