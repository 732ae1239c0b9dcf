"""What the commands say of relation add-remove: whose presence is hidden, what keys need, and what a count is worth."""

import json
import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from shoal.agents.cli.commands import budget, check, plan
from shoal.mechanisms.bins.tree import even_tree
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.forecast.presence import SidesReport
from shoal.mechanisms.linear.distribution import mean_sd
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.sums.decays import Undecayed
from shoal.models.errors import ConfigError, LedgerError
from tests.cli.test_units import folder

__all__ = ["folder"]
HEAD = '[audit]\nurl = "sqlite:///log.db"\n[privacy]\nepsilon = 10\ndelta = 0.001\n'
METRIC = """
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
relation = "add-remove"
statistic = "mean"
range = [0, 200]
every = "1d"
start = 2026-01-01
life = "365d"
epsilon = 1
max_contributions = 8
"""
FOUND = 'group = "country"\ndelta = 1e-6\n'
DECLARED = 'group = "country"\ngroups = ["BE", "NL"]\n'
VALUES = METRIC.replace('relation = "add-remove"\n', "").replace("start = 2026-01-01\n", "")


@cache
def commands() -> typer.Typer:
    app = typer.Typer()
    app.command("check")(check.check)
    app.command("budget")(budget.budget)
    app.command("plan")(plan.plan)
    return app


def said(*arguments: object) -> Result:
    result = CliRunner().invoke(commands(), [str(one) for one in arguments])
    if isinstance(result.exception, ConfigError | LedgerError):
        raise result.exception
    return result


def checked(metric: str, *, privacy: str = "", people: int | None = None) -> tuple[str, dict[str, Any]]:
    """The text and the JSON of a check."""
    Path("shoal.toml").write_text(HEAD + privacy + metric)
    more = () if people is None else ("--people", people)
    return said("check", "shoal.toml", *more).stdout, json.loads(said("check", "shoal.toml", *more, "--json").stdout)


def test_it_says_first_that_being_there_is_hidden_and_then_what_is_public(folder):
    text, fields = checked(METRIC)
    assert (
        "  epsilon = 1 per person, for ever: whether one person is there at all, and all that is in their records, "
        "however often it is released; at most 8 samples of a person count; the number of samples, "
    ) in text
    paragraph = fields["guarantee"]
    assert paragraph.startswith(
        "Whether a person is there at all is protected, with all that is in their records: when, in which group, how "
        "often, and what. This is what most people mean by differential privacy. Public are this configuration, with "
        "its start, its end and the groups that it declares; the beats; and what is released."
    )
    assert "whether one person is there changes the probability of anything that can be seen" in paragraph
    assert "could come to think it at most 23.2 % likely" in paragraph
    assert "depends on its form" not in text
    assert "a run over a file closes all steps up to `end`, whatever comes; what may undo this guarantee" in text
    assert (fields["relation"], fields["metrics"][0]["relation"]) == ("add-remove", "add-remove")


def test_beats_are_asked_for_where_there_are_workers(folder):
    Path("shoal.toml").write_text('[kafka]\nbrokers = "127.0.0.1:1"\n' + HEAD + METRIC)
    text = said("check", "shoal.toml").stdout
    assert "time goes by beats alone: keep `shoal beat CONFIG` running, or nothing is released" in text
    assert "a run over a file" not in text


def test_a_metric_of_values_says_what_it_said(folder):
    text, fields = checked(VALUES)
    assert "That they were there, when and how often, is not protected" in fields["guarantee"]
    assert "beats" not in text
    assert "relation" not in fields
    assert "relation" not in fields["metrics"][0]


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (
            "user-day",
            "whether one person is there at all in one day of event time, and all that is in their records of it",
        ),
        ("event", "whether one event is there at all, and all that is in it, however often"),
    ],
)
def test_units_are_hidden_as_a_whole(folder, unit, words):
    metric = METRIC if unit != "event" else METRIC.replace("max_contributions = 8\n", "")
    text, fields = checked(metric + f'unit = "{unit}"\n')
    assert words in text
    whose = {"user-day": "whether one person is there in one day", "event": "whether one event is there"}[unit]
    assert f"{whose} changes the probability of anything" in fields["guarantee"]


