"""`shoal check`: whether a worker would start, and what it would guarantee to whom."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

import typer

from shoal.agents.audit.registration import Agreement, Registration
from shoal.agents.audit.session import Session, open_session, refuse_absent
from shoal.agents.cli.output import AsJson, ConfigPath, result, say
from shoal.agents.diagnosis import ask_workers, diagnose, refuse_what_is_not_well, told
from shoal.agents.guarantee import amount, guarantee, per, together
from shoal.agents.kafka.settings import settings_of
from shoal.agents.people import add_people
from shoal.agents.plan.caveats import caveats
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.models.config.file import Config
from shoal.models.config.unit import parse_unit
from shoal.models.errors import ConfigError, KafkaError

MOST_PEOPLE = 2**20
UNDOING = "what may undo this guarantee, such as another metric on a copy of the topic, is in docs/known-limits.md"
BEATS = f"time goes by beats alone: keep `shoal beat CONFIG` running, or nothing is released; {UNDOING}"
OF_FILES = f"a run over a file closes all steps up to `end`, whatever comes; {UNDOING}"

People = Annotated[
    int | None,
    typer.Option(min=1, max=MOST_PEOPLE, metavar="K", help="What any K people lose together, as a household does."),
]


Workers = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT,...", help="Ask running workers, too: are they ready, and what do ticks wait for?"),
]


def check(config: ConfigPath, people: People = None, workers: Workers = None, as_json: AsJson = False) -> None:
    """Validate configuration, key, topics, schema and budget; say what would be charged and guaranteed to whom.

    Nothing is registered or charged. A configuration without [kafka] is checked for `shoal run` alone. With --people
    it also says what any so many people lose together, in each metric and in all: a household of four, say. With
    --workers it asks workers that run, at their [web] port, and names what holds a tick up; a name with several
    addresses stands for all of them.

    Example: shoal check shoal.toml --people 4
    """
    with open_session(config) as session:
        _check_sqlite(session)
        kafka = _ask_kafka(session.config)
        agreement = session.check(partitions=kafka.partitions)
        refuse_absent(session, agreement.absent)
        warnings = [*kafka.warnings, *caveats(session.config.metric)]
        for warning in warnings:
            say(f"shoal: warning: {warning}")
        fields = _fields(session, agreement, kafka.partitions)
        if people is not None:
            add_people(fields, session.config, people)
        found = {} if workers is None else diagnose(ask_workers(workers))
        shown = fields | {"warnings": warnings} | ({"kafka": str(kafka.refused)} if kafka.refused else {}) | found
        result(shown, as_json=as_json, text=lambda: "\n".join([_text(fields, kafka), *(told(found) if found else ())]))
        if kafka.refused:
            raise kafka.refused
        if found:
            refuse_what_is_not_well(found)


@dataclass(frozen=True, slots=True)
class _Kafka:
    """What the brokers say: partition counts to agree with the ledger, warnings, or why a worker would not start."""

    partitions: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    refused: KafkaError | None = None


def _ask_kafka(config: Config) -> _Kafka:
    """A refusal is kept: all that needs no broker is to be said before it."""
    if not config.has_kafka:
        return _Kafka(warnings=["no [kafka] section: only what `shoal run` needs was checked"])
    from shoal.agents.kafka.broker_clock import clock_warnings, seconds_ahead  # file runs should not wait for them
    from shoal.agents.kafka.rights import verify_rights
    from shoal.agents.kafka.topics import verify_topics

    settings = settings_of(config)
    try:
        unknown = asyncio.run(verify_rights(settings, config.topics))
        verified = asyncio.run(verify_topics(settings, config.topics, create=False))
        unknown += clock_warnings(asyncio.run(seconds_ahead(settings)))
    except KafkaError as error:
        return _Kafka(refused=error)
    counts = {name: verified.partitions[name] for name in (*config.topics, settings.contributions)}
    return _Kafka(partitions=counts, warnings=[*verified.warnings, *verified.durability, *unknown])


def _check_sqlite(session: Session) -> None:
    """SQLite shares its log through shared memory: all workers must be on one host and one local disk."""
    if session.config.audit.url.endswith(":memory:"):
        raise ConfigError(f"{session.path}: [audit] url is in memory; name a file, or PostgreSQL")


def _fields(session: Session, agreement: Agreement, counts: Mapping[str, int]) -> dict[str, Any]:
    new = {(charge.metric, charge.version): charge for charge in agreement.charged}
    metrics = [
        {
            "metric": metric.name,
            "version": metric.version,
            "registered": (metric.name, metric.version) not in new,
            "epsilon": float(metric.epsilon),
            "charge": _charge(new.get((metric.name, metric.version)), "epsilon"),
            "charge_delta": _charge(new.get((metric.name, metric.version)), "delta"),
            "unit": metric.unit,
            "guarantee": guarantee(metric),
            **({"relation": metric.relation} if metric.protects_presence else {}),
        }
        for metric in session.config.metric
    ]
    config, budget = session.config, session.config.privacy
    unit = parse_unit(config.unit)
    return {
        "metrics": metrics,
        "guarantee": str(together(session.config, _charged(session, agreement))),
        "unit": unit.name,
        "budget": f"{amount(budget.epsilon, budget.delta)} {per(unit)}",
        "partitions": dict(counts),
        "log": session.ledger.log_id,
        **({"relation": config.relation, "beats": _beats(config)} if config.protects_presence else {}),
        "internal": [f"{session.config.kafka.app}.{name}" for name in ("contributions", "dead-letters", "*.changelog")],
    }


def _beats(config: Config) -> str:
    """How time goes on, and where it is said what undoes the guarantee."""
    return BEATS if config.has_kafka else OF_FILES


def _charged(session: Session, agreement: Agreement) -> Loss:
    """What the ledger will hold: all charges so far, of every app, and the new ones."""
    book = session.ledger.budget_report()
    before = NOTHING if book is None else Loss(*book.charged)
    new = (
        Loss(Fraction(new_charge.charge_epsilon), Fraction(new_charge.charge_delta)) for new_charge in agreement.charged
    )
    return sum(new, before)


def _charge(registration: Registration | None, name: str) -> float:
    """What is still to be charged to one unit of the ledger."""
    return 0.0 if registration is None else float(Fraction(getattr(registration, f"charge_{name}")))


def _text(fields: dict[str, Any], kafka: _Kafka) -> str:
    checked = (
        "configuration, key, topics, schema and budget" if kafka.partitions else "configuration, key, schema and budget"
    )
    lines = [
        f"{checked} are in order",
        f"the budget of the ledger is {fields['budget']}",
    ]
    for metric in fields["metrics"]:
        state = "registered" if metric["registered"] else f"would be charged epsilon {metric['charge']:g}"
        if metric["charge_delta"]:
            state += f" and delta {metric['charge_delta']:g}"
        lines += [
            f"{metric['metric']} version {metric['version']} ({state})",
            f"  {metric['guarantee']}",
            *_of_people(metric),
        ]
    if "beats" in fields:
        lines.append(f"  {fields['beats']}")
    else:
        lines.append("  a missing or non-numeric value is public too: whether a record is accepted depends on its form")
    lines += ["taken together", f"  {fields['guarantee']}", *_of_people(fields)]
    lines.append(
        "internal topics hold exact sums, samples or raw records, protect them like the events: "
        + ", ".join(fields["internal"])
    )
    return "\n".join(lines)


def _of_people(fields: dict[str, Any]) -> list[str]:
    """The line on what people lose together, where that was asked."""
    return [f"  {fields['people']['guarantee']}"] if "people" in fields else []
