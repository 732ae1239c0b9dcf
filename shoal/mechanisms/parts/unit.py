"""The unit of privacy: whose data one guarantee covers."""

from dataclasses import dataclass, field

from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.words import exact_duration

DAY = 86_400_000_000  # microseconds
USER_SLOT = "user-slot"  # the unit of a slot, whose length its metric says
PERIODS = {"hour": DAY // 24, "day": DAY, "week": 7 * DAY}


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of privacy: whose data it is, and over what period."""

    name: str = field(compare=False)  # as it was written: user-day and user-24h are one
    period: int | None = None  # microseconds; None: for ever
    is_event: bool = False
    of_a_user: int | None = field(default=None, compare=False)  # events of a user that count; None: any number

    def words(self) -> str:
        """The unit in a sentence.

        >>> [unit.words() for unit in (PERSON, Unit("user-12h", DAY // 2), Unit("event", is_event=True))]
        ['person', 'person and 12h', 'event']
        """
        if self.is_event:
            return "event"
        if self.period is None:
            return "person"
        return f"person and {self.span}"

    @property
    def length(self) -> Even | None:
        """Length of the period; None without a period."""
        return None if self.period is None else Even(self.period)

    @property
    def spelled(self) -> str:
        """The name by which any configuration knows the unit: of a slot that of a period as long.

        >>> Unit("user-slot", 2 * PERIODS["hour"]).spelled, Unit("user-day", DAY).spelled
        ('user-2h', 'user-day')
        """
        return f"user-{exact_duration(self.period)}" if self.name == USER_SLOT and self.period else self.name

    @property
    def span(self) -> str | None:
        """Period of the unit in words; None without a period.

        >>> Unit("user-24h", DAY).span, Unit("user-90m", DAY // 16).span, PERSON.span
        ('day', '90m', None)
        """
        if self.period is None:
            return None
        names = {length: name for name, length in PERIODS.items()}
        return names.get(self.period, exact_duration(self.period))


PERSON = Unit("user")
