"""The algorithms for one cell, by the names that configurations have for them."""

from collections.abc import Mapping

from shoal.mechanisms.parts.of import Distribution, Variance
from shoal.mechanisms.slot import allotment, distribution, mean_variance
from shoal.mechanisms.slot.cell import Algorithm
from shoal.mechanisms.slot.chop_users import Error
from shoal.mechanisms.slot.means import best, few_users, few_users_values, levy, several
from shoal.mechanisms.slot.means.linear import ARRAY_AVERAGING, BASELINE
from shoal.mechanisms.slot.means.quantile import DEPENDENT, FIXED

WITH_PRIOR = "with-prior"

MEANS: Mapping[str, Algorithm] = {
    "best": Algorithm(best.release, best.predicted_error),
    "baseline": Algorithm(BASELINE.release, BASELINE.predicted_error),
    "array-averaging": Algorithm(ARRAY_AVERAGING.release, ARRAY_AVERAGING.predicted_error),
    "levy": Algorithm(levy.release, levy.predicted_error),
    "fixed-quantile": Algorithm(FIXED.release, FIXED.predicted_error),
    "epsilon-quantile": Algorithm(DEPENDENT.release, DEPENDENT.predicted_error),
    "few-users": Algorithm(few_users.release, few_users.predicted_error),
    WITH_PRIOR: Algorithm(few_users.release_with_prior, few_users.predicted_error_with_prior),
}


def _of_values(name: str) -> Algorithm:
    """The algorithm for values of several coordinates."""
    if name == "few-users":
        return Algorithm(few_users_values.release, few_users_values.predicted_error)
    choose = best.release_of if name == "best" else several.always(MEANS[name].release)
    return Algorithm(several.jointly(choose), several.predicting(MEANS[name].predicted_error))


MEANS_OF_VALUES: Mapping[str, Algorithm] = {name: _of_values(name) for name in MEANS if name != WITH_PRIOR}
MEANS_AND_VARIANCES = Algorithm(mean_variance.release, mean_variance.predicted_error)
DISTRIBUTIONS = Algorithm(distribution.release, distribution.predicted_error)


def algorithm_of(statistic: type, name: str) -> Algorithm:
    """The function that turns a cell's samples into its release, and the one that predicts its error from their number.

    The other statistics have one mechanism, whose cap `best` and `baseline` choose differently.
    """
    return {Variance: MEANS_AND_VARIANCES, Distribution: DISTRIBUTIONS}.get(statistic) or MEANS[name]


def worst_error(statistic: type) -> Error:
    """The worst expected error of a cell, which decides who is left out of which cell."""
    return allotment.mean_and_variance_error if statistic is Variance else allotment.mean_error
