"""Exact geometric draws of any rate, however small, from one uniform number each.

    P(K = k) = (1 - x) x**k for k = 0, 1, ...      x = exp(-rate)

Exactness    K is floor(-ln(u) / rate), u a uniform real whose bits are read 64 at a time; logarithms are enclosed, and
             bits and digits are added until both ends have one floor. No float, and no loop of 1 / rate tosses
Source       inversion of the distribution function. Decimal.exp and Decimal.ln are correctly rounded, hence the
             neighbours of what they give enclose the real number
"""

from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

from shoal.mechanisms import check

_DIGITS = 20  # of 64 bits
_GUARD = 20  # digits beyond those of the bits

Enclosure = tuple[Decimal, Decimal]  # of a real number: from below, and from above
Rate = Callable[[int], Enclosure]  # a number above 0, enclosed by so many digits: ever closer as they grow


def geometric(rate: Rate, words: Iterator[int]) -> int:
    """The number of failures before a success, where one fails with probability exp(-rate).

    >>> half = iter([1 << 63])
    >>> geometric(exactly(Fraction(1, 10)), half)
    6
    """
    read = bits = 0
    while True:
        read, bits = read << 64 | next(words), bits + 64
        digits = bits // 64 * _DIGITS + _GUARD
        slowest, fastest = rate(digits)
        if not read or slowest <= 0:
            continue
        fewest = int(_down(digits).divide(_minus_ln(read + 1, bits, digits)[0], fastest))
        if fewest == int(_up(digits).divide(_minus_ln(read, bits, digits)[1], slowest)):
            return fewest


def exactly(rate: Fraction) -> Rate:
    """Enclosures of a rational rate.

    >>> [round(float(end), 6) for end in exactly(Fraction(1, 3))(8)]
    [0.333333, 0.333333]
    """
    check.positive(rate=rate)
    return lambda digits: _quotient(rate.numerator, rate.denominator, digits)


def until_success(exponent: Fraction) -> Rate:
    """The rate at which failures go on where a success has probability exp(-exponent).

    >>> [round(float(end), 6) for end in until_success(Fraction(1))(30)]
    [0.458675, 0.458675]
    """
    check.positive(exponent=exponent)

    def rate(digits: int) -> Enclosure:
        with localcontext(_down(digits)):  # `exp` and `ln` round to the nearest whatever the context says
            small, large = _quotient(exponent.numerator, exponent.denominator, digits)
            most, least = (-small).exp().next_plus(), (-large).exp().next_minus()
            fewest = 1 - most
            fastest = -fewest.ln().next_minus() if fewest > 0 else Decimal("Infinity")
        with localcontext(_up(digits)):
            slowest = -(1 - least).ln().next_plus()
        return slowest, fastest

    return rate


def _minus_ln(numerator: int, bits: int, digits: int) -> Enclosure:
    """-ln(numerator / 2**bits), at least 0."""
    small, large = _quotient(numerator, 1 << bits, digits)
    with localcontext(_down(digits)):
        return max(-large.ln().next_plus(), Decimal(0)), -small.ln().next_minus()


def _quotient(numerator: int, denominator: int, digits: int) -> Enclosure:
    parts = Decimal(numerator), Decimal(denominator)
    return _down(digits).divide(*parts), _up(digits).divide(*parts)


def _down(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_FLOOR)


def _up(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_CEILING)
