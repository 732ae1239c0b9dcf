"""What the metrics of a configuration guarantee and would be charged: the fields of a check, and their words.

The guarantee is the configuration's alone: it stands whatever key and ledger say. What would be charged is theirs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.audit.requests import Agreement, Registration
from shoal.agents.guarantee import guarantee, statement, unit_of
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.models.config.file import Config
from shoal.models.loss_words import held

LIMITS = "docs/explanation/known-limits.md"
UNDOING = f"what may undo this guarantee, such as another metric on a copy of the topic, is in {LIMITS}"
BEATS = f"time goes by beats alone: keep `shoal beat CONFIG` running, or nothing is released; {UNDOING}"
OF_FILES = f"a run over a file closes all steps up to `end`, whatever comes; {UNDOING}"
FORM = "a missing or non-numeric value is public too: whether a record is accepted depends on its form"


def promises(
    config: Config, agreement: Agreement | None, book: BudgetReport | None, persons: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Each metric and all of them, in words; `book` and `persons` are the ledger's before anything is registered.

    Without an agreement with the ledger, what that would say is null.
    """
    new = None if agreement is None else {new.id: new for new in agreement.charged}
    metrics = [
        {
            "metric": metric.name,
            "version": metric.version,
            "registered": None if new is None else config.id_of(metric) not in new,
            "epsilon": float(metric.budget.epsilon),
            "charge": None if new is None else _charge(new.get(config.id_of(metric)), "epsilon"),
            "charge_delta": None if new is None else _charge(new.get(config.id_of(metric)), "delta"),
            "unit": metric.unit.name,
            "guarantee": guarantee(metric),
            **({"relation": metric.hides.relation} if metric.protects_presence else {}),
        }
        for metric in config.metrics
    ]
    unit = unit_of(config)
    return {
        "metrics": metrics,
        "guarantee": _of_all(config, agreement, book, persons),
        "unit": unit.name,
        "budget": held(unit, config.privacy.epsilon, config.privacy.delta),
        **(
            {"relation": config.relation, "beats": BEATS if config.has_kafka else OF_FILES}
            if config.protects_presence
            else {}
        ),
    }


def _of_all(
    config: Config, agreement: Agreement | None, book: BudgetReport | None, persons: Mapping[str, str] | None
) -> str:
    """What all metrics guarantee; without an agreement no sentence on what the ledger then holds."""
    if agreement is None:
        return str(replace(statement(config, NOTHING, persons), ledger=()))
    return str(statement(config, _charged(agreement, book), persons))


def _charged(agreement: Agreement, book: BudgetReport | None) -> Loss:
    """What the ledger will hold: all charges so far, of every app, and the new ones."""
    new = (Loss(Fraction(charge.charge_epsilon), Fraction(charge.charge_delta)) for charge in agreement.charged)
    return sum(new, NOTHING if book is None else Loss(*book.charged))


def _charge(registration: Registration | None, name: str) -> float:
    """What is still to be charged to one unit of the ledger."""
    return 0.0 if registration is None else float(Fraction(getattr(registration, f"charge_{name}")))


def in_words(fields: dict[str, Any]) -> Iterator[str]:
    """The lines of a check about these."""
    yield f"    the budget of the ledger is {fields['budget']}"
    for metric in fields["metrics"]:
        yield f"    {metric['metric']} version {metric['version']} ({_state(metric)})"
        yield f"      {metric['guarantee']}"
        yield from _of_people(metric)
    yield f"      {fields.get('beats', FORM)}"
    yield "    all metrics"
    yield f"      {fields['guarantee']}"
    yield from _of_people(fields)


def _state(metric: dict[str, Any]) -> str:
    """How a metric stands with the ledger."""
    if metric["registered"] is None:
        return "charge not checked"
    state = "registered" if metric["registered"] else f"would be charged epsilon {metric['charge']:g}"
    return state + (f" and delta {metric['charge_delta']:g}" if metric["charge_delta"] else "")


def _of_people(fields: dict[str, Any]) -> Iterator[str]:
    """The line on what people lose, where that was asked."""
    if "people" in fields:
        yield f"      {fields['people']['guarantee']}"
