"""Accepted losses in one source partition: records that were gone before it read them, and given up by an operator.

Accounts and clocks stay as they are, so records that come again find caps used or periods closed. Reading goes on at
the offset that the loss names. Where presence is protected, that is the end of the topic when the loss was accepted,
and no record counts before the next beat: where a loss ended among the records of others decides nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.models.losses import AcceptedLoss


class Losses:
    """The last accepted loss of a partition, and what follows from all of them."""

    __slots__ = ("gapped", "resumes", "turn")

    def __init__(self) -> None:
        self.turn = 0  # id of the last accepted loss in the ledger; 0 without any
        self.resumes: int | None = None  # in microseconds: no record counts before a beat of this time or a later one
        self.gapped: set[str] = set()  # labels of metrics that had begun before a loss: no audit has all their records

    def load(self, mark: Mapping[str, Any]) -> None:
        """Take up what a mark says."""
        self.turn, self.resumes, self.gapped = mark.get("turn", 0), mark.get("resumes"), {*mark.get("gapped", ())}

    def accept(self, loss: AcceptedLoss, begun: Iterable[str]) -> None:
        """Begin behind a loss; `begun`: labels of the metrics that have begun."""
        self.turn = loss.id
        self.gapped |= {*begun}
        if loss.place.sealed is not None:
            self.resumes = max(loss.place.beat or 0, self.resumes or 0)

    @property
    def is_waiting(self) -> bool:
        """Whether records wait for a beat before they count."""
        return self.resumes is not None

    def begun(self, label: str) -> None:
        """Note that a metric has begun: without all records that follow, if these wait for a beat."""
        if self.is_waiting:
            self.gapped.add(label)

    def hear(self, beat: int) -> bool:
        """Take in the time of a beat; whether records count from now on that did not before it."""
        if self.resumes is None or beat < self.resumes:
            return False
        self.resumes = None
        return True

    def mark(self) -> dict[str, Any]:
        """What the partition's mark says of them; empty without an accepted loss."""
        if not self.turn:
            return {}
        waits = {} if self.resumes is None else {"resumes": self.resumes}
        return {"turn": self.turn, "gapped": sorted(self.gapped), **waits}
