"""What `shoal check` and `shoal budget` say of units."""

import json
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import open_session
from shoal.agents.cli.commands import audit, budget, check
from shoal.agents.guarantee import statement
from shoal.mechanisms.privacy.accounting import Loss
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError
from shoal.models.exact import exact_text

HEAD = """
[audit]
url = "sqlite:///log.db"
[privacy]
epsilon = 10
delta = 0.001
"""
METRIC = """
[[metric]]
name = "{name}"
topic = "events"
user = "who"
value = "x"
time = "at"
"""
RANGE = "range = [0, 10]\n"  # of all but counts


@cache
def commands() -> typer.Typer:
    app = typer.Typer()
    app.command("check")(check.check)
    app.command("budget")(budget.budget)
    app.command("migrate")(audit.migrate)
    return app


def shoal(*arguments: object) -> Result:
    return CliRunner().invoke(commands(), [str(one) for one in arguments])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    key_file.new(Path("shoal.key"))
    Ledger.open("sqlite:///log.db", migrate=True).close()
    return tmp_path


def section(number: int, lines: str) -> str:
    """The table of a metric; a count has no range."""
    return METRIC.format(name=f"m{number}") + ("" if 'statistic = "count"' in lines else RANGE) + lines


def told(*metrics: str, unit: str | None = None) -> tuple[str, dict[str, object]]:
    """The text and the JSON of a check."""
    parts = [section(number, lines) for number, lines in enumerate(metrics)]
    Path("shoal.toml").write_text(HEAD + (f'unit = "{unit}"\n' if unit else "") + "".join(parts))
    said = shoal("check", "shoal.toml"), shoal("check", "shoal.toml", "--json")
    for one in said:
        if one.exception is not None:
            raise one.exception
    return said[0].stdout, json.loads(said[1].stdout)


def spans(week: str, year: str) -> str:
    """The loss of a week and of a year."""
    return f"in a week (any 7 days) up to epsilon = {week}, in a year (any 365 days) up to epsilon = {year}"


DAYS = spans("7", "365")
SUM = 'statistic = "sum"\nevery = "1h"\nepsilon = 1\n'
CAP, CAP_OF_EACH = "max_contributions = 64\n", "max_per_group = 64\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (SUM + CAP, "epsilon = 1 per person, for ever: all values of one person in this metric, however often"),
        (
            SUM + CAP + 'unit = "user-day"',
            f"epsilon = 1 per person and day, {DAYS}: all values of one person in this metric in one day of event "
            "time, however often it is released; who contributes",
        ),
        (SUM + 'unit = "event"', "epsilon = 1 per event, without limit over time: the value of one event in this"),
        (
            SUM + CAP + 'delta = 1e-6\ndecay = { kind = "window", length = "2h" }',
            "epsilon = 1, delta = 0.000001 per person, for ever:",
        ),
        (
            'statistic = "count"\nevery = "1h"\nepsilon = 1\n' + CAP + 'unit = "user-12h"\ngroup = "g"',
            "a count is exact, public and for free: who contributes when, and in which group, is public; a person and "
            "12h counts in at most 1 group, with at most 64 samples in all",
        ),
        (
            SUM + CAP + 'group = "g"\nmax_groups = 3',
            "is public; a person counts in at most 3 groups, with at most 64 samples in all, so that epsilon "
            "is not split",
        ),
        (SUM + 'unit = "event"\ngroup = "g"', "and in which group, is public\n"),
        (
            'statistic = "mean"\nevery = "1h"\nepsilon = 1\ngroup = "g"\nmax_groups = 2\n' + CAP_OF_EACH,
            "; a person counts in at most 2 groups, each with epsilon / 2, with at most 64 samples in each\n",
        ),
        (
            'statistic = "mean"\nevery = "1h"\nepsilon = 1\ngroup = "g"\nunit = "event"\nmax_events_per_user = 1',
            "the value of one event in this metric, however often it is released; who contributes when, and in which "
            "group, is public; at most 1 event of a user can count\n",
        ),
        (
            'statistic = "mean"\nslot = "1h"\nepsilon = 1\nunit = "user-day"\nmax_slots = 3\n' + CAP,
            "counts in at most 3 slots, each with epsilon / 3",
        ),
        (
            'statistic = "mean"\nevery = "1h"\nepsilon = 1\ngroup = "g"\n' + CAP_OF_EACH,
            "; a person counts in at most 1 group, with at most 64 samples in each\n",
        ),
    ],
)
def test_the_guarantee_is_said_in_words(folder, lines, said):
    text, fields = told(lines)
    assert said in text
    assert fields["metrics"][0]["guarantee"] in text  # type: ignore[index]


