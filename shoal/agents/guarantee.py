"""Guarantees in words, for those who sign them: of one metric, and of all that a configuration releases.

The sentences are those of shoal/models/loss_words.py; this finds their values in a configuration.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.at import Slots
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.unit import Unit
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models import loss_words as words
from shoal.models.config.file import Config
from shoal.models.config.unit import most_steps, parse_unit
from shoal.models.loss_words import LossWords, loss_words
from shoal.models.parameters import person_in
from shoal.stream.parameters import canonical


@dataclass(frozen=True, slots=True)
class Statement:
    """Sentences on the guarantee of all metrics of a configuration."""

    protected: tuple[str, ...]
    public: tuple[str, ...]
    loss: tuple[str, ...]  # what epsilon and delta mean, to one unit and to more of them
    ledger: tuple[str, ...]  # what is charged, and of what

    def __str__(self) -> str:
        return " ".join([*self.protected, *self.public, *self.loss, *self.ledger])


def guarantee(metric: Metric) -> str:
    """The guarantee of one metric.

    >>> from shoal.models.config.metric import MetricSection
    >>> public = dict(name="a", topic="b", user="c", statistic="count", every="1h", epsilon=1, max_contributions=9)
    >>> guarantee(MetricSection.model_validate(public).parts)[:37]
    'a count is exact, public and for free'
    """
    loss = words.clause(metric.unit, words_of(metric), metric.hides.relation)
    return "; ".join(kind_of(metric).clauses(metric, loss))


def words_of(metric: Metric) -> LossWords:
    """Sentences on the loss of one unit of a metric."""
    loss, apart = Loss(metric.budget.epsilon, metric.budget.delta), kind_of(metric).apart
    return loss_words(metric.unit, loss, apart=apart, needs_max_slots=_needs_max_slots(metric))


def words_of_all(config: Config, total: Loss, metrics: int | None = None) -> LossWords:
    """Sentences on `total`, the loss of one unit of the ledger.

    `metrics`: number of metric versions in `total`; None: those of the configuration. Others have no known limits.
    """
    charged, count = [metric for metric in config.metrics if metric.budget.epsilon], len(config.metric)
    is_whole = metrics in (None, count)
    return loss_words(
        unit_of(config) if is_whole else parse_unit(config.unit),
        total,
        metrics=count if metrics is None else metrics,
        apart=is_whole and all(kind_of(metric).apart for metric in charged if metric.budget.delta),
        needs_max_slots=any(map(_needs_max_slots, charged)),
    )


def unit_of(config: Config) -> Unit:
    """Unit of the ledger; of events with their number of a person, if every metric limits it."""
    limits = [metric.unit.of_a_user for metric in config.metrics if metric.budget.epsilon]
    known = [limit for limit in limits if limit is not None]
    return replace(parse_unit(config.unit), of_a_user=max(known) if known and len(known) == len(limits) else None)


def statement(config: Config, charged: Loss, persons: Mapping[str, str] | None = None) -> Statement:
    """Sentences on the guarantee of all metrics of a configuration, with what was charged.

    `charged` is all that the ledger will then hold, `persons` the user fields that it has, by topic.
    """
    metrics, unit, budget = config.metrics, unit_of(config), config.privacy
    total, of_presence = total_of(config), config.protects_presence
    public = words.SEEN_OF_PRESENCE if of_presence else _public(metrics)
    if not total.epsilon:
        return Statement((), (public, "The metrics are counts, which use no values."), (), ())
    fields = (path for metric in metrics for path in metric.protected)
    return Statement(
        protected=(words.protected(unit, ADD_REMOVE if of_presence else VALUES, fields),),
        public=(public,),
        loss=tuple(filter(None, [*_loss(config, unit, total), words.people(_persons(config) | dict(persons or {}))])),
        ledger=(
            words.ledger_holds(charged, Loss(budget.epsilon, budget.delta)),
            "To raise the budget is an act of its own, and logged.",
        ),
    )


def total_of(config: Config) -> Loss:
    """What one unit of the ledger loses in all metrics of a configuration."""
    return sum((Loss(*config.charge_of(metric)) for metric in config.metrics), NOTHING)


def _loss(config: Config, unit: Unit, total: Loss) -> Iterator[str]:
    metrics = config.metrics
    if config.protects_presence and config.relation == VALUES:
        yield words.COUNTS_BY_VALUES
    said = words_of_all(config, total)
    yield said.each
    released = "the metric releases" if len(metrics) == 1 else f"the {len(metrics)} metrics release"
    yield from words.seen(unit, total, released, config.relation)
    yield said.several
    yield said.bound
    yield words.habit(unit)
    for metric in metrics:
        if metric.budget.epsilon and metric.unit != unit:
            touched = most_steps(unit, metric.unit, (metric.hides.relation, metric.hides.relation))
            yield words.other_unit(metric.name, metric.unit, unit, touched)


def _persons(config: Config) -> dict[str, str]:
    """The user field of each topic that names a person."""
    found: dict[str, str] = {}
    for metric in config.metrics:
        found |= person_in(canonical(metric))
    return found


def _public(metrics: Sequence[Metric]) -> str:
    paths = [path for metric in metrics for path in metric.pattern.items() if path[0] != "user"]
    has_record_times = any(metric.source.time is None for metric in metrics)
    return words.public([metric.source.user for metric in metrics], paths, has_record_times=has_record_times)


def _needs_max_slots(metric: Metric) -> bool:
    """Whether unit user needs `max_slots`, as a statistic per slot of relation values does."""
    return isinstance(metric.at, Slots) and not metric.protects_presence
