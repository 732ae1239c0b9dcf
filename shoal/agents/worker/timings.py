"""How long transactions and restores have taken since the worker started, and when each stage last wrote output.

Durations are those of requests to Kafka, rounded up to hundredths of a second, so that little shows of what is computed
meanwhile: how long that takes may depend on values (docs/explanation/known-limits.md). Where presence is protected, no
durations are shown, since the number of transactions and the size of what is restored tell how many events there are.
"""

import math
import time
from collections import Counter
from collections.abc import Callable
from itertools import accumulate

from shoal.agents.kafka.settings import AUDIT, BOUND, RELEASE, KafkaSettings
from shoal.stream.machine import Outbox, StagePartition

TRANSACTIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # one is given up after 20 seconds
RESTORES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


class Histogram:
    """Durations, counted in buckets.

    >>> histogram = Histogram((0.1, 1.0))
    >>> for seconds in (0.001, 0.1, 0.5, 7):
    ...     histogram.add(seconds)
    >>> histogram.buckets(), histogram.total
    ([('0.1', 2), ('1.0', 3), ('+Inf', 4)], 7.61)
    """

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = (*bounds, math.inf)
        self._counts = [0] * len(self._bounds)
        self._hundredths = 0

    def add(self, seconds: float) -> None:
        hundredths = math.ceil(seconds * 100)
        self._hundredths += hundredths
        self._counts[next(n for n, bound in enumerate(self._bounds) if hundredths <= bound * 100)] += 1

    def buckets(self) -> list[tuple[str, int]]:
        """Each bound as Prometheus writes it, and how many durations are not above it."""
        names = ("+Inf" if math.isinf(bound) else str(bound) for bound in self._bounds)
        return list(zip(names, accumulate(self._counts), strict=True))

    @property
    def total(self) -> float:
        """The sum of all durations as they were rounded, in seconds."""
        return self._hundredths / 100


class Timings:
    """What one worker did, and when."""

    def __init__(self, settings: KafkaSettings, wall: Callable[[], float] = time.time) -> None:
        self._settings, self._wall = settings, wall
        self.transactions = {stage: Histogram(TRANSACTIONS) for stage in (BOUND, RELEASE)}
        self.given_up: Counter[str] = Counter()  # by stage
        self.restores = Histogram(RESTORES)
        self.last_output: dict[str, float] = {}  # by stage, in seconds since 1970

    def committed(self, partition: StagePartition, outbox: Outbox, seconds: float) -> None:
        """Note a transaction. Contributions are the output of bound, releases that of release."""
        self.transactions[partition.stage].add(seconds)
        topic = self._settings.contributions if partition.stage == BOUND else self._settings.releases
        if any(target == topic for target, _ in outbox.records):
            self.last_output[partition.stage] = self._wall()

    def delivered(self) -> None:
        """Note that the audit log has taken something."""
        self.last_output[AUDIT] = self._wall()
