"""`shoal plan`: what it foretells is what `shoal run` then does, and it spends nothing."""

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner, Result

from shoal.agents.cli.main import app
from shoal.agents.plan.observed import observed
from shoal.mechanisms.continual_mean import MEANS
from shoal.mechanisms.continual_mean.observed import ObservedMean
from shoal.mechanisms.continual_mean.plan import plans
from shoal.mechanisms.lower_bounds import mean
from shoal.mechanisms.plan import NOT_PRIVATE
from shoal.mechanisms.words import number
from shoal.mechanisms.workload import Stated
from shoal.models.config.file import load
from shoal.models.errors import ConfigError, InputError
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic

PRIVACY = "[privacy]\nepsilon = 100\n"
METRIC = """
[[metric]]
name = "amount"
topic = "sales"
user = "who"
value = "amount"
time = "at"
statistic = "mean"
algorithm = "naive"
range = [0, 10]
epsilon = 1
max_contributions = 4
users = 40
every = "1d"
"""
USERS, SAMPLES, DAYS = 40, 4, 8
DAY = 86_400_000_000
BEGIN = 1_704_067_200_000_000  # a midnight


def events(users: int = USERS, samples: int = SAMPLES, days: int = DAYS) -> list[dict[str, Any]]:
    """Constant rates and even phases, as `--pattern even` has it; values at both ends of the range."""
    found = []
    for user in range(users):
        phase = (user + 0.5) / users
        for sample in range(1, samples + 1):
            at = BEGIN + round((sample - phase) / samples * days * DAY) - 1
            found.append({"who": f"u{user}", "amount": 10 * (user % 2), "at": at // 1000, "w": 1, "country": user % 3})
    return sorted(found, key=lambda event: event["at"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shoal.toml").write_text(PRIVACY + METRIC)
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, events())))
    return tmp_path


def shoal(*arguments: object, columns: int = 200) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, arguments)], env={"COLUMNS": str(columns)})


def planned(*arguments: object) -> list[dict[str, Any]]:
    result = shoal(*arguments, "--json")
    if result.exception is not None:
        raise result.exception
    metrics: list[dict[str, Any]] = orjson.loads(result.stdout)["metrics"]
    return metrics


def said(folder: Path, changes: dict[str, str], more: str = "") -> Path:
    text = METRIC
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    (folder / "shoal.toml").write_text(PRIVACY + text + more)
    return folder / "shoal.toml"


def run(config: Path, key: int = 0) -> list[dict[str, Any]]:
    """The releases of a file run, without a log."""
    plan = plan_topic(load(config), "sales", bytes([key % 256, key // 256] * 16), source_partitions=1,
                      contributions_partitions=1)  # fmt: skip
    lines = [Line(index, orjson.dumps(event)) for index, event in enumerate(events())]
    return [orjson.loads(one.value) for output in FileRun(plan).outputs(lines) for one in output.releases]


def of(plan: dict[str, Any], algorithm: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in plan["algorithms"] if one["algorithm"] == algorithm)
    return found


TELLS = "withheld = true\n"
EXACT = ("samples", "noise_sd", "bias", "left_out")  # what no noise moves
FEW_USERS = {"epsilon = 1": 'epsilon = 90\nprior = "few-users"\ndelta = 0.001', '"naive"': '"single-tree"'}


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        ("naive", {}),
        ("full", {'"naive"': '"full"'}),
        ("multi-tree", {'"naive"': '"multi-tree"\nprior = 5'}),
        ("single-tree", FEW_USERS),
    ],
)
def test_the_noise_foretold_is_that_of_every_release(folder: Path, algorithm: str, changes: dict[str, str]) -> None:
    # given a workload that is stated, and a file that is like it
    config = said(folder, changes)
    (plan,) = planned(config, "--over", f"{DAYS}d")
    # when its releases are made
    releases = run(config)
    # then each of them has that noise, on so many samples, at that time; a tick without closed blocks has none
    foretold = {one["seconds"]: (one["noise_sd"], one["samples"]) for one in of(plan, algorithm)["over_time"]}
    for one in releases:
        at = datetime.fromisoformat(one["at"]).timestamp() - BEGIN / 1e6
        assert foretold[at] == (one["noise_sd"], one["samples"])
    # and of real values it is no other
    (again,) = planned(config, "--values", folder / "events.jsonl")
    assert {one["noise_sd"] for one in of(again, algorithm)["over_time"]} - {None} == {
        one["noise_sd"] for one in releases
    } - {None}


