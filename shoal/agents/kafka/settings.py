"""The settings of the Kafka layer: brokers, names and the numbers that were measured.

The layer gets plain values, which cannot fail. `settings_of` makes them of a configuration: a secret's file may be
unreadable, and a configuration for file runs names no broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.models.config.addresses import Address, addresses_of
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError
from shoal.stream.machine import StagePartition

BOUND = "bound"
RELEASE = "release"
AUDIT = "audit"
MOST_GATHERED = 10.0  # seconds
TICKS_GATHERED = 10


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Everything about Kafka that is the same for all partitions of an app. Times in seconds."""

    brokers: str
    app: str
    instance: str | None = None  # static membership; unique and stable per worker, or nothing
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)  # TLS and SASL arguments of all clients
    ca_file: str | None = None  # whose certificates are trusted, for error messages; None: the system's
    partitions: int = 8  # of contributions and releases, and of activations and dead letters
    replication: int = -1  # the broker's default
    idle_after: float = 30.0
    compacted: tuple[str, ...] = ()  # source topics that are read though they are compacted
    hides_presence: bool = False  # whether nothing may depend on who is there, not even whether a worker starts

    latency: float = 0.2  # within which a release is to be readable after its tick has ended
    cadence: float = 0.0  # the shortest tick; 0: there are releases per contribution
    # Far behind, where nobody waits for the latest, a transaction gathers `max_records` for up to `patience`: a user
    # who comes twice in it is written once.
    patience: float = 1.0
    max_records: int = 100_000
    max_unflushed: int = 200_000  # records that a partition has processed and not committed
    worker_unflushed: int = 400_000  # and those of all source partitions, unless they are too many for that
    max_batch_bytes: int = 900_000  # brokers refuse batches above 1 MB by default

    # A transaction that is open longer than `transaction_timeout` is aborted by the broker and its producer fenced.
    # So the flush limit, after which a transaction is given up and its partition taken over anew, must stay well below
    # it. A longer timeout would not ride out more, and a worker that dies without successor would hold back
    # read_committed readers for as long.
    transaction_timeout: float = 90.0
    flush_limit: float = 20.0
    request_timeout: float = 120.0  # aiokafka fails a batch that has had no leader for this long

    session_timeout: float = 10.0
    rebalance_timeout: float = 60.0
    fetch_bytes: int = 1 << 20  # of one partition; a broker that has so much answers a fetch at once
    fetch_most: int = 16 << 20  # of all partitions of a broker
    inbox_bytes: int = 48 << 20  # of memory, for what a worker has read and not processed
    poll_records: int = 20_000

    @property
    def fetch_wait(self) -> float:
        """Longest time in seconds for which a broker holds a fetch that has less than `fetch_bytes`.

        Limited by `idle_after`, because deciding that a partition is idle takes four fetches. A partition that has
        just arrived waits for the fetch that is under way, since a client has one at a time from a broker.
        """
        return min(self.latency / 4, self.idle_after / 32)

    @property
    def rest(self) -> float:
        """Shortest pause in seconds between two urgent transactions of a stage partition."""
        return self.latency / 4

    @property
    def gather(self) -> float:
        """Longest time in seconds for which a transaction that nobody waits for gathers records.

        Longer than a tick, at whose end a transaction is awaited anyway. After a crash the successor reads those
        records again.
        """
        return max(self.latency, min(MOST_GATHERED, TICKS_GATHERED * self.cadence))

    @property
    def contributions(self) -> str:
        """The topic from bound to release."""
        return f"{self.app}.contributions"

    @property
    def releases(self) -> str:
        """The topic of what is published."""
        return f"{self.app}.releases"

    @property
    def activations(self) -> str:
        """The topic of what is published once per group, before its first release."""
        return f"{self.app}.activations"

    @property
    def dead_letters(self) -> str:
        """The topic of refused input."""
        return f"{self.app}.dead-letters"

    def stage(self, topic: str) -> str:
        """The stage that reads a topic."""
        if topic == self.contributions:
            return RELEASE
        return AUDIT if topic in (self.releases, self.activations) else BOUND

    def changelog(self, stage: str, topic: str) -> str:
        """The changelog of a stage and its input topic; partition p holds the state of input partition p."""
        return f"{self.app}.{stage}.{topic}.changelog" if stage == BOUND else f"{self.app}.{stage}.changelog"

    def outputs(self, partition: StagePartition) -> list[tuple[str, int]]:
        """Where a stage may write besides its changelog, which others may do too."""
        if partition.stage == RELEASE:
            return [(self.releases, partition.number), (self.activations, partition.number)]
        homes = [(self.contributions, home) for home in range(self.partitions)]
        return [*homes, self.dead_letter_home(partition.number)]

    def dead_letter_home(self, number: int) -> tuple[str, int]:
        """Where a source partition's dead letters go."""
        return self.dead_letters, number % self.partitions

    def transactional_id(self, stage: str, topic: str, partition: int) -> str:
        """A pure and permanent function: a changed id would no longer fence the old owner.

        It ends with a number. Ids of an input topic that end with `b` and a number are reserved for producers that
        several partitions share.
        """
        return f"{self.app}.{stage}.{topic}.{partition}" if stage == BOUND else f"{self.app}.{stage}.{partition}"

    def fetching(self) -> dict[str, int]:
        """Arguments of a consumer that set the sizes of fetches and their longest wait."""
        return {
            "max_partition_fetch_bytes": self.fetch_bytes,
            "fetch_max_bytes": self.fetch_most,
            "fetch_min_bytes": self.fetch_bytes,
            "fetch_max_wait_ms": max(1, int(self.fetch_wait * 1000)),
        }

    def addresses(self) -> list[Address]:
        """Host and port of each configured broker."""
        return addresses_of(self.brokers)

    def connect(self, name: str) -> dict[str, Any]:
        """Arguments that all aiokafka clients have."""
        return {"bootstrap_servers": self.brokers, "client_id": f"{self.app}-{name}", **self.client}


