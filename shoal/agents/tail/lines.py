"""Which releases are printed: the last of those that are there, or all, then each as it is published."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count

from shoal.agents.tail.words import Columns
from shoal.mechanisms.parts.metric import Metric
from shoal.models.errors import KafkaError
from shoal.models.releases.record import Activation, Release, record_of

Write = Callable[[bytes], None]
Say = Callable[[str], None]
Found = tuple[bytes, Release | Activation]
Place = tuple[int, str, str, bool]  # in the order of what is kept: time, metric, group, what begins before what follows


class Ended(Exception):
    """All that was asked for is printed."""


@dataclass(frozen=True)
class Wanted:
    """What to print, and how."""

    metrics: frozenset[str] = frozenset()  # none: all
    groups: frozenset[str] = frozenset()  # none: all
    last: int | None = None  # of those that are there at first; None: all
    as_json: bool = False
    once: bool = False


class Lines:
    """Prints what a reader reads."""

    def __init__(self, wanted: Wanted, metrics: Mapping[str, Metric], write: Write, say: Say) -> None:
        self._wanted, self._metrics, self._write, self._say = wanted, metrics, write, say
        self._columns = Columns()
        self._kept: list[tuple[Place, int, Found]] = []  # a heap: the earliest is first
        self._numbers = count()
        self._is_away = self._has_noted = False

    def take(self, records: Iterable[bytes | None], *, quiet: bool = False) -> None:
        """Print what is wanted of them; while the past is read, keep the last."""
        for raw in records:
            if (found := self._chosen(raw)) is None:
                continue
            if quiet and self._wanted.last is not None:
                self._keep(found, self._wanted.last)
            else:
                self._print(found)

    def _keep(self, found: Found, most: int) -> None:
        heapq.heappush(self._kept, (_place(found[1]), next(self._numbers), found))
        if len(self._kept) > most:
            heapq.heappop(self._kept)

    def is_read(self) -> None:
        """All that was there at the beginning is read: print the last of it, in order of time.

        Raises:
            Ended: no more was asked for.
        """
        self.back()
        for _, _, found in sorted(self._kept, key=lambda each: each[:2]):
            self._print(found)
        self._kept = []
        if self._wanted.once:
            raise Ended

    def away(self, why: str, *, passes: bool) -> None:
        """Say once that brokers are away.

        Raises:
            KafkaError: something has to be corrected, or nobody wants to wait.
        """
        if not passes or self._wanted.once:
            raise KafkaError(why)
        if not self._is_away:
            self._say(f"shoal: {why}; this goes on when one does")
        self._is_away = True

    def back(self) -> None:
        """Say that it goes on."""
        if self._is_away:
            self._say("shoal: a broker answers again")
        self._is_away = False

    def is_wanted(self, raw: bytes | None) -> bool:
        """Whether it is one to be printed, as far as it goes by what it is."""
        return self._chosen(raw) is not None

    def _chosen(self, raw: bytes | None) -> Found | None:
        record = record_of(raw)
        if raw is None or record is None:
            if not self._has_noted:
                self._say("shoal: note: a record is no release, and left out, as all that are none")
            self._has_noted = True
            return None
        metrics, groups = self._wanted.metrics, self._wanted.groups
        is_wanted = (not metrics or record.metric in metrics) and (not groups or (record.group or "") in groups)
        return (raw, record) if is_wanted else None

    def _print(self, found: Found) -> None:
        raw, record = found
        shown = raw if self._wanted.as_json else self._columns.line(record, self._metrics).encode("utf-8", "replace")
        self._write(shown + b"\n")


def _place(record: Release | Activation) -> Place:
    return record.time, record.metric, record.group or "", isinstance(record, Release)
