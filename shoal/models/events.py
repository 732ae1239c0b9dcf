"""Events as they come: one JSON object per record, and the fields a metric needs of it.

Whether a record is accepted depends on its *form* only, never on a value: every JSON number is accepted, `1e400` and
numbers of thousands of digits included; `NaN`, `Infinity`, null, texts and booleans are not numbers. Reading is a pure
function of the record's bytes and of the metric version's reading (`reading.py`), so that Kafka, `shoal run` and a
replay accept the same records.
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from operator import methodcaller
from typing import Any, NoReturn

import orjson

from shoal.models.config.reading import FIRST
from shoal.models.predicates import KINDS, Predicate
from shoal.models.times import time_of_field_text, time_of_number, time_of_text, time_since_epoch

MAX_NAME_BYTES = 256
MAX_DEPTH = 200  # objects and lists in one another; both parsers take more, but not equally much
MISSING = object()


class Refused(Exception):
    """A record, or one field of it, that a metric cannot use; the reason goes to the dead letter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _not_a_number(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


def _short_int(digits: str) -> int | float:
    # Python refuses texts of more than 4,300 digits; a number that long is clipped, and is no user id.
    return int(digits) if len(digits) <= MAX_NAME_BYTES + 1 else float(digits)


def _decimal(digits: str) -> Decimal | None:
    try:
        return Decimal(digits)
    except InvalidOperation:  # an exponent of 19 digits: no calendar has that time
        return None


# orjson is fast, but refuses numbers beyond a double's range and rounds long integers: these two read the rest. So a
# value may decide which parser reads its record, and must not decide whether it is accepted: hence MAX_DEPTH.
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_STRICT = json.JSONDecoder(parse_constant=_not_a_number, parse_int=_short_int)
LENIENT = json.JSONDecoder(parse_constant=lambda _: None, parse_int=_short_int)  # NaN is a field's fault
_EXACT = json.JSONDecoder(parse_constant=lambda _: None, parse_int=_short_int, parse_float=_decimal)
MARK = "\ufeff"  # of the byte order, which some programs put before UTF-8


def parse(raw: bytes, reading: int = FIRST) -> dict[str, Any]:
    """The JSON object of a record. What the first reading takes, a later one reads alike.

    >>> parse(b'{"amount": 1e400}'), parse(b'{"amount": NaN}', reading=2)
    ({'amount': inf}, {'amount': None})

    Raises:
        Refused: the bytes are not one JSON object, or one that is nested too deeply.
    """
    if len(raw) > 2 * MAX_DEPTH and _depth(raw) > MAX_DEPTH:  # a shorter record closes fewer brackets
        raise Refused("not-json")
    try:
        event = orjson.loads(raw)
    except orjson.JSONDecodeError:
        event = _reparse(raw, _STRICT if reading == FIRST else LENIENT)
    if type(event) is not dict:
        raise Refused("not-json-object")
    return event


def _depth(raw: bytes) -> int:
    """The most objects and lists that are open at once; the upper bound where that is small enough.

    >>> _depth(b'[{"a": "[[["}, []]' + b" " * 400), _depth(b"[]" * 201), _depth(b"[" * 201)
    (6, 1, 201)
    """
    brackets = raw.count(b"{") + raw.count(b"[")
    if brackets <= MAX_DEPTH:
        return brackets
    depth = deepest = 0
    for bracket in _TEXT.sub(b"", raw).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"{[" else -1
        deepest = max(deepest, depth)
    return deepest


def _reparse(raw: bytes, decoder: json.JSONDecoder) -> Any:
    try:
        text = raw.decode("utf-8")
        return decoder.decode(text if decoder is _STRICT else text.removeprefix(MARK))
    except (ValueError, RecursionError):
        raise Refused("not-json") from None


def getter(path: str) -> Callable[[dict[str, Any]], Any]:
    """The function that reads a field; dots reach into nested objects; MISSING where there is none.

    >>> getter("a.b")({"a": {"b": 3}})
    3
    """
    if "." not in path:
        return methodcaller("get", path, MISSING)  # runs without a Python frame: the hot path calls it per field
    first, *rest = path.split(".")

    def nested(event: dict[str, Any]) -> Any:
        field: Any = event.get(first, MISSING)
        for name in rest:
            if type(field) is not dict:
                return MISSING
            field = field.get(name, MISSING)
        return field

    return nested


def value_getters(value: str | Predicate | tuple[str, ...]) -> list[Callable[[dict[str, Any]], Any]]:
    """The functions that find a metric's values, one for each coordinate, in an event."""
    if isinstance(value, Predicate):
        return [_truth(value)]
    return list(map(getter, (value,) if isinstance(value, str) else value))


def _truth(predicate: Predicate) -> Callable[[dict[str, Any]], Any]:
    """The function that finds 1 or 0; for a faulty field MISSING or None, which are no numbers.

    >>> value = _truth(Predicate.of("amount > 100 and not country == 'CH'"))
    >>> value({"amount": 120.5, "country": "DE"}), value({"amount": 99, "country": "DE"})
    (1, 0)
    >>> value({"amount": "120", "country": "CH"}) is None, value({"amount": 1}) is MISSING
    (True, True)
    """
    holds, fields = predicate.test, [(getter(path), KINDS[kind]) for path, kind in predicate.kinds]

    def value_of(event: dict[str, Any]) -> Any:
        values = []
        for get, types in fields:
            value = get(event)
            if value.__class__ not in types:
                return MISSING if value is MISSING else None
            values.append(value)
        return 1 if holds(values) else 0

    return value_of


def exact_field(raw: bytes, path: str) -> Any:
    """The field with its number exact: an int or a Decimal where orjson gave a rounded double."""
    return getter(path)(_reparse(raw, _EXACT))


def _whole(number: Any) -> int | None:
    """The integer that an exact number is: 12 of 12.0, so that both name one user.

    >>> _whole(Decimal("12.0")), _whole(Decimal("1.2E+1")), _whole(Decimal("12.5")), _whole(Decimal("1E+999999999"))
    (12, 12, None, None)
    """
    if type(number) is not Decimal or number.adjusted() > MAX_NAME_BYTES or number != number.to_integral_value():
        return None
    return int(number)


def _exact_id(raw: bytes, path: str, reading: int) -> int | None:
    """The whole number of which orjson made a double."""
    number = exact_field(raw, path)
    if type(number) is int:
        return number
    return None if reading == FIRST else _whole(number)


def read_user(field: Any, raw: bytes, path: str, reading: int = FIRST) -> bytes:
    """The bytes of a user id: a text as it is, a whole number as its decimal text.

    Raises:
        Refused: missing, of another type, empty or over 256 bytes.
    """
    if type(field) is str and field.isascii() and 0 < len(field) <= MAX_NAME_BYTES:
        return field.encode()
    if type(field) is float:
        field = _exact_id(raw, path, reading)
    return _name_bytes(field, "user")


def read_group(field: Any, raw: bytes, path: str, reading: int = FIRST) -> str:
    """A group's name: a text, a whole number or a boolean as text, of 1 to 256 bytes.

    Raises:
        Refused: missing, of another type, empty or over 256 bytes.
    """
    if field is True or field is False:
        return "true" if field else "false"
    if type(field) is float:
        field = _exact_id(raw, path, reading)
    return _name_bytes(field, "group").decode()


def _name_bytes(field: Any, role: str) -> bytes:
    if type(field) is str:
        try:
            name = field.encode()
        except UnicodeEncodeError:  # a lone surrogate
            raise Refused(f"bad-{role}") from None
    elif type(field) is int:
        name = b"%d" % field
    else:
        raise Refused(f"no-{role}" if field is MISSING else f"bad-{role}")
    if not 0 < len(name) <= MAX_NAME_BYTES:
        raise Refused(f"bad-{role}")
    return name


def read_value(field: Any) -> int | float:
    """A sample: any JSON number, however large.

    Raises:
        Refused: missing, or no number.
    """
    kind = field.__class__
    if kind is not float and kind is not int:
        raise Refused("no-value" if field is MISSING else "bad-value")
    number: int | float = field
    return number


def read_time(field: Any, raw: bytes, path: str, reading: int = FIRST) -> int:
    """Microseconds of an event's time field.

    Raises:
        Refused: missing, of another type, or a time that no calendar has.
    """
    is_first = reading == FIRST
    if type(field) is str:
        time = time_of_text(field) if is_first else time_of_field_text(field)
    elif type(field) is int or type(field) is float:
        number = field if type(field) is int else exact_field(raw, path)
        of_number = time_of_number if is_first else time_since_epoch
        time = of_number(number) if isinstance(number, int | Decimal) else None
    else:
        raise Refused("no-time" if field is MISSING else "bad-time")
    if time is None:
        raise Refused("bad-time")
    return time
