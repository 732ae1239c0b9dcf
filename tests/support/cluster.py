"""Three brokers that are one cluster, with what tests do to them: kill, freeze, restart, ask who leads.

Replication 3, and a write needs two of them. All on one machine, in processes of their own. They may be of another
version of Kafka than the pinned one: its jars are then resolved by jgo, from a Maven repository, once.
"""

import asyncio
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from shoal.agents.broker import jars, process
from shoal.agents.broker.process import HOST, LOGGING, READY, free_port
from shoal.mechanisms.parts.lengths import Even
from shoal.models.records import CLOCK_HEADER
from shoal.models.times import iso
from shoal.stream.partitioning import PARTITIONERS
from tests.support.kafka import Brokers, Kafka
from tests.support.workers import wait_until

HOUR = 3_600_000_000
START_LIMIT = 240.0  # three at once, on a machine that does other things
BESIDE_ONE = """\
node.id={number}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
default.replication.factor={copies}
min.insync.replicas={enough}
offsets.topic.replication.factor={copies}
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={enough}
"""


class Node(Kafka):
    """One of the brokers."""

    def __init__(self, cluster: "Cluster", number: int, folder: Path) -> None:
        super().__init__(data=folder)
        self.number, self.controller, self._cluster = number, free_port(), cluster
        folder.mkdir(parents=True)

    def _configure(self) -> None:
        settings = "".join(f"{name}={value}\n" for name, value in self._cluster.settings(self).items())
        (self.data / "server.properties").write_text(settings, "utf-8")
        (self.data / "log4j2.properties").write_text(LOGGING, "ascii")
        self.log.touch()

    def _cluster_id(self) -> str:
        return self._cluster.id

    def _java(self, main: str, *options: str) -> list[str]:
        if options[:1] == ("format",):
            options = ("format", *self._cluster.format_options(), *options[1:])
        command = super()._java(main, *options)
        if self._cluster.version != jars.VERSION:
            command[command.index("-cp") + 1] = class_path(self._cluster.version)
        return command

    def _wait_until_ready(self) -> None:
        """Three brokers that start at once take longer than one."""
        wait_until(lambda: self._serves() or self.pid is None, START_LIMIT, self.log.read_text)

    def _serves(self) -> bool:
        """Other versions log through other libraries, and say nothing here: those are asked for topics."""
        if self._cluster.version == jars.VERSION:
            return READY in self.log.read_bytes()[self._offset :]
        try:
            return bool(asyncio.run(_nodes(self.bootstrap)))
        except (KafkaError, TimeoutError, OSError):
            return False


