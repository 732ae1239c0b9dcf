"""A place with releases, and how long the slots and windows of its metrics are."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shoal.models.version import VersionId

if TYPE_CHECKING:  # a file is read without them
    from shoal.agents.kafka.settings import KafkaSettings
    from shoal.mechanisms.parts.metric import Metric

MetricOf = Callable[[str, int], "Metric | None"]
Found = tuple[str, bytes | None]  # the place of a record, for errors, and its bytes


@dataclass(frozen=True)
class Source:
    """A place with releases, and what is known about its metrics beside them."""

    name: str
    records: Callable[[], Iterator[Found]]
    app: str = ""  # "" where it is not known, as of a file
    lengths: Mapping[VersionId, int] = field(default_factory=dict)  # of slots and windows, in microseconds
    metrics: "Mapping[VersionId, Metric]" = field(default_factory=dict)  # of a configuration
    settings: "KafkaSettings | None" = None  # of a topic
    topic: str = ""
    begun: Callable[[], Iterator[Found]] | None = None  # activations, where they are apart from releases
    strict: bool = True  # whether what is no release is an error; others may write into a topic

    def length_of(self, metric: str, version: int) -> int | None:
        """Length of a metric's slots or windows, in microseconds."""
        return self.lengths.get(VersionId(self.app, metric, version))

    def metric_of(self, metric: str, version: int) -> "Metric | None":
        """A metric of the configuration; None without a configuration, or if it lacks the version."""
        return self.metrics.get(VersionId(self.app, metric, version))


def length_of(metric: "Metric") -> int | None:
    """Length of a slot, or of a window that ends with a release, in microseconds; None if a release is of all time."""
    from shoal.mechanisms.parts.at import Slots, Steps, Window

    if isinstance(metric.at, Slots):
        return metric.at.length.microseconds
    decay = metric.at.decay if isinstance(metric.at, Steps) else None
    return decay.length if isinstance(decay, Window) else None
