"""Keys of what is released per place and slot of time: what belongs together, and what is refused.

{ h3 = 8, lat = "lat", lon = "lon" }   the cell of an event: a hexagon of the H3 grid at that resolution
slot = "1h"                            every cell is released once, at the end of each slot
"""

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from shoal.models.config.section import Section
from shoal.models.config.unit import SLOT

if TYPE_CHECKING:
    from shoal.models.config.metric import MetricSection

SLOTTED = ("slot-mean", "slot-mean-variance", "slot-distribution")
FOR_MEANS = ("best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile", "few-users")
FOR_OTHERS = ("best", "baseline")  # of mean and variance, and of distributions
FEW_USERS = "few-users"
UNIT = SLOT
MOST_BINS = 1 << 13  # a release has eight numbers for each, and Kafka takes a megabyte
QUANTILES = tuple(Fraction(percent, 100) for percent in (5, 25, 50, 75, 95))
# Keys that statistics without slots have no use for.
KEYS = (
    "slot", "cell", "max_cells", "max_slots", "across_cells", "contribution_cap", "min_users", "bins", "quantiles",
)  # fmt: skip


class CellSection(Section):
    """`cell = { h3 = ..., lat = ..., lon = ... }` of a metric: where an event was."""

    h3: int = Field(..., ge=0, le=15, description="resolution of the H3 grid: 8 is 0.7 square kilometres a cell")
    lat: str = Field(..., min_length=1, description="field with the latitude in degrees, -90 to 90")
    lon: str = Field(..., min_length=1, description="field with the longitude in degrees, -180 to 180")


Cap = Literal["median", "optimal"]


def refuse_slot_keys(metric: "MetricSection") -> None:
    """A statistic without slots has no use for them.

    Raises:
        ValueError: it has one.
    """
    for key in KEYS:
        if getattr(metric, key) is not None:
            raise ValueError(f"{key} is for statistics per slot: {', '.join(SLOTTED)}; remove it")
    if metric.unit == UNIT:
        raise ValueError(f"unit {UNIT} is for statistics per slot: {', '.join(SLOTTED)}")


def check_slotted(metric: "MetricSection") -> None:
    """What a statistic per slot needs, and what it has no use for.

    Raises:
        ValueError: a key is missing, is not for it, or contradicts another.
    """
    if metric.slot is None:
        raise ValueError("slot is missing; add it")
    for key in ("every", "step", "decay", "horizon"):
        if getattr(metric, key) is not None:
            raise ValueError(f"{key} is not for statistics per slot, which are released at its end; remove it")
    if metric.max_groups_per_user != 1:
        raise ValueError("max_groups_per_user is for means and sums; a slot has max_cells; use that")
    if len(metric.values) != 1:
        raise ValueError("several values are for means without a decay; use a metric for each")
    _check_algorithm(metric)
    _check_cells(metric)
    _check_unit(metric, metric.slot)


def _check_algorithm(metric: "MetricSection") -> None:
    allowed = FOR_MEANS if metric.statistic == "slot-mean" else FOR_OTHERS
    if metric.algorithm not in allowed:
        raise ValueError(f"{metric.algorithm} is not for a {metric.statistic}; use one of: {', '.join(allowed)}")
    uses_few = FEW_USERS in (metric.algorithm, metric.prior)
    if metric.prior is not None and metric.prior != FEW_USERS:
        raise ValueError(f'prior of a statistic per slot is "{FEW_USERS}", or none')
    if metric.prior is not None and (metric.statistic != "slot-mean" or metric.algorithm != "best"):
        raise ValueError(f'prior = "{FEW_USERS}" is for a slot-mean with algorithm best; remove it')
    if uses_few != (metric.delta != 0):
        raise ValueError(
            "delta must be above 0: few-users is approximate differential privacy"
            if uses_few
            else f"delta must be 0: {metric.algorithm} is pure differential privacy"
        )
    if metric.sigma is not None and not uses_few:
        raise ValueError("sigma of a statistic per slot is for few-users; remove it")
    if metric.statistic != "slot-distribution":
        for key in ("bins", "quantiles"):
            if getattr(metric, key) is not None:
                raise ValueError(f"{key} is for a slot-distribution; remove it")
    elif metric.grid < metric.bin_count:
        raise ValueError("bins are more than the grid has steps; use fewer, or a finer grid")


def _check_cells(metric: "MetricSection") -> None:
    if metric.cell is not None and metric.group is not None:
        raise ValueError("cell and group both say where an event belongs; keep one")
    if metric.cell is None and metric.group is None:
        for key in ("max_cells", "across_cells"):
            if getattr(metric, key) is not None:
                raise ValueError(f"{key} needs cells: add cell or group, or remove it")


def _check_unit(metric: "MetricSection", slot: int) -> None:
    """A unit is a number of whole slots, and its share of each is known beforehand."""
    unit = metric.of
    if unit.is_event:
        raise ValueError(f"unit event is not for statistics per slot; use {UNIT}, or a coarser one")
    if unit.period is not None and unit.period % slot:
        raise ValueError(f"unit {unit.name} is not a whole number of slots; choose one that is, or {UNIT}")
    if unit.period == slot:
        if metric.max_slots not in (None, 1):
            raise ValueError("max_slots is for units longer than a slot; remove it")
    elif metric.max_slots is None:
        raise ValueError(
            f"max_slots is missing: unit {unit.name} has many slots, and each has a share of epsilon; add it"
        )
    elif unit.period is not None and metric.max_slots > unit.period // slot:
        raise ValueError(f"max_slots: a {unit.name} has {unit.period // slot} slots; use so many at most")
