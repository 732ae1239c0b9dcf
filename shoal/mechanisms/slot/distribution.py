"""The distribution of a cell's samples: a cumulative one over equal bins, a histogram, and quantiles.

Guarantee    pure epsilon-DP per release
Relation     values: two cells differ in the samples of one user; who is in the cell, and how often, is public
Unit         all samples of a user that count: the first `cap`. g is the most of one user; they may move to other bins
Sensitivity  L1, exact: 2 g on each level of a tree over the bins; their total, the root, is public
Noise        discrete Laplace, scale 2 g / epsilon_i, on every node of level i; the epsilon_i sum to at most epsilon
Afterwards   best linear unbiased estimate, isotonic regression, 0 .. 1: functions of what is noised (bin_tree.py)
Variance     of prefixes and bins, exactly for noise of variance 2 scale**2, which is at least the discrete one's
Proof        docs/proofs/distribution.md
Source       Hay, Rastogi, Miklau and Suciu (2010); Qardaji, Yang and Li (2013); Rameshwar et al. (2024) for caps
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.mechanisms import check
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.slot.bin_tree import BinTree, Floats, tree_for
from shoal.mechanisms.slot.cap import contribution_cap
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.statistic import Estimate

WHOLE = 10**9  # shares are published as multiples of 1 / this
FEW = 200  # draws that are made faster one by one than as a block; they are the same


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """cdf: the share of samples up to each bin's right edge; histogram: its steps; quantiles: where it crosses them.

    noise_sd, low and high are those of the estimate before isotonic regression, which only brings it nearer; low and
    high are 2.12 standard deviations away, or more for several releases together: a quantile of one Laplace draw, and
    more than that of the sum of several. Those of a quantile are where the bounds of the cdf cross it.
    """
    tree, counts = _tree(cell), [len(samples) for samples in users]
    cap = choose_cap(counts, cell)
    kept, most = _kept(counts, cap), min(cap, max(counts))
    noised = noised_sums(tree, histogram(users, cell, cap), scales(tree, most, cell.epsilon), draws)
    bins, unit = tree.estimate(noised, kept) / kept, float(2 * most / cell.epsilon) / kept
    cdf = np.cumsum(bins)
    cdf[-1] = 1.0
    whole = shares(cdf.tolist())
    sd = {"cdf": np.sqrt(tree.prefix_variances) * unit, "histogram": np.sqrt(tree.bin_variances) * unit}
    away = one_draw(cell.coverage)
    low, high = _bounds(cdf, bins, sd, -away), _bounds(cdf, bins, sd, away)
    return cell_estimate(
        value={
            "cdf": [share / WHOLE for share in whole],
            "histogram": [(b - a) / WHOLE for a, b in pairwise([0, *whole])],
            "quantiles": {_text(q): quantile(whole, q, cell.grid) for q in cell.quantiles},
        },
        noise_sd={name: _digits(sds, 6) for name, sds in sd.items()},
        low=low | {"quantiles": {_text(q): _lowest(high["cdf"], q, cell) for q in cell.quantiles}},
        high=high | {"quantiles": {_text(q): _highest(low["cdf"], q, cell) for q in cell.quantiles}},
        samples=kept,
        error=_error(kept, most, sum(counts) + cell.dropped, cell),
        mechanism=f"tree {'x'.join(map(str, tree.shape))}, cap {cap}",
    )


def one_draw(coverage: float) -> float:
    """The quantile of the size of one Laplace draw, in its standard deviations.

    >>> round(one_draw(0.95), 2)
    2.12
    """
    return -math.log(1 - coverage) / math.sqrt(2)


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """The mean over the bins of the cdf's greatest expected error, as a share, for the worst values."""
    _tree(cell)
    cap = choose_cap(counts, cell)
    return _error(_kept(counts, cap), min(cap, max(counts)), sum(counts) + cell.dropped, cell)


def choose_cap(counts: Counts, cell: CellParameters) -> int:
    """The cap in use; "optimal" is the one with the least `worst_error`."""
    return contribution_cap(counts, cell, partial(worst_error, bins=cell.bins, epsilon=cell.epsilon))