@pytest.mark.parametrize(
    ("place", "first", "named"),
    [
        (
            'group = "where"\n',
            "what a person did is protected; who contributes when, and in which group, is public",
            "group",
        ),
        (
            'cell = { h3 = 8, lat = "lat", lon = "lon" }\n',
            "what a person did in a place is protected; that they were there, and when, is not",
            "cell",
        ),
    ],
)
def test_a_slot_says_whether_groups_or_cells_are_public(folder, place, first, named):
    slots = 'statistic = "mean"\nslot = "1d"\nepsilon = 1\nmax_groups = 2\nmin_users = 9\nmax_per_group = 3\n'
    text, _ = told(slots + place)
    assert f"  {first}; epsilon = 1 per person and day, {DAYS}: all values of one person" in text
    assert (
        f"; in a slot they count in at most 2 {named}s, which share what the slot has; with at most 3 samples in each; "
        f"{named}s with fewer than 9 users are not released, which is a courtesy\n"
    ) in text


def test_a_slot_says_that_coordinates_are_protected_together(folder, monkeypatch):
    monkeypatch.setattr(f"{__name__}.METRIC", METRIC.replace('"x"', '["x", "y"]'))
    monkeypatch.setattr(f"{__name__}.RANGE", "range = [[0, 10], [0, 1]]\n")
    text, _ = told('statistic = "mean"\nslot = "1d"\nepsilon = 1\nmax_contributions = 3\n')
    assert "with at most 3 samples in each; all 2 coordinates of a value together" in text


def test_the_charge_is_what_the_ledgers_unit_may_lose(folder):
    text, fields = told(SUM + CAP + 'unit = "user-5h"', SUM + CAP, unit="user-day")
    assert fields["unit"] == "user-day"
    metrics: list[dict[str, object]] = fields["metrics"]  # type: ignore[assignment]
    assert [(one["unit"], one["epsilon"], one["charge"]) for one in metrics] == [("user-5h", 1, 6), ("user", 1, 1)]
    assert "m0 version 1 (would be charged epsilon 6)" in text
    assert "the budget of the ledger is epsilon = 10, delta = 0.001 per person and day, without limit over time" in text


def test_a_charge_of_delta_is_said_too(folder):
    window = 'delta = 1e-6\ndecay = { kind = "window", length = "2h" }\nunit = "user-12h"'
    text, fields = told(SUM + CAP + window, unit="user-day")
    assert "(would be charged epsilon 2 and delta 3.71828e-06)" in text


WINDOW = 'delta = 1e-6\ndecay = { kind = "window", length = "2h" }\n'
COUNT = 'statistic = "count"\nevery = "1h"\n' + CAP
PERSON = "In this ledger a person is: who in events. Whoever has two values of it loses twice. "
WHEN = "That they were there, when and how often, is not protected (fields who and at). "
FACTOR = "changes the probability of anything that can be seen without the key by at most a factor of "
BELIEF = "Someone who thought something about it 10 % likely could come to "
HABIT = " What shows in many days, as a habit does, is hardly protected. "
BOUND = 'For one epsilon for ever use unit = "user".'


