"""Rules between the parts of statistics per slot: each raises ValueError with the key, the fault and the remedy."""

from shoal.mechanisms.parts.by import Best, FewUsers, OfCells
from shoal.mechanisms.parts.metric import Budget
from shoal.mechanisms.parts.of import WithValues
from shoal.mechanisms.parts.rules import Rule
from shoal.mechanisms.slot.means.several import MOST


def delta(by: OfCells, budget: Budget) -> None:
    """Require a delta where few users choose, and refuse it elsewhere."""
    uses_few = isinstance(by, FewUsers) or (isinstance(by, Best) and by.prior is not None)
    if uses_few != (budget.delta != 0):
        raise ValueError(
            "delta must be above 0: few-users is approximate differential privacy"
            if uses_few
            else f"delta must be 0: {by.name} is pure differential privacy"
        )


def spread(by: OfCells) -> None:
    """Refuse two ways to find where values lie."""
    if isinstance(by, Best) and by.prior is not None and by.spread_share is not None:
        raise ValueError("spread_share and prior both find where values lie; keep one")


def coordinates(of: WithValues, by: OfCells) -> None:
    """Refuse several values where no algorithm takes them."""
    count = of.values.count
    if count == 1:
        return
    if isinstance(by, Best) and by.prior is not None:
        raise ValueError(
            f'several values have no prior = "{FewUsers.name}"; use algorithm = "{FewUsers.name}", or a metric for each'
        )
    if count > MOST and not isinstance(by, FewUsers):
        raise ValueError(
            f"value has {count} coordinates, and a mean per slot {MOST} at most, or 32 with {FewUsers.name}; use "
            "several metrics"
        )


RULES: tuple[Rule, ...] = (delta, spread, coordinates)
