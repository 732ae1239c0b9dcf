"""What is allowed and hardly meant is told before it is paid for: by `shoal check`, and by `shoal plan`."""

import json
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from shoal.agents.audit import key_file
from shoal.agents.cli.commands import check, plan

HEAD = """
[audit]
url = "sqlite:///audit.db"
[privacy]
key_file = "shoal.key"
epsilon = 1000000
delta = 0.5
[[metric]]
name = "delay"
topic = "stops"
user = "rider"
value = "minutes"
time = "at"
range = [0, 120]
max_contributions = 4
"""
FAMILIES = {
    "mean": 'statistic = "mean"\nevery = "1d"\n',
    "full": 'statistic = "mean"\nevery = "1d"\nalgorithm = "full"\nusers = 280\n',
    "coordinates": 'statistic = "mean"\nevery = "1d"\n',
    "sum": 'statistic = "sum"\nevery = "1d"\ndecay = { kind = "window", length = "7d" }\n',
    "decayed mean": 'statistic = "mean"\nevery = "1d"\ndecay = { kind = "exponential", half_life = "7d" }\n',
    "variance": 'statistic = "variance"\nevery = "1d"\ndecay = { kind = "window", length = "7d" }\n',
    "mean per slot": 'statistic = "mean"\nslot = "1d"\n',
    "variance per slot": 'statistic = "variance"\nslot = "1d"\n',
    "distribution per slot": 'statistic = "distribution"\nslot = "1d"\n',
    "few users": 'statistic = "mean"\nslot = "1d"\nalgorithm = "few-users"\ndelta = 1e-6\n',
}


@cache
def commands() -> typer.Typer:
    app = typer.Typer()
    app.command("check")(check.check)
    app.command("plan")(plan.plan)
    return app


def shoal(command: str, *arguments: str) -> Result:
    return CliRunner().invoke(commands(), [command, "shoal.toml", *arguments], env={"COLUMNS": "200"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    key_file.new(tmp_path / "shoal.key")
    return tmp_path


def test_a_delta_of_one_in_so_many_users_or_more_is_warned_of(folder: Path) -> None:
    for delta, warned in (("0.00357", False), ("0.0036", True)):
        text = HEAD + FAMILIES["mean"] + f"epsilon = 1\nusers = 280\ndelta = {delta}\n"
        (folder / "shoal.toml").write_text(text)
        for command in (["check"], ["plan", "--users", "280"]):
            said = shoal(*command)
            assert said.exit_code == 0, said.output
            wanted = f'metric "delay": delta {delta} is not below one in the 280 users that it expects'
            assert (wanted in " ".join(said.output.split())) == warned


def write(folder: Path, family: str, epsilon: str) -> None:
    text = HEAD + FAMILIES[family] + f"epsilon = {epsilon}\n"
    if family == "coordinates":
        text = text.replace('"minutes"', '["minutes", "stops"]').replace("[0, 120]", "[[0, 120], [0, 9]]")
    (folder / "shoal.toml").write_text(text)


def warnings(command: str, *arguments: str) -> list[str]:
    done = shoal(command, "--json", *arguments)
    assert done.exit_code == 0, done.output
    return [text for text in json.loads(done.stdout)["warnings"] if "only what `shoal run`" not in text]


@pytest.mark.slow
@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "few users"])
def test_noise_that_is_wider_than_the_range_is_told(folder: Path, family: str) -> None:
    # given an epsilon for which nobody has enough users
    write(folder, family, "1e-9")
    # when it is checked, and planned, then both say so, and nothing is refused
    (checked,) = warnings("check")
    planned, *_ = warnings("plan", "--users", "2000")  # one for each coordinate
    whom = "with the 280 users that it expects" if family == "full" else "even with 10,000 users"
    assert checked.startswith(f'metric "delay": {whom} the noise (noise_sd ')
    assert planned.startswith('metric "delay": with 2,000 users the noise (noise_sd ')
    for text in (checked, planned):
        beside = {
            "sum": "sum itself (",
            "variance": "largest possible variance (3,600)",
            "distribution per slot": "total share (1)",
        }.get(family, "range (")
        assert f"is wider than the {beside}" in text
        assert text.endswith("so that its releases say nothing; it needs more users, or more epsilon")
    # and so do the lines for people
    assert f"shoal: warning: {checked}\n" in shoal("check").stderr
    assert f"warning: {planned}" in " ".join(shoal("plan", "--users", "2000").stdout.split())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("epsilon", ["1", "20"])
def test_a_sensible_budget_is_no_reason_to_warn(folder: Path, family: str, epsilon: str) -> None:
    write(folder, family, epsilon)
    assert warnings("check") == []


@pytest.mark.parametrize("family", FAMILIES)
def test_an_epsilon_that_protects_little_is_told(folder: Path, family: str) -> None:
    write(folder, family, "20.5")
    said = ['metric "delay": epsilon 20.5 is above 20; this budget protects little: lower it']
    assert warnings("check") == said
    if family in ("mean", "sum", "mean per slot"):
        assert warnings("plan", "--users", "2000") == said


def test_a_count_has_no_noise_to_warn_of(folder: Path) -> None:
    (folder / "shoal.toml").write_text(HEAD.replace("range = [0, 120]\n", "") + 'statistic = "count"\nevery = "1d"\n')
    assert warnings("check") == []
    assert warnings("plan", "--users", "2000") == []


def test_settings_of_which_nothing_can_be_told_are_no_reason_to_fail(folder: Path) -> None:
    # given a distribution that no release of so few users can have
    write(folder, "mean per slot", "1")
    text = (folder / "shoal.toml").read_text() + "min_users = 20000\nusers = 30000\n"
    (folder / "shoal.toml").write_text(text)
    assert warnings("check") == []
