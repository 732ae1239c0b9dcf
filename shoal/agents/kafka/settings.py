"""What the Kafka layer is told: brokers, names and the numbers that were measured.

Plain values; the configuration file is read elsewhere. Nothing here can fail.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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

    # Few large transactions carry more than many small ones: 20,000 records or 0.2 s was the best of a flat field.
    linger: float = 0.2
    max_records: int = 20_000
    max_unflushed: int = 60_000
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
    fetch_wait: float = 0.03  # aiokafka fetches from a node once at a time: this delays a partition that just arrived
    fetch_bytes: int = 1 << 20
    poll_records: int = 20_000

    @property
    def contributions(self) -> str:
        """Topic from bound to release."""
        return f"{self.app}.contributions"

    @property
    def releases(self) -> str:
        """Topic of what is published."""
        return f"{self.app}.releases"

    @property
    def activations(self) -> str:
        """Topic of what is published once per group, before its first release."""
        return f"{self.app}.activations"

    @property
    def dead_letters(self) -> str:
        """Topic of refused input."""
        return f"{self.app}.dead-letters"

    def stage(self, topic: str) -> str:
        """The stage that reads a topic."""
        if topic == self.contributions:
            return RELEASE
        return AUDIT if topic in (self.releases, self.activations) else BOUND

    def changelog(self, stage: str, topic: str) -> str:
        """Changelog topic of a stage and its input topic; partition p holds the state of input partition p."""
        return f"{self.app}.{stage}.{topic}.changelog" if stage == BOUND else f"{self.app}.{stage}.changelog"

    def transactional_id(self, stage: str, topic: str, partition: int) -> str:
        """A pure and permanent function: a changed id would no longer fence the old owner."""
        return f"{self.app}.{stage}.{topic}.{partition}" if stage == BOUND else f"{self.app}.{stage}.{partition}"

    def connect(self, name: str) -> dict[str, Any]:
        """Arguments of any aiokafka client."""
        return {"bootstrap_servers": self.brokers, "client_id": f"{self.app}-{name}", **self.client}


BOUND = "bound"
RELEASE = "release"
AUDIT = "audit"
