"""Checks of arguments, called by keyword so that the message carries the caller's name for the value.

>>> positive(capacity=0)
Traceback (most recent call last):
ValueError: capacity must be greater than 0, not 0
"""

from collections.abc import Mapping
from fractions import Fraction

Exact = int | Fraction


def positive(**values: Exact) -> None:
    """Refuse values that are not greater than 0."""
    for name, value in exact(values):
        if value <= 0:
            raise ValueError(f"{name} must be greater than 0, not {value}")


def not_negative(**values: Exact) -> None:
    """Refuse values below 0."""
    for name, value in exact(values):
        if value < 0:
            raise ValueError(f"{name} must be 0 or more, not {value}")


def below(limit: int, **values: int) -> None:
    """Refuse values outside 0 .. limit - 1."""
    for name, value in exact(values):
        if not 0 <= value < limit:
            raise ValueError(f"{name} must be at least 0 and below {limit}, not {value}")


def probability(**values: Exact) -> None:
    """Refuse values that do not lie strictly between 0 and 1."""
    for name, value in exact(values):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, not {value}")


def exact(values: Mapping[str, Exact]) -> list[tuple[str, Exact]]:
    """The names and values, of which none may be a float: a float rounds, and rounding decides privacy.

    >>> positive(epsilon=0.1)
    Traceback (most recent call last):
    TypeError: epsilon must be an int or a Fraction, not float
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | Fraction):
            raise TypeError(f"{name} must be an int or a Fraction, not {type(value).__name__}")
    return list(values.items())
