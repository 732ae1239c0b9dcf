"""Exact exponential mechanism over a few candidates with integer costs: P(i) proportional to exp(-rate * cost_i).

Guarantee    pure (2 * rate * s)-DP where one unit moves each cost by at most s
Exactness    rejection in integers: a uniform candidate i is kept with probability exp(-rate * (cost_i - least cost));
             the candidate of least cost always is, so at most len(costs) rounds are expected
Proof        docs/proofs/private-median.md
Source       McSherry and Talwar (2007); Canonne, Kamath and Steinke (2020), Algorithm 1, for exp
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from shoal.mechanisms import check
from shoal.mechanisms.noise.laplace import bernoulli_exp


def choose(costs: Sequence[int], rate: Fraction, words: Iterator[int]) -> int:
    """The index of the chosen candidate.

    >>> choose([3, 0, 5], Fraction(10**9), iter([2**62]))  # leading bits 01: candidate 1, and it has the least cost
    1
    """
    check.positive(candidates=len(costs), rate=rate)
    least = min(costs)
    while True:
        index = uniform(len(costs), words)
        if bernoulli_exp(rate.numerator * (costs[index] - least), rate.denominator, words):
            return index


def uniform(below: int, words: Iterator[int]) -> int:
    """A uniform integer 0 .. below - 1, from the leading bits of one word, or of the next if they are too large."""
    bits = (below - 1).bit_length()
    while True:
        index = next(words) >> (64 - bits)
        if index < below:
            return index
