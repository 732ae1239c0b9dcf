"""The parser: the number in the value field decides neither whether a record is accepted, nor its user, group or time.

A record's body is put together at random, also wrongly, and each way to write a number is put where the value stands.
"""

import random
from typing import Any

from shoal.models.events import MISSING, Refusal, group_reader, parse, read_value, time_reader, user_reader

NUMBERS = [
    "1", "-0", "-0.0", "0.1", "1e400", "-1e400", "1e-400", "1E+5", "1e99999999999999999999",
    "1e-99999999999999999999", "0e999999999999999999999", "18446744073709551615", "18446744073709551616",
    "-9223372036854775809", "123456789012345678901234567890.5", "9" * 20, "9" * 257, "9" * 300, "9" * 5000,
    "-" + "9" * 258, "0." + "1" * 5000,
]  # fmt: skip
ATOMS = [
    '"a"', '"\\u0061"', '"\\ud800"', '"\\udc00x"', '"\\ud83d\\ude00"', '"\\ud800\\ud800"', '""', '"\\u0000"',
    '"\x7f"', '"\u2028"', '"\x01"', '"\\x41"', '"a', "'a'", '"é"', "1", "-1", "1.0", "1e3", "1.7e9", "1e11",
    "18446744073709551616", "18446744073709551615", "17000000000000000000000", "9" * 30, "9" * 257, "9" * 258,
    "1e400", "1e10000", "0.1e-5", "-0", "-0.0", "01", "1.", ".5", "+1", "0x1", "1_0", "true", "null", "NaN",
    "Infinity", "-Infinity", "[]", "{}", "[1e400]", "1700000000.123456789", "1700000000000",
    '"2024-01-01T00:00:00Z"', "\u00a0 1", "\ufeff1", "\x0b1", "1/**/",
]  # fmt: skip
ENDS = ["", "", " ", "\n", "\x00", "x"]
READERS = user_reader("u"), group_reader("g"), time_reader("t")
DEPTHS = [10, 197, 198, 199, 200, 201, 500]
VALUE = "VALUE"


def body(drawn: random.Random) -> str:
    """A record with a place for its value."""
    parts = [f'"g":{drawn.choice(ATOMS)}', f'"t":{drawn.choice(ATOMS)}', f'"x":{VALUE}']
    if drawn.random() < 0.9:
        parts.append(f'"u":{drawn.choice(ATOMS)}')
    if drawn.random() < 0.4:
        parts.append(f'"z":{drawn.choice(ATOMS)}')
    if drawn.random() < 0.05:
        parts.append(f'"x":{drawn.choice(ATOMS)}')
    if drawn.random() < 0.1:
        depth = drawn.choice(DEPTHS)
        parts.append(f'"d":{"[" * depth}{"]" * depth}')
    drawn.shuffle(parts)
    return "{" + ",".join(parts) + "}" + drawn.choice(ENDS)


def outcomes(record: str) -> set[Any]:
    """What becomes of a record, with any number as its value."""
    raws = (record.replace(VALUE, number).encode("utf-8", "surrogatepass") for number in NUMBERS)
    return {_outcome(raw) for raw in raws}


def _outcome(raw: bytes) -> Any:
    event = parse(raw)
    if isinstance(event, Refusal):
        return event
    value = read_value(event.get("x", MISSING))
    return (*(read(event, raw) for read in READERS), value if isinstance(value, Refusal) else "a number")
