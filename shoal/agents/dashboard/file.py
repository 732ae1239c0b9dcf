"""The page of a file of releases: one HTML that needs no server and asks nobody for anything."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.dashboard.book import Book
from shoal.agents.dashboard.page import page
from shoal.agents.dashboard.snapshot import snapshot
from shoal.models.config.file import Config
from shoal.models.errors import InputError


@dataclass(frozen=True)
class FilePage:
    """The page's text, and what it is of."""

    text: str
    releases: int
    metrics: int
    left_out: dict[str, int]

    @property
    def fields(self) -> dict[str, Any]:
        return {"releases": self.releases, "metrics": self.metrics, "left_out": self.left_out}


def page_of(
    lines: Iterable[bytes],
    name: str,
    config: Config | None = None,
    note: str = "",
    budget: BudgetReport | None = None,
) -> FilePage:
    """The page of these lines; what is no release among them is counted, and said on it. `budget` is the ledger's.

    Raises:
        InputError: there is no release at all. `name` is the input's.
    """
    book = Book(app="" if config is None else config.kafka.app)
    for line in lines:
        book.take(line)
    if not book.releases:
        raise InputError(f"{name}: there is no release in it; name a file that `shoal run` wrote")
    data = snapshot(book, config, budget=budget, title=name, note=note)
    return FilePage(page(data), book.releases, len(book.metrics), dict(book.others))


def page_by_place(lines: Iterable[bytes], label: str, note: str = "") -> str:
    """The page of one metric by place; `label` names its value.

    Nothing is thinned: a cell without its release would look like one in which nothing was released.
    """
    book = Book(sys.maxsize, sys.maxsize)
    for line in lines:
        book.take(line)
    return page(snapshot(book, None, title=f"{label}, by place", note=note, label=label))
