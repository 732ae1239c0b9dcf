"""Beginnings of metrics in one source partition: at an offset, at a beat to come, or anew behind an accepted loss."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from shoal.models.errors import FailStop
from shoal.models.losses import AcceptedLoss
from shoal.stream.event_time import EventClock
from shoal.stream.source.losses import Losses
from shoal.stream.state_mark import lacks, returned, start_of
from shoal.stream.topic import Metric, TopicPlan


class Beginnings:
    """The beginnings of a partition's metrics, which its mark keeps. Metrics are named by their labels."""

    __slots__ = ("_added", "_plan", "_reached", "_retired", "losses", "starts")

    def __init__(self, plan: TopicPlan) -> None:
        self._plan = plan
        self.starts: dict[str, int | None] = {}  # offset of each metric's first record; None: at a beat to come
        self._reached: dict[str, int] = {}  # of a metric that was added: its clock's latest time at its start, if any
        self._retired: list[str] = []  # metrics that had a state here; the log no longer has their accounts
        self._added: Set[str] = frozenset()  # metrics that the restored state did not know
        self.losses = Losses()

    def has_begun(self, metric: Metric) -> bool:
        """Whether records count for a metric, but for those that wait for a beat behind a loss."""
        return self.starts.get(metric.label) is not None

    def begin_at(self, offset: int) -> None:
        """Begin without state, at the partition's first offset.

        Where presence is protected, a metric that was added begins at a beat: whether there is a state depends on load.
        """
        waiting = {metric.label for metric in self._plan.metrics if metric.parts.protects_presence} & self._plan.added
        self.starts = {metric.label: None if metric.label in waiting else offset for metric in self._plan.metrics}

    def lose(self, loss: AcceptedLoss) -> None:
        """Go on behind an accepted loss; called after a restoration."""
        begun = [label for label, start in self.starts.items() if start is not None]
        self.losses.accept(loss, (label for label in begun if label not in self._added))
        self.starts |= {label: loss.place.next for label in begun if label in self._added}

    def adopt(self, where: str, mark: Mapping[str, Any]) -> None:
        """Take up what a mark says.

        Raises:
            FailStop: a metric is new here, and the beat at which it starts has come already.
        """
        known: Mapping[str, int | None] = mark["starts"]
        self.starts = {
            one.label: start_of(where, one.label, one.parts.start, mark, one.parts.source.epoch)
            for one in self._plan.metrics
        }
        self._retired = sorted({*mark.get("retired", ()), *known} - self.starts.keys())
        self._added = self.starts.keys() - known
        self.losses.load(mark)

    def note_reached(self, clocks: Sequence[EventClock], mark: Mapping[str, Any]) -> None:
        """Note how far the clock of each metric that was added had come: as the mark says, or where it is new, now."""
        noted: Mapping[str, int] = mark.get("reached", {})
        for metric in self._plan.metrics:
            label = metric.label
            latest = clocks[metric.clock].latest if label in self._added else noted.get(label)
            if latest is not None and self.has_begun(metric):
                self._reached[label] = latest

    def hear(self, beat: int | None, clocks: Sequence[EventClock], offset: int) -> bool:
        """Take in the beat at an offset, None if no clock took it; whether more counts from now on than before it."""
        counts_more = beat is not None and self.losses.hear(beat)
        for metric in self._plan.metrics:
            latest, start = clocks[metric.clock].latest, metric.parts.start
            if self.starts.get(metric.label, 0) is None and latest is not None and latest >= (start or 0):
                self.starts[metric.label] = offset
                self.losses.begun(metric.label)
                counts_more = True
        return counts_more

    def mark(self) -> dict[str, Any]:
        """What the partition's mark says of them, beside `starts`."""
        return {
            **({"reached": self._reached} if self._reached else {}),
            **self.losses.mark(),
            **({"retired": self._retired} if self._retired else {}),
        }


def check_metrics(where: str, plan: TopicPlan, mark: Mapping[str, Any]) -> None:
    """Check that a mark's metrics are configured or retired, and that none that was retired is configured.

    Raises:
        FailStop: a metric is neither, or both.
    """
    known = {metric.label for metric in plan.metrics} | plan.retired
    for label in mark["starts"]:
        if label not in known:
            raise FailStop(lacks(where, f"metric {label}"))
    for metric in plan.metrics:
        if metric.label in mark.get("retired", ()):
            raise FailStop(returned(where, metric.label))
