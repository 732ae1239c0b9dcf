"""A deployment of shoal in a folder: configuration, key, topics, workers, and what `shoal run` makes of its events.

The oracle is a second folder with the same configuration, a copy of the key and a log of its own. A story ends well if
a read_committed consumer of Kafka sees the oracle's releases, byte for byte and each once, and the SQL log of the
workers holds what the oracle's holds: releases, hash chains and activations.
"""

import asyncio
import itertools
import json
import shutil
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from sqlalchemy import func, select

from shoal.agents.audit import key_file, verify
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import load_config
from shoal.agents.kafka.produce import produce_file
from shoal.agents.kafka.settings import settings_of
from shoal.agents.kafka.topics import verify_topics
from shoal.models.records import CLOCK_HEADER
from shoal.models.tables import ActivationRow, ReleaseRow
from shoal.models.times import iso
from shoal.stream.file_run import Line, line_of
from tests.support import nursery
from tests.support.kafka import Brokers
from tests.support.metric_keys import is_continual_mean, with_usual
from tests.support.workers import PATIENCE, Worker, tails, wait_until

USUAL_METRIC: dict[str, Any] = {
    "topic": "events", "user": "who", "value": "x", "time": "at", "statistic": "mean", "range": [0, 100],
    "epsilon": 1, "max_contributions": 64, "users": 200, "algorithm": "naive", "every": "1h",
}  # fmt: skip
# So much epsilon that the 60 people of `visits` are enough: within 4000 visits it waits for their first blocks, chooses
# a clip range, and opens two octaves. In so wide a range, and with so many visits to come, whatever the key.
SHARP_METRIC: dict[str, Any] = {
    "name": "sharp", "algorithm": "sharp", "every": "1h", "epsilon": 120, "users": 60, "max_contributions": 480,
    "life": "300d", "range": [-400, 500],
}  # fmt: skip
OF_MEANS = ("users", "algorithm", "every")  # what of the usual metric sums and slots have no use for
# A sum and a mean that forget, and a count; silent groups rest after two days.
STEP_METRICS: tuple[dict[str, Any], ...] = (
    {"name": "weekly", "statistic": "sum", "every": "6h", "decay": {"kind": "window", "length": "7d"}, "group": "city",
     "max_gap": 8},
    {"name": "fading", "statistic": "mean", "every": "1h", "decay": {"kind": "exponential", "half_life": "1d"}},
    {"name": "visits", "statistic": "count", "every": "2h", "decay": {"kind": "all-windows"}},
)  # fmt: skip
CHUNK = 250  # events that are sent at once while the world goes on


def completed(metric: Mapping[str, Any]) -> dict[str, Any]:
    """The metric with the usual keys that one of its kind has; a key that is None is not written."""
    lacks = () if is_continual_mean(metric) else OF_MEANS
    return with_usual(metric, {key: value for key, value in USUAL_METRIC.items() if key not in lacks})


