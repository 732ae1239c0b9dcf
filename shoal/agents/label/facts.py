"""What a label states: read from configuration and ledger, with neither key nor events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any

import orjson

from shoal import __version__
from shoal.agents.audit.database import may_have_log
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.requests import Registration
from shoal.agents.audit.session import epochs_of, registration_of
from shoal.agents.guarantee import Statement, guarantee, statement, words_of_all
from shoal.mechanisms.parts.at import Slots
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.per import Field, Hexagons
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.mechanisms.words import exact_duration
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.config.unit import parse_unit
from shoal.models.errors import LedgerError
from shoal.models.exact import exact_text
from shoal.models.loss_words import LossWords, brief_of_release, held
from shoal.models.parameters import differing
from shoal.models.tables import ACTIVE, MetricVersion
from shoal.models.version import VersionId

NEW = "not registered"  # the state of a metric that nothing was released of


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """What a label says of one metric version."""

    app: str
    name: str
    version: int
    state: str
    content: str  # in words: which statistic of what, for which groups, how often
    guarantee: str
    loss: Loss
    charge: Loss  # to one unit of the ledger
    unit: str
    relation: str
    digest: str  # of its parameters

    def described(self) -> dict[str, Any]:
        return {
            "app": self.app, "metric": self.name, "version": self.version, "parameters": self.digest,
            "charge_epsilon": exact_text(self.charge.epsilon), "charge_delta": exact_text(self.charge.delta),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Facts:
    """What a label says of a deployment: the metrics of a configuration, and what else the ledger was charged."""

    app: str
    log: str | None  # the audit log's id; None: there is none yet
    unit: str
    relation: str
    budget: Loss
    statement: Statement
    words: LossWords  # of all that is charged
    metrics: tuple[MetricFacts, ...]
    others: tuple[MetricFacts, ...]  # of the same ledger: of other apps, and versions out of use
    since: str | None  # when the first version of the ledger was registered, an ISO time

    @property
    def charged(self) -> Loss:
        return sum((metric.charge for metric in (*self.metrics, *self.others)), NOTHING)

    @property
    def left(self) -> Loss:
        """What the budget leaves; never below 0, for the ledger refuses more."""
        held, charged = self.budget, self.charged
        return Loss(max(Fraction(0), held.epsilon - charged.epsilon), max(Fraction(0), held.delta - charged.delta))

    def described(self) -> dict[str, Any]:
        """All that the digest covers: what is released, what it costs and of what, and in which log it is."""
        return {
            "log": self.log,
            "unit": self.unit,
            "relation": self.relation,
            "epsilon": exact_text(self.budget.epsilon),
            "delta": exact_text(self.budget.delta),
            "metrics": [metric.described() for metric in (*self.metrics, *self.others)],
        }

    @property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of what is described, as JSON with sorted keys and no spaces."""
        return sha256(orjson.dumps(self.described(), option=orjson.OPT_SORT_KEYS)).hexdigest()

    def fields(self) -> dict[str, Any]:
        """The keys and values that `shoal label --json` prints."""
        return {
            "deployment": self.app,
            "made_by": f"shoal {__version__}",
            "digest": self.digest,
            "describes": self.described(),
            "protected": list(self.statement.protected),
            "not_protected": list(self.statement.public),
            "loss": list(self.statement.loss),
            "budget": self.budget_in_words(),
            "charged": _amount(self.charged),
            "left": _amount(self.left),
            "metrics": [_fields(metric) for metric in self.metrics],
            "others": [_fields(metric) for metric in self.others],
        }

    def budget_in_words(self) -> str:
        return held(parse_unit(self.unit), self.budget.epsilon, self.budget.delta)


def _amount(loss: Loss) -> dict[str, float]:
    return {"epsilon": float(loss.epsilon), "delta": float(loss.delta)}


def _fields(metric: MetricFacts) -> dict[str, Any]:
    return {
        "app": metric.app, "metric": metric.name, "version": metric.version, "state": metric.state,
        "content": metric.content, "guarantee": metric.guarantee, "unit": metric.unit, "relation": metric.relation,
        **_amount(metric.loss), "charge": _amount(metric.charge),
    }  # fmt: skip


