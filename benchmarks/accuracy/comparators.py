"""What else one might use, on the same inputs.

naive + BLUE            the sum of all samples, unclipped, in the counter of blue.py, by element or by release; pure
                        epsilon-DP, the closed-form variance, noise taken as normal
OpenDP per release      per-user clamped sums, summed up by OpenDP with discrete Laplace noise, anew for each release,
                        with an equal share of epsilon for each; its noise is OpenDP's own
matrix factorisation    Toeplitz 1 / (i + 1) and the square root, at (epsilon, delta) = (1, 1e-6), closed-form sd; for
                        users who take part m times at equal distances, which an arrival in random order does not give
"""

import math
import time as clock
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.accuracy.bounding import Contributions
from benchmarks.accuracy.driving import EPSILON, Runs
from benchmarks.accuracy.inputs import Floats, Input, Ints
from benchmarks.accuracy.scoring import Curve, of_normal, of_runs
from shoal.mechanisms.counters.blue import BlueTree

DELTA = 1e-6
BY_ELEMENT, BY_RELEASE = "naive + BLUE, by element", "naive + BLUE, by release"
OPENDP, TOEPLITZ, ROOT = "OpenDP per release", "MF 1/(i+1)", "MF square root"
DRAWN_LOOKS = 60  # of OpenDP: each is a call over all users


def blue(data: Input, kept: Contributions, at: Ints, releases: Ints | None) -> Curve:
    """The naive sum with a better counter; `releases` is how many there were at each look, None for one per element."""
    counts = np.searchsorted(kept.at, at)
    sums = np.concatenate(([0], np.cumsum(kept.total)))[counts]
    places = counts if releases is None else releases
    horizon = kept.count if releases is None else int(releases[-1])
    tree = BlueTree.best(horizon, width=data.cap * data.grid.steps, epsilon=EPSILON)
    deviations = np.sqrt([tree.variance(int(t)) for t in places])
    centre = np.array([data.grid.mean_value(int(a), int(c)) for a, c in zip(sums, counts, strict=True)])
    sd = deviations * data.grid.width_value(1) / counts
    return of_normal(BY_ELEMENT if releases is None else BY_RELEASE, data, at, centre, sd)


def opendp(data: Input, kept: Contributions, at: Ints, releases: int, keys: int) -> Curve:
    """A fresh OpenDP measurement at each look, each with epsilon / releases."""
    began = clock.perf_counter()
    chosen = np.unique(np.linspace(0, len(at) - 1, DRAWN_LOOKS).astype(int))
    stops = np.searchsorted(kept.at, at[chosen])
    users = int(data.user.max()) + 1
    sums, done = np.zeros(users, dtype=np.int64), 0
    measure, scale = measurement(users, data.cap * data.grid.steps, EPSILON / releases)
    values = np.empty((keys, len(chosen)))
    for column, stop in enumerate(stops.tolist()):
        sums += np.bincount(kept.user[done:stop], kept.total[done:stop], users).astype(np.int64)
        done = stop
        values[:, column] = [data.grid.mean_value(int(measure(sums)), stop) for _ in range(keys)]
    steps = data.grid.width_value(1) / stops
    sd, half = (np.tile(steps * factor * scale, (keys, 1)) for factor in (math.sqrt(2), math.log(20)))
    return of_runs(Runs(OPENDP, values, values, sd, half, clock.perf_counter() - began), data, at[chosen])


def measurement(users: int, most: int, epsilon: Fraction) -> tuple[Any, float]:
    """The sum of one number of each user in 0 .. most, and its scale: replacing one user's number costs epsilon."""
    dp = import_module("opendp.prelude")  # `make tools` installs it
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(bounds=(0, most), T="i64"), size=users), dp.symmetric_distance()
    scale = float(most / epsilon)
    measure = space >> dp.t.then_sum() >> dp.m.then_laplace(scale=scale)
    if not math.isclose(measure.map(2), float(epsilon), rel_tol=1e-9):
        raise SystemExit("OpenDP accounts for another epsilon than this benchmark asks it for")
    return measure, scale


