"""All that the page is told at once: releases, what was agreed about them, and how the deployment does."""

import time
from typing import Any

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.dashboard.book import Book
from shoal.agents.dashboard.cells import polygons, said
from shoal.agents.dashboard.facts import loss_stated, metric_facts, privacy_facts, times_agreed
from shoal.mechanisms.spec import ADD_REMOVE
from shoal.models.config.file import Config


def snapshot(
    book: Book,
    config: Config | None,
    *,
    budget: BudgetReport | None = None,
    status: dict[str, Any] | None = None,
    title: str = "releases",
    note: str = "",
    label: str = "",
) -> dict[str, Any]:
    """The page's data; with a status it is that of a running deployment. `label` names the value of its one metric."""
    configured = {} if config is None else {metric.name: metric for metric in config.metrics}
    metrics = list(book.tables())
    for metric in metrics:
        known = configured.get(metric["name"])
        is_same = known is not None and known.version == metric["version"]
        metric["said"] = metric_facts(known) if known is not None and is_same else None
        metric["loss"] = loss_stated(metric["facts"])
        metric["label"] = label
        metric["places"] = polygons(metric["groups"])
        if metric["places"] is not None:
            metric["places"]["first"], metric["places"]["absent"] = said(
                metric["facts"].get("relation") == ADD_REMOVE,
                is_thinned=book.metrics[metric["name"]].is_thinned,
            )
    return {
        "title": title if config is None else config.kafka.app,
        "made": round(time.time()),
        "live": status is not None,
        "releases": book.releases,
        "others": dict(book.others),
        "metrics": metrics,
        "waiting": [name for name in configured if name not in book.metrics],
        "privacy": None if config is None else privacy_facts(config, budget, book.stated),
        "agreed": {} if config is None else times_agreed(config),
        "status": status,
        "note": note,
    }
