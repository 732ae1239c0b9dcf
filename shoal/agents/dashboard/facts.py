"""What a configuration and a ledger say about the releases: for whom they are private, by how much, what was charged.

All of it is public: parameters, sentences of `shoal check`, amounts of the ledger.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.guarantee import Statement, guarantee, statement, words_of, words_of_all
from shoal.mechanisms.parts.at import Slots, Steps, Undecayed, Window
from shoal.mechanisms.parts.hides import Events
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Mean, PublicCount, Sum
from shoal.mechanisms.parts.per import Field, Hexagons
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.mechanisms.spec import VALUES
from shoal.models import loss_words
from shoal.models.config.file import Config
from shoal.models.config.unit import parse_unit
from shoal.models.errors import ShoalError
from shoal.models.exact import exact_text
from shoal.models.version import VersionId

Stated = Mapping[VersionId, dict[str, Any]]


def metric_facts(metric: Metric) -> dict[str, Any]:
    """What the page says about one metric beside its numbers."""
    limits, length = metric.hides.limits, metric.length
    return {
        "version": metric.version,
        "statistic": metric.statistic,
        "is_slot": isinstance(metric.at, Slots),
        "values": list(metric.names),
        "group": metric.place.name if isinstance(metric.place, Field) else None,
        "ranges": _ranges(metric),
        "chooses_end": isinstance(metric.of, Mean | Sum) and metric.of.clip is not None,
        "loss": words_of(metric).brief,
        "cap": None if isinstance(limits, Events) else limits.samples,
        **_decay_facts(metric),
        "every": None if length is None else length.microseconds / 1e6,
        "cells": isinstance(metric.place, Hexagons),
        "min_users": metric.per.min_units if metric.per.min_units > 1 else None,
        "is_public": isinstance(metric.of, PublicCount),
        "simultaneous": metric.by.bars.simultaneous,
        "guarantee": guarantee(metric),
    }


def _decay_facts(metric: Metric) -> dict[str, Any]:
    decay = metric.at.decay if isinstance(metric.at, Steps) else Undecayed()
    return {"decay": decay.kind, "length": decay.length / 1e6 if isinstance(decay, Window) else None}


def loss_stated(facts: Mapping[str, Any]) -> str:
    """Loss of one unit in all releases of a metric, as they state it; empty if they state none."""
    return loss_words.brief_of_release(facts.get("epsilon"), facts.get("delta"), facts.get("unit", "unit"))


def times_agreed(config: Config) -> dict[str, dict[str, Any]]:
    """When steps of each metric end, and the last of them, in seconds: what could be complete by now."""
    return {
        metric.name: {
            "topic": metric.source.topic,
            "every": metric.length.microseconds / 1e6,
            "lateness": metric.source.lateness / 1e6,
            "end": None if metric.end is None else metric.end / 1e6,
        }
        for metric in config.metrics
        if metric.length is not None
    }


def privacy_facts(config: Config, book: BudgetReport | None, stated: Stated | None = None) -> dict[str, Any]:
    """What anyone who looks at the releases should know; `stated` is what releases of each version say of themselves.

    The sum is never less than what was charged for what is on the page: it is of the ledger, of what the configuration
    will charge, and of what releases of any other version say. What cannot be added is named.
    """
    unit, other_ledger = parse_unit(config.unit), ""
    if book is not None and (parse_unit(book.unit), book.relation) != (unit, config.relation):
        other_ledger = f"The ledger counts by {book.unit} and {book.relation}: what it was charged is not in the sum."
        book = None
    charges = [] if book is None else [(VersionId.of(c), c.state, c.epsilon, c.delta) for c in book.charges]
    known = {version for version, *_ in charges}
    state = "planned" if book is None else "not charged yet"
    asked = {config.id_of(metric): config.charge_of(metric) for metric in config.metrics}
    charges += [(version, state, *charge) for version, charge in asked.items() if version not in known]
    known |= asked.keys()
    others = {key: facts for key, facts in sorted((stated or {}).items()) if key not in known}
    added = {key: _loss_stated(facts, config) for key, facts in others.items()}
    charges += [(key, "as releases say", loss.epsilon, loss.delta) for key, loss in added.items() if loss is not None]
    total = sum((Loss(epsilon, delta) for *_, epsilon, delta in charges), NOTHING)
    missing = _missing([version.metric for version, loss in added.items() if loss is None]), other_ledger
    budget = config.privacy if book is None else book
    private = [metric for metric in config.metrics if not isinstance(metric.of, PublicCount)]
    values = _names(path for metric in private for path in metric.protected)
    pattern = _names(path for metric in config.metrics for path in metric.pattern.values())
    said = statement(config, total)
    return {
        "headline": _headline(config, total, len(charges)),
        "missing": " ".join(filter(None, missing)),
        "sentences": _sentences(config, said, total, is_ledger=book is not None),
        "protected": values + pattern if config.protects_presence else values,
        "public": " ".join(said.public),
        "budget": amounts(budget.epsilon, budget.delta),
        "per": loss_words.per(unit),
        "charged": amounts(total.epsilon, total.delta),
        "charges": [
            {"metric": version.metric, "version": version.version, "state": state, **amounts(epsilon, delta)}
            for version, state, epsilon, delta in charges
        ],
        "ranges": {metric.name: _ranges(metric) for metric in private},
        "is_ledger": book is not None,
    }


def _headline(config: Config, total: Loss, metrics: int) -> dict[str, Any] | None:
    """Parts of the page's headline on the loss by all releases; None if the loss is zero."""
    if not total.epsilon:
        return None
    words = words_of_all(config, total, metrics)
    return loss_words.headline(parse_unit(config.unit), words, total, config.relation)


def _sentences(config: Config, said: Statement, total: Loss, *, is_ledger: bool) -> str:
    """The statement of `shoal check`; without a ledger none on what it holds, for it may hold more."""
    if is_ledger or not said.ledger:
        return str(said)
    here = loss_words.page_holds(total, Loss(config.privacy.epsilon, config.privacy.delta))
    return str(replace(said, ledger=(here,)))


def _loss_stated(facts: dict[str, Any], config: Config) -> Loss | None:
    """What releases say that they cost one unit of the ledger; None if they do not, or count by another unit."""
    if facts.get("mechanism") == "exact" and facts.get("relation") == VALUES:
        return NOTHING
    epsilon, delta = facts.get("epsilon"), facts.get("delta")
    try:
        loss = Loss(Fraction(str(epsilon)), Fraction(str(delta)))
        is_same = parse_unit(str(facts.get("unit"))) == parse_unit(config.unit)
    except (ValueError, ShoalError):
        return None
    return loss if is_same and facts.get("relation") == config.relation and loss.epsilon else None


def _missing(names: list[str]) -> str:
    """The sentence on metrics whose loss is not known by the unit of the sum."""
    if not names:
        return ""
    few = f"{len(names)} metric{'s' if len(names) > 1 else ''} on this page"
    return (
        f"Not in this sum: {few} ({', '.join(names)}), of which no loss is known by the unit and relation of the sum."
    )


def amounts(epsilon: Fraction, delta: Fraction) -> dict[str, Any]:
    """An amount of privacy: a number for drawing and its exact text."""
    return {"epsilon": float(epsilon), "text": exact_text(epsilon), "delta": exact_text(delta) if delta else None}


def _ranges(metric: Metric) -> list[list[float]]:
    return [[float(low), float(high)] for low, high in metric.ranges]


def _names(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(paths))