def test_keys_that_nobody_declared_say_how_many_people_they_need_and_what_they_cost(folder):
    text, _ = checked(METRIC + FOUND)
    crossing = FirstCrossing(Fraction(1, 5), Fraction(1, 10**6), 365)
    assert (
        "keys that nobody declared are found with epsilon = 0.2 of that and its delta: one is shown, for ever, once "
        f"about {crossing.threshold(1)} have come to it, each a person ({crossing.threshold(2920)} at 8 times the "
        "life); a person counts so for its first key, and with its samples in every key that is shown"
    ) in text
    text, _ = checked(METRIC + FOUND + "selection = { epsilon = 0.5 }\nmax_groups = 3\n")
    assert "found with epsilon = 0.5 of that and its delta" in text
    assert "counts so for its first 3 keys" in text
    text, _ = checked(METRIC + DECLARED)
    assert "the 2 keys of groups are public, and released from start on whether anybody has them or not" in text


@pytest.mark.parametrize("life", ["", 'life = "365d"\n'])
def test_a_metric_that_ends_has_one_threshold_and_is_planned_until_then(folder, life):
    ends = METRIC.replace('life = "365d"\n', life + "end = 2026-03-02\n")
    text, _ = checked(ends + FOUND)
    crossing = FirstCrossing(Fraction(1, 5), Fraction(1, 10**6), 60, ends=True)
    assert {crossing.threshold(tick) for tick in (1, 60)} == {crossing.threshold(1)}
    assert f"once about {crossing.threshold(1)} have come to it, each a person; a person counts so for its" in text
    assert "times the life" not in text
    noise = float(text.partition("noise of standard deviation ")[2].partition(" ")[0])
    assert "after 60 releases" in text
    assert "60d, at constant rates" in said("plan", "shoal.toml", "--users", 5000).stdout
    skewed = " ".join(said("plan", "shoal.toml", "--users", 5000, "--pattern", "skewed").stdout.split())
    assert "60d, on average, a few users with most" in skewed
    (fields,) = json.loads(said("plan", "shoal.toml", "--users", 5000, "--json").stdout)["metrics"]
    assert fields["workload"]["steps"] == 60
    assert fields["over_time"][-1]["count_sd"] == pytest.approx(noise, rel=0.01)
    (fields,) = json.loads(said("plan", "shoal.toml", "--users", 5000, "--over", "30d", "--json").stdout)["metrics"]
    assert fields["workload"]["steps"] == 30


def test_a_plan_of_a_count_has_one_column_of_noise(folder):
    count = METRIC.replace('"mean"', '"count"').replace('value = "amount"\n', "").replace("range = [0, 200]\n", "")
    for metric, columns in ((METRIC, 2), (count, 0), (count.replace('"count"', '"users"'), 0)):
        Path("shoal.toml").write_text(HEAD + metric)
        text = said("plan", "shoal.toml", "--users", 5000).stdout
        assert (text.count("noise of count"), text.count("noise of value")) == (columns, 2)


def test_a_clip_says_what_it_costs_and_when_it_is_chosen(folder):
    text, _ = checked(METRIC + 'clip = "auto"\nusers = 4000\n')
    assert (
        "where the range ends is chosen for each key with epsilon = 0.22 of that, from the first value of each person, "
        "once about 2,000 have come to it; until then neither value nor count is released"
    ) in text
    stated = ("plan", "shoal.toml", "--samples", 4, "--over", "365d")
    enough, few = (said(*stated, "--users", users).stdout for users in (5000, 1000))
    assert "From about 2,000 users on a key has a clip range" in " ".join(enough.split())
    advice = "a clip range is chosen once about 2,000 users have come to a key, more than there are"
    assert advice in " ".join(few.split())
    assert advice not in " ".join(enough.split())
    (fields,) = json.loads(said(*stated, "--users", 5000, "--json").stdout)["metrics"]
    assert fields["units_to_clip"] == 2000