def toml(value: Any) -> str:
    """A value as the file has it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


class Deployment:
    """An app of its own on a broker."""

    def __init__(
        self,
        kafka: Brokers,
        folder: Path,
        *metrics: Mapping[str, Any],
        sources: Mapping[str, int] | None = None,
        url: str = "sqlite:///shoal.db",
        epsilon: float = 1000,
        delta: float = 0,
        **kafka_section: Any,
    ) -> None:
        self.kafka, self.folder, self.app = kafka, folder, kafka.name("app")
        self.metrics = [completed({"name": f"m{n}"} | dict(metric)) for n, metric in enumerate(metrics or ({},))]
        self.epsilon, self.delta, self.url, self.kafka_section = epsilon, delta, url, kafka_section
        self.workers: list[Worker] = []
        self.config = folder / "shoal.toml"
        self.key = folder / "shoal.key"
        key_file.new(self.key)
        self.write_config()
        self.oracle = Oracle(self)
        for topic, partitions in (sources or {"events": 4}).items():
            kafka.create_topic(self.topic(topic), partitions, {"retention.ms": "-1"})
        self._threads: list[threading.Thread] = []

    # -- its files

    def topic(self, name: str = "events") -> str:
        """A source topic's real name, which no other test has."""
        return f"{self.app}-{name}"

    def write_config(self, folder: Path | None = None, url: str | None = None) -> None:
        """Write what is in `metrics`, `epsilon`, `delta` and `kafka_section`."""
        sections = [
            ("[kafka]", {"brokers": self.kafka.bootstrap, "app": self.app} | self.kafka_section),
            ("[audit]", {"url": url or self.url}),
            ("[privacy]", {"key_file": "shoal.key", "epsilon": self.epsilon, "delta": self.delta}),
            *(("[[metric]]", metric | {"topic": self.topic(str(metric["topic"]))}) for metric in self.metrics),
        ]
        lines = [
            [head, *(f"{key} = {toml(value)}" for key, value in section.items() if value is not None)]
            for head, section in sections
        ]
        written = (folder or self.folder) / "shoal.toml.new"
        written.write_text("\n".join(line for lines_ in lines for line in lines_) + "\n")
        written.replace(written.with_suffix(""))  # at once, for a thread that produces may be reading it

    # -- its input

    def produce(self, events: Iterable[bytes], topic: str = "events", *, end: bool = False) -> None:
        """Send to the users' partitions, in order; the end closes the last tick."""
        config = load_config(self.config)
        make = line_of if config.protects_presence else Line
        lines = itertools.starmap(make, enumerate(events))
        asyncio.run(produce_file(settings_of(config), config, self.topic(topic), lines, end=end))

    def produce_slowly(
        self, events: Sequence[bytes], seconds: float, topic: str = "events", *, end: bool = True
    ) -> threading.Thread:
        """Send in the background, as the world does, and the end at last unless more is to come."""

        def send() -> None:
            pause = threading.Event()
            for first in range(0, len(events), CHUNK):
                last = first + CHUNK >= len(events)
                self.produce(events[first : first + CHUNK], topic, end=end and last)
                pause.wait(0 if last else seconds * CHUNK / len(events))

        thread = threading.Thread(target=send, name=f"produce {topic}")
        thread.start()
        self._threads.append(thread)
        return thread

    def end(
        self, partitions: Iterable[int], seconds: int, topic: str = "events", *, header: str = CLOCK_HEADER
    ) -> None:
        """A clock record, or a beat, in these partitions: their event time has come so far."""

        async def send() -> None:
            async with AIOKafkaProducer(bootstrap_servers=self.kafka.bootstrap) as producer:
                for partition in partitions:
                    headers = [(header, iso(seconds * 1_000_000).encode())]
                    await producer.send_and_wait(self.topic(topic), None, b"", partition=partition, headers=headers)

        asyncio.run(send())

    def make_anew(self, topic: str) -> None:
        """Delete a topic of two partitions, by its real name, and make it again."""

        async def wait(client: AIOKafkaAdminClient, there: bool) -> None:
            while (topic in await client.list_topics()) is not there:
                await asyncio.sleep(0.05)

        async def again(client: AIOKafkaAdminClient) -> None:
            await client.delete_topics([topic])
            await wait(client, there=False)
            await client.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "-1"})])
            await wait(client, there=True)

        self._administer(again)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        self._administer(lambda client: client.create_partitions({topic: NewPartitions(partitions)}))

    def members(self) -> list[str]:
        """The ids of those who are in the consumer group; an id begins with the instance name of who has one."""
        members: list[str] = []

        async def ask(client: AIOKafkaAdminClient) -> None:
            (answer,) = await client.describe_consumer_groups([self.app])
            for group in answer.groups:
                members.extend(member[0] for member in group[5])

        self._administer(ask)
        return members

    def _administer(self, act: Callable[[AIOKafkaAdminClient], Coroutine[Any, Any, object]]) -> None:
        async def connected() -> None:
            client = AIOKafkaAdminClient(bootstrap_servers=self.kafka.bootstrap)
            await client.start()
            try:
                await act(client)
            finally:
                await client.close()

        asyncio.run(connected())

    def make_topics(self) -> None:
        """The app's own topics, as its first worker would make them."""
        config = load_config(self.config)
        asyncio.run(verify_topics(settings_of(config), config.topics))

    # -- its workers

    def worker(self, instance: str | None = None) -> Worker:
        """Start one; it ends with the deployment at the latest."""
        worker = Worker(self.config, self.folder / f"worker-{len(self.workers)}.log", instance)
        self.workers.append(worker)
        return worker

    def wait_owned(self, *counts: int, limit: float = 90.0) -> None:
        """Until the first workers own so many partitions each."""
        first = self.workers[: len(counts)]

        def shared() -> bool:
            assert all(worker.alive for worker in first), tails(first)
            return tuple(worker.owned for worker in first) == counts

        wait_until(shared, limit, lambda: tails(first))

    def stop_all(self) -> None:
        """Stop those who live, all at once."""
        living = [worker for worker in self.workers if worker.alive]
        for worker in living:
            worker.tell_to_stop()
        for worker in living:
            worker.ends_well()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self.workers:
            worker.end()
        for thread in self._threads:
            thread.join()

    # -- its output

    def releases(self) -> list[bytes]:
        """What a read_committed consumer sees, in the order of a file run."""
        return in_order(read.value for read in self.kafka.read_committed(f"{self.app}.releases") if read.value)

    def dead_letters(self) -> list[dict[str, Any]]:
        read = self.kafka.read_committed(f"{self.app}.dead-letters")
        return [orjson.loads(record.value or b"null") for record in read]

    def wait_releases(self, count: int, limit: float = 120.0) -> None:
        """Until so many are visible."""
        seen: list[int] = [0]

        def enough() -> bool:
            if self.kafka.length(f"{self.app}.releases") < count:  # reading takes longer than asking
                return False
            seen[0] = len(self.kafka.read_committed(f"{self.app}.releases"))
            return seen[0] >= count

        wait_until(enough, limit, lambda: f"{seen[0]} of {count} releases\n{tails(self.workers)}", every=0.3)

    def wait_audited(self, limit: float = 90.0) -> None:
        """Until the SQL log holds what the oracle's holds."""
        expected = sizes(self.oracle.log())
        there: list[int] = []

        def enough() -> bool:
            there[:] = rows(self.config)
            return there == expected

        wait_until(enough, limit, lambda: f"{there} rows of {expected} in SQL\n{tails(self.workers)}", every=0.3)

    def expect_equality(self, limit: float = 120.0) -> None:
        """The end of every story that ends well."""
        expected = self.oracle.releases()
        self.wait_releases(len(expected), limit)
        difference = first_difference(self.releases(), expected)
        assert difference is None, difference
        self.wait_audited()
        assert read_log(self.config) == self.oracle.log(), "SQL holds other rows than the oracle's log"
        with opened_ledger(self.config) as ledger:
            findings = [*verify.verify(ledger), *verify.compare_topic(ledger.of(self.app), self.releases())]
        assert not findings, findings


