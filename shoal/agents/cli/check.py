"""`shoal check`: would a worker start, and what would it guarantee to whom."""

import asyncio
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from shoal.agents.caveats import caveats
from shoal.agents.cli.kafka import settings_of
from shoal.agents.cli.output import AsJson, ConfigPath, result, say
from shoal.agents.domain import refuse_absent
from shoal.agents.guarantees import amount, guarantee, per, together
from shoal.agents.registration import Agreement, Registration
from shoal.agents.session import Session, open_session
from shoal.agents.topics import Verified, verify_topics
from shoal.mechanisms.accounting import NOTHING, Loss
from shoal.models.config import Config
from shoal.models.errors import ConfigError
from shoal.models.units import parse_unit


def check(config: ConfigPath, as_json: AsJson = False) -> None:
    """Validate configuration, key, topics, schema and budget; say what would be charged and guaranteed to whom.

    Nothing is registered or charged. A configuration without [kafka] is checked for `shoal run` alone.

    Example: shoal check shoal.toml
    """
    with open_session(config) as session:
        _check_sqlite(session)
        verified = _verify(session.config)
        agreement = session.check(partitions=verified.partitions)
        refuse_absent(session, agreement.absent)
        warnings = [*verified.warnings, *caveats(session.config.metric)]
        for warning in warnings:
            say(f"shoal: warning: {warning}")
        fields = _fields(session, agreement, verified.partitions)
        result(fields | {"warnings": warnings}, as_json=as_json, text=lambda: _text(fields))


def _verify(config: Config) -> Verified:
    """The topics whose partition counts are agreed with the ledger."""
    if not config.has_kafka:
        return Verified({}, warnings=["no [kafka] section: only what `shoal run` needs was checked"])
    settings = settings_of(config)
    verified = asyncio.run(verify_topics(settings, config.topics, create=False))
    counts = {name: verified.partitions[name] for name in (*config.topics, settings.contributions)}
    return Verified(counts, warnings=verified.warnings)


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
        }
        for metric in session.config.metric
    ]
    budget = session.config.privacy
    unit = parse_unit(session.config.unit)
    return {
        "metrics": metrics,
        "guarantee": together(session.config, _charged(session, agreement)),
        "unit": unit.name,
        "budget": f"{amount(budget.epsilon, budget.delta)} {per(unit)}",
        "partitions": dict(counts),
        "log": session.ledger.log_id,
        "internal": [f"{session.config.kafka.app}.{name}" for name in ("contributions", "dead-letters", "*.changelog")],
    }


def _charged(session: Session, agreement: Agreement) -> Loss:
    """What the ledger will hold: all that it was ever charged, by every app, and what is new."""
    book = session.ledger.budget_report()
    before = NOTHING if book is None else Loss(*book.charged)
    new = (Loss(Fraction(one.charge_epsilon), Fraction(one.charge_delta)) for one in agreement.charged)
    return sum(new, before)


def _charge(registration: Registration | None, name: str) -> float:
    """What is still to be charged to a unit of the ledger's."""
    return 0.0 if registration is None else float(Fraction(getattr(registration, f"charge_{name}")))


def _text(fields: dict[str, Any]) -> str:
    lines = [
        "configuration, key, topics, schema and budget are in order",
        f"the budget of the ledger is {fields['budget']}",
    ]
    for metric in fields["metrics"]:
        state = "registered" if metric["registered"] else f"would be charged epsilon {metric['charge']:g}"
        if metric["charge_delta"]:
            state += f" and delta {metric['charge_delta']:g}"
        lines += [f"{metric['metric']} version {metric['version']} ({state})", f"  {metric['guarantee']}"]
    lines.append("  a missing or non-numeric value is public too: whether a record is accepted depends on its form")
    lines += ["taken together", f"  {fields['guarantee']}"]
    lines.append(
        "internal topics hold exact sums, samples or raw records, protect them like the events: "
        + ", ".join(fields["internal"])
    )
    return "\n".join(lines)
