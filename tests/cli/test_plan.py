"""`shoal plan`: what it foretells is what `shoal run` then does, and it spends nothing."""

import math
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from shoal.mechanisms.continual_mean import MEANS
from shoal.mechanisms.forecast.mean_report import MeanReport
from shoal.mechanisms.forecast.plan import NOT_PRIVATE
from shoal.mechanisms.privacy.lower_bounds import mean
from shoal.mechanisms.words import number
from shoal.mechanisms.workload import Stated
from shoal.models.config.file import load
from shoal.models.errors import ConfigError
from tests.cli.plan_cases import (
    BEGIN,
    DAY,
    DAYS,
    SAMPLES,
    USERS,
    events,
    of,
    planned,
    run,
    said,
    shoal,
)

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
@pytest.mark.parametrize("algorithm", ["naive", pytest.param("sharp", marks=pytest.mark.long)])
def test_the_noise_measured_over_many_keys_is_that_foretold(folder: Path, algorithm: str) -> None:
    life = '\nlife = "8d"' if algorithm == "sharp" else ""
    settings = f'"{algorithm}"\nclamp = false{life}'
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
    assert all(name in result.stdout for name in [algorithm.name for algorithm in MEANS])
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
    assert (advised["users"], advised["algorithm"]) == (20000, "sharp")
    assert "life" not in advised, "by default it is that"
    low, high = of(plan, "sharp")["last_noise_sd_likely"]
    assert low <= of(plan, "sharp")["over_time"][-1]["noise_sd"] <= high
    assert of(plan, "naive")["last_noise_sd_likely"] is None
    assert "in four of five cases" in shoal(config, *options).stdout
    config = said(folder, {
        "users = 40": f"users = {advised['users']}", '"naive"': '"sharp"',
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
        'every = "1d"': 'every = "contribution"\ngroup = "country"\nmax_groups = 2', '"naive"': '"full"',
        "max_contributions": "max_per_group",
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
    assert [one["algorithm"] for one in plan["algorithms"]] == [
        "sharp", "wishful", "single-tree", "multi-tree", "full"
    ]  # fmt: skip
    assert "with a sigma of 2" in shoal(config).stdout


def test_with_a_sigma_sharp_is_compared_and_what_is_left_out_differs_by_no_more_than_it(folder: Path) -> None:
    """A range a thousand times as wide as sigma: most samples are over the cap, and that hardly matters."""
    near = {'"naive"': '"sharp"\nsigma = 0.01', "users = 40\n": "users = 1000\n"}
    (plan,) = planned(said(folder, near), "--users", 1000, "--samples", 40, "--over", "30d")
    found = of(plan, "sharp")
    last = found["over_time"][-1]
    assert found["last_noise_sd_likely"] is None
    assert 0 < last["noise_sd"] < 0.01
    assert 0.8 < last["left_out"] < 1
    assert 0 < last["bias"] < 0.01
    assert plan["recommended"]["algorithm"] == "sharp"
    # and on a file it is run
    more = {'"naive"': near['"naive"'], "epsilon = 1\n": "epsilon = 90\n"}
    (seen,) = planned(said(folder, more), "--values", folder / "events.jsonl")
    assert of(seen, "sharp")["over_time"][-1]["samples"] > 0


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
    refused = shoal(said(folder, {'"naive"': '"full"\nsigma = 1e15'}))
    assert isinstance(refused.exception, ConfigError)
    assert "sigma is too large" in str(refused.exception)


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


def test_settings_that_sharp_lacks_are_recommended_with_the_rest(folder: Path) -> None:
    (metric,) = load(said(folder, {"users = 40\n": "", '"naive"': '"sharp"'})).metrics
    (plan,) = MeanReport.plans(metric, Stated(3000, 4, 100 * DAY))
    assert plan.recommended.endswith(", users 3000, life 100d")


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
    table = shoal(config, "--users", USERS, "--samples", SAMPLES).stdout
    assert "for 160 events over " in table
    assert "every 1d, epsilon" in table
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
