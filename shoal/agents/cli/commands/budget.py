"""`shoal budget`: what is charged to the ledger and what is left."""

import sys
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.output import AsJson, ConfigPath, result, say
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.spec import VALUES
from shoal.models.config.file import Config, load
from shoal.models.config.unit import parse_unit
from shoal.models.errors import LedgerError
from shoal.models.exact import exact_text
from shoal.models.loss_words import per, weakened
from shoal.models.tables import ACTIVE
from shoal.models.version import VersionId

Retire = Annotated[
    str | None, typer.Option(metavar="METRIC", help="Take the metric's active version out of use, for good.")
]
Raise = Annotated[bool, typer.Option("--raise", help="Raise the ledger's budget to [privacy], and log that.")]
Yes = Annotated[bool, typer.Option("--yes", help="Raise without asking; without a terminal nothing is asked anyway.")]


def budget(
    config: ConfigPath, raise_: Raise = False, retire: Retire = None, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Show what each metric version was charged, once and for good, and what is left.

    Raising the budget weakens the guarantee of everyone in it: that is a decision of its own, and logged.
    The command says by how much, and on a terminal asks first.
    A metric that is no longer in the configuration is retired before workers start without it; its charge stays, and
    a retired version never returns. One that the configuration has in another version than the ledger is refused.

    Example: shoal budget shoal.toml
    """
    loaded = load(config)
    with Ledger.open(loaded.audit.url) as ledger:
        retired = [] if retire is None else _retire(ledger, config, loaded, retire)
        book = _raised(ledger, loaded, yes=yes) if raise_ else ledger.budget_report()
    book = book or _unused(loaded)
    fields = _fields(book) | ({} if retire is None else {"retired": [list(version[1:]) for version in retired]})
    done = [f"retired  {one.metric} version {one.version}" for one in retired]
    result(fields, as_json=as_json, text=lambda: "\n".join(done + list(_lines(book))))


def _raised(ledger: Ledger, loaded: Config, *, yes: bool) -> BudgetReport:
    """Raise the budget, after saying what that means to those in it.

    Raises:
        LedgerError: there is no budget yet, or it would be lowered.
    """
    wanted, book = (loaded.privacy.epsilon, loaded.privacy.delta), ledger.budget_report()
    if book is not None and _is_more(wanted, (book.epsilon, book.delta)):
        say(f"shoal: {weakened(parse_unit(book.unit), Loss(book.epsilon, book.delta), Loss(*wanted), book.relation)}")
        if not yes and sys.stdin.isatty():
            typer.confirm("Raise it? It is logged, and never lowered again", abort=True, err=True)
    if book is not None and wanted == (book.epsilon, book.delta):
        say("shoal: nothing to raise: the ledger has the epsilon and delta of [privacy]; write larger ones there first")
    return ledger.raise_budget(*wanted)


def _is_more(wanted: tuple[Fraction, Fraction], held: tuple[Fraction, Fraction]) -> bool:
    return wanted != held and all(new >= old for new, old in zip(wanted, held, strict=True))


def _retire(ledger: Ledger, path: Path, loaded: Config, metric: str) -> list[VersionId]:
    """Retire the active version of a metric, if there is one; it is retired only once.

    Raises:
        LedgerError: no such metric was ever registered under this app, or another version of it is meant.
    """
    app, registered = loaded.kafka.app, ledger.of(loaded.kafka.app)
    rows = [row for row in registered.versions() if row.metric == metric]
    if not rows:
        raise LedgerError(f'no metric "{metric}" is registered under app {app!r}; `shoal budget CONFIG` lists them')
    active = [VersionId.of(row) for row in rows if row.state == ACTIVE]
    for version in active:
        _refuse_another(path, loaded, version)
    for version in active:
        registered.retire(version)
    return active


def _refuse_another(path: Path, loaded: Config, active: VersionId) -> None:
    """A configuration that has the metric in another version is an older or a newer one than what runs."""
    for metric in loaded.metrics:
        if metric.name == active.metric and metric.version != active.version:
            raise LedgerError(
                f"{path}: it has {loaded.id_of(metric)}, and version {active.version} is the active one; to retire "
                f"version {active.version} for good, give the configuration that has it, or one without this metric"
            )


def _unused(loaded: Config) -> BudgetReport:
    """The budget that the first registration will store."""
    return BudgetReport(loaded.privacy.epsilon, loaded.privacy.delta, loaded.unit, (), loaded.relation)


def _fields(book: BudgetReport) -> dict[str, Any]:
    charges = [
        {name: getattr(charge, name) for name in ("app", "metric", "version", "state")}
        | _amounts(charge.epsilon, charge.delta)
        for charge in book.charges
    ]
    totals = {"charged": _amounts(*book.charged), "left": _amounts(*book.left)}
    relation = {} if book.relation == VALUES else {"relation": book.relation}
    return {"unit": book.unit, **relation, **_amounts(book.epsilon, book.delta), **totals, "charges": charges}


def _amounts(epsilon: Fraction, delta: Fraction) -> dict[str, orjson.Fragment]:
    return {"epsilon": _number(epsilon), "delta": _number(delta)}


def _number(amount: Fraction) -> orjson.Fragment:
    """An exact JSON number; text where no decimal is exact."""
    text = exact_text(amount)
    return orjson.Fragment(f'"{text}"' if "/" in text else text)


def _lines(book: BudgetReport) -> list[str]:
    relation = "" if book.relation == VALUES else f", by relation {book.relation}"
    lines = [f"budget   {_both(book.epsilon, book.delta)} {per(parse_unit(book.unit))}{relation}"]
    for charge in book.charges:
        state = "" if charge.state == "active" else f" ({charge.state})"
        version = f"{charge.app}: {charge.metric} version {charge.version}"
        lines.append(f"charged  {_both(charge.epsilon, charge.delta)} by {version}{state}")
    return [*lines, f"left     {_both(*book.left)}"]


def _both(epsilon: Fraction, delta: Fraction) -> str:
    return f"epsilon {exact_text(epsilon)}" + (f", delta {exact_text(delta)}" if delta else "")
