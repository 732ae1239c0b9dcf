"""What protecting presence costs a map: cells that are shown, and errors beside those of relation values.

    python -m benchmarks.places.presence [--quick]

Trips are simulated; releases are those of the product, of a mean per slot at an epsilon of 1 for each bus and hour.
"""

import argparse
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

import orjson

from shoal.agents.simulate.city import City
from shoal.agents.simulate.events import Trips, batches
from shoal.agents.simulate.truth import Truth, true_means
from shoal.models.config.file import Config
from shoal.models.times import iso, time_of_text
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic

HOUR = 3_600_000_000
MORNING = 1_772_431_200  # 2026-03-02, 06:00
SECRET = bytes(range(32))
Cells = dict[tuple[int, str], Truth]  # by end of the slot and H3 cell
METRIC: dict[str, Any] = {
    "name": "speed", "topic": "trips", "user": "bus", "value": "speed", "time": "at", "statistic": "mean",
    "range": (0, 65), "slot": "1h", "epsilon": 1,
}  # fmt: skip
VALUES = {"max_groups": 4, "max_per_group": 64}


class Way(NamedTuple):
    """How cells are known, and the keys of the metric."""

    name: str
    keys: dict[str, Any]
    declares: bool = False


WAYS = (
    Way("found, half of epsilon, first cell, 4 samples", {"max_contributions": 4}),
    Way("found, half of epsilon, first cell, 8 samples", {"max_contributions": 8}),
    Way("found, half of epsilon, 3 cells, 8 samples", {"max_contributions": 8, "max_groups": 3}),
    Way("found, a fifth of epsilon, first cell, 8 samples", {"max_contributions": 8, "selection": {"epsilon": "0.2"}}),
    Way("found, half of epsilon, first cell, 16 samples", {"max_contributions": 16}),
    Way("declared, 8 samples", {"max_contributions": 8}, declares=True),
)


class Row(NamedTuple):
    """One way at one resolution."""

    resolution: int
    name: str
    shown: float  # cells with a value, per hour
    there: float  # cells with buses, per hour
    share: float  # of samples that are in shown cells
    fewest: int  # buses of a cell that was shown
    error: float  # median distance from the true mean, in shown cells
    beside: float  # that of relation values, in the same cells


def released(events: Sequence[bytes], truth: Cells, resolution: int, way: Way | None) -> dict[tuple[int, str], float]:
    """The values of all releases that have one, by end of the slot and cell."""
    ends = sorted({end for end, _ in truth})
    keys: dict[str, Any] = METRIC | {"cell": {"h3": resolution, "lat": "lat", "lon": "lon"}}
    if way is None:
        keys |= VALUES
    else:
        keys |= {"relation": "add-remove", "start": iso(ends[0] - HOUR), "end": iso(ends[-1])} | way.keys
        keys |= {"groups": sorted({cell for _, cell in truth})} if way.declares else {"delta": "1e-9"}
    config = Config.model_validate({"privacy": {"epsilon": 9, "delta": "1e-6"}, "metric": [keys]})
    plan = plan_topic(config, "trips", SECRET, source_partitions=1, contributions_partitions=1)
    found = {}
    for output in FileRun(plan).outputs(Line(number, event) for number, event in enumerate(events)):
        for release in map(orjson.loads, (one.value for one in output.releases)):
            if release["value"] is not None:
                found[time_of_text(release["at"]) or 0, release["group"]] = release["value"]
    return found


def measure(trips: Trips, resolutions: Sequence[int], ways: Sequence[Way]) -> list[Row]:
    """All ways at all resolutions, on the same trips."""
    events = [line for _, _, lines in batches(trips) for line in lines.splitlines()]
    rows = []
    for resolution in resolutions:
        truth = true_means(map(orjson.loads, events), slot=HOUR, resolution=resolution)
        values = released(events, truth, resolution, None)
        rows += [_row(resolution, way.name, truth, released(events, truth, resolution, way), values) for way in ways]
    return rows


def _row(
    resolution: int, name: str, truth: Cells, found: dict[tuple[int, str], float], values: dict[tuple[int, str], float]
) -> Row:
    hours, shown = len({end for end, _ in truth}), [at for at in found if at in truth]
    of_shown, of_all = (sum(truth[at].samples for at in which) for which in (shown, truth))
    return Row(
        resolution, name, len(shown) / hours, len(truth) / hours, of_shown / of_all,
        min((truth[at].users for at in shown), default=0),
        median([abs(found[at] - truth[at].mean) for at in shown] or [0.0]),
        median([abs(values[at] - truth[at].mean) for at in shown if at in values] or [0.0]),
    )  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| h3 | cells | shown of all per hour | samples there | fewest buses | error | relation values |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    lines += [
        f"| {row.resolution} | {row.name} | {row.shown:.0f} of {row.there:.0f} | {row.share:.0%} | {row.fewest} | "
        f"{row.error:.2f} | {row.beside:.2f} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer buses and one resolution")
    quick = parser.parse_args().quick
    hours, city = (1, City(radius=2)) if quick else (4, City(radius=5))
    trips = Trips(600 if quick else 6000, MORNING, MORNING + hours * HOUR // 10**6, city=city)
    print(table(measure(trips, (7,) if quick else (7, 8), WAYS[:2] if quick else WAYS)))


if __name__ == "__main__":
    main()