def needed_settings(config: Config, path: Path, *, instance: str | None = None) -> KafkaSettings:
    """The settings, for a command that can do nothing without brokers.

    Raises:
        ConfigError: the configuration names none, or a secret's file cannot be read.
    """
    need_kafka(config, path)
    return settings_of(config, instance=instance)


def need_kafka(config: Config, path: Path) -> None:
    """Refuse a configuration that names no brokers.

    Raises:
        ConfigError: so it is.
    """
    if not config.has_kafka:
        raise ConfigError(
            f"{path}: no [kafka] section, which this command needs; add one with brokers and app, or set "
            "SHOAL_KAFKA_BROKERS"
        )


def settings_of(config: Config, *, instance: str | None = None) -> KafkaSettings:
    """The Kafka layer's settings, TLS and SASL passed through.

    Raises:
        ConfigError: a secret's file cannot be read.
    """
    kafka = config.kafka
    client: dict[str, object] = {}
    if kafka.security_protocol != "PLAINTEXT":
        client["security_protocol"] = kafka.security_protocol
    if kafka.security_protocol.startswith("SASL"):
        client |= {"sasl_mechanism": kafka.sasl_mechanism, "sasl_plain_username": kafka.sasl_username}
        client["sasl_plain_password"] = _password(config)
    if kafka.security_protocol.endswith("SSL"):
        client["ssl_context"] = _ssl_context(config)
    return KafkaSettings(
        brokers=kafka.brokers,
        app=kafka.app,
        instance=instance,
        client=client,
        ca_file=None if kafka.ssl_cafile is None else str(kafka.ssl_cafile),
        partitions=kafka.partitions,
        replication=kafka.replication,
        **times_of(config),
        compacted=kafka.compacted,
        hides_presence=config.protects_presence,
    )


def times_of(config: Config) -> dict[str, Any]:
    """`idle_after`, `latency` and `cadence` of a configuration in seconds, as arguments of `KafkaSettings`."""
    times = {"idle_after": config.kafka.idle_after, "latency": config.latency, "cadence": config.cadence}
    return {name: microseconds / 1e6 for name, microseconds in times.items()}


def _password(config: Config) -> str:
    path = config.kafka.sasl_password_file
    if path is None:
        raise ConfigError("[kafka]: sasl_password_file is missing; name the file that holds the password")
    try:
        return path.read_text("utf-8").rstrip("\n")
    except OSError as error:
        raise ConfigError(f"[kafka] sasl_password_file {path}: cannot be read ({error.strerror})") from None


def _ssl_context(config: Config) -> object:
    from aiokafka.helpers import create_ssl_context

    kafka = config.kafka
    files = {"cafile": kafka.ssl_cafile, "certfile": kafka.ssl_certfile, "keyfile": kafka.ssl_keyfile}
    try:
        return create_ssl_context(**{name: str(path) for name, path in files.items() if path is not None})
    except OSError as error:
        raise ConfigError(f"[kafka]: the TLS files cannot be used ({error.strerror or error})") from None
