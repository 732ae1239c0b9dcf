"""`shoal plan` of statistics per slot: who counts where is what release then does, and what it costs is told."""

from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import orjson
import pytest

from shoal.mechanisms.forecast.plan import NOT_PRIVATE
from shoal.mechanisms.forecast.slot_workload import MOST_PLACES, MOST_SLOTS
from shoal.models.config.file import load
from shoal.models.errors import ConfigError, InputError
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic
from tests.cli.plan_cases import BEGIN, planned, shoal
from tests.cli.plan_cases import METRIC as MEAN

HOUR = 3_600_000  # milliseconds
SLOTS = """
[[metric]]
name = "speed"
topic = "trips"
user = "bus"
value = "speed"
time = "at"
statistic = "mean"
algorithm = "baseline"
range = [0, 65]
epsilon = 1
slot = "1h"
group = "place"
max_per_group = 3
max_groups = 2
"""
STATED = ("--users", 60, "--cells", 6)


def said(folder: Path, *changes: tuple[str, str], more: str = "", others: str = "") -> Path:
    text = SLOTS
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / "shoal.toml").write_text('[privacy]\nepsilon = 100\nunit = "event"\n' + text + more + others)
    return folder / "shoal.toml"


def written(folder: Path, hours: int = 3, places: int = 5) -> Path:
    """Thirty buses, most of them in several places, with up to five samples there."""
    random, rows = Random(1), []
    for hour in range(hours):
        for bus in range(30):
            for place in random.sample(range(places), random.randint(1, places - 1)):
                rows += [(hour, bus, place)] * random.choice([1, 1, 2, 5])
    events = [
        {"bus": f"b{bus}", "speed": 30, "at": BEGIN // 1000 + hour * HOUR + index, "place": f"p{place}"}
        for index, (hour, bus, place) in enumerate(rows)
    ]
    (folder / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, events)))
    return folder / "events.jsonl"


def released(config: Path, events: Path) -> list[dict[str, Any]]:
    """What a run gives."""
    run = FileRun(plan_topic(load(config), "trips", b"k" * 32, source_partitions=1, contributions_partitions=1))
    lines = [Line(index, line) for index, line in enumerate(events.read_bytes().splitlines())]
    return [orjson.loads(one.value) for output in run.outputs(lines) for one in output.releases]


def at(plan: dict[str, Any], most: int) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in plan["by_max_groups"] if one["max_groups"] == most)
    return found


def of(plan: dict[str, Any], algorithm: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in plan["algorithms"] if one["algorithm"] == algorithm)
    return found


@pytest.mark.parametrize(
    ("changes", "left_out"),
    [
        ([("max_groups = 2", "max_groups = 4")], 0),
        ([], 0.24),
        ([("max_groups = 2", "max_groups = 1")], 0.51),
        ([("max_groups = 2", "max_groups = 2\nunit = 'user-2h'\nmax_slots = 1")], 0.24),
        ([("max_groups = 2", "max_groups = 2\nacross_cells = 'split'")], 0.31),
    ],
)
def test_a_file_foretells_what_its_releases_are_like(
    tmp_path: Path, changes: list[tuple[str, str]], left_out: float
) -> None:
    config, events = said(tmp_path, *changes), written(tmp_path)
    (plan,) = planned(config, "--values", events)
    releases = released(config, events)
    # as many samples count, in as many cells. Pseudonyms decide between equals, so it may not be the very same people
    most = plan["max_groups"]
    assert plan["workload"]["cells"] * plan["workload"]["slots"] == len(releases)
    all_samples = plan["workload"]["samples"] * counted(plan, releases)
    assert at(plan, most)["left_out"] == pytest.approx(left_out, abs=0.05)
    if "split" not in str(changes):
        assert sum(one["dropped"] for one in releases) / all_samples == pytest.approx(left_out, abs=0.05)
        assert at(plan, most)["degradation"] == pytest.approx(median({one["degradation"] for one in releases}), rel=0.2)
        assert most < 4 or at(plan, most)["degradation"] == pytest.approx(1)
    assert of(plan, "baseline")["configured"]
    assert of(plan, "baseline")["mechanism"] in {one["mechanism"] for one in releases}


def counted(plan: dict[str, Any], releases: list[dict[str, Any]]) -> float:
    """Users' places in cells, before anybody was left out."""
    samples = sum(one["samples"] + one["dropped"] for one in releases)
    return float(samples / plan["workload"]["samples"])


