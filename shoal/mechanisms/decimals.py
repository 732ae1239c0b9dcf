"""Powers, rounded to the side that is safe: decimal arithmetic, the same digits on every machine.

Arithmetic   `exp` and `ln` of Python's decimal module are correctly rounded to the nearest; a bound of the error is added
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

_CONTEXT = Context(prec=60)
_SLACK = Fraction(
    1, 10**45
)  # relative; ten operations or so of 60 digits, on exponents below 10**6, lose less than 10**-50


def power(base: Fraction | int, exponent: Fraction) -> Fraction:
    """base**exponent for a base between 1 / 10**9 and 10**20 and a small exponent, to a relative 10**-45.

    >>> float(power(2, Fraction(1, 2))), float(power(Fraction(1, 8), Fraction(-2, 3)))
    (1.4142135623730951, 4.0)
    """
    with localcontext(_CONTEXT):
        logarithm = (Decimal(Fraction(base).numerator) / Fraction(base).denominator).ln()
        return Fraction((logarithm * exponent.numerator / exponent.denominator).exp())


def least(value: Fraction) -> Fraction:
    """What a number that was computed so cannot be below."""
    return value * (1 - _SLACK)


def most(value: Fraction) -> Fraction:
    """What it cannot be above."""
    return value * (1 + _SLACK)
