"""The algorithms for one cell, by the names that configurations have for them."""

from collections.abc import Callable, Mapping

from shoal.mechanisms.slot import (
    allotment,
    array_averaging,
    baseline,
    best,
    distribution,
    epsilon_quantile,
    few_users,
    fixed_quantile,
    levy,
    mean_variance,
)
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users
from shoal.mechanisms.slot.chop_users import Error
from shoal.mechanisms.statistic import Estimate

Release = Callable[[Users, CellParameters, Draws], Estimate]
Prediction = Callable[[Counts, CellParameters], float]
Algorithm = tuple[Release, Prediction]
WITH_PRIOR = "with-prior"

MEANS: Mapping[str, Algorithm] = {
    "best": (best.release, best.predicted_error),
    "baseline": (baseline.release, baseline.predicted_error),
    "array-averaging": (array_averaging.release, array_averaging.predicted_error),
    "levy": (levy.release, levy.predicted_error),
    "fixed-quantile": (fixed_quantile.release, fixed_quantile.predicted_error),
    "epsilon-quantile": (epsilon_quantile.release, epsilon_quantile.predicted_error),
    "few-users": (few_users.release, few_users.predicted_error),
    WITH_PRIOR: (few_users.release_with_prior, few_users.predicted_error_with_prior),
}
MEANS_AND_VARIANCES: Algorithm = (mean_variance.release, mean_variance.predicted_error)
DISTRIBUTIONS: Algorithm = (distribution.release, distribution.predicted_error)


def algorithm_of(statistic: str, name: str) -> Algorithm:
    """The function that turns a cell's samples into its release, and the one that predicts its error from their number.

    The other statistics have one mechanism, whose cap `best` and `baseline` choose differently.
    """
    return {"slot-mean-variance": MEANS_AND_VARIANCES, "slot-distribution": DISTRIBUTIONS}.get(statistic) or MEANS[name]


def worst_error(statistic: str) -> Error:
    """The worst expected error of a cell, which decides who is left out of which cell."""
    return allotment.mean_and_variance_error if statistic == "slot-mean-variance" else allotment.mean_error
