"""Event times: integer microseconds since the Unix epoch, floored, never through a float.

A time is a number (at least 1e11: milliseconds, else seconds since the epoch) or an ISO 8601 text (no zone: UTC).
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MILLISECONDS_FROM = 10**11
_LEAST, _BEYOND = -MILLISECONDS_FROM * 1000, MILLISECONDS_FROM * 10_000  # numbers outside are no calendar's
# A tick that holds the last valid time must still end within what ISO 8601 writes with four digits of a year.
EARLIEST = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
LATEST = (datetime(9900, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND


def time_of_number(number: int | Decimal) -> int | None:
    """Microseconds of a number of seconds or milliseconds; None if no calendar has that time.

    >>> time_of_number(Decimal("1.9999999")), time_of_number(100_000_000_000), time_of_number(-1)
    (1999999, 100000000000000, -1000000)
    """
    if not _LEAST < number < _BEYOND:
        return None
    scale = 1000 if number >= MILLISECONDS_FROM else 1_000_000
    if isinstance(number, int):
        time = number * scale
        return time if EARLIEST <= time < LATEST else None
    # Decimals of any length: an integer ratio floors exactly, where Decimal arithmetic would round to its context.
    if number.adjusted() < -30:
        return 0 if number >= 0 else -1
    numerator, denominator = number.as_integer_ratio()
    return valid(numerator * scale // denominator)


def time_of_text(text: str) -> int | None:
    """Microseconds of an ISO 8601 text; None if it is none. Fractions beyond microseconds are cut off.

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


def end_of_tick(time: int, every: int) -> int:
    """When the tick of such a length that holds this time ends.

    >>> end_of_tick(59, 60), end_of_tick(60, 60)
    (60, 120)
    """
    return (time // every + 1) * every


def iso(time: int) -> str:
    """ISO 8601, UTC, with `Z`; microseconds only where there are any.

    >>> iso(0), iso(1_500_000)
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z')
    """
    return (EPOCH + timedelta(microseconds=time)).isoformat().replace("+00:00", "Z")
