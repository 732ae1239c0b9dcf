"""Powers, roots and logarithms, rounded to the side that is safe: the same decimal digits on every machine.

Arithmetic   `exp` and `ln` of Python's decimal module are rounded to the nearest; `most` allows for that
"""

from contextlib import AbstractContextManager
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction

_CONTEXT = Context(prec=60)
_SLACK = Fraction(1, 10**45)  # relative; a few operations on 60 digits, with exponents below 10**6, lose less
# Decimals of 50 digits, each step rounded up, and this factor on the result cover every rounding, so that the ceilings
# are at least the formulas and the same on every machine. Whatever width they give, the noise is made for it.
_MARGIN = 1 + Decimal(10) ** -30
_CEILING = Context(prec=50, rounding=ROUND_CEILING)


def power(base: Fraction | int, exponent: Fraction) -> Fraction:
    """base**exponent for a base between 1 / 10**9 and 10**20 and a small exponent, to a relative 10**-45.

    >>> float(power(2, Fraction(1, 2))), float(power(Fraction(1, 8), Fraction(-2, 3)))
    (1.4142135623730951, 4.0)
    """
    with localcontext(_CONTEXT):
        logarithm = (Decimal(Fraction(base).numerator) / Fraction(base).denominator).ln()
        return Fraction((logarithm * exponent.numerator / exponent.denominator).exp())


def most(value: Fraction) -> Fraction:
    """An upper bound on the exact value of a number that was computed so."""
    return value * (1 + _SLACK)


def rounding_up() -> AbstractContextManager[Context]:
    """The context in which constants are computed."""
    return localcontext(_CEILING)


def decimal(value: Fraction | int) -> Decimal:
    """The number in the current context."""
    return Decimal(value.numerator) / value.denominator


def ceiling(value: Decimal) -> int:
    """An integer no less than the exact value of what was computed.

    >>> with rounding_up():
    ...     ceiling(decimal(2).sqrt() * 10**6)
    1414214
    """
    return int((value * _MARGIN).to_integral_value(ROUND_CEILING))