def test_the_count_says_how_exact_it_is(folder):
    text, _ = checked(METRIC)
    declared = float(text.partition("noise of standard deviation ")[2].partition(" ")[0])
    text, _ = checked(METRIC + FOUND)
    found = float(text.partition("noise of standard deviation ")[2].partition(" ")[0])
    # four fifths of epsilon are left for it where keys are found
    assert math.isclose(found, declared * 5 / 4, rel_tol=0.02)
    assert "after 365 releases" in text


@pytest.mark.parametrize("people", [1, 4])
def test_several_people_lose_what_a_group_does(folder, people):
    _, fields = checked(METRIC + FOUND, people=people)
    group = Loss(Fraction(1), Fraction(1, 10**6)).of_group(people)
    for lost in (fields["people"], fields["metrics"][0]["people"]):
        assert lost["epsilon"] == people
        assert group.delta <= Fraction(lost["delta"]) <= group.delta * (1 + Fraction(1, 10**12))
        assert lost["by"] == "approximate"
    _, fields = checked(METRIC + DECLARED, people=people)
    assert (fields["people"]["epsilon"], fields["people"]["delta"], fields["people"]["by"]) == (people, 0, "pure")


def test_a_ledger_of_values_charges_twice_and_says_so(folder):
    text, fields = checked(METRIC + FOUND, privacy='relation = "values"\n', people=1)
    twice = Loss(Fraction(1), Fraction(1, 10**6)).of_group(2)
    assert "basket version 1 (would be charged epsilon 2 and delta 3.71828e-06)" in text
    assert fields["metrics"][0]["charge"] == fields["people"]["epsilon"] == 2
    assert Fraction(fields["people"]["delta"]) >= twice.delta
    assert "The ledger counts by values, to which a metric of relation add-remove is two steps" in fields["guarantee"]
    assert "what one person did changes the probability of anything" in fields["guarantee"]


def test_a_ledger_of_presence_takes_no_metric_of_values(folder):
    with pytest.raises(ConfigError, match="relation values in a ledger that counts by add-remove: it publishes who"):
        checked(VALUES, privacy='relation = "add-remove"\n')


def test_the_budget_says_by_which_relation_it_counts(folder):
    Path("shoal.toml").write_text(HEAD + METRIC)
    assert (
        "budget   epsilon 10, delta 0.001 per person, for ever, by relation add-remove"
        in said("budget", "shoal.toml").stdout
    )
    assert json.loads(said("budget", "shoal.toml", "--json").stdout)["relation"] == "add-remove"
    Path("shoal.toml").write_text(HEAD + VALUES)
    assert "relation" not in said("budget", "shoal.toml").stdout
    assert "relation" not in json.loads(said("budget", "shoal.toml", "--json").stdout)


def test_a_plan_says_what_noise_the_count_and_the_value_will_have(folder):
    Path("shoal.toml").write_text(HEAD + METRIC + FOUND)
    stated = ("plan", "shoal.toml", "--users", 5000, "--samples", 4, "--over", "365d")
    text, (fields,) = said(*stated).stdout, json.loads(said(*stated, "--json").stdout)["metrics"]
    last = fields["over_time"][-1]
    assert last["samples"] == 20_000
    # in the middle of the range: each side has half of what the count's noise squares to
    assert math.isclose(last["noise_sd"], 200 * last["count_sd"] / 2 / last["samples"], rel_tol=1e-6)
    # users have 4 samples, so that a cap of 8 pays for 4 that nobody gives
    assert fields["recommended"] == {"max_contributions": 4}
    assert "recommended: max_contributions 4\n" in text
    assert fields["units_to_show_a_key"] == FirstCrossing(Fraction(1, 5), Fraction(1, 10**6), 365).threshold(1)
    assert "a key is shown once about" in text


