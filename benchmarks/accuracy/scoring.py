"""What is measured: squared errors at each look, and what the releases say of their own noise.

Every estimate is clamped to the range first, whoever made it, and what is released before there is a release is the
middle of the range.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.driving import Runs
from benchmarks.accuracy.inputs import Floats, Input, Ints

USEFUL = 1 / 4  # of the range: a noise interval narrower than that tells something
NORMAL = 1.96  # sd on either side, where noise is taken as normal


@dataclass(frozen=True)
class Curve:
    """One algorithm at one cadence of one input: an entry per look."""

    name: str
    at: Ints  # events so far
    squares: Floats  # mean squared error
    sd: Floats  # of the noise, as stated; nan before the first release
    half: Floats  # half the noise interval
    keys: int = 0  # 0: computed, not drawn
    measured: float | None = None  # noise sd over the stated one
    to_law: float | None = None  # final RMSE against the mean of the law that samples came from
    seconds: float = 0.0


@dataclass(frozen=True)
class Score:
    """A curve in a few numbers; errors as parts of the range."""

    name: str
    final: float  # RMSE at the final release
    late: float  # RMSE over the last three quarters of the stream
    uncertain: float  # relative standard error of `late`, as far as keys go
    useful: float | None  # share of the stream at the first useful release; None: never
    stated: float  # noise sd at the final release
    noise: float | None  # root mean square of the stated noise sd over the last three quarters, where there is one
    measured: float | None
    to_law: float | None
    keys: int
    seconds: float


def of_runs(runs: Runs, data: Input, at: Ints) -> Curve:
    """From drawn releases."""
    truth = data.truth(at)
    low, high = float(data.grid.low), float(data.grid.high)
    there = ~np.isnan(runs.value)
    value = np.clip(np.where(there, runs.value, data.middle), low, high)
    some = there.any(axis=0)
    sd = np.sqrt(_mean_where(runs.sd**2, there))
    return Curve(
        name=runs.algorithm,
        at=at,
        squares=np.mean((value - truth) ** 2, axis=0),
        sd=np.where(some, sd, np.nan),
        half=np.where(some, _mean_where(runs.half, there), np.nan),
        keys=len(runs.value),
        measured=_measured(runs, late(at)),
        to_law=None if data.mean is None else math.sqrt(np.mean((value[:, -1] - data.mean) ** 2)) / data.width,
        seconds=runs.seconds,
    )


def _mean_where(values: Floats, there: NDArray[np.bool_]) -> Floats:
    found: Floats = np.where(there, values, 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return found


def _measured(runs: Runs, chosen: Ints) -> float | None:
    """Root mean square over keys and late looks of (value, not clamped - mean over keys) / sd as stated."""
    keys = len(runs.value)
    value, sd = runs.raw[:, chosen], runs.sd[:, chosen]
    complete = ~np.isnan(value).any(axis=0)
    if keys < 2 or not complete.any():
        return None
    value, sd = value[:, complete], sd[:, complete]
    return math.sqrt(np.mean(((value - value.mean(axis=0)) / sd) ** 2) * keys / (keys - 1))


def late(at: Ints) -> Ints:
    """Which looks are in the last three quarters of the stream."""
    found: Ints = np.flatnonzero(at > at[-1] // 4)
    return found


def of_normal(name: str, data: Input, at: Ints, centre: Floats, sd: Floats, half: Floats | None = None) -> Curve:
    """From a closed form: the estimate is normal around `centre`, the exact answer of what was kept."""
    low, high = float(data.grid.low), float(data.grid.high)
    squares = clamped_square(centre - data.truth(at), sd, low - data.truth(at), high - data.truth(at))
    return Curve(name, at, squares, sd, NORMAL * sd if half is None else half)


def clamped_square(offset: Floats, sd: Floats, low: Floats, high: Floats) -> Floats:
    """E[min(max(X, low), high)**2] for a normal X of mean `offset`.

    >>> one, far = np.ones(1), np.full(1, 1e4)
    >>> clamped_square(0 * one, one, -far, far).round(6).tolist()
    [1.0]
    >>> clamped_square(0 * one, far**3, -one, 3 * one).round(2).tolist()
    [5.0]
    """
    sd = np.minimum(sd, 1000 * (high - low))  # beyond it almost all is at the ends, and the sum below loses its digits
    a, b = (low - offset) / sd, (high - offset) / sd
    below, above = cumulative(a), cumulative(-b)
    inside = 1 - below - above
    at_a, at_b = density(a), density(b)
    middle = sd**2 * (inside + _times(a, at_a) - _times(b, at_b)) + 2 * sd * offset * (at_a - at_b) + offset**2 * inside
    found: Floats = low**2 * below + high**2 * above + middle
    return found


def cumulative(x: Floats) -> Floats:
    """Of the normal law."""
    return np.array([math.erfc(-one / math.sqrt(2)) / 2 for one in x.tolist()])


def density(x: Floats) -> Floats:
    """Of the normal law."""
    found: Floats = np.exp(-np.minimum(x * x, 1e4) / 2) / math.sqrt(2 * math.pi)
    return found


def _times(x: Floats, at_x: Floats) -> Floats:
    found: Floats = np.where(at_x == 0, 0, x * at_x)
    return found


def _root_mean_square(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.sqrt(np.mean(known**2))) if known.size else None


def score(curve: Curve, data: Input) -> Score:
    """Errors as parts of the range."""
    chosen, width = late(curve.at), data.width
    useful = np.flatnonzero(2 * np.nan_to_num(curve.half, nan=np.inf) < USEFUL * width)
    return Score(
        name=curve.name,
        final=math.sqrt(curve.squares[-1]) / width,
        late=math.sqrt(curve.squares[chosen].mean()) / width,
        uncertain=1 / math.sqrt(2 * curve.keys) if curve.keys else 0.0,
        useful=float(curve.at[useful[0]] / data.count) if useful.size else None,
        stated=float(curve.sd[-1]) / width,
        noise=_root_mean_square(curve.sd[chosen] / width),
        measured=curve.measured,
        to_law=curve.to_law,
        keys=curve.keys,
        seconds=curve.seconds,
    )
