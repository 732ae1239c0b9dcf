"""A plan of a metric with groups is one of a group: its error is what the releases of groups then have."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner, Result

from shoal.agents.cli.main import app
from shoal.mechanisms.forecast.groups import MOST_GROUPS
from shoal.models.config.file import load
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic

DAYS, GROUPS = 4, 8
DAY = 86_400_000
BEGIN = 1_704_067_200_000  # a midnight
HEAD = """
[privacy]
epsilon = 100
[[metric]]
name = "delay"
topic = "flights"
user = "tail"
value = "minutes"
time = "at"
group = "carrier"
range = [0, 10]
epsilon = 4
"""
IN_EACH, IN_ALL = "max_per_group = 4\n", "max_contributions = 4\n"
MEAN = 'statistic = "mean"\nalgorithm = "naive"\nusers = 20\nevery = "1d"\nclamp = false\n' + IN_EACH
SUM = 'statistic = "sum"\nevery = "1d"\n' + IN_ALL
HALVED = 'decay = { kind = "exponential", half_life = "9d" }\n'
DECAYED = 'statistic = "mean"\nevery = "1d"\nclamp = false\n' + HALVED + IN_ALL
SLOT = 'statistic = "mean"\nslot = "1d"\nalgorithm = "baseline"\nclamp = false\n' + IN_EACH


def written(folder: Path, metric: str) -> Path:
    (folder / "shoal.toml").write_text(HEAD + metric)
    return folder / "shoal.toml"


def events(sizes: list[int], samples: int = 4, of_a_user: int = 1) -> list[dict[str, Any]]:
    """Groups of so many users, each in `of_a_user` neighbouring ones; half of the values at each end of the range."""
    found, number = [], 0
    for home, size in enumerate(sizes):
        for user in range(size):
            for sample in range(samples):
                carrier = f"c{(home + sample % of_a_user) % len(sizes)}"
                at = BEGIN + (sample * DAYS // samples) * DAY + number % 1000
                value = 10 * ((user + sample // of_a_user) % 2)
                found.append({"tail": f"t{number}", "at": at, "minutes": value, "carrier": carrier})
            number += 1
    return sorted(found, key=lambda event: (event["at"], event["tail"]))


def shoal(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, arguments)], env={"COLUMNS": "250"})


def planned(*arguments: object) -> dict[str, Any]:
    result = shoal(*arguments, "--json")
    if result.exception is not None:
        raise result.exception
    (plan,) = orjson.loads(result.stdout)["metrics"]
    return dict(plan)


def releases(config: Path, lines: list[dict[str, Any]], key: int = 0) -> list[dict[str, Any]]:
    plan = plan_topic(load(config), "flights", bytes([key % 256] * 32), source_partitions=1, contributions_partitions=1)
    outputs = FileRun(plan).outputs([Line(index, orjson.dumps(event)) for index, event in enumerate(lines)])
    return [orjson.loads(one.value) for output in outputs for one in output.releases]


def measured(config: Path, lines: list[dict[str, Any]], truth: dict[str, float], keys: int) -> dict[str, float]:
    """By group the root mean square, over keys, of what the last release is away from the truth."""
    errors: dict[str, list[float]] = {group: [] for group in truth}
    for key in range(keys):
        last = {release["group"]: release["value"] for release in releases(config, lines, key)}
        for group, value in truth.items():
            errors[group].append(last[group] - value)
    return {group: math.sqrt(np.mean(np.square(of_one))) for group, of_one in errors.items()}


def together(errors: dict[str, float]) -> float:
    return math.sqrt(np.mean(np.square(list(errors.values()))))


@pytest.mark.parametrize("of_a_user", [1, 2])
def test_the_error_of_a_mean_in_a_group_is_that_foretold(tmp_path: Path, of_a_user: int) -> None:
    # given users who spread over groups, each in one or in two
    config = written(tmp_path, MEAN + f"max_groups = {of_a_user}\n")
    lines = events([20] * GROUPS, 4, of_a_user)
    plan = planned(config, "--users", 20 * GROUPS, "--samples", 4, "--over", f"{DAYS}d", "--groups", GROUPS)
    # then it is planned for those of one group
    assert (plan["workload"]["users"], plan["workload"]["samples_per_user"]) == (20 * of_a_user, 4 / of_a_user)
    groups = plan["groups"]
    assert (groups["count"], groups["users"], groups["planned"]) == (GROUPS, 20 * GROUPS, None)
    assert groups["worst"] == groups["typical"]
    # and the releases of groups have that error
    found = together(measured(config, lines, {f"c{number}": 5.0 for number in range(GROUPS)}, keys=40))
    assert found == pytest.approx(groups["typical"]["error"], rel=0.12)
    # and not that of all users together
    alone = planned(config, "--users", 20 * GROUPS, "--samples", 4, "--over", f"{DAYS}d")
    assert alone["groups"] is None
    assert alone["algorithms"][1]["over_time"][-1]["error"] < found / 1.5


@pytest.mark.parametrize("cap", [4, 2])
def test_a_sum_shares_its_cap_over_the_groups_of_a_user(tmp_path: Path, cap: int) -> None:
    config = written(tmp_path, SUM + "max_groups = 2\n").read_text()
    (tmp_path / "shoal.toml").write_text(config.replace("max_contributions = 4", f"max_contributions = {cap}"))
    lines = events([20] * GROUPS, 4, of_a_user=2)
    plan = planned(
        tmp_path / "shoal.toml", "--users", 20 * GROUPS, "--samples", 4, "--over", f"{DAYS}d", "--groups", GROUPS
    )
    # two samples of each of 40 users are in a group; with half the cap half of them count
    typical = plan["groups"]["typical"]
    assert (typical["users"], typical["samples_per_user"]) == (40, 2)
    assert typical["left_out"] == pytest.approx(1 - cap / 4)
    truth = {
        f"c{number}": sum(one["minutes"] for one in lines if one["carrier"] == f"c{number}") for number in range(8)
    }
    found = together(measured(tmp_path / "shoal.toml", lines, truth, keys=30))
    assert found == pytest.approx(typical["error"], rel=0.12)


def test_the_error_of_a_slot_in_a_group_is_that_foretold(tmp_path: Path) -> None:
    config = written(tmp_path, SLOT)
    plan = planned(config, "--users", 20 * GROUPS, "--samples", 1, "--groups", GROUPS)
    assert plan["workload"]["cells"] == plan["groups"]["count"] == GROUPS
    assert plan["groups"]["worst"]["users"] == 20
    lines = events([20] * GROUPS, samples=1)
    errors = measured(config, lines, {f"c{number}": 5.0 for number in range(GROUPS)}, keys=60)
    # the error of a slot is foretold as the mean size, for which a Laplace law has 1 / sqrt(2) of its deviation
    assert together(errors) / math.sqrt(2) == pytest.approx(plan["groups"]["worst"]["error"], rel=0.12)
    # and cells are another word for groups
    assert planned(config, "--users", 20 * GROUPS, "--samples", 1, "--cells", GROUPS)["groups"] == plan["groups"]


SIZES = [40, 3, 10, 10, 10]


@pytest.mark.parametrize("metric", [MEAN, SUM + 'unit = "user-day"\n', DECAYED, SLOT])
def test_a_file_tells_which_group_is_typical_and_which_fares_worst(tmp_path: Path, metric: str) -> None:
    # given groups of many sizes
    config, file = written(tmp_path, metric), tmp_path / "events.jsonl"
    lines = events(SIZES)
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    # when it is planned, then the plan names the group it is about, a typical one and the worst
    groups = planned(config, "--values", file)["groups"]
    assert groups["count"] == len(SIZES)
    assert groups["users"] == sum(SIZES)
    assert groups["worst"]["group"] == "c1"
    assert groups["worst"]["users"] == 3
    assert groups["typical"]["group"] in ("c2", "c3", "c4")
    text = " ".join(shoal(config, "--values", file).stdout.split())
    if metric != SLOT:
        assert groups["planned"] == "c0"
        assert '40 users in group "c0", the largest of 5, with 4 samples each' in text
    assert f'in the typical group, "{groups["typical"]["group"]}" (10 users, ' in text
    assert 'in the worst, "c1" (3 users, ' in text


def test_users_in_too_many_groups_are_in_the_first_ones(tmp_path: Path) -> None:
    # given users who go from one group to the next, where one group is all that counts
    config, file = written(tmp_path, MEAN + "max_groups = 1\n"), tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, events([20, 10, 10], of_a_user=2))))
    # then each is in the group of the first sample alone
    groups = planned(config, "--values", file)["groups"]
    assert (groups["count"], groups["users"], groups["worst"]["users"]) == (3, 40, 10)


@pytest.mark.long
def test_the_error_of_the_worst_group_is_what_its_releases_have(tmp_path: Path) -> None:
    config, file = written(tmp_path, MEAN), tmp_path / "events.jsonl"
    lines = events(SIZES)
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    groups = planned(config, "--values", file)["groups"]
    truth = {
        group: float(np.mean([one["minutes"] for one in lines if one["carrier"] == group]))
        for group in (groups["worst"]["group"], groups["typical"]["group"])
    }
    errors = measured(config, lines, truth, keys=250)
    for which in ("worst", "typical"):
        assert errors[groups[which]["group"]] == pytest.approx(groups[which]["error"], rel=0.15)
    # which is many times that of the largest, of which alone the rest of the plan is
    assert groups["worst"]["error"] > 5 * planned(config, "--values", file)["algorithms"][1]["over_time"][-1]["error"]


@pytest.mark.parametrize("metric", [MEAN, SUM])
def test_of_very_many_groups_some_are_looked_at(tmp_path: Path, metric: str) -> None:
    config, file = written(tmp_path, metric), tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, events([1 + number % 3 for number in range(2 * MOST_GROUPS)]))))
    groups = planned(config, "--values", file)["groups"]
    assert (groups["count"], groups["looked_at"]) == (2 * MOST_GROUPS, MOST_GROUPS)
    assert f"; {MOST_GROUPS} were looked at" in " ".join(shoal(config, "--values", file).stdout.split())


@pytest.mark.parametrize("metric", [MEAN, SUM])
def test_a_plan_says_over_how_many_groups_its_users_spread(tmp_path: Path, metric: str) -> None:
    config = written(tmp_path, metric)
    one = " ".join(shoal(config, "--users", 80).stdout.split())
    assert "for 80 users in one group with " in one
    assert "All users are in one group here: --groups says over how many they spread, and noise is that of each." in one
    many = " ".join(shoal(config, "--users", 80, "--groups", 8).stdout.split())
    assert "for 10 users in each of 8 groups (80 in all) with " in many
    assert "--groups says" not in many


def test_a_group_that_spans_too_many_steps_is_no_reason_to_refuse_the_others(tmp_path: Path) -> None:
    config = written(tmp_path, SUM.replace('"1d"', '"1s"'))
    lines = [{"tail": f"t{number}", "at": BEGIN + number, "minutes": 1, "carrier": "short"} for number in range(9)]
    lines += [{"tail": "x", "at": BEGIN + day * DAY, "minutes": 1, "carrier": "long"} for day in range(8)]
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    groups = planned(config, "--values", tmp_path / "events.jsonl")["groups"]
    assert (groups["count"], groups["looked_at"], groups["worst"]["group"]) == (2, 1, "short")


def test_an_algorithm_that_is_refused_has_no_groups(tmp_path: Path) -> None:
    # given a grid that is too fine for sharp, which is configured
    config = written(tmp_path, MEAN.replace('"naive"', '"sharp"') + f"grid = {2**32}\n")
    config.write_text(config.read_text().replace("max_per_group = 4", "max_per_group = 64"))
    plan = planned(config, "--users", 80, "--groups", 8)
    assert next(one["refused"] for one in plan["algorithms"] if one["configured"]) is not None
    assert plan["groups"] is None


def test_wrong_usage_of_groups(tmp_path: Path) -> None:
    cells = written(tmp_path, SLOT)
    cell = 'cell = { h3 = 7, lat = "lat", lon = "lon" }'
    cells.write_text(cells.read_text().replace('group = "carrier"', cell))
    assert "no metric has a group" in shoal(cells, "--users", 9, "--groups", 3).stderr
    config = written(tmp_path, MEAN)
    assert "leave out the workload" in shoal(config, "--values", "x.jsonl", "--groups", 3).stderr
    assert "give one of the two" in shoal(written(tmp_path, SLOT), "--users", 9, "--groups", 3, "--cells", 3).stderr
    config.write_text((HEAD + MEAN.replace(IN_EACH, IN_ALL)).replace('group = "carrier"\n', ""))
    refused = shoal(config, "--users", 9, "--groups", 3)
    assert refused.exit_code == 2
    assert "no metric has a group: delay" in refused.stderr
