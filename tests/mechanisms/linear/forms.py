"""Every form of a statistic that is a sum of samples: by statistic, relation and range."""

from fractions import Fraction
from typing import Any

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.sides import hidden_sides, sides_of_values
from shoal.mechanisms.linear.statistic import ONE, LinearStatistic
from shoal.mechanisms.parts.of import (
    Count,
    Distribution,
    Mean,
    Of,
    PublicCount,
    Sum,
    Users,
    Variance,
)
from shoal.mechanisms.sums.decays import Window

Range = tuple[Fraction, Fraction]
ACROSS: Range = (Fraction(-1), Fraction(3))
UP: Range = (Fraction(0), Fraction(3))
DOWN: Range = (Fraction(-3), Fraction(0))
FORMS: dict[str, tuple[type[Of], Range | None, bool]] = {  # statistic, range, whether presence is hidden
    "public count": (PublicCount, None, False),
    "sum": (Sum, ACROSS, False),
    "mean": (Mean, ACROSS, False),
    "variance": (Variance, ACROSS, False),
    "count": (Count, None, True),
    "users": (Users, None, True),
    "hidden mean": (Mean, ACROSS, True),
    "hidden sum that ends at 0": (Sum, UP, True),
    "hidden sum that begins below 0": (Sum, DOWN, True),
    "signed sum": (Sum, ACROSS, True),
    "hidden variance": (Variance, ACROSS, True),
    "distribution": (Distribution, ACROSS, True),
}
NOISED = [name for name in FORMS if name != "public count"]


def made(form: str, *, steps: int = 8, m: int = 3, bins: int = 4, **more: Any) -> LinearStatistic:
    """A statistic of this form, over a window of four steps."""
    statistic, ends, is_hidden = FORMS[form]
    grid = ONE if ends is None else Grid(*ends, steps)
    sides: Any = None
    if is_hidden:
        grid, sides = hidden_sides(statistic, grid, bins)
    else:
        sides = sides_of_values(statistic, grid)
    given: dict[str, Any] = {"decay": Window(4), "epsilon": Fraction(7, 3)} | more
    return LinearStatistic(statistic=statistic, sides=sides, grid=grid, max_contributions=m, **given)


def total(of: LinearStatistic, samples: list[int]) -> Any:
    """What bound sends of samples, which are grid indices, summed."""
    if of.packing is None:
        return 0 if of.statistic in (PublicCount, Count, Users) else sum(samples)
    return of.packing.unpack(sum(of.packing.pack([i]) for i in samples), len(samples))