@pytest.mark.parametrize(("statistic", "samples"), [('statistic = "sum"\n', 20_000), ('statistic = "count"\n', 20_000)])
def test_sums_and_counts_are_planned_in_their_own_units(folder, statistic, samples):
    metric = METRIC.replace('statistic = "mean"\n', statistic)
    if "count" in statistic:
        metric = metric.replace('value = "amount"\n', "").replace("range = [0, 200]\n", "")
    Path("shoal.toml").write_text(HEAD + metric)
    (fields,) = json.loads(said("plan", "shoal.toml", "--users", 5000, "--samples", 4, "--json").stdout)["metrics"]
    last = fields["over_time"][-1]
    assert last["samples"] == samples
    assert fields["units_to_show_a_key"] is None
    assert last["noise_sd"] > 0
    one, twice = (each["noise_sd"] for each in fields["by_max_contributions"][-2:])
    assert math.isclose(twice, 2 * one, rel_tol=0.02)


def test_too_few_people_are_told_before_anything_is_charged(folder):
    Path("shoal.toml").write_text(HEAD + METRIC)
    text = said("plan", "shoal.toml", "--users", 20).stdout
    assert "too few samples to release a mean: it needs more users, or more epsilon" in " ".join(text.split())


def test_no_plan_is_made_of_events(folder):
    Path("shoal.toml").write_text(HEAD + METRIC)
    Path("events.jsonl").write_text("")
    with pytest.raises(
        ConfigError, match="a plan from events would tell who is there, which relation add-remove hides"
    ):
        said("plan", "shoal.toml", "--values", "events.jsonl")
    refused = said("plan", "shoal.toml")
    assert refused.exit_code == 2
    assert "write --users N" in refused.stderr
    assert "users = N there" not in refused.stderr


def test_a_sum_of_which_zero_is_no_value_has_no_count_and_is_told_to_have_one(folder):
    away = METRIC.replace('"mean"', '"sum"').replace("[0, 200]", "[10, 200]")
    text, _ = checked(away)
    assert "noise of standard deviation" not in text
    (fields,) = json.loads(said("plan", "shoal.toml", "--users", 500, "--json").stdout)["metrics"]
    assert fields["over_time"][-1]["count_sd"] is None
    advice = " ".join(said("plan", "shoal.toml", "--users", 500).stdout.split())
    assert "let the range of a sum begin at 0" in advice
    # one that begins there has both
    text, _ = checked(METRIC.replace('"mean"', '"sum"'))
    assert "noise of standard deviation" in text


def test_users_are_counted_once_per_key(folder):
    text = METRIC.replace('"mean"', '"users"').replace('value = "amount"\n', "").replace("range = [0, 200]\n", "")
    noises = []
    for keys in (1, 4):
        said_so, _ = checked(text + DECLARED + f"max_groups = {keys}\n")
        noises.append(float(said_so.partition("the value has noise of standard deviation ")[2].partition(" ")[0]))
    assert math.isclose(noises[1], 4 * noises[0], rel_tol=0.02)


def test_the_planner_refuses_events_itself() -> None:
    observed = Observed([], None, bytes(32))  # type: ignore[arg-type]  # nobody is counted
    with pytest.raises(ValueError, match="a plan from events would tell who is there"):
        SidesReport(None, observed)  # type: ignore[arg-type]


def test_a_plan_of_a_distribution_tells_its_noise_in_parts_of_one(folder):
    of = METRIC.replace('"mean"', '"distribution"')
    text, _ = checked(of)
    assert "the number of samples, which is released beside the value, has noise of standard deviation" in text
    workload = ("--users", 50_000, "--samples", 6, "--over", "365d")
    (fields,) = json.loads(said("plan", "shoal.toml", *workload, "--json").stdout)["metrics"]
    last, tree = fields["over_time"][-1], even_tree(64)
    # of a node of the tree, with noise for the two levels that each sample is in
    node = Undecayed(365).sharp(2 * 8, Fraction(1), Fraction(0)).noise_sd(365)
    assert last["samples"] == 300_000
    assert last["count_sd"] == pytest.approx(node * math.sqrt(tree.total_variance))
    assert last["noise_sd"] == pytest.approx(node * mean_sd(tree) / 300_000)
    assert "distribution function" in said("plan", "shoal.toml", *workload).stdout
    few = said("plan", "shoal.toml", "--users", 3, "--samples", 1, "--over", "365d").stdout
    assert "too few samples to release a distribution" in " ".join(few.split())
