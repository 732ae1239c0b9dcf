"""Bars of `make bench-live`: what a waiting worker may cost at most, and how late its releases may be.

A bar fails if it is missed by more than a quarter, because figures of one machine scatter by that. A row that other
programs disturbed cannot fail.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.live.costs import BESIDE, MOST_BESIDE
from benchmarks.live.rows import EACH_SECOND, HOURLY, Row

TOLERANCE = 1.25
QUANTITIES = {
    "worker": "cores of the worker",
    "beyond": "cores of the broker beyond the producer's",
    "p99": "seconds until a release is readable (p99)",
    "bytes_an_event": "bytes of contributions for each event",
}

Result = Mapping[str, Any]


@dataclass(frozen=True)
class Bar:
    """The most that a quantity may be in the rows that it is about."""

    quantity: str
    most: float
    partitions: int
    rate: int
    every: str
    latency: str = "1s"

    def is_about(self, row: Row) -> bool:
        """Whether the bar holds for a row, whichever its algorithm."""
        its = (row.partitions, row.rate, row.every, row.latency)
        return its == (self.partitions, self.rate, self.every, self.latency)


BARS = (
    Bar("worker", 0.1, 8, 1_000, HOURLY),
    Bar("beyond", 0.1, 8, 1_000, HOURLY),
    Bar("bytes_an_event", 40.0, 8, 1_000, HOURLY),
    Bar("worker", 0.05, 8, 0, HOURLY),
    Bar("worker", 0.05, 128, 0, HOURLY),
    Bar("worker", 0.25, 128, 1_000, HOURLY),
    Bar("worker", 0.1, 8, 1_000, EACH_SECOND),
    Bar("p99", 1.0, 8, 1_000, EACH_SECOND),
    Bar("p99", 0.2, 8, 1_000, EACH_SECOND, "200ms"),
    Bar("p99", 1.0, 32, 1_000, EACH_SECOND),
)


class Judgement(NamedTuple):
    """A bar and what was found in one of its rows."""

    bar: Bar
    row: Row
    result: Result

    @property
    def value(self) -> float | None:
        """The quantity; None if the row failed."""
        return self.result.get(self.bar.quantity)

    @property
    def is_met(self) -> bool:
        """Whether the quantity is at most the bar."""
        return self.value is not None and self.value <= self.bar.most

    @property
    def fails(self) -> bool:
        """Whether the benchmark must fail because of the bar."""
        if self.value is None:
            return True
        return self.value > TOLERANCE * self.bar.most and not is_disturbed(self.result)

    @property
    def sentence(self) -> str:
        """The bar that is missed, in a sentence."""
        if self.value is None:
            return f"{self.row.label}: not measured: {self.result.get('failed')}"
        name = QUANTITIES[self.bar.quantity]
        return f"{self.row.label}: {self.value:.3g} {name}, more than a quarter above the bar of {self.bar.most:g}"


def is_disturbed(result: Result) -> bool:
    """Whether other programs took so much that the row does not count."""
    return float(result.get(BESIDE, 0.0)) > MOST_BESIDE


def judged(rows: Sequence[tuple[Row, Result]]) -> Iterator[Judgement]:
    """Every bar with each of its rows that were measured."""
    for bar in BARS:
        for row, result in rows:
            if bar.is_about(row):
                yield Judgement(bar, row, result)
