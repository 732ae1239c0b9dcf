"""The closing of slots: their cells' releases, one after the other, in pieces.

A slot may have thousands of cells, and takes seconds. So a transaction may end between two cells: what waits for the
slot is in the changelog until the last one is released, and the state says which cell was the last. A successor
computes the slot again, which is the same slot, and goes on behind that cell.
"""

from collections.abc import Iterable, Iterator

import orjson

from shoal.mechanisms.slot.statistic import CellRelease, Slotted
from shoal.mechanisms.statistic import Contribution
from shoal.stream.topic import Metric

REACHED = b"s"  # first byte of names in the changelog


class Closings:
    """The slots that are being closed, at most one of each metric, and how far they have got."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, Iterator[CellRelease | None]]] = {}  # by label: slot, releases to come
        self._reached: dict[str, tuple[int, str]] = {}  # by label: slot and last cell that was released

    def __contains__(self, label: str) -> bool:
        return label in self._open

    def begin(self, metric: Metric, slot: int, contributions: Iterable[Contribution]) -> None:
        """A slot is over; its contributions are in canonical order."""
        statistic = metric.parameters
        if not isinstance(statistic, Slotted):
            raise TypeError(f"metric {metric.label} has no slots")
        before, cell = self._reached.get(metric.label, (None, ""))
        after = cell if before == slot else None
        self._open[metric.label] = slot, statistic.cells(metric.key, slot, contributions, after)

    def go_on(self, label: str) -> tuple[int, CellRelease | None]:
        """Slot, and the next cell's release if it is ready; if there is none to come, the label is in here no more."""
        slot, releases = self._open[label]
        for release in releases:
            if release is not None:
                self._reached[label] = slot, release.cell
            return slot, release
        del self._open[label]
        return slot, None

    def restore(self, label: str, value: bytes) -> None:
        """Take over what the changelog has."""
        slot, cell = orjson.loads(value)
        self._reached[label] = slot, cell

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """For the changelog: how far what is open has got."""
        for label in self._open:
            if label in self._reached:
                yield REACHED + orjson.dumps([label]), orjson.dumps(self._reached[label])
