"""The kinds of statistics there are: the one place that asks which of them a metric is.

A statistic is everything public about what is released. Its kind says what a metric's keys mean; `of` makes from them
the mechanism, with a unit's side and the statistic's.
"""

from collections.abc import Iterator
from typing import Any, Protocol

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.decayed_sum.statistic import Stepped
from shoal.mechanisms.decayed_variance.statistic import DecayedVariance
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.spec import VALUES, Spec
from shoal.mechanisms.statistic import Bounder
from shoal.mechanisms.two_sided.per_slot.statistic import SidedSlots
from shoal.mechanisms.two_sided.statistic import TwoSided
from shoal.mechanisms.withheld import CountingMean

Mechanism = MeanParameters | Coordinates | CountingMean | Stepped | DecayedVariance | Slotted | TwoSided | SidedSlots


class Kind(Protocol):
    """The properties that all metrics of one kind share."""

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of its statistics in configurations."""
        ...

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The names of its algorithms in configurations."""
        ...

    @property
    def relation(self) -> str:
        """The relation of its metrics."""
        ...

    @property
    def apart(self) -> bool:
        """Whether each unit has releases of its own: then losses of several units add up, delta too."""
        ...

    @property
    def shared(self) -> bool:
        """Whether all groups and cells are released together, in one contributions partition."""
        ...

    def defaults(self, statistic: str) -> dict[str, Any]:
        """The defaults of keys that differ from those of other statistics."""
        ...

    def takes(self, spec: Spec) -> bool:
        """Whether a metric of its relation is one of its own."""
        ...

    def check(self, spec: Spec) -> None:
        """Refuse keys that are missing, not for it, or contradict one another.

        Raises:
            ValueError: the key, what is wrong, and the remedy.
        """
        ...

    def of(self, spec: Spec) -> Mechanism:
        """The mechanism that the keys ask for; they were checked.

        Raises:
            ValueError: it refuses the combination; its message names the parameter.
        """
        ...

    def accounts(self, spec: Spec, bounder: Bounder, site: Site) -> Accounts:
        """Fresh accounts of a metric in one source partition; the bounder is its mechanism's."""
        ...

    def is_clamped(self, spec: Spec) -> bool:
        """Whether the published value lies between known ends."""
        ...

    def clauses(self, spec: Spec, loss: str) -> Iterator[str]:
        """The guarantee in words; `loss` says whose loss is how large."""
        ...


KINDS: tuple[Kind, ...] = (SidedSlots, TwoSided, DecayedVariance, Slotted, Stepped, ContinualMean)
# Their names, the oldest kind's first.
STATISTICS = tuple(dict.fromkeys(name for kind in reversed(KINDS) for name in kind.statistics))
ALGORITHMS = tuple(dict.fromkeys(name for kind in reversed(KINDS) for name in kind.algorithms))


def kind_of(spec: Spec) -> Kind:
    """The kind of a metric.

    Raises:
        ValueError: its statistic is for another relation.
    """
    for kind in KINDS:
        if kind.relation == spec.relation and kind.takes(spec):
            return kind
    relation = next(kind.relation for kind in KINDS if spec.statistic in kind.statistics)
    raise ValueError(f"statistic {spec.statistic} is for relation {relation}; say so, or choose another")


def statistic_of(spec: Spec) -> Mechanism:
    """The mechanism that the keys of a metric ask for.

    Raises:
        ValueError: the mechanism refuses the combination; its message names the parameter.
    """
    return kind_of(spec).of(spec)


def defaults_of(statistic: object, relation: object = VALUES) -> dict[str, Any]:
    """The defaults of a statistic's keys, where they are its own; empty for a name that no statistic has."""
    kinds = (kind for kind in KINDS if statistic in kind.statistics and kind.relation == relation)
    own = (kind.defaults(str(statistic)) for kind in kinds)
    return {key: value for defaults in own for key, value in defaults.items()}
