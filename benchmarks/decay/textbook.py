"""Variances as papers state them, for continuous noise, a unit worth 1 and epsilon 1; and what is to be reached.

They are written down anew here, from t and the parameters alone: none of the code that is measured takes part.
"""

import math

WINDOWS = {1 << 6: 70.0, 1 << 8: 142.0, 1 << 10: 242.0, 1 << 12: 431.0, 1 << 16: 885.0}  # of W: mean of sharp
EXPONENTIALS = {100: 43.0, 1000: 115.0, 10_000: 186.0}  # of 1 / (1 - alpha), likewise
SLACK = 1.05  # times these is allowed
EQUAL = 1 + 1e-5  # a draw per step may differ by so much from its bound: weights are rounded


def window_steps(length: int) -> float:
    """A draw per step.

    >>> window_steps(1024)
    2048.0
    """
    return 2.0 * length


def window_patent(length: int) -> float:
    """Mean over p = 1 .. W of 2 (w + 1)**2 (w + 1 - tz(p)), W = 2**w; 1 node for p = W.

    >>> round(window_patent(64)), round(window_patent(1024), 1)
    (590, 2420.2)
    """
    w = length.bit_length() - 1
    nodes = sum(w + 1 - ((p & -p).bit_length() - 1) for p in range(1, length + 1))
    return 2 * (w + 1) ** 2 * nodes / length


def exponential_steps(alpha: float) -> float:
    """A draw per step.

    >>> round(exponential_steps(0.99), 1)
    100.5
    """
    return 2 / (1 - alpha**2)


def exponential_patent(alpha: float) -> float:
    """2 S(alpha)**2 times the mean over t of the sum over its bits j of alpha**(2 (t mod 2**j)).

    >>> round(exponential_patent(0.99), 1)
    277.6
    """
    squares, share = 0.0, 1.0
    for j in range(60):
        squares += share / 2
        share *= (1 + alpha ** (2.0 * 2**j)) / 2
    return 2 * _left_nodes(alpha) ** 2 * squares


def exponential_patent_most(alpha: float) -> float:
    """2 S(alpha)**2 S(alpha**2), when all bits of t are 1.

    >>> round(exponential_patent_most(0.99))
    442
    """
    return 2 * _left_nodes(alpha) ** 2 * _left_nodes(alpha**2)


def _left_nodes(alpha: float) -> float:
    """S(alpha): what the left nodes that hold a step weigh, together."""
    return math.fsum(math.pow(alpha, 2.0**k - 1) for k in range(60))


def polynomial_steps(exponent: float) -> float:
    """A draw per step: 2 zeta(2 c), the sum's end as an integral.

    >>> round(polynomial_steps(2.0), 4)
    2.1646
    """
    terms = 10_000
    rest = (terms + 0.5) ** (1 - 2 * exponent) / (2 * exponent - 1)
    return 2 * float(math.fsum(j ** (-2 * exponent) for j in range(1, terms + 1)) + rest)