def test_a_plan_says_that_few_users_are_waited_for(folder: Path) -> None:
    table = shoal(said(folder, FEW_USERS), "--over", f"{DAYS}d").stdout
    assert "* needs a prior, which few users choose: until then nothing is released." in table
    table = shoal(said(folder, FEW_USERS | {"epsilon = 1": "epsilon = 90\nprior = 5"}), "--over", f"{DAYS}d").stdout
    assert "* needs a prior." in table


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["naive", "sharp"])
def test_the_noise_measured_over_many_keys_is_that_foretold(folder: Path, algorithm: str) -> None:
    horizon = '\nhorizon = "8d"' if algorithm == "sharp" else ""
    settings = f'"{algorithm}"\nclamp = false{horizon}'
    config = said(folder, {'"naive"': settings, "epsilon = 1": "epsilon = 40"})
    (plan,) = planned(config, "--over", f"{DAYS}d")
    # Half of the values lie at each end of the range: their mean is 5, and whatever is clipped shows.
    errors = [run(config, key)[-1]["value"] - 5 for key in range(250)]
    foretold = of(plan, algorithm)["over_time"][-1]["noise_sd"]
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(foretold, rel=0.1)


def test_a_table_names_every_algorithm_and_nothing_is_written_or_needed(folder: Path) -> None:
    before = sorted(folder.iterdir())
    result = shoal(folder / "shoal.toml", "--users", 20000)
    assert (result.exit_code, result.stderr) == (0, "")
    assert all(name in result.stdout for name in MEANS)
    assert "recommended: sharp, max_contributions" in result.stdout
    assert "* needs a prior, which this configuration lacks." in result.stdout
    assert NOT_PRIVATE not in result.stdout
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 160])
def test_the_table_fits_the_terminal(folder: Path, columns: int) -> None:
    config = said(folder, {"epsilon = 1": "epsilon = 1e-9"})
    shown = shoal(config, "--users", 10**9, "--samples", 2.5, columns=columns).stdout
    assert max(map(len, shown.splitlines())) <= columns
    assert "…" not in shown
    assert "nothing useful" in shoal(folder / "shoal.toml").stdout


def test_the_least_change_that_halves_the_error_is_told(folder: Path) -> None:
    config = folder / "shoal.toml"
    options = ["--samples", 4, "--over", "300d", "--users"]
    (plan,) = planned(config, *options, 5000)
    error, half = plan["algorithms"][0]["over_time"][-1]["error"], plan["half_the_error"]
    more = said(folder, {"epsilon = 1": f"epsilon = {half['epsilon']['epsilon']:.9f}"})
    assert planned(more, *options, 5000)[0]["algorithms"][0]["over_time"][-1]["error"] <= 0.511 * error
    config = said(folder, {"users = 40": f"users = {round(40 * half['users']['factor'])}"})
    many = planned(config, *options, half["users"]["users"])[0]
    assert many["algorithms"][0]["over_time"][-1]["error"] <= 0.511 * error
    assert half["time"] is None, "all have given what counts"


def test_more_time_helps_users_who_have_not_given_what_may_count(folder: Path) -> None:
    (plan,) = planned(
        said(folder, {"max_contributions = 4": "max_contributions = 64"}), "--users", 20000, "--samples", 2
    )
    assert plan["half_the_error"]["time"]["time"] == pytest.approx(
        365 * 86400 * plan["half_the_error"]["time"]["factor"], rel=0.01
    )
    assert plan["recommended"]["max_contributions"] < 64


