"""Event times: integer microseconds since the Unix epoch, floored, never through a float.

A time is a number since the epoch, whose size tells its unit, or an ISO 8601 text (no zone: UTC). Numbers below 1e11
are seconds, below 1e14 milliseconds, below 1e17 microseconds, below 1e20 nanoseconds; a text of digits is such a
number. What could be a calendar date is refused: a text of fewer than nine digits (20240101 would be an instant in
1970), one of twelve (202401011200: 1976), and as a number, too, one of fourteen (20240101120000: 2611).
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MILLISECONDS_FROM, MICROSECONDS_FROM, NANOSECONDS_FROM = 10**11, 10**14, 10**17
_LEAST, _BEYOND = -(10**14), 10**20  # numbers outside are no calendar's
_DATE_FROM, _DATE_TO = 19 * 10**12, 21 * 10**12  # YYYYMMDDHHMMSS, or milliseconds six centuries from now
# Of a number in a text: from nine digits on, and not YYYYMMDDHHMM.
_DIGITS = re.compile(r"[+-]?(?!(?:19|20)[0-9]{10}(?:\.|$))[0-9]{9,20}(?:\.[0-9]*)?")
_IS_DIGITS = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_BETWEEN = ("T", " ")  # date and time
_DATE = re.compile(r"[0-9W-]+")
MOST_OF_A_DATE = len("2024-01-01")  # a longer run has a digit where something must stand between date and time
# A tick that holds the last valid time must still end within what ISO 8601 writes with four digits of a year.
EARLIEST = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
LATEST = (datetime(9900, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND


def time_of_number(number: int | Decimal) -> int | None:
    """Microseconds of a number of seconds, milli-, micro- or nanoseconds; None if no calendar has that time.

    >>> [time_of_number(number) for number in (5, 1_704_067_200_000, 1_704_067_200_000_000, 1_704_067_200 * 10**9)]
    [5000000, 1704067200000000, 1704067200000000, 1704067200000000]
    >>> time_of_number(Decimal("1.9999999")), time_of_number(-1)
    (1999999, -1000000)
    """
    if not _LEAST < number < _BEYOND or _DATE_FROM <= number < _DATE_TO:
        return None
    if number < MILLISECONDS_FROM:
        factor, divisor = 1_000_000, 1
    elif number < MICROSECONDS_FROM:
        factor, divisor = 1000, 1
    else:
        factor, divisor = 1, 1 if number < NANOSECONDS_FROM else 1000
    if isinstance(number, int):
        return valid(number * factor // divisor)
    if number.adjusted() < -30:
        return 0 if number >= 0 else -1
    # Decimals of any length: an integer ratio floors exactly, where Decimal arithmetic would round to its context.
    numerator, denominator = number.as_integer_ratio()
    return valid(numerator * factor // (denominator * divisor))


def time_of_field(text: str) -> int | None:
    """Microseconds of a text that is an ISO 8601 time or a number since the epoch; None if it is neither.

    >>> time_of_field("1704067200000") == time_of_text("2024-01-01") == time_of_field("2024-01-01 00:00")
    True
    >>> time_of_field("20240101"), time_of_field("2024")
    (None, None)
    """
    return (kept_time if len(text) <= MOST_KEPT else _time_of_field)(text)


def _time_of_field(text: str) -> int | None:
    if text[4:5] == text[7:8] == "-" and text[10:11] in _BETWEEN:
        return time_of_text(text)  # nearly always
    if _IS_DIGITS.fullmatch(text):
        return time_of_number(Decimal(text)) if _DIGITS.fullmatch(text) else None
    date = _DATE.match(text)
    return None if date is None or date.end() > MOST_OF_A_DATE else time_of_text(text)


MOST_KEPT = 40  # characters; a stranger may write texts of a megabyte, which are read and not kept
kept_time = lru_cache(maxsize=1 << 16)(_time_of_field)  # neighbours often share a time, and calendars are slow


def time_of_text(text: str) -> int | None:
    """Microseconds of an ISO 8601 text, or None if it is not one. Fractions beyond microseconds are cut off.

    >>> time_of_text("1970-01-01T00:00:01.5Z"), time_of_text("1970-01-02"), time_of_text("yesterday")
    (1500000, 86400000000, None)
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return valid((moment - EPOCH) // MICROSECOND)


def valid(time: int) -> int | None:
    """The time itself, or None outside the years that can be written."""
    return time if EARLIEST <= time < LATEST else None


@lru_cache(maxsize=64)  # all groups of a tick are released at one time
def iso(time: int) -> str:
    """ISO 8601, UTC, with `Z`; microseconds only where there are any.

    >>> iso(0), iso(1_500_000)
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z')
    """
    return iso_of(EPOCH + timedelta(microseconds=time))


def iso_of(at: datetime) -> str:
    """ISO 8601 text, as `iso` writes it, of a datetime in UTC."""
    return at.isoformat().replace("+00:00", "Z")
