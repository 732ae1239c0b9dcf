"""Exact numbers as text: amounts of privacy are added and compared without rounding."""

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from shoal.mechanisms.words import exact_text as exact_text

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
