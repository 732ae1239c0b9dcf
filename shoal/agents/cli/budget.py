"""`shoal budget`: what is charged to the ledger and what is left."""

import sys
from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Any

import orjson
import typer

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.output import AsJson, ConfigPath, result, say
from shoal.agents.guarantee import weakened
from shoal.mechanisms.privacy.accounting import Loss
from shoal.models.config.file import Config, load
from shoal.models.config.unit import parse_unit
from shoal.models.errors import LedgerError
from shoal.models.exact import exact_text
from shoal.models.tables import ACTIVE

Retire = Annotated[
    str | None, typer.Option(metavar="METRIC", help="Take the metric's active version out of use, for good.")
]
Raise = Annotated[bool, typer.Option("--raise", help="Raise the ledger's budget to [privacy], and log that.")]


Yes = Annotated[bool, typer.Option("--yes", help="Raise without asking; only a terminal is asked anyway.")]


def budget(
    config: ConfigPath, raise_: Raise = False, retire: Retire = None, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Show what each metric version was charged, once and for good, and what is left.

    Raising the budget weakens the guarantee of everyone in it: that is a decision of its own, and logged.
    The command says by how much, and on a terminal asks first.
    A metric that is no longer in the configuration is retired before workers start without it; its charge stays, and
    a retired version never returns.

    Example: shoal budget shoal.toml
    """
    said = load(config)
    with Ledger.open(said.audit.url) as ledger:
        retired = [] if retire is None else _retire(ledger, said.kafka.app, retire)
        book = _raised(ledger, said, yes=yes) if raise_ else ledger.budget_report()
    book = book or _unused(said)
    fields = _fields(book) | ({} if retire is None else {"retired": [list(one) for one in retired]})
    done = [f"retired  {metric} version {version}" for metric, version in retired]
    result(fields, as_json=as_json, text=lambda: "\n".join(done + list(_lines(book))))


def _raised(ledger: Ledger, said: Config, *, yes: bool) -> BudgetReport:
    """Raise the budget, after saying what that means to those in it.

    Raises:
        LedgerError: there is no budget yet, or it would be lowered.
    """
    wanted, book = (said.privacy.epsilon, said.privacy.delta), ledger.budget_report()
    if book is not None and _is_more(wanted, (book.epsilon, book.delta)):
        say(f"shoal: {weakened(parse_unit(book.unit), Loss(book.epsilon, book.delta), Loss(*wanted))}")
        if not yes and sys.stdin.isatty():
            typer.confirm("Raise it? It is logged, and never lowered again", abort=True, err=True)
    return ledger.raise_budget(*wanted)


def _is_more(wanted: tuple[Fraction, Fraction], held: tuple[Fraction, Fraction]) -> bool:
    return wanted != held and all(new >= old for new, old in zip(wanted, held, strict=True))


def _retire(ledger: Ledger, app: str, metric: str) -> list[tuple[str, int]]:
    """Retire what is active of a metric; again is nothing new.

    Raises:
        LedgerError: no such metric was ever registered under this app.
    """
    rows = [row for row in ledger.versions(app) if row.metric == metric]
    if not rows:
        raise LedgerError(f'no metric "{metric}" is registered under app {app!r}; `shoal budget CONFIG` lists them')
    active = [(row.metric, row.version) for row in rows if row.state == ACTIVE]
    for name, version in active:
        ledger.retire(app, name, version)
    return active


def _unused(said: Config) -> BudgetReport:
    """What the first registration will store."""
    return BudgetReport(said.privacy.epsilon, said.privacy.delta, said.unit, ())


def _fields(book: BudgetReport) -> dict[str, Any]:
    charges = [
        {"app": one.app, "metric": one.metric, "version": one.version, "state": one.state, **_amounts(one)}
        for one in book.charges
    ]
    totals = {name: dict(zip(("epsilon", "delta"), map(_number, two), strict=True)) for name, two in _totals(book)}
    return {"unit": book.unit, **_amounts(book), **totals, "charges": charges}


def _totals(book: BudgetReport) -> Iterable[tuple[str, tuple[Fraction, Fraction]]]:
    return (("charged", book.charged), ("left", book.left))


def _amounts(one: Any) -> dict[str, orjson.Fragment]:
    return {"epsilon": _number(one.epsilon), "delta": _number(one.delta)}


def _number(amount: Fraction) -> orjson.Fragment:
    """An exact JSON number; text where no decimal is exact."""
    text = exact_text(amount)
    return orjson.Fragment(f'"{text}"' if "/" in text else text)


def _lines(book: BudgetReport) -> list[str]:
    lines = [f"budget   {_both(book.epsilon, book.delta)} per {book.unit}"]
    for one in book.charges:
        state = "" if one.state == "active" else f" ({one.state})"
        lines.append(
            f"charged  {_both(one.epsilon, one.delta)} by {one.app}: {one.metric} version {one.version}{state}"
        )
    return [*lines, f"left     {_both(*book.left)}"]


def _both(epsilon: Fraction, delta: Fraction) -> str:
    return f"epsilon {exact_text(epsilon)}" + (f", delta {exact_text(delta)}" if delta else "")
