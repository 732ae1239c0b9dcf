"""Powers, rounded to the side that is safe: decimal arithmetic, the same digits on every machine.

Arithmetic   `exp` and `ln` of Python's decimal module are rounded to the nearest; `most` allows for that
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

_CONTEXT = Context(prec=60)
_SLACK = Fraction(1, 10**45)  # relative; a few operations on 60 digits, with exponents below 10**6, lose less


def power(base: Fraction | int, exponent: Fraction) -> Fraction:
    """base**exponent for a base between 1 / 10**9 and 10**20 and a small exponent, to a relative 10**-45.

    >>> float(power(2, Fraction(1, 2))), float(power(Fraction(1, 8), Fraction(-2, 3)))
    (1.4142135623730951, 4.0)
    """
    with localcontext(_CONTEXT):
        logarithm = (Decimal(Fraction(base).numerator) / Fraction(base).denominator).ln()
        return Fraction((logarithm * exponent.numerator / exponent.denominator).exp())


def most(value: Fraction) -> Fraction:
    """What a number that was computed so cannot be above."""
    return value * (1 + _SLACK)
