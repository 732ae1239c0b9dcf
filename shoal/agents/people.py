"""What k people lose together, as a household does: in each metric, and in all that a configuration releases.

People are units of the ledger: where it counts by periods, k people in one period each, or one person in k of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from shoal.agents.guarantee import told
from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.mechanisms.privacy.together import Bound, Part, bounds
from shoal.mechanisms.spec import VALUES
from shoal.mechanisms.words import many
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.config.unit import Unit, most_steps, parse_unit

_SIX_DIGITS = Context(prec=6, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True)
class Lost:
    """The most that so many units of the ledger's lose in some metrics."""

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
        ways = " or ".join(told(loss) + (" (zCDP)" if by == "zcdp" else "") for loss, by in map(_short, self.bounds))
        return f"{whose(self.unit, self.count)}{' together' if self.count > 1 else ''}: at most {ways}"


def add_people(fields: dict[str, Any], config: Config, count: int) -> None:
    """Add what so many people lose to the fields of a check: of each metric, and of all together."""
    unit = parse_unit(config.unit)

    def lost(parts: Sequence[Part]) -> dict[str, Any]:
        return Lost(count, unit, bounds(parts, count)).fields()

    parts = [part_of(unit, metric, config.relation) for metric in config.metric]
    for metric, part in zip(fields["metrics"], parts, strict=True):
        metric["people"] = lost([part])
    fields["people"] = lost(parts)


def part_of(ledger: Unit, metric: MetricSection, counts_by: str = VALUES) -> Part:
    """What one metric costs a unit of the ledger's; a metric that is in budget touches a bounded number of units.

    A delta that is declared and not used, since a window's noise is not Gaussian, is left out: the metric is pure.
    """
    if not metric.epsilon:
        return Part(NOTHING)
    rho, apart = statistic_of(metric).rho, metric.kind.apart
    uses_delta = apart or metric.finds_keys or rho is not None
    loss = Loss(metric.epsilon, metric.delta if uses_delta else Fraction(0))
    return Part(loss, most_steps(ledger, metric.privacy_unit, (counts_by, metric.relation)) or 1, apart, rho)


def whose(unit: Unit, count: int) -> str:
    """So many units, in words.

    >>> [whose(parse_unit(name), 4) for name in ("user", "user-day", "event")]
    ['any 4 people', 'any 4 people in one day each', 'any 4 events']
    >>> whose(parse_unit("user"), 1)
    'any person'
    """
    if unit.is_event:
        return f"any {many(count, 'event')}"
    people = "person" if count == 1 else f"{count:,} people"
    return f"any {people}" + ("" if unit.period is None else f" in one {unit.span} each")


def above(value: Fraction) -> float:
    """The smallest floating-point number that is not below.

    >>> above(Fraction(1, 10)), above(Fraction(1, 2))
    (0.1, 0.5)
    >>> above(Fraction(1, 3)) > Fraction(1, 3)
    True
    """
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)


def _short(bound: Bound) -> Bound:
    """The bound with an epsilon of six digits, rounded up, where it was converted."""
    if bound.by != "zcdp":
        return bound
    epsilon = _SIX_DIGITS.divide(*map(Decimal, bound.loss.epsilon.as_integer_ratio()))
    return bound._replace(loss=Loss(Fraction(epsilon), bound.loss.delta))
