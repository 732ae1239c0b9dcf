"""`shoal plan --values` counts the events that `shoal run` counts, and when it does, also where they come late."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.models.config.file import load
from shoal.models.errors import InputError
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic

HOUR = 3_600_000
BEGIN = 1_704_067_200_000  # a midnight
HEAD = """
[privacy]
epsilon = 100
unit = "event"
[[metric]]
name = "spend"
topic = "sales"
user = "who"
value = "amount"
time = "at"
range = [0, 10]
epsilon = 1
max_contributions = 3
"""
MEAN = 'statistic = "mean"\nalgorithm = "naive"\nusers = 20\nevery = "1h"\n'
SUM = 'statistic = "sum"\nevery = "1h"\ndecay = { kind = "window", length = "2h" }\n'
DAILY = SUM + 'unit = "user-day"\n'
SLOT = 'statistic = "mean"\nalgorithm = "baseline"\nslot = "1h"\nunit = "user-day"\nmax_slots = 24\n'
SPAN = 48  # hours


def events() -> list[dict[str, Any]]:
    """An event of one of twenty users every quarter of an hour; every seventh comes ten hours late."""
    rows = []
    for number in range(4 * SPAN):
        late = 10 * HOUR if number % 7 == 3 else 0
        rows.append({"who": f"u{number % 20}", "amount": 5, "at": BEGIN + number * HOUR // 4 - late})
    return rows


def written(folder: Path, metric: str, late: str) -> tuple[Path, Path]:
    config, file = folder / "shoal.toml", folder / "events.jsonl"
    config.write_text(f'{HEAD}{metric}late = "{late}"\nlateness = "1h"\n')
    file.write_bytes(b"\n".join(map(orjson.dumps, events())))
    return config, file


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda event: event | {"amount": "5"}, "line 1, line 2, line 3: field 'amount' is a number in a text"),
        (lambda event: event | {"at": "20240131"}, "digits that could be a date"),
        (lambda event: {"who": "a", "at": BEGIN}, "there is no field 'amount' (no-value)"),
    ],
)
def test_a_file_of_which_no_event_fits_is_refused_with_its_first_reasons(tmp_path, change, reason):
    config, file = written(tmp_path, MEAN, "fold")
    file.write_bytes(b"\n".join(map(orjson.dumps, map(change, events()))))
    result = CliRunner().invoke(app, ["plan", str(config), "--values", str(file)])
    assert isinstance(result.exception, InputError)
    assert reason in str(result.exception)
    assert "no event has what metric" in str(result.exception)


def test_a_file_without_events_is_refused_as_such(tmp_path):
    config, file = written(tmp_path, MEAN, "fold")
    file.write_bytes(b"")
    result = CliRunner().invoke(app, ["plan", str(config), "--values", str(file)])
    assert "there is no event in it" in str(result.exception)


def test_a_table_without_a_column_is_refused_by_its_name(tmp_path):
    config, file = written(tmp_path, MEAN, "fold")
    file = file.with_suffix(".csv")
    file.write_text("who,at\na,2024-01-01\n")
    result = CliRunner().invoke(app, ["plan", str(config), "--values", str(file)])
    assert "the header has no column 'amount'" in str(result.exception)


def planned(config: Path, file: Path) -> tuple[dict[str, Any], list[str]]:
    result = CliRunner().invoke(app, ["plan", str(config), "--values", str(file), "--json"])
    assert result.exception is None, result.exception
    fields = orjson.loads(result.stdout)
    return fields["metrics"][0], fields["warnings"]


def released(config: Path) -> list[dict[str, Any]]:
    plan = plan_topic(load(config), "sales", b"k" * 32, source_partitions=1, contributions_partitions=1)
    outputs = FileRun(plan).outputs([Line(index, orjson.dumps(event)) for index, event in enumerate(events())])
    return [orjson.loads(release.value) for output in outputs for release in output.releases]


@pytest.mark.parametrize("late", ["fold", "drop"])
@pytest.mark.parametrize("metric", [MEAN, SUM, DAILY])
def test_a_late_event_counts_where_it_counts_in_a_run(tmp_path: Path, metric: str, late: str) -> None:
    config, file = written(tmp_path, metric, late)
    # given the releases of a run
    counted = {release["at"]: release["samples"] for release in released(config)}
    # when the same file is planned, then each release that is looked at rests on as many samples
    plan, warnings = planned(config, file)
    configured = next(one for one in plan["algorithms"] if one["configured"])
    looks = configured["over_time"]
    assert [look["samples"] for look in looks][-1] == list(counted.values())[-1]
    assert {look["samples"] for look in looks} <= set(counted.values())
    # and events that are dropped are no part of it, which is said
    told = [text for text in warnings if "too late to count" in text]
    assert len(told) == (late == "drop")
    assert not told or 'metric "spend": 27 of 192 events are too late to count' in told[0]


@pytest.mark.parametrize("late", ["fold", "drop"])
def test_a_slot_of_a_plan_has_the_samples_of_its_releases(tmp_path: Path, late: str) -> None:
    config, file = written(tmp_path, SLOT, late)
    releases = released(config)
    plan, _ = planned(config, file)
    assert plan["workload"]["slots"] == len(releases)
    # an event of another day than the one it would count in is late, even where late events are folded
    assert sum(release["samples"] for release in releases) < 192
    (limited,) = [tried for tried in plan["by_max_groups"] if tried["max_groups"] == 1]
    assert limited["left_out"] == 0
