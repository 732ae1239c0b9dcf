"""Guarantees in words, for those who sign them: of one metric, and of all that a configuration releases.

The unit says whom an epsilon protects, and accounting says how losses add up; this finds the words.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from shoal.mechanisms.privacy.accounting import NOTHING, Loss, exp_above
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.config.unit import PERSON, Unit, most_steps, parse_unit
from shoal.models.exact import exact_text

_UP = Context(prec=3, rounding=ROUND_CEILING)
_MILLION, _HOPELESS = 10**6, 100  # factors beyond are told by their size; beyond this epsilon, not at all
_PUBLIC = {"group": "in which group"}  # what is known by a field of a role
_ALMOST = 99  # percent; beyond it a figure would hide that little is left to doubt
_SOME = 10  # further units, for an example
SEEN_OF_PRESENCE = (
    "Public are this configuration, with its start, its end and the groups that it declares; the beats; and what is "
    "released. That topics grow, and when, is seen by those who may see the brokers."
)


def guarantee(metric: MetricSection) -> str:
    """The guarantee of one metric.

    >>> from shoal.models.config.metric import MetricSection
    >>> public = dict(name="a", topic="b", user="c", statistic="count", step="1h", epsilon=1, max_contributions=9)
    >>> guarantee(MetricSection.model_validate(public))[:37]
    'a count is exact, public and for free'
    """
    unit = metric.privacy_unit
    covered = _presence(unit) if metric.protects_presence else _covered(unit)
    loss = f"{amount(metric.epsilon, metric.delta)} {per(unit)}: {covered}, however often it is released"
    return "; ".join(metric.kind.clauses(metric, loss))


def per(unit: Unit) -> str:
    """Whose loss an epsilon is.

    >>> [per(parse_unit(name)) for name in ("user", "user-day", "event")]
    ['per person', 'per person and day, without limit over time', 'per event: weak, a person has many']
    """
    if unit.is_event:
        return "per event: weak, a person has many"
    return f"per {unit.words()}" + ("" if unit.period is None else ", without limit over time")


def amount(epsilon: Fraction, delta: Fraction) -> str:
    """Exactly.

    >>> amount(Fraction(1, 2), Fraction(0)), amount(Fraction(1), Fraction(1, 1000))
    ('epsilon = 0.5', 'epsilon = 1, delta = 0.001')
    """
    return f"epsilon = {exact_text(epsilon)}" + (f", delta = {exact_text(delta)}" if delta else "")


def _covered(unit: Unit) -> str:
    if unit.is_event:
        return "the value of one event in this metric"
    if unit.period is None:
        return "all values of one person in this metric, for ever"
    return f"all values of one person in this metric in one {unit.span} of event time, and as much again in the next"


def _presence(unit: Unit) -> str:
    if unit.is_event:
        return "whether one event is there at all, and all that is in it"
    if unit.period is None:
        return "whether one person is there at all, and all that is in their records, for ever"
    return (
        f"whether one person is there at all in one {unit.span} of event time, and all that is in their records of it, "
        "and as much again in the next"
    )


# ---------------------------------------------------------------- all metrics together


@dataclass(frozen=True, slots=True)
class Statement:
    """What all metrics of a configuration guarantee together, in sentences."""

    protected: tuple[str, ...]
    public: tuple[str, ...]
    loss: tuple[str, ...]  # what epsilon and delta mean, to one unit and to more of them
    ledger: tuple[str, ...]  # what is charged, and of what

    def __str__(self) -> str:
        return " ".join([*self.protected, *self.public, *self.loss, *self.ledger])


def together(config: Config, charged: Loss) -> Statement:
    """What all metrics of a configuration guarantee together; `charged` is all that the ledger will then hold."""
    metrics, unit, budget = config.metric, parse_unit(config.unit), config.privacy
    total = total_of(config)
    if not total.epsilon:
        return Statement((), (_public(metrics), "The metrics are counts, which use no values."), (), ())
    of_presence = config.protects_presence
    return Statement(
        protected=(_hidden(unit) if of_presence else _told(unit, metrics),),
        public=(SEEN_OF_PRESENCE if of_presence else _public(metrics),),
        loss=(
            *_counted_by_values(config),
            *_seen(unit, total, len(metrics), config.relation),
            *_again(unit, total, metrics),
            *_other_units(unit, metrics),
            f"A person is one value of {_names(metric.user for metric in metrics)}: whoever has two of them loses "
            "twice.",
        ),
        ledger=(
            f"The ledger then holds {told(charged)}, of a budget of {amount(budget.epsilon, budget.delta)}.",
            "To raise the budget is an act of its own, and logged.",
        ),
    )


def total_of(config: Config) -> Loss:
    """What one unit of the ledger loses in all metrics of a configuration."""
    return sum((Loss(*config.charge_of(metric)) for metric in config.metric), NOTHING)


def _told(unit: Unit, metrics: Sequence[MetricSection]) -> str:
    """The sentence on what relation values protects."""
    done = "What an event says" if unit.is_event else "What a person did"
    return f"{done} is protected ({_fields(path for metric in metrics for path in metric.value_fields)})."


def _hidden(unit: Unit) -> str:
    """The sentence on what relation add-remove protects."""
    whose = "an event" if unit.is_event else "a person"
    return (
        f"Whether {whose} is there at all is protected, with all that is in their records: when, in which group, how "
        "often, and what. This is what most people mean by differential privacy."
    )


def _counted_by_values(config: Config) -> Iterator[str]:
    """The sentence on a ledger that does not count by the relation of the metrics."""
    if config.protects_presence and config.relation == VALUES:
        yield (
            f"The ledger counts by {VALUES}, to which a metric of relation {ADD_REMOVE} is two steps: what follows is "
            "of a person whose values change, and twice what each metric says above of whether they are there."
        )


def _public(metrics: Sequence[MetricSection]) -> str:
    """The sentence on what is not protected: presence, and what else is pattern."""
    paths = [(role, path) for metric in metrics for role, path in metric.paths().items() if role != "user"]
    where = dict.fromkeys(_PUBLIC.get(role, "where") for role, _ in paths if role != "time")
    fields = [metric.user for metric in metrics] + [path for _, path in paths]
    record = " and the records' timestamps" if any(metric.time is None for metric in metrics) else ""
    what = _names(["when", *where, "how often"])
    return f"That they were there, {what}, is not protected ({_fields(fields)}{record})."


def _seen(unit: Unit, total: Loss, metrics: int, relation: str) -> Iterator[str]:
    """The sentences on what epsilon and delta mean."""
    released = "the metric releases" if metrics == 1 else f"the {metrics} metrics release together"
    yield (
        f"Whatever {released}, for ever: {_whose(unit, relation)} changes the probability of anything that can be seen "
        f"without the key by at most a {at_most(total)} ({told(total)})."
    )
    yield from beliefs(total)


def at_most(loss: Loss) -> str:
    """By how much a loss changes probabilities at most; rounded up.

    >>> at_most(Loss(Fraction(3), Fraction(1, 10**9))), at_most(Loss(Fraction(1)))
    ('factor of 20.1 and a further 1e-9', 'factor of 2.72')
    """
    return f"factor of {_factor(loss)}" + (f" and a further {_up(loss.delta)}" if loss.delta else "")


def beliefs(loss: Loss) -> Iterator[str]:
    """The sentence on what somebody may believe after a loss, where epsilon alone says it."""
    certain = _belief(loss) > _ALMOST
    if certain or not loss.delta:
        little = "; this budget protects little" if certain else ""
        yield f"Someone who thought something about it 10 % likely could come to {_may_think(loss)}{little}."


def weakened(unit: Unit, before: Loss, after: Loss, relation: str = VALUES) -> str:
    """By how much all guarantees under a budget weaken when it is raised, if all of it is used.

    >>> weakened(PERSON, Loss(Fraction(1), Fraction(0)), Loss(Fraction(2), Fraction(0)))[-56:]
    'come to think it at most 45.1 % likely instead of 23.2 %'
    """
    whose = _whose(unit, relation)
    return (
        f"the budget rises from {told(before)} to {told(after)} {per(unit)}. If all of it is used, {whose} "
        f"changes the probability of anything that can be seen by a factor of {_factor(after)} "
        f"instead of {_factor(before)}; someone who thought something about it 10 % likely could come "
        f"to {_may_think(after)}{_instead(after, before)}"
    )


def _may_think(loss: Loss) -> str:
    """What somebody may come to who thought something 10 % likely."""
    return "be all but certain of it" if _belief(loss) > _ALMOST else f"think it at most {_belief(loss):g} % likely"


def _instead(after: Loss, before: Loss) -> str:
    """What it was before a budget was raised, as the end of that sentence."""
    if _belief(before) > _ALMOST:
        return ", as before"
    if _belief(after) > _ALMOST:
        return f" instead of thinking it at most {_belief(before):g} % likely"
    return f" instead of {_belief(before):g} %"


def _whose(unit: Unit, relation: str) -> str:
    by_values = relation == VALUES
    if unit.is_event:
        return "the value of one event" if by_values else "whether one event is there"
    return ("what one person did" if by_values else "whether one person is there") + (
        "" if unit.period is None else f" in one {unit.span}"
    )


def _again(unit: Unit, total: Loss, metrics: Sequence[MetricSection]) -> Iterator[str]:
    """The sentences on what several units of one person lose: of slots each its own, of others all together."""
    if unit == PERSON:
        return
    apart = all(metric.kind.apart for metric in metrics if metric.delta)
    several = Loss(_SOME * total.epsilon, min(_SOME * total.delta, Fraction(1))) if apart else total.of_group(_SOME)
    yield (
        f"Each further {'event' if unit.is_event else unit.span} of the same person has as much again: k of them lose "
        f"up to k times epsilon, and {_SOME} of them {told(several)}."
    )
    yield "What shows in many of them, as a habit does, is hardly protected."


def _other_units(unit: Unit, metrics: Sequence[MetricSection]) -> Iterator[str]:
    """The sentences on metrics that protect less than the ledger counts by, and are charged for it, or more."""
    for metric in metrics:
        if not metric.epsilon or metric.privacy_unit == unit:
            continue
        touched = most_steps(unit, metric.privacy_unit, (metric.relation, metric.relation))
        part = f": one {unit.words()} has a part in up to {touched} of them, and all of these are counted here"
        more = ", which is more and counts once"
        article = "an" if metric.privacy_unit.is_event else "a"
        yield f"{metric.name} protects {article} {metric.privacy_unit.words()}{more if touched == 1 else part}."


def told(loss: Loss) -> str:
    """Epsilon exactly; delta, which has twenty digits, with three."""
    if loss.delta >= 1:
        return f"epsilon = {exact_text(loss.epsilon)}, with a delta that promises nothing"
    return f"epsilon = {exact_text(loss.epsilon)}" + (f", delta = {_up(loss.delta)}" if loss.delta else "")


def _factor(loss: Loss) -> str:
    if loss.epsilon > _HOPELESS:
        return f"e^{exact_text(loss.epsilon)}, which protects nothing"
    return _up(exp_above(loss.epsilon))


def _belief(loss: Loss) -> float:
    """A belief of 10 %, in percent, once the odds of 1 to 9 have grown by the factor; rounded up."""
    factor = exp_above(min(loss.epsilon, Fraction(_HOPELESS)))
    return math.ceil(1000 * factor / (factor + 9)) / 10


def _up(value: Fraction) -> str:
    """Three digits, rounded up.

    >>> _up(Fraction("2.7182")), _up(Fraction("1096.6")), _up(Fraction(1, 10**6)), _up(Fraction(10**9 + 1))
    ('2.72', '1100', '0.000001', '1.01e+9')
    """
    digits = _UP.divide(*map(Decimal, value.as_integer_ratio()))
    return f"{digits:f}" if 1 <= digits < _MILLION else str(digits).lower()


def _fields(paths: Iterable[str]) -> str:
    names = _names(paths)
    return f"field{'s' if ' ' in names else ''} {names}"


def _names(paths: Iterable[str]) -> str:
    """In order of first mention.

    >>> _names(["x", "y", "x", "z"])
    'x, y and z'
    """
    *most, last = dict.fromkeys(paths)
    return f"{', '.join(most)} and {last}" if most else last