def worst_error(kept: int, most: int, samples: int, bins: int, epsilon: Fraction) -> Fraction:
    """1 - kept / samples, by which the cdf is off at most, plus the root mean square of its noise over the bins."""
    unit = _unit_noise(bins)  # one fraction, not five: there is one for every count
    below, noise = unit.denominator * epsilon.numerator, 2 * unit.numerator * epsilon.denominator * most
    return Fraction((samples - kept) * kept * below + noise * samples, samples * kept * below)


def edges(grid: Grid, bins: int) -> list[float]:
    """The ends of all bins: a sample at an end counts for the bin above, or at the range's upper end for the last bin.

    >>> edges(Grid(Fraction(0), Fraction(60), 1 << 20), 4)
    [0.0, 15.0, 30.0, 45.0, 60.0]
    """
    return [_edge(grid, Fraction(i, bins)) for i in range(bins + 1)]


def histogram(users: Users, cell: CellParameters, cap: int) -> list[int]:
    """The number of samples that count in each bin."""
    bins, steps = cell.bins, cell.grid.steps
    counts = [0] * (bins + 1)
    for samples in users:
        for index in samples[:cap]:
            counts[index * bins // steps] += 1
    last = counts.pop()
    counts[-1] += last
    return counts


def scales(tree: BinTree, most: int, epsilon: Fraction) -> list[Fraction]:
    """The scale of each level's noise: a user moves at most `most` samples, each from one node to another."""
    return [2 * most / (epsilon * share) for share in tree.shares]


def noised_sums(tree: BinTree, bins: Sequence[int], by_level: Sequence[Fraction], draws: Draws) -> list[list[int]]:
    """The sums of all nodes, with noise of their level's scale."""
    noised = []
    for level, (sums, scale) in enumerate(zip(tree.sums(bins), by_level, strict=True)):
        noise = DiscreteLaplace(scale, draws.subkey("distribution", level))
        few = len(sums) < FEW
        drawn = [noise.draw(i) for i in range(len(sums))] if few else noise.draw_block(0, len(sums)).tolist()
        noised.append([node + draw for node, draw in zip(sums, drawn, strict=True)])
    return noised


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


def _tree(cell: CellParameters) -> BinTree:
    if not 2 <= cell.bins <= cell.grid.steps:
        raise ValueError(
            f"bins must be at least 2 and at most the {cell.grid.steps} steps of the grid, not {cell.bins}"
        )
    for q in cell.quantiles:
        check.probability(quantiles=q)
    return tree_for(cell.bins)


@lru_cache(maxsize=64)
def _unit_noise(bins: int) -> Fraction:
    variances = tree_for(bins).prefix_variances.tolist()
    return Fraction(f"{math.sqrt(math.fsum(variances) / bins):.9g}")


def _error(kept: int, most: int, samples: int, cell: CellParameters) -> float:
    # a share is off by no more than 1
    return min(float(worst_error(kept, most, samples, cell.bins, cell.epsilon)), 1.0)


def _kept(counts: Counts, cap: int) -> int:
    return sum(min(count, cap) for count in counts)


def _bounds(cdf: Floats, bins: Floats, sd: dict[str, Floats], factor: float) -> dict[str, Any]:
    both = {"cdf": cdf + factor * sd["cdf"], "histogram": bins + factor * sd["histogram"]}
    return {name: _digits(bound, 9) for name, bound in both.items()}


def _digits(values: Floats, digits: int) -> list[float]:
    """All values rounded to this many significant digits, by one format, which takes a third of the time.

    >>> _digits(np.array([1 / 3, -2e-9, 1.0]), 4)
    [0.3333, -2e-09, 1.0]
    """
    return list(map(float, (f"%.{digits}g " * len(values) % tuple(values.tolist())).split()))


def _lowest(high: Sequence[float], q: Fraction, cell: CellParameters) -> float:
    """The left edge of the first bin by whose end enough samples for q may lie."""
    least = _not_below(q)
    return _edge(cell.grid, Fraction(next(index for index, share in enumerate(high) if share >= least), cell.bins))


def _highest(low: Sequence[float], q: Fraction, cell: CellParameters) -> float:
    """The right edge of the bin after the last by whose end fewer samples than q needs may lie."""
    least = _not_below(q)
    last = max((index for index, share in enumerate(low[:-1]) if share < least), default=-1)
    return _edge(cell.grid, Fraction(last + 2, cell.bins))


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
