"""What k people lose, as a household does: in each metric, and in all that a configuration releases.

People are units of the ledger: where it counts by periods, k people in one period each, or one person in k of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.mechanisms.kinds import kind_of, statistic_of
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.unit import Unit
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.mechanisms.privacy.together import Bound, Part, bounds
from shoal.mechanisms.spec import VALUES
from shoal.models.config.file import Config
from shoal.models.config.unit import most_steps, parse_unit
from shoal.models.loss_words import of_people


@dataclass(frozen=True, slots=True)
class Lost:
    """Upper bounds on the privacy loss of `count` ledger units over a set of metrics."""

    count: int
    unit: Unit
    bounds: tuple[Bound, ...]

    def fields(self) -> dict[str, Any]:
        """JSON, in which every number is rounded up; `also` has further bounds that hold as well."""
        first, *further = (
            {"epsilon": above(loss.epsilon), "delta": above(loss.delta), "by": by} for loss, by in self.bounds
        )
        return {"count": self.count, "unit": self.unit.name, **first, "also": further, "guarantee": self.words()}

    def words(self) -> str:
        """The bounds in a sentence."""
        return of_people(self.unit, self.count, ((loss, by == "zcdp") for loss, by in self.bounds))


def add_people(fields: dict[str, Any], config: Config, count: int) -> None:
    """Add what `count` people lose to the fields of a check: in each metric, and in all of them."""
    unit = parse_unit(config.unit)

    def lost(parts: Sequence[Part]) -> dict[str, Any]:
        return Lost(count, unit, bounds(parts, count)).fields()

    parts = [part_of(unit, metric, config.relation) for metric in config.metrics]
    for metric, part in zip(fields["metrics"], parts, strict=True):
        metric["people"] = lost([part])
    fields["people"] = lost(parts)


def part_of(ledger: Unit, metric: Metric, counts_by: str = VALUES) -> Part:
    """What one metric costs a unit of the ledger's; a metric that is in budget touches a bounded number of units.

    A delta that is declared and not used, since a window's noise is not Gaussian, is left out: the metric is pure.
    """
    epsilon, delta = metric.budget.epsilon, metric.budget.delta
    if not epsilon:
        return Part(NOTHING)
    rho, apart = statistic_of(metric).rho, kind_of(metric).apart
    uses_delta = apart or metric.finds_keys or rho is not None
    loss = Loss(epsilon, delta if uses_delta else Fraction(0))
    return Part(loss, most_steps(ledger, metric.unit, (counts_by, metric.hides.relation)) or 1, apart, rho)


def above(value: Fraction) -> float:
    """The smallest floating-point number that is not below.

    >>> above(Fraction(1, 10)), above(Fraction(1, 2))
    (0.1, 0.5)
    >>> above(Fraction(1, 3)) > Fraction(1, 3)
    True
    """
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)
