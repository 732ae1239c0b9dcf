"""The budget of a log's population: how much it is, what is charged to it, and what still fits.

The first registration stores the configured budget. A later configuration may name less, as long as all charges fit
into it, but never more: raising the budget is a command of its own, and logged. Charges of retired versions stay, since
what was published stays known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from sqlalchemy import Connection, insert, select, update

from shoal.agents.audit.database import now
from shoal.mechanisms.privacy.accounting import NOTHING, Loss
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.unit import parse_unit
from shoal.models.errors import LedgerError
from shoal.models.exact import exact_text
from shoal.models.tables import Budget, BudgetChange, MetricVersion


@dataclass(frozen=True)
class Charge:
    """The charge of one metric version."""

    app: str
    metric: str
    version: int
    state: str
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class BudgetReport:
    """The budget, what is charged to it, and what is left. A log without registrations has no budget yet."""

    epsilon: Fraction
    delta: Fraction
    unit: str
    charges: tuple[Charge, ...]
    relation: str = VALUES

    @property
    def charged(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta of all charges."""
        total = sum((Loss(charge.epsilon, charge.delta) for charge in self.charges), NOTHING)
        return total.epsilon, total.delta

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        epsilon, delta = self.charged
        return self.epsilon - epsilon, self.delta - delta


def report(connection: Connection) -> BudgetReport | None:
    """The budget and all charges, of every app and in every state."""
    budget = connection.execute(select(*Budget.__table__.columns)).one_or_none()
    if budget is None:
        return None
    key = (MetricVersion.app, MetricVersion.metric, MetricVersion.version)
    wanted = select(*key, MetricVersion.state, MetricVersion.charge_epsilon, MetricVersion.charge_delta)
    charges = [Charge(*row) for row in connection.execute(wanted.order_by(*key))]
    return BudgetReport(budget.epsilon, budget.delta, budget.unit, tuple(charges), budget.relation)


def write_budget(
    connection: Connection, epsilon: Fraction, delta: Fraction, *, unit: str | None = None, relation: str = VALUES
) -> None:
    """Make the budget, or change it (without a unit), and log that."""
    if unit is not None:
        connection.execute(insert(Budget).values(one=1, epsilon=epsilon, delta=delta, unit=unit, relation=relation))
    else:
        connection.execute(update(Budget).values(epsilon=epsilon, delta=delta))
    connection.execute(insert(BudgetChange).values(at=now(), epsilon=epsilon, delta=delta))


def check_budget(
    held: BudgetReport | None,
    epsilon: Fraction,
    delta: Fraction,
    unit: str,
    relation: str,
    charges: Iterable[tuple[str, Fraction, Fraction]],
) -> None:
    """Refuse unless old charges and new ones (name, epsilon, delta) fit into the held and the configured budget."""
    book = held or BudgetReport(epsilon, delta, unit, (), relation)
    # The relation comes first: where a file says neither, the unit follows from it.
    if book.relation != relation:
        raise LedgerError(f"[privacy] relation: {_other_relation(book.relation)}")
    if parse_unit(book.unit) != parse_unit(unit):
        raise LedgerError(f"[privacy] unit: the ledger's unit is {book.unit}, not {unit}; set it back")
    new = list(charges)
    _check_part("epsilon", book.epsilon, epsilon, book.charged[0], [(name, charge) for name, charge, _ in new])
    _check_part("delta", book.delta, delta, book.charged[1], [(name, charge) for name, _, charge in new])


def _other_relation(held: str) -> str:
    if held == ADD_REMOVE:
        return (
            f"the ledger counts by {ADD_REMOVE}, in which a metric of relation {VALUES} has no bound: it publishes who "
            "contributes; give it a file, an app and an audit log of its own"
        )
    return (
        f'the ledger counts by {VALUES}; use another audit log, which is best, or set relation = "{VALUES}" under '
        f"[privacy]: then each metric of relation {ADD_REMOVE} is charged what a group of two loses"
    )


def _check_part(
    name: str, stored: Fraction, configured: Fraction, charged: Fraction, charges: Iterable[tuple[str, Fraction]]
) -> None:
    if configured > stored:
        raise LedgerError(
            f"[privacy] {name} {exact_text(configured)} is more than the {exact_text(stored)} of the ledger; set it "
            "back, or raise it explicitly: shoal budget CONFIG --raise"
        )
    left = configured - charged
    if left < 0:
        raise LedgerError(
            f"[privacy] {name} {exact_text(configured)} is less than the {exact_text(charged)} already charged to the "
            "ledger; charges stay, set it back"
        )
    for version, charge in charges:
        if charge > left:
            raise LedgerError(
                f"{version}: a charge of {name} {exact_text(charge)} is more than the {exact_text(left)} left of "
                f"{exact_text(configured)}; lower it, or have [privacy] {name} raised (shoal budget CONFIG --raise)"
            )
        left -= charge
