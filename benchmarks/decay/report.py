"""What a run found: rows, speeds, what is met of the targets; as JSON and back."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import page
from benchmarks.decay import textbook
from benchmarks.decay.contenders import PATENT, POLYNOMIAL, SHARP, STEPS, WINDOW, Contender
from benchmarks.decay.measuring import Measured
from benchmarks.decay.speed import Speed, State
from benchmarks.decay.variances import Spread


@dataclass(frozen=True)
class Row:
    """A contender without its object, and what was found."""

    family: str
    at: str
    x: float
    mechanism: str
    detail: str
    sharp: str
    textbook: float | None
    target: float | None
    found: Measured

    @classmethod
    def of(cls, one: Contender, found: Measured) -> "Row":
        """What is printed of it."""
        return cls(
            one.family, one.at, one.x, one.mechanism, one.detail, one.sharp, one.textbook, one.target, found
        )  # fmt: skip


@dataclass(frozen=True)
class Report:
    """All that a run found."""

    rows: Sequence[Row]
    gaussian: dict[int, list[tuple[float, float, str]]]  # by length, per delta
    speeds: Sequence[Speed]
    long: Sequence[Speed]
    seconds: float  # of processor time
    longest: Sequence[Speed] = ()  # of a run with --long, kept since
    variances: Sequence[Spread] = ()


def verdicts(rows: Sequence[Row]) -> Iterator[tuple[str, str, float, float, Row, bool]]:
    """Decay, at, target, the most that is allowed, the row of the sharp mechanism, and whether that is met."""
    for row in rows:
        if SHARP != row.sharp:
            continue
        if row.target is not None:
            allowed = row.target * (textbook.EQUAL if row.family == POLYNOMIAL else textbook.SLACK)
            yield row.family, row.at, row.target, allowed, row, row.found.mean <= allowed
    for row in rows:
        if row.sharp == SHARP and row.family == WINDOW:
            others = [one.found.mean for one in rows if (one.family, one.at) == (row.family, row.at)
                      and one.mechanism in (STEPS, PATENT)]  # fmt: skip
            least = min(others)
            yield "window, least of patent and per-step", row.at, least, least, row, row.found.mean <= least


def as_json(report: Report) -> dict[str, Any]:
    """Everything."""
    rows = [asdict(row) | {"measured": row.found.measured, "agrees": row.found.agrees} for row in report.rows]
    parts = {
        name: [asdict(one) for one in getattr(report, name)] for name in ("speeds", "long", "longest", "variances")
    }
    return {"seconds": round(report.seconds), "rows": rows, "gaussian": report.gaussian, **parts}


def from_json(data: dict[str, Any]) -> Report:
    """The report that was written."""
    rows = []
    for row in data["rows"]:
        known = {name: value for name, value in row.items() if name not in ("measured", "agrees")}
        rows.append(Row(**known | {"found": Measured(**row["found"])}))
    gaussian = {
        int(length): [(float(a), float(b), str(c)) for a, b, c in of] for length, of in data["gaussian"].items()
    }
    parts = {
        name: [Speed(one["decay"], one["mechanism"], [State(**state) for state in one["states"]]) for one in data[name]]
        for name in ("speeds", "long", "longest")
    }
    spreads = [Spread(**row) for row in data["variances"]]
    return Report(rows, gaussian, parts["speeds"], parts["long"], data["seconds"], parts["longest"], spreads)


def kept() -> Report | None:
    """The last full run."""
    data = page.kept("decay")
    return None if data is None else from_json(data)