class Cluster(Brokers):
    """Three of them; as a context manager they start on entry, all at once, and go on exit."""

    def __init__(self, folder: Path, size: int = 3, version: str = jars.VERSION) -> None:
        self.version = version
        self.id = "A" + uuid.uuid4().hex[:21]  # no option of a command line begins so
        self.replication = size
        self.nodes = [Node(self, number, folder / f"broker-{number}") for number in range(1, size + 1)]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    def settings(self, node: Node) -> dict[str, str]:
        """A broker's settings: those of a single one, but for what makes it one of three."""
        single = process.SERVER.substitute(host=HOST, port=node.port, controller=node.controller, data=node.data)
        voters = ",".join(f"{one.number}@{HOST}:{one.controller}" for one in self.nodes)
        size = len(self.nodes)
        beside = BESIDE_ONE.format(
            number=node.number, voters=voters, host=HOST, port=node.port, controller=node.controller,
            copies=size, enough=max(1, size - 1),
        )  # fmt: skip
        return dict(line.split("=", 1) for line in (single + beside).splitlines())

    def format_options(self) -> Sequence[str]:
        """What is to be in the cluster from its beginning."""
        return ()

    # -- what is done to them

    def start(self, *nodes: Node) -> None:
        """Start these, or all, at once; return when each serves."""
        threads = [threading.Thread(target=node.start) for node in nodes or self.nodes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(node.pid for node in nodes or self.nodes), [node.log.read_text()[-2000:] for node in self.nodes]

    def kill(self, *nodes: Node) -> None:
        """SIGKILL these, or all."""
        for node in nodes or self.nodes:
            node.kill()

    def wait_in_sync(self, limit: float = 120.0) -> None:
        """Until every partition has a leader and all its replicas."""
        found: list[Any] = []

        def whole() -> bool:
            found[:] = [state for state in self._partitions() if state[1] < 0 or state[2] < self.replication]
            return not found

        wait_until(whole, limit, lambda: f"not in sync: {found[:5]}", every=0.5)

    def leader_of_most(self) -> Node:
        """The broker that leads most partitions."""
        count = Counter(leader for _, leader, _ in self._partitions())
        return max(self.nodes, key=lambda node: count[node.number])

    def active_controller(self) -> Node:
        """The broker that is the quorum's leader, by its own log of elections."""
        elected = {node.number: (node.data / "log" / "__cluster_metadata-0" / "quorum-state") for node in self.nodes}
        states = [orjson.loads(path.read_bytes()) for path in elected.values() if path.exists()]
        latest = max(states, key=lambda state: int(state["leaderEpoch"]))
        return self.nodes[int(latest["leaderId"]) - 1]

    def _partitions(self) -> list[tuple[str, int, int]]:
        """Of each partition: topic, leader, replicas in sync."""
        try:
            return asyncio.run(_partitions(self.bootstrap))
        except (KafkaError, TimeoutError, OSError):
            return [("unknown", -1, 0)]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()


@cache
def class_path(version: str) -> str:
    """Java's class path of a version of Kafka that is not pinned."""
    import jgo  # only a test of other versions needs it

    return os.pathsep.join(
        str(artifact.resolve()) for artifact in jgo.resolve(f"org.apache.kafka:kafka_2.13:{version}")
    )


async def _nodes(bootstrap: str) -> list[Any]:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=5_000)
    await client.start()
    try:
        return list((await client.describe_cluster())["brokers"])
    finally:
        await client.close()


async def _partitions(bootstrap: str) -> list[tuple[str, int, int]]:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=5_000)
    await client.start()
    try:
        topics = [topic for topic in await client.describe_topics() if not topic["topic"].startswith("__share")]
    finally:
        await client.close()
    return [(topic["topic"], one["leader"], len(one["isr"])) for topic in topics for one in topic["partitions"]]


class Stream:
    """Sends events to their users' partitions at a steady pace, through whatever happens, and the end at last."""

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        events: Sequence[bytes],
        partitions: int,
        seconds: float,
        hours: int = 24,
        kept: int = 0,
        **client: Any,
    ) -> None:
        """`hours` is the longest tick or step of a metric: the end closes the last one. `client` is for aiokafka.

        So many events are kept until `send_rest`.
        """
        self._kept, self._rest = len(events) - kept, threading.Event()
        self._topic, self._events, self._partitions = topic, events, partitions
        self._client = {"bootstrap_servers": brokers.bootstrap} | client
        self._pause, self._tick = seconds / len(events), hours * HOUR
        self.sent = 0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="stream", daemon=True)
        self._thread.start()

    def send_rest(self) -> None:
        """Send what was kept too, at the same pace."""
        self._rest.set()

    def join(self) -> None:
        """Wait until all is stored."""
        self.send_rest()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            asyncio.run(self._send())
        except BaseException as error:
            self._error = error

    async def _send(self) -> None:
        home, waiting, began = PARTITIONERS["murmur2"], [], time.monotonic()
        producer = AIOKafkaProducer(enable_idempotence=True, linger_ms=20, request_timeout_ms=300_000, **self._client)
        await producer.start()
        for event in self._events:
            if self.sent == self._kept:
                while not self._rest.is_set():
                    await asyncio.sleep(0.05)
                began = time.monotonic() - self.sent * self._pause
            user = orjson.loads(event)["who"].encode()
            partition = home(user, self._partitions)
            waiting.append(await producer.send(self._topic, event, user, partition=partition))
            self.sent += 1
            await asyncio.sleep(max(0.0, began + self.sent * self._pause - time.monotonic()))
        await asyncio.gather(*waiting)
        end = [(CLOCK_HEADER, iso(Even(self._tick).end_after(self._latest(self._events))).encode())]
        for partition in range(self._partitions):
            await producer.send_and_wait(self._topic, None, b"", partition=partition, headers=end)
        await producer.stop()

    def _latest(self, events: Iterable[bytes]) -> int:
        return max(int(orjson.loads(event)["at"]) for event in events) * 1_000_000
