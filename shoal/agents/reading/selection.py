"""Which releases are wanted: of which metrics, groups and version, and of which time."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from shoal.models.errors import InputError
from shoal.models.releases.record import Activation, Release
from shoal.models.times import EPOCH, MICROSECOND, time_of_text

Names = str | Iterable[str] | None
Moment = str | date | datetime | None


@dataclass(frozen=True)
class Selection:
    """What is wanted. A release is of the time that ends at its `at`: after `since`, and not after `until`."""

    metrics: frozenset[str] = frozenset()  # none: all
    groups: frozenset[str] = frozenset()  # none: all
    since: datetime | None = None
    until: datetime | None = None
    version: int | None = None

    def has(self, release: Release | Activation) -> bool:
        """Whether a release or an activation is wanted."""
        return (
            (not self.metrics or release.metric in self.metrics)
            and (not self.groups or release.group in self.groups)
            and (self.since is None or release.at > self.since)
            and (self.until is None or release.at <= self.until)
            and (self.version is None or release.version == self.version)
        )


def selection(
    metric: Names = None, group: Names = None, since: Moment = None, until: Moment = None, version: int | None = None
) -> Selection:
    """What a caller wants.

    Raises:
        InputError: a time is none, or nothing can lie between the two.
    """
    wanted = Selection(_names(metric), _names(group), _moment("since", since), _moment("until", until), version)
    if wanted.since is not None and wanted.until is not None and wanted.since >= wanted.until:
        raise InputError(f"since {since} is not before until {until}; swap them")
    return wanted


def _names(given: Names) -> frozenset[str]:
    return frozenset([given] if isinstance(given, str) else given or ())


def _moment(name: str, given: Moment) -> datetime | None:
    """The time in UTC; without a zone it is that already.

    >>> _moment("since", "2026-01-05").isoformat(), _moment("since", date(2026, 1, 5)).isoformat()
    ('2026-01-05T00:00:00+00:00', '2026-01-05T00:00:00+00:00')
    """
    if given is None:
        return None
    if isinstance(given, datetime):
        return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    time = time_of_text(given.isoformat() if isinstance(given, date) else given)
    if time is None:
        raise InputError(f"{name}: {given!r} is no time; say 2026-01-31 or 2026-01-31T12:00:00Z")
    return EPOCH + time * MICROSECOND
