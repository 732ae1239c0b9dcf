"""The algorithms for one cell, by the names that configurations have for them."""

from collections.abc import Callable

from shoal.mechanisms.slots import many_cells
from shoal.mechanisms.slots.cell import CellEstimate, CellParameters, Draws, Users
from shoal.mechanisms.slots.chopping import Error

Release = Callable[[Users, CellParameters, Draws], CellEstimate]
WITH_PRIOR = "with-prior"


def release_of(statistic: str, algorithm: str) -> Release:
    """What makes a cell's release of its samples."""
    return RELEASES[statistic][algorithm]


def worst_error(statistic: str) -> Error:
    """The worst expected error of a cell: what decides who is left out of which cell."""
    return many_cells.mean_and_variance_error if statistic == "slot-mean-variance" else many_cells.mean_error


def _mean(users: Users, of: CellParameters, draws: Draws) -> CellEstimate:
    samples = sum(map(len, users))
    total = sum(map(sum, users))
    scale = of.grid.steps * max(map(len, users)) / of.epsilon
    noise = draws.laplace("sum", scale)
    value = of.grid.mean_value(total + noise, samples)
    return CellEstimate(value, 1.0, value - 1, value + 1, samples, 1.0, "baseline")


RELEASES: dict[str, dict[str, Release]] = {
    "slot-mean": {"best": _mean, "baseline": _mean},
    "slot-mean-variance": {},
    "slot-distribution": {},
}
