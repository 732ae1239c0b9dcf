"""Exact discrete Gaussian noise, addressable by index: P(k) proportional to exp(-k**2 / (2 sigma2)).

Guarantee    adding independent draws to a vector of integers of L2 sensitivity s is s**2 / (2 sigma2)-zCDP, exactly; no
             float is involved
Sigma2       rational, taken as it is
Variance     sigma2, less something that is below 1e-7 of it from sigma2 = 1 on
Proof        docs/proofs/discrete-gaussian.md
Source       Canonne, Kamath and Steinke (2020), Algorithm 3, with a power of two as the scale of its proposals
"""

import math
from fractions import Fraction

import numpy as np

from shoal.mechanisms import check
from shoal.mechanisms.noise import batch
from shoal.mechanisms.noise.keyed import Bits
from shoal.mechanisms.noise.laplace import DiscreteLaplace, bernoulli_exp

WORDS = 64  # per draw; 13 are needed on average
_HALF = Fraction(1, 2)
_POINT = 26  # binary places of a magnitude, in units of the proposals' scale
_PLACES, _FRACTION = np.uint64(48), np.uint64(64 - 48)  # binary places of an exponent, and how far they are from 64
_SQUARE = np.uint64(30)  # places dropped from a square; 22 remain, and the rate has 26


def variance(sigma2: Fraction | int) -> float:
    """Variance of one draw, for planning and error bars only.

    >>> variance(Fraction(100)), round(variance(Fraction(1, 4)), 3)
    (100.0, 0.215)
    """
    if sigma2 >= 4:
        return float(sigma2)
    weights = [math.exp(-k * k / (2 * float(sigma2))) for k in range(20)]
    total = 2 * math.fsum(weights) - 1
    return 2 * math.fsum(k * k * weight for k, weight in enumerate(weights)) / total


class DiscreteGaussian:
    """Draws of one sigma2 under one subkey; `draw(index)` is always the same number.

    >>> noise = DiscreteGaussian(Fraction(100), bytes(32))
    >>> [noise.draw(index) for index in range(6)]
    [-4, 1, 12, -16, -2, 0]
    >>> noise.draw_block(1, 5).tolist()
    [1, 12, -16, -2, 0]
    """

    __slots__ = ("_bits", "_center", "_log", "_proposals", "_rate", "sigma2")

    def __init__(self, sigma2: Fraction | int, subkey: bytes) -> None:
        check.positive(sigma2=sigma2)
        self.sigma2 = Fraction(sigma2)
        self._log = _proposal_log(self.sigma2)
        self._proposals = DiscreteLaplace(1 << self._log, subkey)
        self._bits = Bits(subkey, WORDS)
        ratio = self.sigma2 / (1 << 2 * self._log)
        self._center = math.floor(ratio * (1 << _POINT))
        self._rate = math.floor((1 << _POINT) / (2 * ratio))

    def draw(self, index: int) -> int:
        """Draw `index`: a proposal y of scale b is kept with probability exp(-(|y| - sigma2 / b)**2 / (2 sigma2))."""
        words = self._bits.draw(index)
        p, q = self.sigma2.as_integer_ratio()
        denominator = 2 * p * q << 2 * self._log
        while True:
            proposal = self._proposals.sample(words)
            if bernoulli_exp(((abs(proposal) * q << self._log) - p) ** 2, denominator, words):
                return proposal

    def draw_block(self, start: int, count: int) -> batch.Numbers:
        """Draws start .. start + count - 1, bit for bit: int64, or Python's integers for a sigma of 2**50 or more.

        Add up what `tolist()` gives: a sum of many such draws need not fit into int64.
        """
        return batch.draw_block(self, self._bits, start, count)

    def words(self, index: int) -> bytes:
        """The words that draw `index` has of its own."""
        return self._bits.block(index, 1)

    @property
    def form(self) -> batch.Form:
        """The proposals' form; where sigma is so small that their scale is 1, draws are made one by one."""
        form = self._proposals.form
        return form._replace(vector=form.vector and self.sigma2 >= _HALF)

    def attempt(self, block: batch.Lanes, trying: batch.Indices, drawn: batch.Signed) -> batch.Marks:
        """One pass of the loop of `draw` for all these lanes; says which are done."""
        done = self._proposals.attempt(block, trying, drawn)
        proposed = trying[done]
        done[done] = self._keep(block, proposed, drawn.upper[proposed])
        return done

    def _keep(self, block: batch.Lanes, chosen: batch.Indices, upper: batch.Words) -> batch.Marks:
        """The decision of `bernoulli_exp` for all these lanes, from bounds on the exponents."""
        low, high = self._exponents(upper)
        whole = low >> _PLACES
        block.leave(chosen[whole != high >> _PLACES])
        kept = batch.all_succeed(block, chosen, whole)
        rest, slack = low[kept] << _FRACTION, (high - low)[kept] << _FRACTION  # the whole part is shifted out
        kept[kept] = batch.first_failure_is_odd(block, chosen[kept], rest, slack)
        return kept

    def _exponents(self, upper: batch.Words) -> tuple[batch.Words, batch.Words]:
        """Bounds, in units of 2**-48, on (y - r)**2 / (2 r), y = magnitude / b and r = sigma2 / b**2."""
        places = self._log - _POINT - self._proposals.form.shift
        y = (upper >> places if places > 0 else upper << -places).astype(np.int64)
        distance = np.abs(y - self._center)
        least, most = np.maximum(distance - 1, 0).astype(np.uint64), (distance + 1).astype(np.uint64)
        low = (least * least >> _SQUARE) * np.uint64(self._rate)
        high = ((most * most >> _SQUARE) + np.uint64(1)) * np.uint64(self._rate + 1)
        return low, high


def _proposal_log(sigma2: Fraction) -> int:
    """The j of 0 or more for which 2**j is nearest to sigma: 2**(2 j - 1) <= sigma2 < 2**(2 j + 1) if sigma2 >= 1/2.

    >>> [_proposal_log(Fraction(n, 2)) for n in (1, 3, 4, 15, 16)], _proposal_log(Fraction(1, 9))
    ([0, 0, 1, 1, 2], 0)
    """
    return max(0, (math.floor(2 * sigma2).bit_length() - 1) // 2)
