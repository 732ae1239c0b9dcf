"""What sum and count cost by Gaussian noise: trees as in DP-SQLP, and each release anew. No part of the product.

Noise is continuous and drawn by numpy: it serves to be compared with, and protects nobody.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

EPSILON, DELTA = 1.0, 1e-9
Floats = NDArray[np.float64]


def analytic_sigma(epsilon: float, delta: float) -> float:
    """The least sigma of Gaussian noise for sensitivity 1 (Balle and Wang, 2018).

    >>> round(analytic_sigma(1.0, 1e-5), 2)
    3.73
    """
    law = NormalDist()

    def lost(sigma: float) -> float:
        a, b = 1 / (2 * sigma), epsilon * sigma
        return law.cdf(a - b) - math.exp(epsilon) * law.cdf(-a - b)

    low, high = 1e-3, 1e4
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if lost(middle) > delta else (low, middle)
    return high


def gaussian_trees(random: np.random.Generator, runs: int, days: int, m: int) -> Floats:
    """Noise in the prefixes of a tree, by Honaker's estimate from below, in samples."""
    levels = math.ceil(math.log2(days + 1))
    sigma = analytic_sigma(EPSILON, DELTA) * m * math.sqrt(2 * (levels + 1))
    nodes, variance = [random.normal(0, sigma, (runs, 1 << levels))], 1.0
    for _ in range(levels):
        own = random.normal(0, sigma, (runs, nodes[-1].shape[1] // 2))
        weight = 2 * variance / (2 * variance + 1)
        nodes.append(weight * own + (1 - weight) * (nodes[-1][:, ::2] + nodes[-1][:, 1::2]))
        variance = weight
    noise = np.zeros((runs, days))
    for t in range(1, days + 1):
        begin = 0
        for level in range(levels, -1, -1):
            if t >> level & 1:
                noise[:, t - 1] += nodes[level][:, begin >> level]
                begin += 1 << level
    return noise


def each_day(random: np.random.Generator, runs: int, days: int, m: int) -> Floats:
    """Fresh noise in every release, in samples."""
    noise: Floats = random.normal(0, analytic_sigma(EPSILON, DELTA) * m * math.sqrt(2 * days), (runs, days))
    return noise
