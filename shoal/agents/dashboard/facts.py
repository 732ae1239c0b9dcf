"""What a configuration and a ledger say about the releases: for whom they are private, by how much, what was charged.

All of it is public: parameters, sentences of `shoal check`, amounts of the ledger.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.guarantee import guarantee, per, together
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.config.unit import parse_unit
from shoal.models.exact import exact_text


def metric_facts(section: MetricSection) -> dict[str, Any]:
    """What the page says about one metric beside its numbers."""
    decay = section.decay_or_none
    return {
        "version": section.version,
        "statistic": section.statistic,
        "values": list(section.values),
        "group": section.group,
        "ranges": _ranges(section),
        "epsilon": exact_text(section.epsilon),
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


def privacy_facts(config: Config, book: BudgetReport | None) -> dict[str, Any]:
    """What anyone who looks at the releases should know; without a ledger, what the configuration will charge."""
    planned = [(m.name, m.version, "planned", *config.charge_of(m)) for m in config.metric]
    charges = planned if book is None else [(c.metric, c.version, c.state, c.epsilon, c.delta) for c in book.charges]
    total = sum((Loss(epsilon, delta) for *_, epsilon, delta in charges), NOTHING)
    budget = config.privacy if book is None else book
    values = _names(path for metric in config.metric if not is_public(metric) for path in metric.value_fields)
    pattern = _names(path for metric in config.metric for path in metric.paths().values())
    return {
        "sentences": str(together(config, total)),
        "whom": per(parse_unit(config.unit)),
        "hides_presence": config.protects_presence,
        "protected": values + pattern if config.protects_presence else values,
        "public": [] if config.protects_presence else pattern,
        "budget": amounts(budget.epsilon, budget.delta),
        "charged": amounts(total.epsilon, total.delta),
        "charges": [
            {"metric": metric, "version": version, "state": state, **amounts(epsilon, delta)}
            for metric, version, state, epsilon, delta in charges
        ],
        "ranges": {metric.name: _ranges(metric) for metric in config.metric if not is_public(metric)},
        "is_ledger": book is not None,
    }


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
