"""What a configuration and a ledger say about the releases: for whom they are private, by how much, what was charged.

All of it is public: parameters, sentences of `shoal check`, amounts of the ledger.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.guarantee import Statement, guarantee, statement, words_of, words_of_all
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.mechanisms.spec import VALUES
from shoal.models import loss_words
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.config.unit import parse_unit
from shoal.models.errors import ShoalError
from shoal.models.exact import exact_text
from shoal.models.version import VersionId

Stated = Mapping[VersionId, dict[str, Any]]


def metric_facts(section: MetricSection) -> dict[str, Any]:
    """What the page says about one metric beside its numbers."""
    decay = section.decay_or_none
    return {
        "version": section.version,
        "statistic": section.statistic,
        "values": list(section.values),
        "group": section.group,
        "ranges": _ranges(section),
        "chooses_end": section.clip is not None,
        "loss": words_of(section).brief,
        "cap": section.max_contributions,
        "decay": decay.kind,
        "length": None if not decay.length else decay.length / 1e6,
        "every": None if section.cadence is None else section.cadence / 1e6,
        "cells": section.cell is not None,
        "min_users": section.min_users,
        "is_public": is_public(section),
        "simultaneous": section.simultaneous,
        "guarantee": guarantee(section),
    }


def loss_stated(facts: Mapping[str, Any]) -> str:
    """Loss of one unit in all releases of a metric, as they state it; empty if they state none."""
    return loss_words.brief_of_release(facts.get("epsilon"), facts.get("delta", 0), str(facts.get("unit", "unit")))


def times_agreed(config: Config) -> dict[str, dict[str, Any]]:
    """When steps of each metric end, and the last of them, in seconds: what could be complete by now."""
    return {
        metric.name: {
            "topic": metric.topic,
            "every": metric.cadence / 1e6,
            "lateness": metric.lateness / 1e6,
            "end": None if metric.end is None else metric.end / 1e6,
        }
        for metric in config.metric
        if metric.cadence
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
    asked = {config.id_of(metric): config.charge_of(metric) for metric in config.metric}
    charges += [(version, state, *charge) for version, charge in asked.items() if version not in known]
    known |= asked.keys()
    others = {key: facts for key, facts in sorted((stated or {}).items()) if key not in known}
    added = {key: _loss_stated(facts, config) for key, facts in others.items()}
    charges += [(key, "as releases say", loss.epsilon, loss.delta) for key, loss in added.items() if loss is not None]
    total = sum((Loss(epsilon, delta) for *_, epsilon, delta in charges), NOTHING)
    missing = _missing([version.metric for version, loss in added.items() if loss is None]), other_ledger
    budget = config.privacy if book is None else book
    values = _names(path for metric in config.metric if not is_public(metric) for path in metric.value_fields)
    pattern = _names(path for metric in config.metric for path in metric.paths().values())
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
        "ranges": {metric.name: _ranges(metric) for metric in config.metric if not is_public(metric)},
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
    if facts.get("mechanism") == "exact" and facts.get("relation", VALUES) == VALUES:
        return NOTHING
    epsilon, delta = facts.get("epsilon"), facts.get("delta", 0)
    if not isinstance(epsilon, int | float) or not isinstance(delta, int | float):  # a text might be any number
        return None
    try:
        loss = Loss(Fraction(str(epsilon)), Fraction(str(delta)))
        is_same = parse_unit(str(facts.get("unit"))) == parse_unit(config.unit)
    except (ValueError, ShoalError):
        return None
    return loss if is_same and facts.get("relation", VALUES) == config.relation and loss.epsilon else None


def _missing(names: list[str]) -> str:
    """The sentence on metrics whose loss is not known by the unit of the sum."""
    if not names:
        return ""
    few = f"{len(names)} metric{'s' if len(names) > 1 else ''} on this page"
    return (
        f"Not in this sum: {few} ({', '.join(names)}), of which no loss is known by the unit and relation of the sum."
    )


def is_public(section: MetricSection) -> bool:
    """Whether it is a count of what anyone may count."""
    return section.statistic == "count" and not section.protects_presence


def amounts(epsilon: Fraction, delta: Fraction) -> dict[str, Any]:
    """An amount of privacy: a number for drawing and its exact text."""
    return {"epsilon": float(epsilon), "text": exact_text(epsilon), "delta": exact_text(delta) if delta else None}


def _ranges(section: MetricSection) -> list[list[float]]:
    return [[float(low), float(high)] for low, high in section.ranges]


def _names(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(paths))
