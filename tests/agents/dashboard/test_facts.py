"""What the page says of privacy is never less than what was charged for it."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.audit.budget import BudgetReport, Charge
from shoal.agents.cli.main import app
from shoal.agents.dashboard.book import Book
from shoal.agents.dashboard.facts import metric_facts, privacy_facts, times_agreed
from shoal.models.config.file import Config, load
from shoal.models.loss_words import SEEN_OF_PRESENCE
from tests.support.releases import lines, release

CONFIG = """
[privacy]
epsilon = 8
delta = 1e-6
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "sum"
range = [0, 200]
every = "1d"
max_contributions = 8
epsilon = 3
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "shoal.toml").write_text(CONFIG)
    return tmp_path / "shoal.toml"


@pytest.fixture
def config(path: Path) -> Config:
    return load(path)


def facts(config: Config, *releases: dict[str, Any], budget: BudgetReport | None = None) -> dict[str, Any]:
    book = Book(app=config.kafka.app)
    for line in lines(list(releases)).splitlines():
        assert book.take(line) is not None or book.others
    return privacy_facts(config, budget, book.stated)


def ledger(*charges: tuple[str, int, str], unit: str = "user", app: str = "shoal") -> BudgetReport:
    held = (Charge(app, name, version, "active", Fraction(epsilon), Fraction(0)) for name, version, epsilon in charges)
    return BudgetReport(Fraction(8), Fraction(0), unit, tuple(held))


def test_what_the_configuration_lacks_is_added_as_releases_state_it(config: Config) -> None:
    said = facts(config, release("basket", 1, 1.0), release("other", 1, 1.0, epsilon=0.5, delta=1e-9))
    assert said["charged"] == {"epsilon": 3.5, "text": "3.5", "delta": "0.000000001"}
    assert said["headline"]["most"] == "factor of 33.2 and a further 1e-9"
    assert said["headline"]["rest"] == (
        ". Per person, for ever, in 2 metrics: epsilon = 3.5, delta = 1e-9. One person loses up to epsilon = 3.5, "
        "delta = 1e-9 in a week, in a year and for ever."
    )
    assert said["missing"] == ""
    assert "The ledger then holds" not in said["sentences"]
    assert "The sum on this page is epsilon = 3.5, delta = 1e-9, of a budget of epsilon = 8" in said["sentences"]
    assert [each["state"] for each in said["charges"]] == ["planned", "as releases say"]


@pytest.mark.parametrize(
    ("more", "public"),
    [
        ("", "That they were there, when and how often, is not protected (fields customer and at)."),
        (
            'group = "shop"\n',
            "That they were there, when, in which group and how often, is not protected (fields customer, at and "
            "shop).",
        ),
        (
            'relation = "add-remove"\nstart = "2026-03-01"\nend = "2026-03-11"\n',
            SEEN_OF_PRESENCE,
        ),
    ],
    ids=["no group", "groups", "presence"],
)
def test_what_is_not_protected_is_said_as_check_and_label_say_it(path: Path, more: str, public: str) -> None:
    # given metrics with and without groups, and of presence
    path.write_text(CONFIG + more)
    key_file.new(path.with_name("shoal.key"))
    # then the page has the words of `shoal check`, and those of the label
    assert facts(load(path))["public"] == public
    assert public in CliRunner().invoke(app, ["check", str(path)]).stdout
    label = CliRunner().invoke(app, ["label", str(path)]).stdout
    assert public in " ".join(label.split())


def test_a_metric_of_another_app_hides_none_of_this_one(config: Config) -> None:
    said = facts(config, budget=ledger(("basket", 1, "2"), app="other"))
    assert [(each["metric"], each["state"]) for each in said["charges"]] == [
        ("basket", "active"), ("basket", "not charged yet"),
    ]  # fmt: skip
    assert said["charged"]["text"] == "5"


def test_versions_that_are_replaced_count_too(config: Config) -> None:
    said = facts(config, release("basket", 1, 1.0, version=1), release("basket", 1, 1.0, version=2, epsilon=2.0))
    assert said["charged"]["text"] == "5"
    said = facts(config, release("basket", 1, 1.0, version=3), release("basket", 1, 1.0, version=2, epsilon=2.0))
    assert said["charged"]["text"] == "6"