@pytest.mark.parametrize(
    ("metrics", "unit", "said"),
    [
        (
            (SUM + CAP,),
            None,
            "What a person did is protected (field x). "
            + WHEN
            + "Per person, for ever: epsilon = 1. Whatever the metric "
            f"releases, for ever: what one person did {FACTOR}2.72 (epsilon = 1). {BELIEF}think it at most 23.2 % "
            f"likely. One person loses up to epsilon = 1 in a week, in a year and for ever. {PERSON}"
            "The ledger then holds epsilon = 1, of a budget of epsilon = 10, delta = 0.001. "
            "To raise the budget is an act of its own, and logged.",
        ),
        (
            (SUM + CAP + 'unit = "user-5h"', SUM + CAP, COUNT),
            "user-day",
            "Per person and day, in 3 metrics: epsilon = 7. Whatever the 3 metrics release, for ever: what one person "
            f"did in one day {FACTOR}1100 (epsilon = 7). {BELIEF}be all but certain of it; this budget protects "
            f"little. One person in k days loses up to k times epsilon: {spans('49', '2555')}. {BOUND}{HABIT}"
            "m0 protects a person and 5h: one person and day has a part in up to 6 of them, and all of these are "
            "counted here. m1 protects a person, which is more and counts once. "
            f"{PERSON}The ledger then holds epsilon = 7, of",
        ),
        (
            (SUM + CAP + WINDOW + 'unit = "user-12h"\ngroup = "where"',),
            "user-day",
            "That they were there, when, in which group and how often, is not protected (fields who, at and where). "
            "Per person and day: epsilon = 2, delta = 0.00000372. Whatever the metric releases, for ever: what one "
            f"person did in one day {FACTOR}7.39 and a further 0.00000372 (epsilon = 2, delta = 0.00000372). One "
            "person in k days loses up to k times epsilon: "
            f"{spans('14, delta = 0.700', '730, with a delta that promises nothing')}. {BOUND}",
        ),
        (
            (SUM + 'unit = "event"',),
            None,
            f"What an event says is protected (field x). {WHEN}Per event: epsilon = 1. Whatever the metric releases, "
            f"for ever: the value of one event {FACTOR}2.72 (epsilon = 1). {BELIEF}think it at most 23.2 % likely. One "
            "person with k events loses up to k times epsilon: a week and a year have no limit. "
            f"{BOUND}{HABIT.replace('days', 'events')}",
        ),
        ((COUNT,), None, f"  {WHEN}The metrics are counts, which use no values.\n"),
    ],
)
def test_what_all_metrics_guarantee_is_said_in_one_paragraph(folder, metrics, unit, said):
    text, fields = told(*metrics, unit=unit)
    assert said in text
    assert f"all metrics\n      {fields['guarantee']}\n" in text


def test_what_was_charged_before_is_counted_with_the_new(folder):
    told(SUM + CAP, SUM + CAP)
    path = Path("shoal.toml")
    with open_session(path) as session:
        session.register(file_run=True)
    # when a version replaces one, then its charge stays
    path.write_text(path.read_text().replace('name = "m1"', 'name = "m1"\nversion = 2'))
    text = shoal("check", "shoal.toml").stdout
    assert f"what one person did {FACTOR}7.39 (epsilon = 2)." in text
    assert "The ledger then holds epsilon = 3, of a budget of epsilon = 10" in text


def test_factors_are_rounded_up_and_told_as_long_as_they_mean_anything():
    section = {
        "name": "a", "topic": "t", "user": "u", "value": "x", "statistic": "sum", "range": (0, 1), "every": "1h",
        "max_contributions": 1,
    }  # fmt: skip
    for epsilon, factor, belief in (
        ("1e-9", "1.01", "think it at most 10.1 % likely"),
        ("0.0001", "1.01", "think it at most 10.1 % likely"),
        ("5", "149", "think it at most 94.3 % likely"),
        ("6.7", "813", "think it at most 99 % likely"),
        ("7", "1100", "be all but certain of it; this budget protects little"),
        ("10", "22100", "be all but certain of it; this budget protects little"),
        ("20", "4.86e+8", "be all but certain of it; this budget protects little"),
        ("100", "2.69e+43", "be all but certain of it; this budget protects little"),
        ("101", "e^101, which protects nothing", "be all but certain of it; this budget protects little"),
    ):
        metrics = [section | {"epsilon": epsilon}]
        config = Config.model_validate({"privacy": {"epsilon": 200}, "metric": metrics})
        said, shown = str(statement(config, Loss(Fraction(epsilon)))), exact_text(Fraction(epsilon))
        assert f"by at most a factor of {factor} (epsilon = {shown}). {BELIEF}{belief}." in said
        assert "(field u and the records' timestamps)" in said


def test_units_that_differ_make_a_ledger_per_person_which_finer_ones_do_not_fit(folder):
    with pytest.raises(ConfigError, match='"m0" a person and day, "m1" a person; say by .* unit = "user-day";'):
        told(SUM + CAP + 'unit = "user-day"', SUM + CAP)
    said = shoal("budget", "shoal.toml")
    assert isinstance(said.exception, ConfigError)
