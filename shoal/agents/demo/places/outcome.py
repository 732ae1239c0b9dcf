"""Releases beside the truth: how far from it, slot by slot. Only the demo knows the truth."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from shoal.agents.demo.progress import interval
from shoal.agents.simulate.truth import Truth
from shoal.models.releases.record import Release
from shoal.models.times import iso


@dataclass
class SlotOutcome:
    """The releases of one slot, one of each cell."""

    at: int  # its end
    not_released: int = 0
    errors: list[float] = field(default_factory=list)  # distances from the true means, of the cells that are released
    margins: list[float] = field(default_factory=list)  # halves of their noise intervals


def outcomes(releases: Iterable[Release], truth: Mapping[tuple[int, str], Truth]) -> list[SlotOutcome]:
    """Compare releases with the truth; slots in order of time."""
    slots: dict[int, SlotOutcome] = {}
    for release in releases:
        slot = slots.setdefault(release.time, SlotOutcome(release.time))
        if not release.released:
            slot.not_released += 1
            continue
        value, low, high = interval(release)
        slot.errors.append(abs(value - truth[release.time, release.group or ""].mean))
        slot.margins.append((high - low) / 2)
    return [slots[at] for at in sorted(slots)]


def hour(at: int) -> str:
    """The time of day at which a slot ends.

    >>> hour(3_600_000_000)
    '01:00'
    """
    return iso(at)[11:16]


def quantile(numbers: Sequence[float], share: float) -> float:
    """The number that at most this share of the numbers is below.

    >>> quantile([3.0, 1.0, 2.0], 0.5), quantile([3.0, 1.0, 2.0], 0.9)
    (2.0, 3.0)
    """
    return sorted(numbers)[min(int(share * len(numbers)), len(numbers) - 1)]


def summary(slots: list[SlotOutcome]) -> Iterator[str]:
    """The comparison for people, line by line."""
    errors = [error for slot in slots for error in slot.errors]
    left = sum(slot.not_released for slot in slots)
    yield f"{len(errors):,} speeds of cells in an hour; {left:,} cells are not released for an hour, with too few buses"
    if errors:
        margins = [margin for slot in slots for margin in slot.margins]
        yield (
            f"half of the released speeds are within {median(errors):.1f} km/h of the true mean of their cell and "
            f"hour, nine of ten within {quantile(errors, 0.9):.1f}; the noise of half of them stays within "
            f"{median(margins):.1f}"
        )


def final(slots: list[SlotOutcome]) -> dict[str, Any]:
    """`final` of `--json`: all slots together."""
    errors = [error for slot in slots for error in slot.errors]
    return {
        "at": iso(slots[-1].at),
        "slots": len(slots),
        "released": len(errors),
        "not_released": sum(slot.not_released for slot in slots),
        "median_error": median(errors) if errors else None,
    }
