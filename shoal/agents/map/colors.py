"""Scales and colors of maps; readers with color blindness can tell them apart."""

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.agents.map.releases import Places

VALUES, MARGINS = "viridis", "cividis"
TAILS = 0.02  # of the values at each end that may lie off the scale
HATCHED, HATCH, EMPTY = "#e6e8eb", "#a3a9b2", "#ccd1d8"


@dataclass(frozen=True)
class Scale:
    """The range of a color scale; numbers beyond it have the color of its end."""

    low: float
    high: float


def scales(places: Places) -> tuple[Scale, Scale]:
    """The scales of values and of margins, over all slots, so that slots can be compared."""
    cells = list(places.released())
    values = _scale([cell.value for cell in cells if cell.value is not None], TAILS)
    margins = _scale([cell.margin for cell in cells if cell.margin is not None], TAILS)
    return values, Scale(0.0, margins.high)


def _scale(numbers: Iterable[float], tails: float) -> Scale:
    """All but the tails; a scale has a width.

    >>> _scale([], 0.1), _scale([5.0], 0.1), _scale([float(n) for n in range(101)], 0.1)
    (Scale(low=0.0, high=1.0), Scale(low=4.5, high=5.5), Scale(low=10.0, high=90.0))
    """
    ordered = sorted(numbers)
    if not ordered:
        return Scale(0.0, 1.0)
    last = len(ordered) - 1
    low, high = ordered[round(tails * last)], ordered[round((1 - tails) * last)]
    half = max(abs(low), 1.0) * 0.1
    return Scale(low, high) if high > low else Scale(low - half, high + half)


def moment(at: str) -> str:
    """The end of a slot, for people; its own text where that says seconds.

    >>> moment("2026-03-02T12:00:00Z"), moment("2026-03-02T12:00:30Z")
    ('2026-03-02 12:00 UTC', '2026-03-02 12:00:30 UTC')
    """
    return at.replace("T", " ").removesuffix("Z").removesuffix(":00") + " UTC"
