"""The table `[kafka]`: brokers, names, and the time within which releases are to be readable."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from shoal.models.config.addresses import addresses_of
from shoal.models.config.durations import MILLISECOND, SECOND
from shoal.models.config.section import Duration, Section, ShortDuration

LATENCIES = 50 * MILLISECOND, 60 * SECOND


class KafkaSection(Section):
    """`[kafka]`: brokers, names and how events are partitioned."""

    brokers: str = Field("localhost:9092", description="bootstrap servers, HOST:PORT with commas between them")
    app: str = Field("shoal", pattern=r"^[a-zA-Z0-9._-]+$", description="names the consumer group and the topics")
    partitioner: Literal["murmur2", "crc32"] = Field("murmur2", description="how producers map a user to a partition")
    partitions: int = Field(8, ge=1, le=1024, description="partitions of contributions and releases; frozen once used")
    replication: int = Field(-1, ge=-1, description="of the topics that shoal creates; -1: the broker's default")
    idle_after: Duration = Field(30_000_000, description="a source partition silent this long stops holding up ticks")
    latency: ShortDuration | None = Field(
        None,
        description="time within which a release is readable after its tick has ended; none: a tenth of the shortest "
        "tick, at least 200ms and at most 1s",
    )
    dead_letters: bool = Field(True, description="false: refused records are only counted")
    compacted: tuple[str, ...] = Field(
        (), description="source topics that are read though they are compacted; any other one is refused"
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="how clients connect to the brokers"
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field("PLAIN", description="SASL mechanism")
    sasl_username: str | None = Field(None, description="SASL user name")
    sasl_password_file: Path | None = Field(None, description="file with the SASL password")
    ssl_cafile: Path | None = Field(None, description="CA certificates")
    ssl_certfile: Path | None = Field(None, description="client certificate")
    ssl_keyfile: Path | None = Field(None, description="client certificate's key")

    @field_validator("brokers")
    @classmethod
    def _has_addresses(cls, value: str) -> str:
        addresses_of(value)
        return value

    @field_validator("idle_after")
    @classmethod
    def _positive(cls, value: int) -> int:
        if value <= 0:
            raise ValueError("must be longer than 0s")
        return value

    @field_validator("latency")
    @classmethod
    def _possible(cls, value: int | None) -> int | None:
        if value is not None and not LATENCIES[0] <= value <= LATENCIES[1]:
            raise ValueError("must be at least 50ms and at most 1m")
        return value


def default_latency(cadence: int) -> int:
    """The latency of a configuration that names none, by its shortest tick; both in microseconds.

    >>> default_latency(0), default_latency(5_000_000), default_latency(3600_000_000)
    (200000, 500000, 1000000)
    """
    return min(SECOND, max(200 * MILLISECOND, cadence // 10))
