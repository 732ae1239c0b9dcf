"""What a run found, as JSON and back; and the verdicts on it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from benchmarks import page
from benchmarks.places import capping, errors, few, scaling, sharing, speed, vectors


@dataclass(frozen=True)
class Report:
    """All parts."""

    cells: Sequence[errors.Row]
    check: errors.Check
    caps: Sequence[capping.Row]
    sharpest: capping.Sharpest
    slots: Sequence[sharing.Scenario]
    lines: Sequence[scaling.Line]
    few_users: Sequence[few.Row]
    audit: few.Audit
    velocities: Sequence[vectors.Row]
    speeds: Sequence[speed.Run]
    transport: speed.Transport
    seconds: float  # of processor time, this process and its children


@dataclass(frozen=True)
class Verdict:
    """A target, what was found, whether it is met."""

    what: str
    target: str
    found: str
    met: bool


def verdicts(report: Report) -> Iterator[Verdict]:
    """One for each of the targets."""
    near, _, worst, far = errors.shares(report.cells)
    yield Verdict(
        "`best` against the best fixed choice per cell in hindsight", "every cell within 10 %",
        f"{near:.0%} of {len(report.cells)} within 10 %; worst ratio {worst:.2f}; {far} surely beyond", near == 1,
    )  # fmt: skip
    _, mean, worst = errors.losses(report.cells, errors.SHARED)
    far = sum(row.shared.is_surely_far for row in report.cells)
    yield Verdict(
        f"the same with `spread_share = {float(errors.SHARE):g}`",
        f"at most {errors.MOST_FAR} surely beyond 10 %; ratios of {errors.MOST_LOSS:g} in the geometric mean",
        f"{far} of {len(report.cells)} surely beyond; {mean:.2f} in the geometric mean, {worst:.2f} at worst",
        far <= errors.MOST_FAR and mean <= errors.MOST_LOSS,
    )
    worse = sum(row.worse for row in report.caps if row.what == capping.RELEASED)
    vectors = sum(row.vectors for row in report.caps if row.what == capping.RELEASED)
    yield Verdict(
        "cap `optimal` against `median`, worst-case error", "never worse", f"{worse} of {vectors:,}", not worse
    )
    least = min(scenario.cells for scenario in report.slots)
    yield Verdict(
        "chop-user's K against plain composition", "a table over at least 100 cells",
        f"{len(report.slots)} slots of {least} cells or more", least >= 100,
    )  # fmt: skip
    off = [abs(line.slope - line.expected) for line in report.lines if line.expected is not None]
    yield Verdict(
        "scaling laws", f"slopes of the paper, ± {SLOPE}", f"largest difference {max(off):.2f}", max(off) <= SLOPE
    )
    agree = sum(row.agrees for row in report.few_users)
    yield Verdict(
        "few users: no release", "as predicted, within 3 standard errors", f"{agree} of {len(report.few_users)} agree",
        agree == len(report.few_users),
    )  # fmt: skip
    outside = sum(row.outside for row in report.few_users if not row.corrupt)
    yield Verdict("few users: distance from the true mean", "never beyond R + r0", f"{outside} beyond", not outside)
    yield Verdict(
        "few users: hockey-stick divergence", "at most delta", f"at most {report.audit.largest:.6f} delta",
        report.audit.largest <= 1 + 1e-9,
    )  # fmt: skip
    widest = max(report.velocities, key=lambda row: row.ratio)
    yield Verdict(
        "velocity as a vector against two metrics with half of epsilon each", "no larger error, with any algorithm",
        f"{widest.ratio:.2f} times the error at most ({widest.algorithm})", widest.ratio <= 1,
    )  # fmt: skip
    slowest = max(report.speeds, key=lambda row: row.seconds)
    yield Verdict(
        f"{report.transport.samples:,} samples, {report.transport.contributions:,} users: computed",
        f"within {speed.TARGET:.0f} s of one core", f"{slowest.seconds:.1f} s at most ({slowest.statistic}, "
        f"{slowest.algorithm})", slowest.seconds <= speed.TARGET,
    )  # fmt: skip


SLOPE = 0.1


def as_json(report: Report) -> dict[str, Any]:
    """Everything."""
    return asdict(report)


def from_json(data: dict[str, Any]) -> Report:
    """The report that was written."""
    known = {field.name: data[field.name] for field in fields(Report)}
    slots = [
        sharing.Scenario(**scenario | {"ways": [sharing.Way(**way) for way in scenario["ways"]]})
        for scenario in known["slots"]
    ]
    return Report(
        cells=[errors.Row(**row) for row in known["cells"]],
        check=errors.Check(**known["check"]),
        caps=[capping.Row(**row) for row in known["caps"]],
        sharpest=capping.Sharpest(**known["sharpest"]),
        slots=slots,
        lines=[scaling.Line(**line) for line in known["lines"]],
        few_users=[few.Row(**row) for row in known["few_users"]],
        audit=few.Audit(**known["audit"]),
        velocities=[vectors.Row(**row) for row in known["velocities"]],
        speeds=[speed.Run(**row) for row in known["speeds"]],
        transport=speed.Transport(**known["transport"]),
        seconds=known["seconds"],
    )


def kept() -> Report | None:
    """The last full run."""
    data = page.kept("places")
    return None if data is None else from_json(data)
