"""The distribution of a cell's samples: a cumulative one over equal bins, a histogram, and quantiles.

Guarantee    pure epsilon-DP per release
Relation     values: two cells differ in the samples of one user; who is in the cell, and how often, is public
Unit         all samples of a user that count: the first `cap`. g is the most of one user; they may move to other bins
Sensitivity  L1, exact: 2 g on each level of a tree over the bins; their total, the root, is public
Noise        discrete Laplace, scale 2 g / epsilon_i, on every node of level i; the epsilon_i sum to at most epsilon
Afterwards   best linear unbiased estimate, isotonic regression, 0 .. 1: functions of what is noised (bins/)
Variance     of prefixes and bins, exactly for noise of variance 2 scale**2, which is at least the discrete one's
Proof        docs/proofs/distribution.md
Source       Hay, Rastogi, Miklau and Suciu (2010); Qardaji, Yang and Li (2013); Rameshwar et al. (2024) for caps
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from shoal.mechanisms.bins.shares import check_bins, one_draw, told
from shoal.mechanisms.bins.tree import BinTree, tree_for
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.slot.cap import contribution_cap
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.statistic import Estimate

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
    sd = {"cdf": np.sqrt(tree.prefix_variances) * unit, "histogram": np.sqrt(tree.bin_variances) * unit}
    found = told(cdf, bins, sd, one_draw(cell.coverage), cell.quantiles, cell.grid)
    return cell_estimate(
        *found,
        samples=kept,
        error=_error(kept, most, sum(counts) + cell.dropped, cell),
        mechanism=f"tree {'x'.join(map(str, tree.shape))}, cap {cap}",
    )


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


def _tree(cell: CellParameters) -> BinTree:
    check_bins(cell.bins, cell.quantiles, cell.grid)
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
