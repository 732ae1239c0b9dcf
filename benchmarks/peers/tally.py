"""The job, its result, and the times at which quarters of it are done, as lines of JSON; for programs in Python.

Knows nothing of shoal, for it is imported in the environments of other systems.
"""

import json
import sys
import time
from typing import Any

CAP, LEAST, MOST = 64, 0.0, 100.0
QUARTERS = 4


class Tally:
    """Counts events, and what of them counts."""

    __slots__ = ("_counted", "_events", "_due", "_total", "seen")

    def __init__(self, events: int) -> None:
        self._events = events
        self.seen = 0
        self._due = 1
        self._counted, self._total = 0, 0.0

    @property
    def is_done(self) -> bool:
        """Whether all events were seen."""
        return self.seen >= self._events

    def add(self, count: int, total: float, value: float) -> tuple[int, float] | None:
        """A user's new state; None if the sample does not count. Called once for each event.

        >>> tally = Tally(8)
        >>> tally._due = -1  # nothing is printed
        >>> tally.add(0, 0.0, 5.0), tally.add(63, 5.0, 250.0), tally.add(64, 105.0, 1.0)
        ((1, 5.0), (64, 105.0), None)
        """
        self.seen += 1
        if self.seen == self._due:
            self.mark(self.seen)
            self._due += self._events // QUARTERS - (self._due == 1)
        if count >= CAP:
            return None
        value = LEAST if value < LEAST else min(value, MOST)
        self._counted += 1
        self._total += value
        return count + 1, total + value

    def mark(self, events: int, **more: Any) -> None:
        """Say how much time and processor time have passed when so many events were seen."""
        said = {"events": events, "seconds": time.perf_counter(), "cpu": time.process_time()} | more
        print("\n" + json.dumps(said), file=sys.__stdout__, flush=True)

    def done(self, **more: Any) -> None:
        """Say that all is done, and durable."""
        self.mark(self.seen, done=True, counted=self._counted, total=self._total, **more)
