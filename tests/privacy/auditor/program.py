"""The least noise that turns one world's releases into another's: a linear program.

Releases are y = exact + L z, with z the unknown draws. Noise z in the first world gives the releases of the second with
z - w, where L w is the difference of the exact numbers. Discrete Laplace noise of scale b has the ratio of its
probabilities at most exp(|w| / b), so the privacy loss is at most the least

    sum_j |w_j| / b_j   with   L w = difference.

Of the draws of a cube, which have one scale, the largest |w_j| alone counts. For Gaussian draws it is the least sum of
w_j^2 / (2 sigma_j^2), a rho of zero-concentrated privacy, to which private choices add theirs.
"""

import importlib
from collections.abc import Sequence
from fractions import Fraction
from math import isinf
from typing import Any

import numpy as np

from shoal.mechanisms.privacy.zcdp import smallest_epsilon
from tests.privacy.auditor.unknowns import Law

TOLERANCE = 1e-6  # of the difference, by which releases that are floats may miss it
NUMERICAL = 4  # the simplex method's status if its numbers became too inexact to go on
Numbers = np.ndarray[Any, np.dtype[np.float64]]


class Unsolved(AssertionError):
    """No noise gives the other world's releases: what is published shows which world it is."""


def solver() -> Any:
    """scipy.optimize, which only tests need.

    Raises:
        RuntimeError: scipy is not installed.
    """
    try:
        return importlib.import_module("scipy.optimize")
    except ModuleNotFoundError:
        raise RuntimeError("the privacy auditor needs scipy: pip install 'shoal[test]', or make install") from None


def least_loss(
    coefficients: Numbers,
    difference: Numbers,
    laws: Sequence[Law],
    delta: Fraction,
    spent: float = 0.0,
    rho: float = 0.0,
) -> float:
    """The least epsilon of noise that moves the releases by this difference, with choices that cost `spent` or `rho`.

    Raises:
        Unsolved: there is no such noise.
    """
    largest = float(np.abs(difference).max(initial=0.0))
    if largest <= TOLERANCE:
        return spent if not delta or isinf(rho) else min(spent, _epsilon(rho, delta))
    if not laws:
        raise Unsolved("releases without noise differ")
    if any(law.gaussian for law in laws):
        assert all(law.gaussian for law in laws), "both kinds of noise in one metric"
        return _epsilon(rho + _gaussian(coefficients, difference, laws), delta)
    return spent + _laplace(coefficients, difference, laws)


def _epsilon(rho: float, delta: Fraction) -> float:
    return float(smallest_epsilon(Fraction(rho).limit_denominator(10**12), delta))


def _laplace(coefficients: Numbers, difference: Numbers, laws: Sequence[Law]) -> float:
    # a column for each number that costs: a Laplace draw's size, or that of the largest in a cube
    sizes = {law.cube or index: float(law.scale) for index, law in enumerate(laws)}
    place = {name: index for index, name in enumerate(sizes)}
    column = np.array([place[law.cube or index] for index, law in enumerate(laws)])
    rows = np.maximum(np.abs(coefficients).max(axis=1), 1e-9)  # so that all rows are of one size
    matrix, wanted = coefficients / rows[:, None], difference / rows
    room = TOLERANCE * max(1.0, float(np.abs(difference).max())) / rows
    size = float(np.abs(wanted).max())
    both = np.hstack([matrix, np.zeros((len(matrix), len(sizes)))])
    within = np.zeros((len(laws), len(sizes)))
    within[np.arange(len(laws)), column] = -1.0  # w is at most that size, and so is -w
    free = np.eye(len(laws))
    program = {
        "c": np.concatenate([np.zeros(len(laws)), 1 / np.array(list(sizes.values()))]) * size,
        "A_ub": np.vstack([both, -both, np.hstack([free, within]), np.hstack([-free, within])]),
        "b_ub": np.concatenate([(wanted + room) / size, (room - wanted) / size, np.zeros(2 * len(laws))]),
        "bounds": (None, None),
    }
    found = solver().linprog(**program, method="highs")
    if found.status == NUMERICAL:  # interior points get on without the bases that it lost
        found = solver().linprog(**program, method="highs-ipm")
    if not found.success:
        raise Unsolved(f"no noise gives the other world's releases: {found.message}")
    return float(found.fun)


def _gaussian(coefficients: Numbers, difference: Numbers, laws: Sequence[Law]) -> float:
    deviations = np.array([float(law.scale) ** 0.5 for law in laws])
    matrix = coefficients * deviations[None, :]
    moved, *_ = np.linalg.lstsq(matrix, difference, rcond=None)
    missed = float(np.abs(matrix @ moved - difference).max())
    if missed > 10 * TOLERANCE * max(1.0, float(np.abs(difference).max())):
        raise Unsolved("no noise gives the other world's releases")
    return float(moved @ moved) / 2