@pytest.mark.parametrize(
    "more",
    [
        {"unit": "user-day"}, {"unit": "nobody"}, {"unit": None}, {"relation": "add-remove"}, {"epsilon": None},
        {"epsilon": -1.0}, {"epsilon": "much"}, {"epsilon": 0}, {"delta": "1/0"},
    ],
)  # fmt: skip
def test_what_cannot_be_added_is_named(config: Config, more: dict[str, Any]) -> None:
    said = facts(config, release("other", 1, 1.0, **more))
    assert said["charged"]["text"] == "3"
    assert said["missing"].startswith("Not in this sum: 1 metric on this page (other)")


def test_of_presence_there_is_an_end_that_is_chosen_and_one_in_time(path: Path) -> None:
    more = 'relation = "add-remove"\nclip = "auto"\ngroups = ["a"]\ngroup = "g"\n'
    more += 'start = "2026-03-01"\nend = "2026-03-11"\n'
    path.write_text(CONFIG + more)
    config = load(path)
    assert metric_facts(config.metric[0].parts)["chooses_end"] is True
    assert times_agreed(config)["basket"] == {
        "topic": "purchases", "every": 86_400.0, "lateness": 0.0, "end": 1_773_187_200.0
    }  # fmt: skip
    assert "whether one person is there changes what can be" in facts(config, release("m", 1, 1.0))["headline"]["whole"]


def test_what_is_exact_costs_nothing(config: Config) -> None:
    said = facts(config, release("orders", 1, 1.0, mechanism="exact"))
    assert (said["charged"]["text"], said["missing"]) == ("3", "")


def test_a_ledger_knows_better_and_is_added_to_where_it_lacks_something(config: Config) -> None:
    held = ledger(("basket", 1, "3"), ("other", 1, "2"), ("of another app", 4, "0.5"))
    said = facts(config, release("other", 1, 1.0), budget=held)
    assert (said["charged"]["text"], said["is_ledger"]) == ("5.5", True)
    assert "The ledger then holds epsilon = 5.5, of a budget" in said["sentences"]
    said = facts(config, release("new", 1, 1.0), budget=ledger(("other", 1, "2")))
    assert said["charged"]["text"] == "6"
    assert [each["state"] for each in said["charges"]] == ["active", "not charged yet", "as releases say"]


def test_a_ledger_of_another_unit_is_no_part_of_the_sum(config: Config) -> None:
    said = facts(config, release("basket", 1, 1.0), budget=ledger(("basket", 1, "3"), unit="user-day"))
    assert (said["charged"]["text"], said["is_ledger"]) == ("3", False)
    assert said["missing"] == "The ledger counts by user-day and values: what it was charged is not in the sum."


def test_the_command_uses_the_ledger_that_is_at_hand(path: Path) -> None:
    # given a run of two metrics, of which the file has one afterwards
    folder = path.parent
    path.write_text(CONFIG + CONFIG[CONFIG.index("[[metric]]") :].replace("basket", "other"))
    key_file.new(folder / "shoal.key")
    events = [{"customer": "c", "amount": 1, "at": "2026-03-01T12:00:00Z"}] * 2
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    run = ["run", str(path), "--input", str(folder / "events.jsonl"), "--output", str(folder / "rel.jsonl")]
    assert CliRunner().invoke(app, run).exit_code == 0
    path.write_text(CONFIG)
    (folder / "some.jsonl").write_bytes(lines([release("basket", 1, 1.0)]))
    page = ["dashboard", str(path), "--input", str(folder / "some.jsonl"), "--out", str(folder / "page.html")]
    # when the page is made without the key, then it tells what both cost
    (folder / "shoal.key").unlink()
    assert CliRunner().invoke(app, page).exit_code == 0
    assert "The ledger then holds epsilon = 6, of a budget" in (folder / "page.html").read_text()
    # and with a log that is none, it says so
    (folder / "shoal.db").write_bytes(b"nothing of the kind" * 100)
    done = CliRunner().invoke(app, page)
    assert done.exit_code == 0
    assert "the sum on the page is of the configuration" in done.output
    assert "a ledger may hold more" in (folder / "page.html").read_text()
