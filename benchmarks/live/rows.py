"""Rows of the benchmark: which worker is measured under which load."""

from dataclasses import dataclass

USERS = 200_000
HOURLY, EACH_SECOND, EACH_CONTRIBUTION = "1h", "1s", "contribution"
SECONDS = 12.0  # for which processor time is measured
TICKS = 36.0  # of a full run's rows with ticks of a second, whose p99 needs more of them


@dataclass(frozen=True)
class Row:
    """One worker, the ticks and the latency of its metric, and the events that it gets."""

    partitions: int  # of the source topic
    rate: int  # events a second
    every: str = HOURLY
    latency: str = "1s"  # `[kafka] latency`
    algorithm: str = "naive"
    seconds: float = SECONDS  # for which it is measured

    @property
    def has_latency(self) -> bool:
        """Whether releases come during the measurement, so that their latency can be measured."""
        return self.every != HOURLY

    @property
    def label(self) -> str:
        """The row in a few words.

        >>> Row(8, 1_000).label, Row(8, 1_000, EACH_CONTRIBUTION, "200ms").label
        ('8 partitions, 1,000 events/s, ticks of 1h, latency 1s, naive', '8 partitions, 1,000 events/s, a release per \
contribution, latency 200ms, naive')
        """
        ticks = "a release per contribution" if self.every == EACH_CONTRIBUTION else f"ticks of {self.every}"
        return (
            f"{self.partitions} partitions, {self.rate:,} events/s, {ticks}, latency {self.latency}, {self.algorithm}"
        )


QUICK = (
    Row(8, 0),
    Row(8, 1_000),
    Row(8, 1_000, EACH_SECOND, "1s"),
    Row(8, 1_000, EACH_SECOND, "200ms"),
)
FULL = (
    *(Row(partitions, rate) for partitions in (8, 32, 128) for rate in (0, 100, 1_000, 10_000)),
    Row(8, 1_000, algorithm="sharp"),
    *(
        Row(partitions, 1_000, EACH_SECOND, latency, algorithm, TICKS)
        for partitions in (8, 32)
        for latency in ("1s", "200ms")
        for algorithm in ("naive", "sharp")
    ),
    Row(8, 1_000, EACH_CONTRIBUTION, "200ms"),
)
