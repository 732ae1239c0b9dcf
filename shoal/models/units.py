"""Units: whose data one guarantee covers.

    user           all of a person's values, for ever
    user-day, ...  those of one period of event time; the next period has a guarantee of its own
    event          one event; weak, for a person has many

Periods are half-open, of equal length, and begin at multiples of it since the Unix epoch (a week begins on a Thursday).
"""

from dataclasses import dataclass

from shoal.models.durations import format_duration, parse_duration
from shoal.models.section import DAY, positive_span

PERIODS = {"hour": DAY // 24, "day": DAY, "week": 7 * DAY}


@dataclass(frozen=True, slots=True)
class Unit:
    """Whom, and for how long."""

    name: str
    period: int | None = None  # microseconds; None: for ever
    is_event: bool = False

    def words(self) -> str:
        """The unit in a sentence.

        >>> [parse_unit(name).words() for name in ("user", "user-day", "user-12h", "event")]
        ['person', 'person and day', 'person and 12h', 'event']
        """
        if self.is_event:
            return "event"
        if self.period is None:
            return "person"
        names = {length: name for name, length in PERIODS.items()}
        return f"person and {names.get(self.period, format_duration(self.period))}"


def parse_unit(text: str) -> Unit:
    """A unit by its name.

    >>> parse_unit("user-day").period == parse_unit("user-24h").period == DAY
    True

    Raises:
        ValueError: there is no such unit.
    """
    if text in ("user", "event"):
        return Unit(text, is_event=text == "event")
    kind, _, length = text.partition("-")
    if kind != "user":
        raise ValueError(f"{text!r} does not exist; write user, user-day, user-hour, user-week, user-12h or event")
    if length in PERIODS:
        return Unit(text, PERIODS[length])
    try:
        return Unit(text, positive_span(parse_duration(length)))
    except ValueError:
        raise ValueError(f"{text!r} has no period; write user-day, user-hour, user-week or user-12h") from None