def test_the_error_of_a_linear_algorithm_is_never_above_what_its_release_states(tmp_path: Path) -> None:
    # given nobody who is left out
    config, events = said(tmp_path, ("max_groups = 2", "max_groups = 4")), written(tmp_path)
    (plan,) = planned(config, "--values", events)
    worst = [one["error"] for one in released(config, events)]
    assert 0 < of(plan, "baseline")["error"] <= median(worst)
    assert of(plan, "best")["error"] == min(one["error"] for one in plan["algorithms"])
    # then the number of cells is where the worst cell has least error
    least = min(one["worst_error"] for one in plan["by_max_groups"])
    assert at(plan, plan["recommended"]["max_groups"])["worst_error"] <= 1.02 * least
    assert [one["max_groups"] for one in plan["by_max_groups"]] == [1, 2, 4]
    assert plan["stops_at"] in (1, 2, 3, 4)


def test_few_cells_are_recommended_where_noise_is_large_and_many_where_it_is_small(tmp_path: Path) -> None:
    events = written(tmp_path)
    (noisy,) = planned(said(tmp_path, ("epsilon = 1", "epsilon = 0.01")), "--values", events)
    (clear,) = planned(said(tmp_path, ("epsilon = 1", "epsilon = 100")), "--values", events)
    assert (noisy["recommended"]["max_groups"], clear["recommended"]["max_groups"]) == (1, 4)
    assert clear["stops_at"] == 4
    assert "the next to leave" in shoal(tmp_path / "shoal.toml", "--values", events).stdout


def test_many_slots_are_looked_at_here_and_there(tmp_path: Path) -> None:
    (plan,) = planned(said(tmp_path), "--values", written(tmp_path, hours=2 * MOST_SLOTS))
    assert (plan["workload"]["slots"], plan["workload"]["slots_looked_at"]) == (2 * MOST_SLOTS, MOST_SLOTS)
    assert plan["workload"]["over"] == 2 * MOST_SLOTS * 3600
    text = shoal(tmp_path / "shoal.toml", "--values", tmp_path / "events.jsonl").stdout
    assert text.startswith(NOT_PRIVATE)
    assert f"{2 * MOST_SLOTS} slots over 1d, of which {MOST_SLOTS} are looked at" in text


def test_a_stated_workload_is_all_alike(tmp_path: Path) -> None:
    (plan,) = planned(said(tmp_path), *STATED)
    assert plan["private"]
    assert plan["workload"] == {
        "users": 60, "slots": 1, "slots_looked_at": 1, "cells": 6, "most_cells": 2, "samples": 3, "over": 3600,
        "pattern": "even",
    }  # fmt: skip
    # 20 users with 3 samples each, and half of epsilon: noise of 1/10 of the range
    assert at(plan, 2)["worst_error"] == pytest.approx(1 / 10)
    assert at(plan, 2)["degradation"] == pytest.approx(1)
    assert at(plan, 1)["left_out"] == pytest.approx(1 / 2)
    (one,) = planned(said(tmp_path, ("max_groups = 2", "max_groups = 1")), "--users", 60, "--samples", 2.5)
    assert (one["workload"]["cells"], one["workload"]["samples"]) == (1, 2.5)
    (skewed,) = planned(said(tmp_path), *STATED, "--pattern", "skewed", "--samples", 2)
    assert 1 < skewed["workload"]["samples"] < 2, "the few who have most reach the cap"


def test_all_statistics_and_ways_are_planned(tmp_path: Path) -> None:
    both = SLOTS.replace('"speed"\n', '"both"\n', 1).replace('"mean"', '"variance"')
    few = SLOTS.replace('"speed"\n', '"few"\n', 1).replace('"baseline"', '"few-users"') + 'delta = "1e-6"\n'
    prior = SLOTS.replace('"speed"\n', '"prior"\n', 1).replace('"baseline"', '"best"')
    whole = prior.replace('"prior"', '"whole"').replace('"mean"', '"distribution"')
    prior += 'prior = "few-users"\ndelta = "1e-6"\n'
    plans = planned(said(tmp_path, others=both + few + prior + whole), *STATED)
    configured = [one["algorithm"] for plan in plans for one in plan["algorithms"] if one["configured"]]
    assert configured == ["baseline", "baseline", "few-users", "with-prior", "best"]
    assert [plan["statistic"] for plan in plans][1::3] == ["variance", "distribution"]
    assert all(one["error"] > 0 and one["mechanism"] for plan in plans for one in plan["algorithms"])