@pytest.mark.slow
def test_the_recommended_settings_are_better(folder: Path) -> None:
    options = ["--users", 20000, "--samples", 3, "--over", "365d", "--pattern", "skewed", "--spread", 0.2]
    config = said(folder, {"users = 40\n": "", '"naive"': '"sharp"', "max_contributions = 4": "max_contributions = 64"})
    (plan,) = planned(config, *options)
    advised = plan["recommended"]
    assert (advised["users"], advised["horizon"], advised["algorithm"]) == (20000, "365d", "sharp")
    low, high = of(plan, "sharp")["last_noise_sd_likely"]
    assert low <= of(plan, "sharp")["over_time"][-1]["noise_sd"] <= high
    assert of(plan, "naive")["last_noise_sd_likely"] is None
    assert "in four of five cases" in shoal(config, *options).stdout
    config = said(folder, {
        "users = 40": f"users = {advised['users']}\nhorizon = \"{advised['horizon']}\"", '"naive"': '"sharp"',
        "max_contributions = 4": f"max_contributions = {advised['max_contributions']}",
        'every = "1d"': f'every = "{advised["every"]}"',
    })  # fmt: skip
    (better,) = planned(config, *options)
    errors = [of(one, "sharp")["over_time"][-1]["error"] for one in (plan, better)]
    assert errors[1] == advised["outcome"]["error"]
    assert errors[1] < 1.25 * errors[0], "a finer cadence may cost a quarter"
    useful = [of(one, "sharp")["first_useful"]["seconds"] for one in (plan, better)]
    assert 0 < useful[0] < 365 * 86400
    assert useful[1] > 0


@pytest.mark.slow
def test_several_values_groups_and_a_release_per_contribution(folder: Path) -> None:
    config = said(folder, {
        'value = "amount"': 'value = ["amount", "w"]', "range = [0, 10]": "range = [[0, 10], [-1, 1]]",
        'every = "1d"': 'every = "contribution"\ngroup = "country"\nmax_groups_per_user = 2', '"naive"': '"full"',
    })  # fmt: skip
    amount, w = planned(config, "--users", 1000)
    assert (amount["field"], w["field"]) == ("amount", "w")
    assert of(amount, "naive")["over_time"][-1]["noise_sd"] == pytest.approx(
        5 * of(w, "naive")["over_time"][-1]["noise_sd"], rel=1e-5
    )
    assert amount["workload"]["over"] is None
    shown = shoal(config, "--users", 1000).stdout
    assert "2 groups of a user share it" in shown
    assert "100 %" in shown
    (one, _) = planned(config, "--values", folder / "events.jsonl")
    assert one["workload"]["users"] == 14, "of the largest group"
    assert of(one, "naive")["over_time"][-1]["samples"] == 14 * SAMPLES


def test_subgaussian_values_rule_some_algorithms_out(folder: Path) -> None:
    config = said(folder, {'"naive"': '"full"\nsigma = 2'})
    (plan,) = planned(config)
    assert [one["algorithm"] for one in plan["algorithms"]] == ["wishful", "single-tree", "multi-tree", "full"]
    assert "with a sigma of 2" in shoal(config).stdout


def test_what_no_method_can_do_is_told(folder: Path) -> None:
    """For users with as many samples each, and for values that lie closer together than the range says."""
    private, chance = (10 * error for error in mean([(1000.0, 9)], 1.0))
    near = [0.2 * error / 10 for error in (private, chance)]
    for algorithm, errors in (('"naive"', (private, chance)), ('"full"\nsigma = 0.1', near)):
        config = said(folder, {'"naive"': algorithm})
        told = shoal(config, "--users", 1000, "--samples", 9, "--over", "30d").stdout
        assert f"comes within {number(errors[0])} of the mean of the law that values follow" in told
        assert f"by chance none comes within {number(errors[1])} (George et al., section 5)" in told


def test_what_an_algorithm_refuses_is_said(folder: Path) -> None:
    config = said(folder, {'"naive"': '"multi-tree"\nprior = 5\nsigma = 1e-9'})
    result = shoal(config, "--users", 100)
    assert result.exit_code == 0
    assert "full is refused: range is too wide" in result.stdout
    (plan,) = planned(config, "--values", folder / "events.jsonl")
    assert "range is too wide" in of(plan, "full")["refused"]
    refused = shoal(said(folder, {'"naive"': '"full"\nsigma = 1e-9'}))
    assert isinstance(refused.exception, ConfigError)
    assert "range is too wide" in str(refused.exception)


