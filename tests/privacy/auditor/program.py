"""The least noise that turns one world's releases into another's: a linear program.

Releases are y = exact + L z, with z the unknown draws. Noise z in the first world gives the releases of the second with
z - w, where L w is the difference of the exact numbers. Discrete Laplace noise of scale b has the ratio of its
probabilities at most exp(|w| / b), so the privacy loss is at most the least

    sum_j |w_j| / b_j   with   L w = difference.

For Gaussian draws it is the least sum of w_j^2 / (2 sigma_j^2), a rho of zero-concentrated privacy, to which private
choices add theirs.
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
    scales = np.array([float(law.scale) for law in laws])
    rows = np.maximum(np.abs(coefficients).max(axis=1), 1e-9)  # so that all rows are of one size
    matrix, wanted = coefficients / rows[:, None], difference / rows
    room = TOLERANCE * max(1.0, float(np.abs(difference).max())) / rows
    size = float(np.abs(wanted).max())
    both = np.hstack([matrix, -matrix])  # what is above zero and what is below
    found = solver().linprog(
        np.concatenate([1 / scales, 1 / scales]) * size,
        A_ub=np.vstack([both, -both]),
        b_ub=np.concatenate([wanted + room, room - wanted]) / size,
        bounds=(0, None),
        method="highs",
    )
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
