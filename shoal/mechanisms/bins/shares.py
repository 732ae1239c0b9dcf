"""What is told of a distribution over equal bins, given noisy shares of them: a cumulative one, a histogram, quantiles.

All of it is a function of numbers that are released, and of public ones: bins and range.

Rising       the cumulative shares that are published are the nearest that never fall, lie within 0 .. 1 and end at 1
Error bars   those of the estimate before that, which only brings it nearer; of a quantile where the bounds of the
             cumulative shares cross it
Floats       in a fixed order, the same everywhere; shares are published as multiples of 1 / WHOLE
Proof        docs/proofs/distribution.md
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from shoal.mechanisms import check
from shoal.mechanisms.bins.tree import Floats
from shoal.mechanisms.grid import Grid

WHOLE = 10**9  # shares are published as multiples of 1 / this
BINS = 64
QUANTILES = tuple(Fraction(percent, 100) for percent in (5, 25, 50, 75, 95))


class Told(NamedTuple):
    """What is published: objects with `cdf`, `histogram` and `quantiles`; `noise_sd` has no quantiles."""

    value: dict[str, Any]
    noise_sd: dict[str, Any]
    low: dict[str, Any]
    high: dict[str, Any]


def check_bins(bins: int, quantiles: Sequence[Fraction], grid: Grid) -> None:
    """Refuse bins that are narrower than a step of the grid, and quantiles that are none."""
    if not 2 <= bins <= grid.steps:
        raise ValueError(f"bins must be at least 2 and at most the {grid.steps} steps of the grid, not {bins}")
    for q in quantiles:
        check.probability(quantiles=q)


def bin_of(index: int, bins: int, grid: Grid) -> int:
    """The bin of a grid index: one at an end is in the bin above, or at the range's upper end in the last one.

    >>> [bin_of(index, 4, Grid(Fraction(0), Fraction(60), 8)) for index in (0, 1, 2, 7, 8)]
    [0, 0, 1, 3, 3]
    """
    return min(index * bins // grid.steps, bins - 1)


def told(
    cdf: Floats, histogram: Floats, sd: dict[str, Floats], away: float, quantiles: Sequence[Fraction], grid: Grid
) -> Told:
    """cdf: the share of samples up to each bin's right edge; histogram: its steps; quantiles: where it crosses them.

    `sd` has the deviations of the noise in `cdf` and `histogram`; `low` and `high` are `away` times so far away.
    """
    low, high = (
        {"cdf": cdf + times * sd["cdf"], "histogram": histogram + times * sd["histogram"]} for times in (-away, away)
    )
    return told_between(cdf, sd, low, high, quantiles, grid)


def told_between(
    cdf: Floats,
    sd: dict[str, Floats],
    lowest: dict[str, Floats],
    highest: dict[str, Floats],
    quantiles: Sequence[Fraction],
    grid: Grid,
) -> Told:
    """The same with bounds of `cdf` and `histogram` that are given."""
    whole = shares(cdf.tolist())
    low, high = ({name: _digits(bound, 9) for name, bound in bounds.items()} for bounds in (lowest, highest))
    return Told(
        value={
            "cdf": [share / WHOLE for share in whole],
            "histogram": [(b - a) / WHOLE for a, b in pairwise([0, *whole])],
            "quantiles": {_text(q): quantile(whole, q, grid) for q in quantiles},
        },
        noise_sd={name: _digits(sds, 6) for name, sds in sd.items()},
        low=low | {"quantiles": {_text(q): _lowest(high["cdf"], q, grid) for q in quantiles}},
        high=high | {"quantiles": {_text(q): _highest(low["cdf"], q, grid) for q in quantiles}},
    )


def one_draw(coverage: float) -> float:
    """The quantile of the size of one Laplace draw, in its standard deviations.

    >>> round(one_draw(0.95), 2)
    2.12
    """
    return -math.log(1 - coverage) / math.sqrt(2)


def edges(grid: Grid, bins: int) -> list[float]:
    """The ends of all bins: a sample at an end counts for the bin above, or at the range's upper end for the last bin.

    >>> edges(Grid(Fraction(0), Fraction(60), 1 << 20), 4)
    [0.0, 15.0, 30.0, 45.0, 60.0]
    """
    return [_edge(grid, Fraction(i, bins)) for i in range(bins + 1)]


def shares(cdf: Sequence[float]) -> list[int]:
    """The nearest cumulative shares that never fall, lie within 0 .. 1 and end at 1; in 1 / WHOLE.

    >>> shares([0.2, 0.5, 0.3, 1.1, 0.9, 1.0])
    [200000000, 400000000, 400000000, 1000000000, 1000000000, 1000000000]
    """
    rising = isotonic(cdf[:-1])
    return [*(math.floor(min(max(share, 0.0), 1.0) * WHOLE + 0.5) for share in rising), WHOLE]


def isotonic(values: Sequence[float]) -> list[float]:
    """The numbers that never fall with the least sum of squared distances: neighbours that fall become their mean."""
    pools: list[tuple[float, int]] = []  # sum and count; the means rise
    for value in values:
        total, count = value, 1
        while pools and pools[-1][0] * count >= total * pools[-1][1]:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


def quantile(whole: Sequence[int], q: Fraction, grid: Grid) -> float:
    """The value at which the cumulative shares, joined by straight lines, first reach q.

    >>> quantile([0, WHOLE // 2, WHOLE], Fraction(3, 4), Grid(Fraction(0), Fraction(3), 12))
    2.5
    """
    index = bisect_left(whole, math.ceil(q * WHOLE))
    before = whole[index - 1] if index else 0
    part = (q * WHOLE - before) / (whole[index] - before)
    return _edge(grid, (index + part) / len(whole))


def _digits(values: Floats, digits: int) -> list[float]:
    """All values rounded to this many significant digits, by one format, which takes a third of the time.

    >>> import numpy as np
    >>> _digits(np.array([1 / 3, -2e-9, 1.0]), 4)
    [0.3333, -2e-09, 1.0]
    """
    return list(map(float, (f"%.{digits}g " * len(values) % tuple(values.tolist())).split()))


def _lowest(high: Sequence[float], q: Fraction, grid: Grid) -> float:
    """The left edge of the first bin by whose end enough samples for q may lie."""
    least = _not_below(q)
    return _edge(grid, Fraction(next(index for index, share in enumerate(high) if share >= least), len(high)))


def _highest(low: Sequence[float], q: Fraction, grid: Grid) -> float:
    """The right edge of the bin after the last by whose end fewer samples than q needs may lie."""
    least = _not_below(q)
    last = max((index for index, share in enumerate(low[:-1]) if share < least), default=-1)
    return _edge(grid, Fraction(last + 2, len(low)))


@lru_cache(maxsize=64)
def _not_below(q: Fraction) -> float:
    """The least float at or above q: the same floats are above both, and comparing floats is quicker.

    >>> _not_below(Fraction(1, 10)) >= Fraction(1, 10) > math.nextafter(_not_below(Fraction(1, 10)), 0)
    True
    """
    near = float(q)
    return near if near >= q else math.nextafter(near, math.inf)


def _edge(grid: Grid, part: Fraction) -> float:
    return grid.mean_value(grid.steps * part, 1)


def _text(q: Fraction) -> str:
    """The number in decimals.

    >>> _text(Fraction(1, 2)), _text(Fraction(1, 10**8)), _text(Fraction(1, 3))
    ('0.5', '0.00000001', '0.3333333333333333333333333333')
    """
    return f"{Context(prec=28).divide(Decimal(q.numerator), Decimal(q.denominator)):f}"