def factorisation(name: str, data: Input, at: Ints) -> Curve:
    """Matrix factorisation over all events, at its own (epsilon, delta), unbiased."""
    decay, growth = (toeplitz, toeplitz_growth) if name == TOEPLITZ else (root, root_growth)
    separation = max(1, data.count // data.cap)
    sensitivity = participation(decay(separation * data.cap), data.cap)
    sigma = analytic_sigma(float(EPSILON), DELTA) * sensitivity
    sd = sigma * np.sqrt(growth(at)) / at * data.width
    return of_normal(name, data, at, data.truth(at), sd)


def participation(column: Floats, times: int) -> float:
    """L2 norm of the sum of `times` columns of the Toeplitz matrix, at equal distances.

    >>> round(participation(np.array([1.0, 0.5, 0.25, 0.125]), 2) ** 2, 4)  # 1, 0.5, 1 + 0.25, 0.5 + 0.125
    3.2031
    """
    steps = column.reshape(times, -1)
    return math.sqrt(np.square(np.cumsum(steps, axis=0)).sum())


def toeplitz(count: int) -> Floats:
    """1, 1/2, 1/3, ...: the first column of C."""
    return np.reciprocal(np.arange(1, count + 1, dtype=np.float64))


def root(count: int) -> Floats:
    """1, 1/2, 3/8, ...: the first column of the square root of the matrix of ones below the diagonal."""
    factors: Floats = np.ones(count)
    factors[1:] = 1 - 1 / (2 * np.arange(1.0, count))
    return np.multiply.accumulate(factors)


def root_growth(at: Ints) -> Floats:
    """Squared norm of row t of A C**-1 = C.

    >>> root_growth(np.array([1, 2])).tolist()
    [1.0, 1.25]
    """
    found: Floats = np.cumsum(root(int(at.max())) ** 2)[at - 1]
    return found


def toeplitz_growth(at: Ints) -> Floats:
    """Squared norm of row t of A C**-1: sums of the running sums h_i of the coefficients of -x / ln(1 - x).

    Those are 1 less Gregory's numbers: h_i is the integral over u of 1 / ((1 + exp(u))**i (u**2 + pi**2)).

    >>> toeplitz_growth(np.array([1, 2, 3])).round(5).tolist()  # 1, 1 - 1/2, 1 - 1/2 - 1/12
    [1.0, 1.25, 1.42361]
    """
    most = int(at.max())
    exact = min(most, 512)
    points = np.unique(np.concatenate((np.arange(exact), np.geomspace(exact, most, 4000).astype(np.int64))))
    sums = np.interp(np.log1p(np.arange(most)), np.log1p(points), _gregory_tails(points))
    found: Floats = np.cumsum(sums**2)[at - 1]
    return found


def _gregory_tails(points: Ints) -> Floats:
    """The integral, by the rule of trapezoids; to the left of it, 1 / (u**2 + pi**2) in closed form."""
    left, step = -60.0, 0.02
    u = np.arange(left, 45.0, step)
    weights = step / (u * u + math.pi**2)
    weights[0] /= 2
    tail = (math.pi / 2 - math.atan(-left / math.pi)) / math.pi
    falls = np.log1p(np.exp(u))
    sums: Floats = np.array([weights @ np.exp(-point * falls) for point in points.tolist()]) + tail
    sums[points == 0] = 1.0  # where the tail to the right does not vanish
    return sums


@lru_cache
def analytic_sigma(epsilon: float, delta: float) -> float:
    """The least noise of a Gaussian mechanism of sensitivity 1 (Balle and Wang, 2018).

    >>> round(analytic_sigma(1, 1e-6) ** 2, 3)
    17.848
    """

    def excess(sigma: float) -> float:
        upper, lower = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
        normal = [math.erfc(-x / math.sqrt(2)) / 2 for x in (upper, lower)]
        return normal[0] - math.exp(epsilon) * normal[1] - delta

    low, high = 1e-3, 1e3
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def lower_bound(data: Input) -> float:
    """1 / sqrt(n m) + 1 / (sqrt(m) n epsilon): the order of what no algorithm can beat on iid samples; no constants."""
    n, m = data.users, data.cap
    return 1 / math.sqrt(n * m) + 1 / (math.sqrt(m) * n * float(EPSILON))
