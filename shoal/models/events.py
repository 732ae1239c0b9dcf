"""Events as they come: one JSON object per record, and the fields a metric needs of it.

Whether a record is accepted depends on its *form* only, never on a value: every JSON number is accepted, `1e400` and
numbers of thousands of digits included; `NaN`, `Infinity`, null, texts and booleans are not numbers. Reading is a pure
function of the record's bytes, so that Kafka, `shoal run` and a replay accept the same records. What cannot be used is
a `Refusal`, which functions return in place of what was to be read.

* NaN, Infinity and -Infinity are a bad value of their field alone.
* A byte order mark before a record is skipped.
* Whole numbers that are written as floats are ids: 12.0 is the user, or group, 12.
* Times are numbers since the epoch or ISO 8601 texts (`times.py`).
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from operator import methodcaller
from typing import Any, NamedTuple, TypeVar, final

import orjson

from shoal.mechanisms.parts.of import Fields, Predicate
from shoal.models.predicates import KINDS
from shoal.models.times import time_of_field, time_of_number

MAX_NAME_BYTES = 256
MAX_DEPTH = 200  # objects and lists in one another; both parsers take more, but not equally much
MISSING = object()


@final
class Refusal(NamedTuple):
    """Why a metric cannot use a record, or a field of it; the reason goes to the dead letter."""

    reason: str


T = TypeVar("T")
Reader = Callable[[dict[str, Any], bytes], T | Refusal]  # an event and its bytes -> what a field says
ERROR = Refusal("error")  # the record breaks what reads it, which may not end the stream
_NOT_JSON, _NOT_AN_OBJECT = Refusal("not-json"), Refusal("not-json-object")


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
LENIENT = json.JSONDecoder(parse_constant=lambda _: None, parse_int=_short_int)  # NaN is a field's fault
_EXACT = json.JSONDecoder(parse_constant=lambda _: None, parse_int=_short_int, parse_float=_decimal)
MARK = "\ufeff"  # of the byte order, which some programs put before UTF-8


def parse(raw: bytes) -> dict[str, Any] | Refusal:
    """The JSON object of a record; a refusal if the bytes are not one, or one that is nested too deeply.

    >>> parse(b'{"amount": 1e400}'), parse(b'{"amount": NaN}'), parse(b"[]")
    ({'amount': inf}, {'amount': None}, Refusal(reason='not-json-object'))
    """
    try:
        if len(raw) > 2 * MAX_DEPTH and _depth(raw) > MAX_DEPTH:  # a shorter record closes fewer brackets
            return _NOT_JSON
        try:
            event = orjson.loads(raw)
        except orjson.JSONDecodeError:
            event = _reparse(raw, LENIENT)
    except (ValueError, RecursionError):
        return _NOT_JSON
    except Exception:
        return ERROR
    return event if type(event) is dict else _NOT_AN_OBJECT


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
    return decoder.decode(raw.decode("utf-8").removeprefix(MARK))


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


def value_getters(fields: Fields) -> list[Callable[[dict[str, Any]], Any]]:
    """The functions that find a metric's values, one for each coordinate, in an event."""
    if fields.predicate is not None:
        return [_truth(fields.predicate)]
    return list(map(getter, fields.names))


def _truth(predicate: Predicate) -> Callable[[dict[str, Any]], Any]:
    """The function that finds 1 or 0; for a faulty field MISSING or None, which are no numbers.

    >>> from shoal.models.predicates import Predicate as Condition
    >>> value = _truth(Condition.of("amount > 100 and not country == 'CH'"))
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


def _exact_id(raw: bytes, path: str) -> int | None:
    """The whole number of which orjson made a double."""
    number = exact_field(raw, path)
    return number if type(number) is int else _whole(number)


def user_reader(path: str) -> Reader[bytes]:
    """The function that reads a user id: a text as it is, a whole number as its decimal text, of 1 to 256 bytes.

    >>> read = user_reader("who")
    >>> read({"who": "ann"}, b""), read({"who": 7}, b""), read({}, b""), read({"who": None}, b"")
    (b'ann', b'7', Refusal(reason='no-user'), Refusal(reason='bad-user'))
    """
    get = getter(path)

    def read(event: dict[str, Any], raw: bytes) -> bytes | Refusal:
        field = get(event)
        if type(field) is str and field.isascii() and 0 < len(field) <= MAX_NAME_BYTES:
            return field.encode()
        return name_bytes(_exact_id(raw, path) if type(field) is float else field, "user")

    return read


def group_reader(path: str) -> Reader[str]:
    """The function that reads a group's name: a text, a whole number or a boolean as text, of 1 to 256 bytes.

    >>> read = group_reader("at.home")
    >>> read({"at": {"home": True}}, b""), read({"at": {"home": ""}}, b"")
    ('true', Refusal(reason='bad-group'))
    """
    get = getter(path)

    def read(event: dict[str, Any], raw: bytes) -> str | Refusal:
        field = get(event)
        if field is True or field is False:
            return "true" if field else "false"
        name = name_bytes(_exact_id(raw, path) if type(field) is float else field, "group")
        return name if type(name) is Refusal else name.decode()

    return read


def name_bytes(field: Any, role: str) -> bytes | Refusal:
    """The bytes of a user id or a group's name (the `role`), which is a text or a whole number."""
    if type(field) is str:
        try:
            name = field.encode()
        except UnicodeEncodeError:  # a lone surrogate
            return Refusal(f"bad-{role}")
    elif type(field) is int:
        name = b"%d" % field
    else:
        return Refusal(f"no-{role}" if field is MISSING else f"bad-{role}")
    return name if 0 < len(name) <= MAX_NAME_BYTES else Refusal(f"bad-{role}")


def read_value(field: Any) -> int | float | Refusal:
    """A sample: any JSON number, however large."""
    kind = field.__class__
    if kind is float or kind is int:
        number: int | float = field
        return number
    return Refusal("no-value" if field is MISSING else "bad-value")


def time_reader(path: str) -> Reader[int]:
    """The function that reads an event's time, in microseconds since 1970; see `times.py` for its forms.

    >>> read = time_reader("t")
    >>> read({"t": "1970-01-01T00:00:01Z"}, b""), read({"t": 2}, b""), read({"t": "soon"}, b""), read({}, b"")
    (1000000, 2000000, Refusal(reason='bad-time'), Refusal(reason='no-time'))
    """
    get = getter(path)

    def read(event: dict[str, Any], raw: bytes) -> int | Refusal:
        field = get(event)
        if type(field) is str:
            time = time_of_field(field)
        elif type(field) is int:
            time = time_of_number(field)
        elif type(field) is float:
            number = exact_field(raw, path)
            time = time_of_number(number) if isinstance(number, int | Decimal) else None
        else:
            return Refusal("no-time" if field is MISSING else "bad-time")
        return Refusal("bad-time") if time is None else time

    return read
