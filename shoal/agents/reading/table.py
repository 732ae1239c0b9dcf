"""Releases as a table: one row for each number, with columns that stay what and where they are.

docs/reference/releases.md says what is in each. New columns go last.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from shoal.models.releases.record import Release

TEXT, WHOLE, NUMBER, TIME = "text", "whole", "number", "time"
COLUMNS: dict[str, str] = {
    "metric": TEXT, "version": WHOLE, "group_name": TEXT, "seq": WHOLE, "id": TEXT, "since": TIME, "until": TIME,
    "part": TEXT, "coordinate": WHOLE, "quantile": NUMBER, "bin": WHOLE,
    "value": NUMBER, "noise_sd": NUMBER, "low": NUMBER, "high": NUMBER,
    "samples": NUMBER, "count": NUMBER, "count_sd": NUMBER,
    "epsilon": NUMBER, "delta": NUMBER, "unit": TEXT, "relation": TEXT, "algorithm": TEXT, "mechanism": TEXT,
    "users": WHOLE, "dropped": WHOLE, "error": NUMBER, "cell_epsilon": NUMBER, "degradation": NUMBER,
    "clip": NUMBER, "withheld_samples": WHOLE, "withheld_share": NUMBER,
}  # fmt: skip
Row = tuple[Any, ...]  # in the order of COLUMNS


def rows_of(release: Release) -> Iterator[Row]:
    """A row for each of its numbers."""
    r = release
    before = (r.metric, r.version, r.group, r.seq, r.id, r.since, r.at)
    about = (r.samples, r.count, r.count_sd, r.epsilon, r.delta, r.unit, r.relation, r.algorithm, r.mechanism)
    cell = (r.cell_epsilon, r.degradation, r.clip, r.withheld_samples, r.withheld_share)
    for *number, error in r.numbers:
        of_all = r.error if isinstance(r.error, int | float) else error
        yield (*before, *number, *about, r.users, r.dropped, of_all, *cell)


def columns_of(releases: Iterable[Release]) -> dict[str, list[Any]]:
    """All rows, column by column; whole numbers are floats where a column has others, too."""
    rows = [row for release in releases for row in rows_of(release)]
    columns = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    return {
        name: [None if each is None else float(each) for each in column] if kind == NUMBER else list(column)
        for (name, kind), column in zip(COLUMNS.items(), columns, strict=True)
    }
