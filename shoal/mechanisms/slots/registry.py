"""The algorithms for one cell, by the names that configurations have for them."""

from collections.abc import Callable

from shoal.mechanisms.slots import array_averaging, baseline, many_cells, mean_variance
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


RELEASES: dict[str, dict[str, Release]] = {
    "slot-mean": {
        "best": array_averaging.release,
        "baseline": baseline.release,
        "array-averaging": array_averaging.release,
    },
    "slot-mean-variance": {"best": mean_variance.release, "baseline": mean_variance.release},
    "slot-distribution": {},
}
