"""Durations as users write them (`30s`, `5m`, `1h`, `7d`), in integer microseconds."""

import re

SECOND = 1_000_000
_UNITS = {"s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": 86_400 * SECOND}
_FORM = re.compile(r"(\d{1,9})([smhd])")
_REMEDY = "write a whole number and s, m, h or d, as in 30s, 5m, 1h, 7d"


def parse_duration(text: str) -> int:
    """Microseconds of a duration.

    >>> parse_duration("5m")
    300000000

    Raises:
        ValueError: the text is not a whole number followed by s, m, h or d.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        week = re.fullmatch(r"(\d{1,7})w", text)
        instead = f"weeks are written in days, {7 * int(week[1])}d" if week else _REMEDY
        raise ValueError(f"{text!r} is not a duration; {instead}")
    return int(match[1]) * _UNITS[match[2]]


def format_duration(microseconds: int) -> str:
    """The shortest text that parses back to the same duration.

    >>> format_duration(7 * 86_400_000_000), format_duration(90_000_000)
    ('7d', '90s')
    """
    for unit in "dhm":
        if microseconds and microseconds % _UNITS[unit] == 0:
            return f"{microseconds // _UNITS[unit]}{unit}"
    return f"{microseconds // SECOND}s"
