"""Exact numbers as text: amounts of privacy are added and compared without rounding."""

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

EXPONENT = re.compile(r"[eE][+-]?0*(\d*)")
MAX_EXPONENT = 999  # a fraction writes it out: with a billion, memory and hours


def exact_number(value: Any) -> Fraction:
    """A TOML number or the text of one, exactly."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal | Fraction):
        raise ValueError("must be a number")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("must be a finite number")
    if _is_astronomic(value):
        raise ValueError(f"must be 0 or a number between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}")
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):  # of a text
        raise ValueError("must be a number") from None


def _is_astronomic(value: int | str | Decimal | Fraction) -> bool:
    if isinstance(value, Decimal):
        return abs(value.adjusted()) > MAX_EXPONENT
    exponent = EXPONENT.search(value) if isinstance(value, str) else None
    return exponent is not None and len(exponent[1]) > len(str(MAX_EXPONENT))


def exact_text(number: Fraction) -> str:
    """Shortest text that `Fraction` reads back as the same number: a decimal where there is one, else n/d.

    >>> exact_text(Fraction("0.10")), exact_text(Fraction(4)), exact_text(Fraction(-5, 4)), exact_text(Fraction(1, 3))
    ('0.1', '4', '-1.25', '1/3')
    """
    places = _decimal_places(number.denominator)
    if places is None:
        return f"{number.numerator}/{number.denominator}"
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def _decimal_places(denominator: int) -> int | None:
    """Decimal places that a fraction in lowest terms needs; None where no finite number of them is enough."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None
