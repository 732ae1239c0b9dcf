"""Configuration values that come once, or as a list with one for each coordinate of a value.

In comes what TOML has; out come frozen, exact values, or a `ValueError` that says what to write instead.
"""

from fractions import Fraction
from itertools import combinations
from typing import Annotated, Any, TypeVar, cast

from pydantic import PlainValidator

from shoal.models.exact import exact_number
from shoal.models.predicates import Predicate, is_predicate

MOST = 32  # of a mean without a decay 8, which it says itself
Range = tuple[Fraction, Fraction]
One = TypeVar("One")


def field_names(value: Any) -> str | Predicate | tuple[str, ...]:
    """A field of the event, a predicate of its fields, or several fields.

    >>> field_names("x"), field_names("x>1").text, field_names(["x", "y"])
    ('x', 'x > 1', ('x', 'y'))
    """
    if isinstance(value, str) and value:
        return Predicate.of(value) if is_predicate(value) else value
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) and name for name in value):
        raise ValueError("must be the name of a field, or a list of names")
    if not 2 <= len(value) <= MOST:
        raise ValueError(f"must be one name as text, or a list of 2 to {MOST} names")
    if any(map(is_predicate, value)):
        raise ValueError("has a predicate beside other values; use a metric for each")
    for field, other in combinations(value, 2):
        if overlap(field, other):
            raise ValueError(f"has {field!r} and {other!r}, of which one is or holds the other; name each field once")
    return tuple(value)


def ranges(value: Any) -> Range | tuple[Range, ...]:
    """[low, high], or a list of such pairs.

    >>> ranges([0, 1]) == (0, 1), len(ranges([[0, 1], [-5, 5]]))
    (True, 2)
    """
    if _is_list(value) and value and all(_is_list(part) for part in value):
        return tuple(_range(part) for part in value)
    return _range(value)


def _range(value: Any) -> Range:
    if not _is_list(value) or len(value) != 2:
        raise ValueError("must be [low, high], or a list with one such pair for each value")
    low, high = map(exact_number, value)
    if low >= high:
        raise ValueError("is reversed or empty; write [low, high] with low < high")
    if max(abs(low), abs(high)) > 10**300:
        raise ValueError("is beyond what a JSON number can carry")
    return low, high


def numbers(value: Any) -> Fraction | tuple[Fraction, ...]:
    """An exact number, or a list of exact numbers.

    >>> numbers("0.5"), numbers([1, "1/3"])
    (Fraction(1, 2), (Fraction(1, 1), Fraction(1, 3)))
    """
    return tuple(map(exact_number, value)) if _is_list(value) else exact_number(value)


def positive_numbers(value: Any) -> Fraction | tuple[Fraction, ...]:
    """An exact number, or a list of exact numbers, each greater than 0."""
    parsed = numbers(value)
    if any(number <= 0 for number in (parsed if isinstance(parsed, tuple) else (parsed,))):
        raise ValueError("must be greater than 0")
    return parsed


def for_each(key: str, value: One | tuple[One, ...], count: int, *, is_list: bool) -> tuple[One, ...]:
    """A key's value for each of `count` coordinates; with one coordinate it is not a list."""
    if count == 1 and not is_list:
        return (cast(One, value),)
    listed = cast(tuple[One, ...], value) if is_list else ()
    if count == 1 or len(listed) != count:
        wanted = "one" if count == 1 else f"a list of {count}, one for each value"
        raise ValueError(f"{key} must be {wanted}")
    return listed


def overlap(left: str, right: str) -> bool:
    """Whether two fields are the same, or one lies inside the other.

    >>> overlap("a", "a.b"), overlap("a", "ab")
    (True, False)
    """
    first, second = left.split("."), right.split(".")
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


# Keys with one value, or a list with one for each coordinate.
Ranges = Annotated[Range | tuple[Range, ...] | None, PlainValidator(ranges)]
PositiveNumbers = Annotated[Fraction | tuple[Fraction, ...] | None, PlainValidator(positive_numbers)]
