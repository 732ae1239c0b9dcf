"""Uniform numbers of any size from keyed words, and their exact comparison with powers of e."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, localcontext
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms.decimals import decimal

SPARE = 10  # digits of decimals that rounding may take
_DIGITS = 60
_WORD = 64


def wide_uniform(below: int, words: Iterator[int]) -> int:
    """A uniform integer 0 .. below - 1 of any size, from the leading bits of as many words as it takes."""
    bits = (below - 1).bit_length()
    count = -(-bits // _WORD)
    while True:
        drawn = 0
        for _ in range(count):
            drawn = drawn << _WORD | next(words)
        drawn >>= count * _WORD - bits
        if drawn < below:
            return drawn


def is_below_exp(drawn: int, exponent: Fraction, bits: int, words: Iterator[int]) -> bool:
    """Whether a uniform real, of which `drawn` is the integer part, is below exp(-exponent) * 2**bits, exactly.

    Further bits of it are drawn until enclosures of the power decide. They always do: the exponential of a rational
    number other than 0 is irrational, and that of 0 is enclosed by itself.
    """
    while True:
        least, most = exp_enclosed(exponent, bits)
        if drawn < least:
            return True
        if drawn >= most:
            return False
        drawn, bits = drawn << _WORD | next(words), bits + _WORD


@lru_cache(maxsize=1 << 16)
def exp_enclosed(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Integers around exp(-exponent) * 2**bits: equal, or one apart but in rare cases.

    >>> exp_enclosed(Fraction(1), 10), exp_enclosed(Fraction(0), 10), exp_enclosed(Fraction(10**9), 10)
    ((376, 377), (1024, 1024), (0, 1))
    """
    if not exponent:
        return 1 << bits, 1 << bits
    digits = bits // 3 + _DIGITS
    with precise(digits):
        value = decimal(exponent)
        scaled = (-value).exp() * (1 << bits)
        slack = scaled.scaleb(SPARE - digits) * (1 + value)
        least, most = scaled - slack, scaled + slack
        return int(least.to_integral_value(ROUND_FLOOR)), int(most.to_integral_value(ROUND_CEILING))


def precise(digits: int) -> AbstractContextManager[Context]:
    """A context for decimals of this many digits and any exponent; `SPARE` of the digits absorb rounding errors."""
    return localcontext(Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX))