def test_several_values_have_a_plan_for_each(tmp_path: Path) -> None:
    changes = ('value = "speed"', 'value = ["speed", "load"]'), ("range = [0, 65]", "range = [[0, 65], [0, 650]]")
    few = ('"baseline"', '"few-users"'), ("epsilon = 1\n", 'epsilon = 9\ndelta = "1e-6"\nsigma = [1, 10]\n')
    speed, load_ = planned(said(tmp_path, *changes, *few), "--users", 400, "--cells", 2)
    assert [(plan["field"], plan["range"]) for plan in (speed, load_)] == [("speed", [0, 65]), ("load", [0, 650])]
    # both in parts of their ranges
    assert [one["algorithm"] for one in speed["algorithms"] if one["configured"]] == ["few-users"]
    for one, other in zip(speed["algorithms"], load_["algorithms"], strict=True):
        assert other["error"] == pytest.approx(10 * one["error"])
    text = shoal(tmp_path / "shoal.toml", "--users", 400, "--cells", 2).stdout
    assert "mean per slot of load in 0 .. 650" in " ".join(text.split())
    # a file is looked at as a release would
    events = written(tmp_path)
    lines = [orjson.loads(line) | {"load": 7} for line in events.read_bytes().splitlines()]
    events.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    assert len(planned(tmp_path / "shoal.toml", "--values", events)) == 2
    # more coordinates than the other algorithms take
    nine = ('value = "speed"', f"value = {[f'x{n}' for n in range(9)]}"), ("range = [0, 65]", f"range = {[[0, 1]] * 9}")
    many = few[0], ("epsilon = 1\n", 'epsilon = 9\ndelta = "1e-6"\n')
    plans = planned(said(tmp_path, *nine, *many), "--users", 400, "--cells", 2)
    assert [[one["algorithm"] for one in plan["algorithms"]] for plan in plans] == [["few-users"]] * 9
    # together they have less noise than two metrics with half of epsilon each
    together, _ = planned(said(tmp_path, *changes), "--users", 400, "--cells", 2)
    (apart,) = planned(said(tmp_path, ("epsilon = 1\n", "epsilon = 0.5\n")), "--users", 400, "--cells", 2)
    assert [one["algorithm"] for one in together["algorithms"]] == [one["algorithm"] for one in apart["algorithms"]]
    for one, other in zip(together["algorithms"], apart["algorithms"], strict=True):
        assert one["error"] < other["error"]


@pytest.mark.parametrize("columns", [60, 80, 130])
def test_the_tables_fit_the_terminal(tmp_path: Path, columns: int) -> None:
    place = SLOTS.replace('"speed"\n', '"place"\n', 1).replace('group = "place"\n', "").replace("max_groups = 2\n", "")
    place = place.replace("max_per_group", "max_contributions")
    hexagon = SLOTS.replace('group = "place"', 'cell = { h3 = 8, lat = "lat", lon = "lon" }') + 'unit = "user"\n'
    hexagon = hexagon.replace('"speed"\n', '"hexagon"\n', 1) + "max_slots = 24\nacross_cells = 'split'\n"
    result = shoal(said(tmp_path, others=place + hexagon), *STATED, "--pattern", "skewed", columns=columns)
    assert (result.exit_code, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert "…" not in result.stdout
    flat = " ".join(result.stdout.split())
    for words in ("recommended: max_groups 2", "nobody is in several cells", "max_slots 24", "is not protected"):
        assert words in flat


def test_cells_with_too_few_users_have_no_release(tmp_path: Path) -> None:
    events = written(tmp_path)
    (plan,) = planned(said(tmp_path, more="min_users = 12\n"), "--values", events)
    assert at(plan, 1)["no_release"] > at(plan, 4)["no_release"]
    assert "have no release: too few users" in shoal(tmp_path / "shoal.toml", "--values", events).stdout
    # of few cells with enough users none may be left
    for way in ("chop-user", "split"):
        config = said(tmp_path, ("max_groups = 2", "max_groups = 1"), more=f"min_users = 14\nacross_cells = '{way}'\n")
        (plan,) = planned(config, "--values", events)
        assert at(plan, 1)["no_release"] > 0.9
        assert shoal(config, "--values", events).exit_code == 0
    refused = shoal(said(tmp_path, more="min_users = 31\n"), "--values", events)
    assert isinstance(refused.exception, ConfigError)
    assert "no cell has 31 users" in str(refused.exception)


def test_wrong_usage(tmp_path: Path) -> None:
    config, events = said(tmp_path), written(tmp_path)
    assert "how many users" in shoal(config).stderr
    assert "leave out the workload" in shoal(config, "--values", events, "--cells", 3).stderr
    many = shoal(config, "--users", MOST_PLACES)
    assert isinstance(many.exception, ConfigError)
    assert "more than can be planned" in str(many.exception)
    assert shoal(said(tmp_path, others=MEAN), *STATED).exit_code == 0
    events.write_text('{"bus": "b", "speed": "fast", "at": 1, "place": "p"}\n')
    nothing = shoal(said(tmp_path), "--values", events)
    assert isinstance(nothing.exception, InputError)
    timeless = shoal(said(tmp_path, ('time = "at"\n', "")), "--values", events)
    assert isinstance(timeless.exception, ConfigError)
    assert "add `time" in str(timeless.exception)
