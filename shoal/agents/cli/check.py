"""`shoal check`: would a worker start, and what would it guarantee to whom."""

import asyncio
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from shoal.agents.cli.kafka import settings_of
from shoal.agents.cli.output import AsJson, ConfigPath, result, say
from shoal.agents.domain import refuse_absent
from shoal.agents.registration import Agreement, Registration
from shoal.agents.session import Session, open_session
from shoal.agents.topics import Verified, verify_topics
from shoal.models.config import Config
from shoal.models.errors import ConfigError
from shoal.models.exact import exact_text
from shoal.models.metric import MetricSection
from shoal.models.units import Unit, parse_unit

PATTERN = "who contributes when, and in which group, is public"


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
        for warning in verified.warnings:
            say(f"shoal: warning: {warning}")
        fields = _fields(session, agreement, verified.partitions)
        result(fields | {"warnings": verified.warnings}, as_json=as_json, text=lambda: _text(fields))


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


def guarantee(metric: MetricSection) -> str:
    """The guarantee in words.

    >>> from shoal.models.metric import MetricSection
    >>> public = dict(name="a", topic="b", user="c", statistic="count", step="1h", epsilon=1, max_contributions=9)
    >>> guarantee(MetricSection.model_validate(public))[:37]
    'a count is exact, public and for free'
    """
    if metric.statistic == "count":
        return f"a count is exact, public and for free: {PATTERN}" + _cap(metric)
    prior = "; its prior is public, and private only if it was made without these values, or charged where it was made"
    return (
        f"{_amount(metric.epsilon, metric.delta)} {per(metric.of)}: {_covered(metric.of)}, however often it is "
        f"released; {PATTERN}" + _cap(metric) + ("" if metric.prior is None else prior)
    )


def per(unit: Unit) -> str:
    """Whose loss an epsilon is.

    >>> [per(parse_unit(name)) for name in ("user", "user-day", "event")]
    ['per person', 'per person and day, without limit over time', 'per event: weak, a person has many']
    """
    if unit.is_event:
        return "per event: weak, a person has many"
    return f"per {unit.words()}" + ("" if unit.period is None else ", without limit over time")


def _covered(unit: Unit) -> str:
    if unit.is_event:
        return "the value of one event in this metric"
    if unit.period is None:
        return "all values of one person in this metric, for ever"
    return f"all values of one person in this metric in one {unit.span} of event time, and as much again in the next"


def _cap(metric: MetricSection) -> str:
    """What the cap means where there are groups."""
    if metric.group is None or metric.of.is_event:
        return ""
    groups = metric.max_groups_per_user
    most = f"{groups} group" + ("s" if groups > 1 else "")
    if not metric.is_stepped:
        share = f", each with epsilon / {groups}" if groups > 1 else ""
        return f"; a {metric.of.words()} counts in at most {most}{share}, with at most {metric.cap} samples in each"
    split = "" if metric.statistic == "count" else ", so that epsilon is not split"
    return f"; a {metric.of.words()} counts in at most {most}, with at most {metric.cap} samples in all together{split}"


def _amount(epsilon: Fraction, delta: Fraction) -> str:
    return f"epsilon = {exact_text(epsilon)}" + (f", delta = {exact_text(delta)}" if delta else "")


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
        "unit": unit.name,
        "budget": f"{_amount(budget.epsilon, budget.delta)} {per(unit)}",
        "partitions": dict(counts),
        "log": session.ledger.log_id,
        "internal": [f"{session.config.kafka.app}.{name}" for name in ("contributions", "dead-letters", "*.changelog")],
    }


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
    lines.append(
        f"internal topics hold exact sums or raw records, protect them like the events: {', '.join(fields['internal'])}"
    )
    return "\n".join(lines)
