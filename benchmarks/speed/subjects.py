"""Who is measured: the raw loop, shoal in both lanes, and other systems; each as a command that does the same job."""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.speed.environments import MissingError, java_of_streams, python_of, versions_of
from benchmarks.workload import configure
from shoal.agents.lane import KERNEL, OFF, ON

PARTITIONS = 4
TOPIC = "events"
RAW, KERNEL_LANE, TWIN_LANE, PEER = "raw loop", "kernel", "twin", "peer"
ALGORITHMS = ("naive", "sharp", "full")


@dataclass(frozen=True)
class Place:
    """Where a run happens."""

    folder: Path
    brokers: str
    users: int
    name: str  # of the run, and of no other

    def arguments(self, events: int) -> list[str]:
        """What the programs of `benchmarks/peers` are given."""
        return [self.brokers, TOPIC, str(PARTITIONS), str(events), mkdtemp(dir=self.folder)]


@dataclass(frozen=True)
class Subject:
    """One line of the table."""

    key: str
    label: str
    kind: str
    command: Callable[[Place, int], list[str]]
    environment: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    limit: float = 300.0  # seconds


def raw() -> Subject:
    """The loop that all rates are compared with."""

    def command(place: Place, events: int) -> list[str]:
        return [sys.executable, "-m", "benchmarks.peers.raw", *place.arguments(events)]

    return Subject("raw", "raw loop: aiokafka, orjson, dict; writes nothing", RAW, command)


def shoal(lane: str, algorithm: str, *, only_bound: bool) -> Subject:
    """A worker of shoal, or its bound alone."""
    part = "bound alone" if only_bound else "whole"

    def command(place: Place, events: int) -> list[str]:
        config = configure(
            place.folder, place.name, brokers=place.brokers, topic=TOPIC, users=place.users, algorithm=algorithm,
            every="1h",
        )  # fmt: skip
        options = ["--only-bound"] if only_bound else []
        return [sys.executable, "-m", "benchmarks.speed.worker", str(config), str(events), *options]

    key = f"{lane}-{'bound' if only_bound else 'whole'}-{algorithm}"
    return Subject(key, f"shoal, {lane}: {part}, `{algorithm}`", lane, command, environment_of(lane))


def environment_of(lane: str) -> dict[str, str]:
    """What makes a worker use a lane."""
    return {KERNEL: ON if lane == KERNEL_LANE else OFF}


def both_lanes() -> list[Subject]:
    """All of shoal that is compared."""
    return [
        shoal(lane, algorithm, only_bound=only_bound)
        for lane in (KERNEL_LANE, TWIN_LANE)
        for only_bound in (True, False)
        for algorithm in ALGORITHMS
    ]


def kernel_is_missing() -> str | None:
    """Why the kernel's lane cannot be measured."""
    found = importlib.util.find_spec("shoal_kernel")
    return None if found else "the kernel is not built: make kernel"


@dataclass(frozen=True)
class Peer:
    """Another system, before it is installed."""

    key: str
    label: str
    lock: str
    packages: tuple[str, ...]
    interpreter: Callable[[], Sequence[str]]
    module: str | None  # in benchmarks/peers, if it is in Python

    def install(self) -> Subject:
        """Make its environment, if it is not there.

        Raises:
            MissingError: it cannot be installed here.
        """
        interpreter = list(self.interpreter())

        def command(place: Place, events: int) -> list[str]:
            start = ["-m", f"benchmarks.peers.{self.module}"] if self.module else []
            return [*interpreter, *start, *place.arguments(events)]

        return Subject(self.key, self.label, PEER, command, versions=versions_of(self.lock, self.packages))


def _python(name: str) -> Callable[[], Sequence[str]]:
    return lambda: python_of(name)


STREAMS = "streams"
PEERS = (
    Peer(
        STREAMS, "Kafka Streams, exactly-once v2, in memory", "kafka-streams",
        ("kafka-streams", "jackson-databind"), java_of_streams, None,
    ),
    Peer(
        "quix", "Quix Streams, exactly-once, RocksDB", "quix", ("quixstreams", "confluent-kafka", "rocksdict"),
        _python("quix"), "quix",
    ),
    Peer(
        "bytewax", "Bytewax, recovery in SQLite every 10 s", "bytewax", ("bytewax", "confluent-kafka", "orjson"),
        _python("bytewax"), "bytewax_flow",
    ),
    Peer(
        "faust", "stock Faust, a table in memory, at least once", "faust", ("faust-streaming", "aiokafka"),
        _python("faust"), "stock_faust",
    ),
)  # fmt: skip


def installed() -> tuple[list[Subject], dict[str, str]]:
    """The peers that are there, and why the others are not."""
    there, missing = [], {}
    for peer in PEERS:
        try:
            there.append(peer.install())
        except MissingError as error:
            missing[peer.label] = str(error)
    return there, missing