def test_real_values_are_marked_and_their_bias_is_measured(folder: Path) -> None:
    # given values beyond the range and users over the cap
    rows = [{**event, "amount": 12 * (event["amount"] > 0)} for event in events(samples=6)]
    rows += [{"who": "x", "amount": "text", "at": 0}]
    (folder / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    result = shoal(folder / "shoal.toml", "--values", folder / "events.jsonl", "--plot", folder / "plan.png", "--json")
    assert NOT_PRIVATE in result.stderr
    fields = orjson.loads(result.stdout)
    (plan,) = fields["metrics"]
    assert (fields["private"], fields["warning"], plan["private"], plan["warning"]) == (False, NOT_PRIVATE) * 2
    # then the bias is that of clipping 12 to 10, and a third of the samples is left out
    last = of(plan, "naive")["over_time"][-1]
    assert last["bias"] == pytest.approx(-1, abs=1e-4)
    assert last["left_out"] == pytest.approx(1 / 3)
    assert last["error"] == pytest.approx(math.hypot(last["noise_sd"], last["bias"]))
    assert plan["half_the_error"]["users"] is None
    text = shoal(folder / "shoal.toml", "--values", folder / "events.jsonl").stdout
    assert text.startswith(NOT_PRIVATE)
    assert "from the file" in text


def test_what_is_withheld_changes_no_plan(folder: Path) -> None:
    # given a mean on blocks, of real values, that does not say what it withholds, and then does
    of_blocks = {'"naive"': '"multi-tree"\nprior = 5'}
    plans = [planned(said(folder, of_blocks, more), "--values", folder / "events.jsonl") for more in ("", TELLS)]
    # then what counts is the same, whatever the noise of keys that were thrown away
    one, other = ([[look[name] for name in EXACT] for look in of(plan, "multi-tree")["over_time"]] for (plan,) in plans)
    assert one == other
    assert any(samples for samples, *_ in one)


@pytest.mark.parametrize("algorithm", MEANS)
def test_the_bias_of_real_values_is_what_a_release_without_noise_has(folder: Path, algorithm: str) -> None:
    prior = "\nprior = 2" if algorithm in ("wishful", "single-tree", "multi-tree") else ""
    config = said(folder, {'"naive"': f'"{algorithm}"{prior}', "epsilon = 1\n": "epsilon = 1000000000\n"})
    section = load(config).metric[0]
    file = observed(load(config), section, str(folder / "events.jsonl"), lambda _: None)
    last = ObservedMean.of(section, 0, file).final(section)
    release = run(config)[-1]
    assert last.samples == release["samples"]
    assert last.bias == pytest.approx(release["value"] - 5, abs=1e-3)


def test_values_beyond_all_numbers_count_as_the_end_of_the_range(folder: Path) -> None:
    lines = [b'{"who": "a", "amount": %s, "at": 1e9}' % value for value in (b"1e400", b"-1e999", b"1" + b"0" * 310)]
    (folder / "events.jsonl").write_bytes(b"\n".join(lines))
    (plan,) = planned(folder / "shoal.toml", "--values", folder / "events.jsonl")
    assert of(plan, "naive")["over_time"][-1]["bias"] == pytest.approx(0, abs=1e-4)
    # and in a table, which has whole numbers of any length
    rows = ["who,amount,at", *(f"a,{value},1e9" for value in ("1" + "0" * 400, "-1" + "0" * 400))]
    (folder / "events.csv").write_text("\n".join(rows))
    (plan,) = planned(folder / "shoal.toml", "--values", folder / "events.csv")
    assert of(plan, "naive")["over_time"][-1]["bias"] == pytest.approx(0, abs=1e-4)


@pytest.mark.slow
def test_a_picture(folder: Path) -> None:
    second = METRIC.replace('"amount"\ntopic', '"other"\ntopic').replace("epsilon = 1", "epsilon = 1e-9")
    config = said(folder, {'every = "1d"': 'every = "contribution"'}, more=second)
    result = shoal(config, "--plot", folder / "plan.png", "--json")
    assert (folder / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == f"shoal: the picture is in {folder / 'plan.png'}\n"
    refused = shoal(config, "--plot", folder / "no" / "plan.png")
    assert isinstance(refused.exception, InputError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metric", "other"], "there is no metric 'other'; name one of: amount"),
        (["--over", "soon"], "not a duration"),
        (["--over", "0s"], "longer than 0s"),
        (["--users", "0"], "--users"),
        (["--spread", "2"], "--spread"),
        (["--values", "events.jsonl", "--users", "5"], "leave out the workload"),
    ],
)
def test_wrong_usage(folder: Path, options: list[str], message: str) -> None:
    result = shoal(folder / "shoal.toml", *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_users_must_be_known(folder: Path) -> None:
    config = said(folder, {"users = 40\n": "", '"naive"': '"sharp"'})
    result = shoal(config)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "how many users" in result.stderr
    assert shoal(config, "--users", 100).exit_code == 0


def test_a_file_is_of_one_topic_and_has_times(folder: Path) -> None:
    second = METRIC.replace('"amount"\ntopic', '"other"\ntopic')
    events = folder / "events.jsonl"
    for changes, more, path, message in (
        ({}, second.replace('"sales"', '"offers"'), events, "--metric NAME"),
        ({}, second, "-", "--metric NAME"),
        ({'time = "at"\n': ""}, "", events, "add `time ="),
        ({"[0, 10]": "[0, 1e-295]"}, "", events, 'metric "amount"'),
    ):
        result = shoal(said(folder, changes, more), "--values", path)
        assert isinstance(result.exception, ConfigError), message
        assert message in str(result.exception)


def test_a_file_without_events_of_the_metric(folder: Path) -> None:
    (folder / "events.jsonl").write_bytes(b"{}\n")
    result = shoal(folder / "shoal.toml", "--values", folder / "events.jsonl")
    assert isinstance(result.exception, InputError)
    assert "no event" in str(result.exception)


def test_settings_that_sharp_lacks_are_recommended_with_the_rest(folder: Path) -> None:
    section = load(said(folder, {"users = 40\n": "", '"naive"': '"sharp"'})).metric[0]
    (plan,) = plans(section, Stated(3000, 4, 100 * DAY))
    assert plan.recommended.endswith(", users 3000, horizon 100d")


EVENTS = {"max_contributions = 4": 'unit = "event"', "users = 40": "users = 160"}


def test_a_mean_of_events_is_planned_by_events_and_its_releases_are_as_foretold(folder: Path) -> None:
    config = said(folder, EVENTS)
    (plan,) = planned(config, "--users", USERS, "--samples", SAMPLES, "--over", f"{DAYS}d")
    (again,) = planned(config, "--values", folder / "events.jsonl")
    releases = run(config)
    assert releases[-1]["samples"] == len(events()) == plan["workload"]["users"] == again["workload"]["users"]
    foretold = {one["seconds"]: (one["noise_sd"], one["samples"]) for one in of(plan, "naive")["over_time"]}
    for one in releases:
        assert foretold[datetime.fromisoformat(one["at"]).timestamp() - BEGIN / 1e6] == (
            one["noise_sd"],
            one["samples"],
        )
    for told in (plan, again):
        assert [one["algorithm"] for one in told["algorithms"]] == ["sharp", "naive"]
        assert [one["over_time"][-1]["left_out"] for one in told["algorithms"]] == [0, 0]
        assert told["by_max_contributions"] == []
    # and twice as many events come of twice the time
    assert plan["half_the_error"]["time"]["factor"] == pytest.approx(plan["half_the_error"]["users"]["factor"], rel=0.5)
    table = shoal(config, "--plot", folder / "plan.png", "--users", USERS, "--samples", SAMPLES).stdout
    assert "for 160 events over " in table
    assert "unit event, a release every 1d" in table
    assert "max_contributions" not in table
    assert "needs a prior" not in table


def test_a_limit_of_events_leaves_the_rest_out(folder: Path) -> None:
    config = said(folder, EVENTS | {"every": "max_events_per_user = 1\nevery"})
    (plan,) = planned(config, "--users", USERS, "--samples", SAMPLES, "--over", f"{DAYS}d")
    (again,) = planned(config, "--values", folder / "events.jsonl")
    assert run(config)[-1]["samples"] == USERS
    for told in (plan, again):
        last = of(told, "naive")["over_time"][-1]
        assert (last["samples"], last["left_out"]) == (USERS, 1 - 1 / SAMPLES)