def read_facts(config: Config) -> Facts:
    """The facts of a deployment by its configuration, and by its ledger if there is one; nothing is written.

    Raises:
        LedgerError: the ledger does not answer, or holds other parameters under the same version.
    """
    url = config.audit.url
    if not may_have_log(url):
        return facts_of(config, None)
    with Ledger.open(url, migrate=False) as ledger:
        return facts_of(config.in_epochs(epochs_of(ledger, config)), ledger)


def facts_of(config: Config, ledger: Ledger | None) -> Facts:
    """The same of what is open already; without a ledger, all metrics are new."""
    rows = [] if ledger is None else ledger.versions()
    held = {VersionId.of(row): row for row in rows}
    metrics = tuple(_of_metric(config, metric, held) for metric in config.metric)
    named = {config.id_of(metric) for metric in config.metrics}
    others = tuple(_of_row(row) for key, row in held.items() if key not in named)
    charged = sum((metric.charge for metric in (*metrics, *others)), NOTHING)
    book = None if ledger is None else ledger.budget_report()
    budget = config.privacy if book is None else book
    return Facts(
        app=config.kafka.app,
        log=None if ledger is None else ledger.log_id,
        unit=parse_unit(config.unit).name,
        relation=config.relation,
        budget=Loss(budget.epsilon, budget.delta),
        statement=statement(config, charged, None if ledger is None else ledger.persons()),
        words=words_of_all(config, charged, len(metrics) + len(others)),
        metrics=metrics,
        others=others,
        since=min((row.registered for row in rows), default=None),
    )


def _of_metric(config: Config, section: MetricSection, held: Mapping[VersionId, MetricVersion]) -> MetricFacts:
    registration, metric = registration_of(config, section), section.parts
    row = held.get(registration.id)
    _refuse_other(registration, row)
    return MetricFacts(
        app=config.kafka.app,
        name=metric.name,
        version=metric.version,
        state=NEW if row is None else row.state,
        content=content(metric),
        guarantee=guarantee(metric),
        loss=Loss(metric.budget.epsilon, metric.budget.delta),
        charge=Loss(Fraction(registration.charge_epsilon), Fraction(registration.charge_delta)),
        unit=metric.unit.name,
        relation=metric.hides.relation,
        digest=registration.digest,
    )


def _refuse_other(registration: Registration, row: MetricVersion | None) -> None:
    """A label must not describe what is not released."""
    if row is not None and row.digest != registration.digest:
        names = ", ".join(differing(row.parameters, registration.parameters)) or "their notation"
        raise LedgerError(
            f"{registration.id} is registered with other parameters than this "
            f"configuration has ({names}); set them back, or raise its version"
        )


def _of_row(row: MetricVersion) -> MetricFacts:
    where = f"of app {row.app}" if row.state == ACTIVE else f"of app {row.app}, {row.state}"
    charge = Loss(row.charge_epsilon, row.charge_delta)
    promise = brief_of_release(row.epsilon, row.delta, row.unit)
    return MetricFacts(
        row.app, row.metric, row.version, row.state, where, promise, Loss(row.epsilon, row.delta), charge, row.unit,
        row.relation, row.digest,
    )  # fmt: skip


def content(metric: Metric) -> str:
    """What a metric releases, in words: mean of amount by country, at the end of every 1d."""
    return " ".join(_content(metric))


def _content(metric: Metric) -> Iterator[str]:
    yield metric.of.name
    if metric.names:
        yield f"of {', '.join(metric.names)}"
    match metric.place:
        case Field(name):
            yield f"by {name}"
        case Hexagons(resolution):
            yield f"by H3 cell of resolution {resolution}"
    if metric.length is None:
        yield "at every contribution"
    else:
        how = "in each slot of" if isinstance(metric.at, Slots) else "at the end of every"
        yield f"{how} {exact_duration(metric.length.microseconds)}"
    if metric.protects_presence:
        yield f"(relation {metric.hides.relation})"
