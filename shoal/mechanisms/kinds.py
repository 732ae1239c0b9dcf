"""Kind of a metric by the classes of its parts; a kind makes mechanism, accounts and clauses of the guarantee."""

from collections.abc import Iterator
from typing import Protocol

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.at import Slots, Steps
from shoal.mechanisms.parts.hides import AddRemove
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.statistic import Bounder
from shoal.mechanisms.withheld import CountingMean

Mechanism = MeanParameters | Coordinates | CountingMean | LinearStatistic | Slotted


class Kind(Protocol):
    """The properties that all metrics of one kind share."""

    @property
    def apart(self) -> bool:
        """Whether each unit has releases of its own: then losses of several units add up, delta too."""
        ...

    @property
    def shared(self) -> bool:
        """Whether all groups and cells are released together, in one contributions partition."""
        ...

    def of(self, metric: Metric) -> Mechanism:
        """The mechanism of a metric.

        Raises:
            ValueError: it refuses the combination; its message names the parameter.
        """
        ...

    def accounts(self, metric: Metric, bounder: Bounder, site: Site) -> Accounts:
        """Fresh accounts of a metric in one source partition; the bounder is its mechanism's."""
        ...

    def clauses(self, metric: Metric, loss: str) -> Iterator[str]:
        """The guarantee in words; `loss` says whose loss is how large."""
        ...


def kind_of(metric: Metric) -> Kind:
    """Class of statistic that computes a metric, by the classes of the metric's parts."""
    match metric:
        case Metric(hides=AddRemove(), at=Slots()):
            return LinearSlots
        case Metric(at=Slots()):
            return Slotted
        case Metric(hides=AddRemove()) | Metric(at=Steps()):
            return LinearStatistic
        case _:
            return ContinualMean


def statistic_of(metric: Metric) -> Mechanism:
    """Mechanism that computes a metric, made of its parts.

    Raises:
        ValueError: the mechanism refuses the combination; its message names the parameter.
    """
    return kind_of(metric).of(metric)
