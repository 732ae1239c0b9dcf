"""Lengths of time: how event time is divided into ticks, steps or slots, which are numbered from the Unix epoch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Even:
    """Periods of equal length, of which one begins at the Unix epoch.

    >>> hour = Even(3_600_000_000)
    >>> hour.index(-1), hour.index(0), hour.start(2) == hour.end(1)
    (-1, 0, True)
    """

    microseconds: int

    def index(self, time: int) -> int:
        """Number of the period that holds `time`, in microseconds since the Unix epoch."""
        return time // self.microseconds

    def start(self, index: int) -> int:
        """First microsecond of the period with number `index`."""
        return index * self.microseconds

    def end(self, index: int) -> int:
        """First microsecond after the period with number `index`."""
        return (index + 1) * self.microseconds

    def end_after(self, time: int) -> int:
        """End of the period that holds `time`.

        >>> Even(60).end_after(59), Even(60).end_after(60)
        (60, 120)
        """
        return self.end(self.index(time))

    def count(self, span: int) -> int:
        """Number of periods that cover `span` microseconds, rounded up."""
        return -(-span // self.microseconds)

    def span(self, count: int) -> int:
        """Microseconds of `count` periods."""
        return count * self.microseconds

    def fits(self, span: int) -> int:
        """Number of whole periods in `span` microseconds, rounded down."""
        return span // self.microseconds

    def divides(self, span: int) -> bool:
        """Whether `span` microseconds are a whole number of periods."""
        return span % self.microseconds == 0


INSTANT = Even(1)  # length of a tick where each contribution has a release
