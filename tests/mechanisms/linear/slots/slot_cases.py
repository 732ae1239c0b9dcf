"""What the tests of statistics per slot that protect presence share."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from shoal.mechanisms.bins.shares import BINS
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.slots.statistic import LinearSlots, slot_sides
from shoal.mechanisms.statistic import Contribution
from shoal.models.config import forms
from shoal.models.config.file import Config

KEY = b"k" * 32
HOUR = 3_600_000_000
STEPS = 8
SURE = Fraction(10**15)  # an epsilon without noise
NAMES: tuple[str, ...] = ("mean", "variance")
METRIC: dict[str, Any] = {
    "name": "m", "topic": "t", "user": "u", "value": "x", "range": (0, 10), "time": "at", "relation": "add-remove",
    "statistic": "mean", "slot": "1h", "start": "1970-01-01T02:00:00Z", "epsilon": 1, "max_contributions": 4,
}  # fmt: skip
HEXAGONS = {"h3": 7, "lat": "lat", "lon": "lon"}


def metric(**given: Any) -> Any:
    """A metric's section; a key of None is left out."""
    said = {key: value for key, value in (METRIC | given).items() if value is not None}
    (section,) = Config.model_validate({"privacy": {"epsilon": 99, "delta": "0.1"}, "metric": [said]}).metric
    return section


def made(**given: Any) -> LinearSlots:
    section = metric(**given)
    found: LinearSlots = LinearSlots.of(section.parts)
    return found


def sided(statistic: str, *, epsilon: Fraction | int = 1, steps: int = STEPS, m: int = 5, **more: Any) -> LinearSlots:
    grid = Grid(Fraction(-1), Fraction(3), steps)
    cls: Any = forms.HIDDEN_CELLS.statistics[statistic]
    sides = slot_sides(cls, grid, more.pop("bins", BINS))
    return LinearSlots(statistic=cls, sides=sides, grid=grid, epsilon=Fraction(epsilon), max_contributions=m, **more)


def came(of: LinearSlots, samples: Sequence[int], newcomers: int = 0) -> list[Contribution]:
    """What bound sends of samples, which are grid indices, and of units that come, each with a weight of 1."""
    packing = of.packing
    total: Any = sum(samples) if packing is None else packing.unpack(sum(packing.pack([i]) for i in samples), 0)
    weight: Any = newcomers if packing is None else packing.unpack(newcomers, 0)
    found = [Contribution(0, "", 0, 0, len(samples), total)] if samples else []
    return found + ([Contribution(0, "", NEWCOMERS, 0, newcomers, weight)] if newcomers else [])