class Oracle:
    """`shoal run` over the same events, in a folder beside the deployment's."""

    def __init__(self, deployment: Deployment) -> None:
        self.folder = deployment.folder / "oracle"
        self.folder.mkdir()
        self._deployment = deployment
        self._runs: list[nursery.Process] = []

    def run(self, events: Iterable[bytes], topic: str = "events", *, until_end: bool = True) -> None:
        """Start it; it runs beside the workers. Without an end, the last tick stays open."""
        self._finish()  # two topics share a log: one after the other
        if not (self.folder / "shoal.key").exists():
            shutil.copy(self._deployment.key, self.folder)
        self._deployment.write_config(self.folder, url="sqlite:///shoal.db")
        (self.folder / f"{topic}.jsonl").write_bytes(b"".join(event + b"\n" for event in events))
        names = ["--input", f"{topic}.jsonl", "--output", f"{topic}.releases", "--topic", self._deployment.topic(topic)]
        names += ["--dead-letters", f"{topic}.refused"] + ([] if until_end else ["--open"])
        with (self.folder / "log").open("ab") as log:
            self._runs.append(nursery.start("run", "shoal.toml", *names, output=log, cwd=self.folder))

    def forget(self) -> None:
        """Begin anew: another file, another log."""
        self._finish()
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def dead_letters(self) -> list[dict[str, Any]]:
        self._finish()
        lines = (line for file in self.folder.glob("*.refused") for line in file.read_bytes().splitlines())
        return [orjson.loads(line) for line in lines]

    def _finish(self) -> None:
        for run in self._runs:
            assert run.wait(120 * PATIENCE) == 0, (self.folder / "log").read_text()

    def releases(self) -> list[bytes]:
        self._finish()
        files = sorted(self.folder.glob("*.releases"))
        return in_order(line for file in files for line in file.read_bytes().splitlines())

    def log(self) -> tuple[list[Any], list[Any]]:
        self._finish()
        return read_log(self.folder / "shoal.toml")


@contextmanager
def opened_ledger(config: Path) -> Iterator[Ledger]:
    with Ledger.open(load_config(config).audit.url) as ledger:
        yield ledger


def read_log(config: Path) -> tuple[list[Any], list[Any]]:
    """Releases with their hashes, and activations, as SQL has them."""
    with opened_ledger(config) as ledger, ledger.database.read() as connection:
        r, a = ReleaseRow, ActivationRow
        releases = select(r.app, r.metric, r.version, r.group, r.seq, r.id, r.at, r.body, r.previous_hash, r.hash)
        activations = select(a.app, a.metric, a.version, a.group, a.level, a.at, a.prior, a.body)
        return sorted(map(tuple, connection.execute(releases))), sorted(map(tuple, connection.execute(activations)))


def rows(config: Path) -> list[int]:
    """Sizes of the same, which the database counts."""
    with opened_ledger(config) as ledger, ledger.database.read() as connection:
        return [
            connection.scalar(select(func.count()).select_from(table)) or 0 for table in (ReleaseRow, ActivationRow)
        ]


def sizes(log: tuple[list[Any], list[Any]]) -> list[int]:
    return [len(part) for part in log]


def in_order(releases: Iterable[bytes]) -> list[bytes]:
    """By time, metric, group and seq."""

    def place(release: bytes) -> tuple[str, str, str, int]:
        found = orjson.loads(release)
        return found["at"], found["metric"], found["group"] or "", found["seq"]

    return sorted(releases, key=place)


def first_difference(found: list[bytes], expected: list[bytes]) -> str | None:
    """Where two lists of releases part, in a line; None if they are the same bytes."""
    for number, (one, other) in enumerate(zip(found, expected, strict=False)):
        if one != other:
            return f"release {number} is {one.decode()}, must be {other.decode()}"
    return None if len(found) == len(expected) else f"{len(found)} releases, must be {len(expected)}"
