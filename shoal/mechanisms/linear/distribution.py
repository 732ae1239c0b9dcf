"""Distributions that protect presence: a counter for every node of a tree over the bins of the range.

A sample adds 1 to one node of each of the tree's h levels: to a side for each node, and to all of them together h. So
each counter has noise for h times a unit's samples, and all of epsilon. The tree has no root: the total is the sum of
the best estimates of the first level's nodes, and noisy as they are.

With S_j the estimated sum of the first j bins, N = S_K the count, and s the deviation of a node's noise at this step:

    cdf       F_j = S_j / N, then the nearest shares that never fall, lie within 0 .. 1 and end at 1
    interval  Fieller's: all F with |S_j - F N| <= q s sqrt(w_j + (k_j - F)**2 V)
    noise_sd  s / N sqrt(w_j + (k_j - F_j)**2 V)

where q s is the 95 % quantile of a node's noise, V and w_j are the variances of N, and of S_j given N, for nodes of
variance 1, and k_j is how much of a correction of N is S_j's. Likewise for each bin.

Proof        docs/proofs/two-sided.md, "Distributions"
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from shoal.mechanisms.bins.shares import told_between
from shoal.mechanisms.bins.tree import EvenTree, Floats
from shoal.mechanisms.error_bars import six_digits
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.estimates import LEAST_COUNT, Sided
from shoal.mechanisms.statistic import Estimate, holding


def estimate(tree: EvenTree, grid: Grid, quantiles: Sequence[Fraction], sided: Sided) -> Estimate:
    """The distribution, of the noisy nodes alone; without a value where there are too few samples to tell it."""
    noisy = iter(sided.noisy)
    bins = tree.estimate([[next(noisy) for _ in range(nodes)] for nodes in tree.nodes]) / sided.denominator
    sums = np.cumsum(bins)
    size = float(f"{sums[-1]:.12g}")
    counts = {"count": size, "count_sd": six_digits(sided.sd * math.sqrt(tree.total_variance))}
    if size <= 0 or size < LEAST_COUNT * counts["count_sd"]:
        return Estimate(None, None, *_anything(tree.bins, quantiles, grid), counts)
    sd, low, high = {}, {}, {}
    for name, parts, variances, shares in (
        ("cdf", sums / size, tree.prefix_variances, tree.prefix_shares),
        ("histogram", bins / size, tree.bin_variances, tree.bin_shares),
    ):
        sd[name] = sided.sd / size * np.sqrt(variances + (shares - parts) ** 2 * tree.total_variance)
        low[name], high[name] = fieller(parts, variances, shares, tree.total_variance, sided.quantile / size)
    cdf = sums / size
    for known in (cdf, low["cdf"], high["cdf"]):
        known[-1] = 1.0
    sd["cdf"][-1] = 0.0
    told = told_between(cdf, sd, low, high, quantiles, grid)
    # shares are made possible after their intervals
    return Estimate(told.value, told.noise_sd, *holding(told.value, told.low, told.high), counts)


def mean_sd(tree: EvenTree) -> float:
    """The noise of a cumulative share, in that of a node over the count: its mean square, of samples spread evenly."""
    off = tree.prefix_shares - np.arange(1, tree.bins + 1) / tree.bins
    return math.sqrt(float(np.mean(tree.prefix_variances + off * off * tree.total_variance)))


def fieller(parts: Floats, variances: Floats, shares: Floats, of_total: float, r: float) -> tuple[Floats, Floats]:
    """The ends of all F with |S - F N| <= q sqrt(w + (k - F)**2 V), of parts p = S / N, with r = q / N; the roots of

        (1 - r**2 V) F**2 - 2 (p - r**2 k V) F + p**2 - r**2 (w + k**2 V) = 0.

    Where N is `LEAST_COUNT` deviations at least, r**2 V is below 1: a draw's 95 % quantile is 2.12 deviations, and that
    of several is less.

    >>> low, high = fieller(np.array([0.5]), np.array([4.0]), np.array([0.5]), 10.0, 0.1)
    >>> [round(float(end[0]), 3) for end in (low, high)]
    [0.289, 0.711]
    """
    square = r * r
    scale = 1 - square * of_total
    middle = parts - square * of_total * shares
    rest = parts * parts - square * (variances + shares * shares * of_total)
    root = np.sqrt(np.maximum(middle * middle - scale * rest, 0.0))
    return (middle - root) / scale, (middle + root) / scale


def _anything(bins: int, quantiles: Sequence[Fraction], grid: Grid) -> tuple[dict[str, object], dict[str, object]]:
    """The bounds of a distribution that nothing is known of."""
    least, most, even = np.zeros(bins), np.ones(bins), np.arange(1, bins + 1) / bins
    ends = least.copy()
    ends[-1] = 1.0
    low, high = {"cdf": ends, "histogram": least}, {"cdf": most, "histogram": most}
    found = told_between(even, {}, low, high, quantiles, grid)
    return found.low, found.high
