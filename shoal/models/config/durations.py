"""Durations as users write them (`30s`, `5m`, `1h`, `7d`; short ones also in `ms`), in integer microseconds."""

import re

from shoal.mechanisms.words import exact_duration as format_duration

__all__ = ["format_duration", "parse_duration", "parse_short"]

MILLISECOND = 1000
SECOND = 1_000_000
_UNITS = {"s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": 86_400 * SECOND}
_FORM = re.compile(r"(\d{1,9})([smhd])")
_REMEDY = "write a whole number and s, m, h or d, as in 30s, 5m, 1h, 7d"


def parse_duration(text: str) -> int:
    """The microseconds of a duration.

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


def parse_short(text: str) -> int:
    """The microseconds of a duration that may be shorter than a second.

    >>> parse_short("200ms"), parse_short("1s")
    (200000, 1000000)

    Raises:
        ValueError: the text is not a whole number followed by ms, s, m, h or d.
    """
    if match := re.fullmatch(r"(\d{1,9})ms", text):
        return int(match[1]) * MILLISECOND
    if not _FORM.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write a whole number and ms, s, m, h or d, as in 200ms")
    return parse_duration(text)
