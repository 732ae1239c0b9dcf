"""Exact discrete Laplace noise, addressable by index: P(k) proportional to exp(-|k| / scale).

Guarantee    adding it to an integer of L1 sensitivity s is pure (s / scale)-DP, exactly; no float is involved
Scale        rational, rounded up to 2**a / s with an integer s >= 2**20, so that uniform numbers are plain bits
Variance     2p / (1 - p)**2 with p = exp(-1 / scale)
Proof        docs/proofs/keyed-noise.md
Source       Canonne, Kamath and Steinke (2020), Algorithms 1 and 2
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from shoal.mechanisms import check
from shoal.mechanisms.noise import batch
from shoal.mechanisms.noise.keyed import Bits

_UNIFORM = 56  # bits of the uniform part that a word carries; its lowest bit is the sign
_REST = np.uint64(0xFF)  # a word's other bits
_PRECISE = 20  # bits of the divisor at least: what rounding the scale up may cost
_INT64 = 52  # bits of the largest scale whose draws are far from what int64 holds


def bernoulli(numerator: int, denominator: int, words: Iterator[int]) -> bool:
    """True with probability numerator / denominator, a number in [0, 1], exactly.

    A uniform real is compared with the fraction 64 bits at a time, most significant bits first.
    """
    while 0 < numerator < denominator:
        digit, numerator = divmod(numerator << 64, denominator)
        word = next(words)
        if word != digit:
            return word < digit
    return numerator > 0


def bernoulli_exp(numerator: int, denominator: int, words: Iterator[int]) -> bool:
    """True with probability exp(-numerator / denominator), the exponent being 0 or more, exactly.

    Algorithm 1: exp(-x) for x > 1 is a product of exp(-1)s and a rest; for x <= 1 von Neumann's series, where the
    first failure of Bernoulli(x / 1), Bernoulli(x / 2), ... is at an odd place with probability exp(-x).
    """
    whole, rest = divmod(numerator, denominator)
    for _ in range(whole):
        if not _first_failure_is_odd(1, 1, words):
            return False
    return _first_failure_is_odd(rest, denominator, words)


def _first_failure_is_odd(numerator: int, denominator: int, words: Iterator[int]) -> bool:
    """Whether the first failure of Bernoulli(numerator / denominator / place) is at an odd place.

    Needs numerator <= denominator. Most noise is drawn here: each place is decided by its first digit, without a call,
    unless the word equals that digit.
    """
    if not numerator:
        return True
    first = 1 + (numerator == denominator)  # the one at place 1 is certain then, and takes no word
    shifted, whole, is_odd = numerator << 64, first * denominator, first == 1
    while True:
        digit, rest = divmod(shifted, whole)
        word = next(words)
        if word > digit or (word == digit and not bernoulli(rest, whole, words)):
            return is_odd
        whole, is_odd = whole + denominator, not is_odd


def variance(scale: Fraction | int) -> float:
    """Variance of one draw, for planning and error bars only.

    >>> round(variance(Fraction(10)), 3)
    199.833
    """
    return variance_of_ratio(*scale.as_integer_ratio())


def variance_of_ratio(numerator: int, denominator: int) -> float:
    """Variance of one draw of scale `numerator` / `denominator`, reduced or not: the same float."""
    x = denominator / numerator if numerator << 20 > denominator else 1e6
    return 2 * math.exp(-x) / math.expm1(-x) ** 2


@lru_cache(maxsize=1 << 10)  # many samplers have one scale
def _rounded(scale: Fraction | int) -> tuple[int, int, Fraction]:
    """Low bits of the uniform part, the divisor, and the scale rounded up to their quotient."""
    check.positive(scale=scale)
    # scales beyond 2**36 take further bits, of further words, so that the rounding of the scale stays below 2**-19
    low_bits = max(0, math.ceil(scale).bit_length() + _PRECISE - _UNIFORM)
    step = math.floor((1 << (_UNIFORM + low_bits)) / Fraction(scale))
    return low_bits, step, Fraction(1 << (_UNIFORM + low_bits), step)


class DiscreteLaplace:
    """Draws of one scale under one subkey; `draw(index)` is always the same number.

    >>> noise = DiscreteLaplace(Fraction(10), bytes(32))
    >>> [noise.draw(index) for index in range(6)]
    [-5, 12, 1, 9, 15, 19]
    >>> noise.draw_block(1, 5).tolist()
    [12, 1, 9, 15, 19]
    """

    __slots__ = ("_bits", "_further", "_low_bits", "_step", "scale")

    def __init__(self, scale: Fraction | int, subkey: bytes) -> None:
        self._low_bits, self._step, self.scale = _rounded(scale)
        self._further = -(-self._low_bits // 64)
        self._bits = Bits(subkey)

    def draw(self, index: int) -> int:
        return self.sample(self._bits.draw(index))

    def sample(self, words: Iterator[int]) -> int:
        """A draw from these words by Algorithm 2 with t = 2**a, s = `_step`."""
        size = _UNIFORM + self._low_bits
        while True:
            word = next(words)
            uniform = word >> (64 - _UNIFORM)
            for _ in range(self._further):
                uniform = uniform << 64 | next(words)
            uniform >>= 64 * self._further - self._low_bits
            if not _first_failure_is_odd(uniform, 1 << size, words):
                continue
            whole = 0
            while _first_failure_is_odd(1, 1, words):
                whole += 1
            magnitude = (uniform + (whole << size)) // self._step
            if magnitude or not word & 1:  # there is one zero, not two
                return -magnitude if word & 1 else magnitude

    def draw_block(self, start: int, count: int) -> batch.Numbers:
        """Draws start .. start + count - 1, bit for bit: int64, or Python's integers for scales of 2**52 or more.

        Add up what `tolist()` gives: a sum of many such draws need not fit into int64.
        """
        return batch.draw_block(self, self._bits, start, count)

    def words(self, index: int) -> bytes:
        """The words that draw `index` has of its own."""
        return self._bits.block(index, 1)

    @property
    def form(self) -> batch.Form:
        """The form of a block of draws: for scales up to 2**36 a magnitude is in one piece."""
        bits = _UNIFORM + self._low_bits - _PRECISE  # of the scale
        return batch.Form(self._low_bits, small=bits <= _INT64, vector=self._low_bits + _PRECISE < 64)

    def attempt(self, block: batch.Lanes, trying: batch.Indices, drawn: batch.Signed) -> batch.Marks:
        """One pass of the loop of `sample` for all these lanes; says which are done."""
        word, low = block.read(trying), self._low(block, trying)
        leading = word & ~_REST  # 64 bits of the uniform part
        if self._low_bits:
            leading |= low << (64 - self._low_bits) >> 56
        done = batch.first_failure_is_odd(block, trying, leading)
        word, low, accepted = word[done], low[done], trying[done]
        high = (word >> 8) + (batch.successes(block, accepted) << 56)
        done[done] = drawn.put(accepted, *self._quotient(high, low), (word & 1).astype(np.bool_))
        return done

    def _low(self, block: batch.Lanes, trying: batch.Indices) -> batch.Words:
        """The bits of the uniform part that are not in a draw's first word."""
        low: batch.Words = np.zeros(len(trying), dtype=np.uint64)
        if self._low_bits:
            low = block.read(trying) >> np.uint64(64 - self._low_bits)
        return low

    def _quotient(self, high: batch.Words, low: batch.Words) -> tuple[batch.Words, batch.Words]:
        """(high << low_bits | low) // step, its last low_bits bits apart; step is small where low has any bits."""
        step = min(self._step, (1 << 64) - 1)  # beyond it the quotient is 0 just so: high is below 2**62
        quotient = high // step
        if self._low_bits:
            low |= (high - quotient * step) << self._low_bits
            low //= step
        return quotient, low
