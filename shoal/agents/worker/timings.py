"""How long transactions and restores take, and when each stage last brought something out, since the worker started.

Durations are of what is asked of Kafka, rounded up to hundredths of a second: how long computing takes may depend on
values (docs/explanation/known-limits.md), and shows the less. Where presence is protected they are not shown at all,
for the number of transactions, and what there is to restore, tell how many events there are.
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
        """Each bound as Prometheus writes it, and how many are not above it."""
        names = ("+Inf" if math.isinf(bound) else str(bound) for bound in self._bounds)
        return list(zip(names, accumulate(self._counts), strict=True))

    @property
    def total(self) -> float:
        """All durations together, in seconds; each counts as it was rounded."""
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
        """Note a transaction; output are contributions of the first stage and releases of the second."""
        self.transactions[partition.stage].add(seconds)
        topic = self._settings.contributions if partition.stage == BOUND else self._settings.releases
        if any(target == topic for target, _ in outbox.records):
            self.last_output[partition.stage] = self._wall()

    def delivered(self) -> None:
        """Note that the audit log has taken something."""
        self.last_output[AUDIT] = self._wall()
