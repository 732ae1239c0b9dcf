"""What rounds come to: rates, ratios within a round, their median and range. Nothing here measures."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

Run = Mapping[str, Any]
Round = Mapping[str, Run]
Value = Callable[[Run], float]
MILLION = 1e6


class Spread(NamedTuple):
    """The median of some rounds, the least and the greatest."""

    centre: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread | None":
        """None of nothing.

        >>> Spread.of([3.0, 1.0, 2.5]), Spread.of([])
        (Spread(centre=2.5, least=1.0, most=3.0), None)
        """
        return cls(median(values), min(values), max(values)) if values else None

    def text(self, scale: float = 1.0) -> str:
        """Median, and range in brackets if there is one.

        >>> Spread(1_234_567.0, 900_000.0, 1_300_000.0).text(1000), Spread(0.0312, 0.0312, 0.0312).text()
        ('1,235 (900–1,300)', '0.031')
        """
        centre, least, most = (short(value / scale) for value in self)
        return centre if least == most else f"{centre} ({least}–{most})"


def short(value: float) -> str:
    """Three digits or so.

    >>> short(1234.5), short(99.96), short(12.34), short(1.234), short(0.01234), short(0.0)
    ('1,234', '100', '12.3', '1.23', '0.012', '0')
    """
    for least, digits in ((99.95, 0), (9.995, 1), (0.9995, 2), (0.0995, 2)):
        if abs(value) >= least:
            return f"{value:,.{digits}f}"
    return f"{value:.2g}" if value else "0"


def by_wall(run: Run) -> float:
    """Events per second that passed."""
    return float(run["events"] / run["seconds"])


def by_cpu(run: Run) -> float:
    """Events per second of the worker's processor time."""
    return float(run["events"] / run["cpu"])


def cpu(run: Run) -> float:
    """Processor seconds of the worker per million events."""
    return float(MILLION * run["cpu"] / run["events"])


def broker_cpu(run: Run) -> float:
    """Processor seconds of the broker per million events."""
    return float(MILLION * run["broker_cpu"] / run["events"])


def warm(run: Run) -> Run:
    """The last stretch of a run, as a run.

    >>> warm({"stretches": [{"events": 5}, {"events": 6}]})
    {'events': 6}
    """
    last: Run = run["stretches"][-1]
    return last


def good(rounds: Sequence[Round], key: str) -> list[Run]:
    """The runs of a subject that did not fail."""
    return [one[key] for one in rounds if key in one and "failed" not in one[key]]


def spread(rounds: Sequence[Round], key: str, value: Value) -> Spread | None:
    """A value of a subject over the rounds."""
    return Spread.of([value(run) for run in good(rounds, key)])


def ratio(rounds: Sequence[Round], key: str, reference: str, value: Value, of: Value | None = None) -> Spread | None:
    """A value of a subject over that of another in the same round; `of` is the other's, if it is not the same.

    >>> rounds = [{"a": {"v": 4}, "b": {"v": 2}}, {"a": {"v": 9}, "b": {"v": 3}}, {"a": {"failed": "x"}, "b": {"v": 1}}]
    >>> ratio(rounds, "a", "b", lambda run: run["v"])
    Spread(centre=2.5, least=2.0, most=3.0)
    """
    both = [one for one in rounds if good([one], key) and good([one], reference)]
    return Spread.of([value(one[key]) / (of or value)(one[reference]) for one in both])


def cell(found: Spread | None, scale: float = 1.0) -> str:
    """Text of a table's cell; a dash where nothing was measured."""
    return "–" if found is None else found.text(scale)
