"""A sum of a predicate from the command line: how many samples satisfy it, with noise; what it reads is protected."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from shoal.agents.audit import key_file
from shoal.agents.cli.main import app
from shoal.mechanisms.kinds import statistic_of
from shoal.models.config.file import load
from shoal.models.errors import ConfigError, LedgerError
from shoal.stream.parameters import parameters_of

CONFIG = """
[audit]
url = "sqlite:///log.db"
[privacy]
key_file = "shoal.key"
epsilon = 4e6
[[metric]]
name = "large"
topic = "sales"
user = "who"
value = "amount>100 and country=='DE'"
time = "at"
statistic = "sum"
epsilon = 1e6
max_contributions = 5
every = "1d"
"""
ROWS = """who,amount,country,at
ann,120,DE,2024-01-01
bob,120,FR,2024-01-01
ann,1e400,DE,2024-01-02
cy,99.5,12,2024-01-02
dan,many,DE,2024-01-02
eve,,DE,2024-01-03
"""
EVENTS: list[dict[str, Any]] = [
    {"who": "ann", "amount": 120, "country": "DE", "at": "2024-01-01"},
    {"who": "bob", "amount": 100.5, "country": "FR", "at": "2024-01-01"},
    {"who": "cy", "amount": 101, "country": "DE", "at": "2024-01-02"},
    {"who": "dan", "amount": "101", "country": "DE", "at": "2024-01-02"},
    {"who": "eve", "amount": 101, "country": 7, "at": "2024-01-02"},
    {"who": "fay", "country": "DE", "at": "2024-01-03"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    key_file.new(tmp_path / "shoal.key")
    (tmp_path / "events.csv").write_text(ROWS)
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, EVENTS)))
    return tmp_path


def said(folder: Path, *changes: tuple[str, str], more: str = "") -> Path:
    text = CONFIG
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / "shoal.toml").write_text(text + more)
    return folder / "shoal.toml"


def shoal(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def lines(path: Path) -> list[dict[str, Any]]:
    return list(map(orjson.loads, path.read_bytes().splitlines()))


@pytest.mark.parametrize(
    ("events", "reasons"),
    [("events.csv", ["bad-value", "no-value"]), ("events.jsonl", ["bad-value", "bad-value", "no-value"])],
)
def test_how_many_satisfy_it_is_released_and_fields_of_another_kind_are_dead_letters(
    folder: Path, events: str, reasons: list[str]
) -> None:
    out, dead = folder / "out.jsonl", folder / "dead.jsonl"
    result = shoal("run", said(folder), "--input", folder / events, "--output", out, "--dead-letters", dead)
    assert result.exit_code == 0, result.output
    assert [round(release["value"]) for release in lines(out)] == [1, 2, 2]
    assert sorted(letter["reason"] for letter in lines(dead)) == reasons


def test_a_mean_of_a_predicate_is_a_share(folder: Path) -> None:
    decayed = ('every = "1d"', 'every = "1d"\ndecay = { kind = "none" }')
    config = said(folder, ('"sum"', '"mean"'), ("amount>100 and country=='DE'", "amount > 100"), decayed)
    assert shoal("run", config, "--input", folder / "events.jsonl", "--output", folder / "out.jsonl").exit_code == 0
    assert [release["value"] for release in lines(folder / "out.jsonl")][:1] == [pytest.approx(1, abs=1e-3)]


def test_what_it_reads_is_protected_and_can_be_no_group(folder: Path) -> None:
    told = " ".join(shoal("check", said(folder)).output.split())
    assert "What a person did is protected (fields amount and country)." in told
    with pytest.raises(ConfigError, match="field 'country' is a value and 'country' is pattern"):
        load(said(folder, more='group = "country"\n'))


def test_the_log_knows_what_a_predicate_reads(folder: Path) -> None:
    assert shoal("run", said(folder), "--input", folder / "events.jsonl", "--output", folder / "out").exit_code == 0
    other = said(
        folder,
        ("large", "other"),
        ("amount>100 and country=='DE'", "amount"),
        more='range = [0, 1]\ngroup = "country"\n',
    )
    result = shoal("run", other, "--input", folder / "events.jsonl", "--output", folder / "more")
    assert isinstance(result.exception, LedgerError)
    assert "'country' is the value of one metric of this log and 'country' is public in another" in str(
        result.exception
    )


def test_a_refused_file_is_described(folder: Path) -> None:
    (folder / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, EVENTS[3:5])))
    result = shoal("run", said(folder), "--input", folder / "events.jsonl", "--output", folder / "out")
    assert "field 'amount' is no number, which the predicate (amount > 100) and (country == 'DE') needs" in str(
        result.exception
    )


def test_plans_are_for_values_of_0_and_1(folder: Path) -> None:
    config = said(folder, ("1e6", "1"), ("4e6", "4"))
    told = shoal("plan", config, "--users", 100, "--over", "30d").output
    assert "sum of (amount > 100) and (country == 'DE') in 0 .. 1" in " ".join(told.split())
    assert shoal("plan", config, "--values", folder / "events.jsonl", "--json").exit_code == 0


def test_it_is_told_from_a_field_of_that_name(folder: Path) -> None:
    """A version registered when all texts were names of fields cannot go on as the sum of a predicate."""
    config = load(said(folder))
    text = orjson.loads(parameters_of(config, config.metric[0].parts))
    values = text["of"]["values"]
    said_so = "(amount > 100) and (country == 'DE')"
    assert values["fields"] == {
        "kind": "Fields", "names": [said_so], "predicate": {"text": said_so, "fields": ["amount", "country"]},
    }  # fmt: skip
    assert values["ranges"] == [["0", "1"]]
    assert statistic_of(config.metric[0].parts).grids[0].high == 1


@pytest.mark.parametrize(
    ("before", "after", "refusal"),
    [
        ('every = "1d"', 'every = "1d"\nrange = [0, 2]', "range must be [0, 1], or left out: a predicate is 1 where"),
        ('"sum"', '"count"', "value of a count is no predicate, for a count is public; use statistic sum"),
        (
            "\"amount>100 and country=='DE'\"",
            '["a", "b > 1"]',
            "value has a predicate beside other values; use a metric",
        ),
        ("amount>100 and", "amount=100 and", "value character 7: nothing can begin with '=' here; compare with =="),
        ("country=='DE'", "country", "value"),
    ],
)
def test_what_is_refused(folder: Path, before: str, after: str, refusal: str) -> None:
    if after == "country":  # a boolean, which is allowed
        assert load(said(folder, (before, after))).metrics[0].protected == ("amount", "country")
        return
    with pytest.raises(ConfigError) as refused:
        load(said(folder, (before, after)))
    assert refusal in str(refused.value)
