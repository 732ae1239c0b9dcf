"""Tables of the configuration file: what every one of them is, and the types of their values."""

from datetime import date
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from shoal.models.config.durations import parse_duration, parse_short
from shoal.models.exact import exact_number
from shoal.models.times import time_of_text, valid

DAY = 86_400_000_000  # microseconds
LONGEST = 106_751_991 * DAY  # as many whole days as 64 bits of microseconds hold
MOST_EPSILON = 10**60  # the inverse of the least epsilon of a statistic; floats of sums and products stay finite


def _duration(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError("must be a duration such as 30s, 5m, 1h or 7d, in quotes")
    return parse_duration(value)


def _short(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError("must be a duration such as 200ms or 1s, in quotes")
    return parse_short(value)


def _instant(value: Any) -> int:
    """Microseconds since the Unix epoch of a TOML date or time, or of the ISO 8601 text of one; UTC without a zone."""
    text = value.isoformat() if isinstance(value, date) else value
    time = time_of_text(text) if isinstance(text, str) else None
    if time is None or valid(time) is None:
        raise ValueError("must be a date or a time, such as 2026-01-01 or 2026-01-01T00:00:00Z")
    return time


Exact = Annotated[Fraction, BeforeValidator(exact_number)]
Duration = Annotated[int, BeforeValidator(_duration)]
ShortDuration = Annotated[int, BeforeValidator(_short)]
Instant = Annotated[int, BeforeValidator(_instant)]


class Section(BaseModel):
    """A table of the file: unknown keys are errors, values are frozen, and an error never repeats its input."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True, strict=False
    )


def positive_span(value: int) -> int:
    """Check a duration that is to be a tick, a step or a period.

    Raises:
        ValueError: it is not positive, or longer than 36500 days.
    """
    if not 0 < value <= 36_500 * DAY:
        raise ValueError("must be longer than 0s and at most 36500d")
    return value


def span(value: int) -> int:
    """Check a duration by which times may be apart.

    Raises:
        ValueError: its microseconds have more than 64 bits.
    """
    if value > LONGEST:
        raise ValueError("must be at most 106751991d")
    return value


def epsilon_within_floats(value: Fraction) -> Fraction:
    """Check an epsilon, which releases and reports have as a float.

    Raises:
        ValueError: it is larger than any that means something.
    """
    if value > MOST_EPSILON:
        raise ValueError("must be at most 1e60")
    return value
