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

from shoal.mechanisms import check
from shoal.mechanisms.keyed import Bits

_UNIFORM = 56  # bits of the uniform part that a word carries; its lowest bit is the sign


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
    place = 1
    while bernoulli(numerator, denominator * place, words):
        place += 1
    return place % 2 == 1


def variance(scale: Fraction | int) -> float:
    """Variance of one draw, for planning and error bars only.

    >>> round(variance(Fraction(10)), 3)
    199.833
    """
    x = float(1 / Fraction(scale)) if scale > Fraction(1, 1 << 20) else 1e6
    return 2 * math.exp(-x) / math.expm1(-x) ** 2


class DiscreteLaplace:
    """Draws of one scale under one subkey; `draw(index)` is always the same number.

    >>> noise = DiscreteLaplace(Fraction(10), bytes(32))
    >>> [noise.draw(index) for index in range(6)]
    [-5, 12, 1, 9, 15, 19]
    """

    __slots__ = ("_bits", "_low_bits", "_step", "scale")

    def __init__(self, scale: Fraction | int, subkey: bytes) -> None:
        check.positive(scale=scale)
        # extra words of the uniform part, for scales beyond 2**36, keep the rounding of the scale below 2**-20
        words = max(0, -(-(math.ceil(scale).bit_length() + 20 - _UNIFORM) // 64))
        self._low_bits = 64 * words
        self._step = math.floor((1 << (_UNIFORM + self._low_bits)) / Fraction(scale))
        self.scale = Fraction(1 << (_UNIFORM + self._low_bits), self._step)
        self._bits = Bits(subkey)

    def draw(self, index: int) -> int:
        """Draw `index`: Algorithm 2 with t = 2**a, s = `_step`."""
        words = self._bits.draw(index)
        size = _UNIFORM + self._low_bits
        while True:
            word = next(words)
            uniform = word >> (64 - _UNIFORM)
            for _ in range(self._low_bits // 64):
                uniform = uniform << 64 | next(words)
            if not _first_failure_is_odd(uniform, 1 << size, words):
                continue
            whole = 0
            while _first_failure_is_odd(1, 1, words):
                whole += 1
            magnitude = (uniform + (whole << size)) // self._step
            if magnitude or not word & 1:  # there is one zero, not two
                return -magnitude if word & 1 else magnitude
