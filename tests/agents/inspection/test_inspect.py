"""A check goes on behind a refusal: one command says all that has to be mended, and its status tells of the first."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.main import app
from shoal.agents.inspection.findings import Findings, Line
from shoal.models.errors import ConfigError, InputError, KafkaError, KeyFileError, LedgerError
from shoal.models.version import VersionId
from tests.support.desk import CONFIG, EVENTS, OPTIONS, Desk, lines

KAFKA = '[kafka]\nbrokers = "127.0.0.1:1"\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shoal.toml").write_text(KAFKA + CONFIG)
    return tmp_path


def checked() -> tuple[dict[str, dict[str, str]], dict[str, Any], BaseException | None]:
    """The lines of each section, text by state; the JSON; and the refusal."""
    ran = CliRunner().invoke(app, ["check", "shoal.toml", "--json"])
    shown: dict[str, Any] = orjson.loads(ran.stdout)
    sections = {one["name"]: {line["state"]: line["text"] for line in one["lines"]} for one in shown["sections"]}
    return sections, shown, ran.exception


def stands(shown: dict[str, Any]) -> bool:
    """Whether the guarantee is said in full, and no charge, which only key and ledger could tell."""
    (metric,) = shown["metrics"]
    charges = [metric[key] for key in ("registered", "charge", "charge_delta")]
    said = "epsilon = 1 per person" in metric["guarantee"] and "What a person did" in shown["guarantee"]
    return said and charges == [None] * 3 and "The ledger then holds" not in shown["guarantee"]


def test_without_a_key_and_a_broker_both_are_said_and_what_stands_on_them_was_not_checked(here):
    sections, shown, refused = checked()
    assert list(sections) == [
        "configuration",
        "guarantee",
        "key",
        "ledger",
        "brokers",
        "rights",
        "topics",
        "policies",
        "kernel",
    ]
    assert sections["key"] == {"failed": f"{here}/shoal.key does not exist"}
    assert shown["sections"][2]["lines"][0]["remedy"] == f"make it with: shoal key new {here}/shoal.key"
    assert sections["brokers"]["failed"] == "127.0.0.1:1: no broker answers"
    assert "ok" in sections["ledger"]
    assert list(sections["guarantee"]) == ["ok", "not checked"]
    assert list(sections["topics"]) == ["not checked"]
    # the status tells of what needs no broker first
    assert isinstance(refused, KeyFileError)


def test_with_a_key_all_but_kafka_is_in_order(here):
    key_file.new(here / "shoal.key")
    sections, shown, refused = checked()
    assert sections["key"] == {"ok": "it fits this audit log"}
    assert sections["ledger"]["ok"] == "1 metric would be registered"
    assert shown["metrics"][0]["charge"] == 1.0
    assert shown["kafka"].startswith("127.0.0.1:1: no broker answers")
    assert isinstance(refused, KafkaError)


@pytest.mark.parametrize("there", [False, True], ids=["no file", "an empty file"])
def test_a_log_that_is_not_there_is_said_and_not_made(here, there):
    key_file.new(here / "shoal.key")
    if there:
        (here / "log.db").touch()
    before = {path: path.read_bytes() for path in here.iterdir()}
    sections, shown, _ = checked()
    # what a first registration would charge is said all the same
    assert shown["metrics"][0]["charge"] == 1.0
    assert [
        line["text"] for section in shown["sections"] if section["name"] == "ledger" for line in section["lines"]
    ] == [
        "it is not there yet, and is made by the first worker or file run",
        "1 metric would be registered",
    ]
    assert shown["log"] is None
    assert {path: path.read_bytes() for path in here.iterdir()} == before


def test_a_log_that_is_gone_while_the_key_knows_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path)
    desk.put("in.jsonl", lines(EVENTS))
    desk.run("in.jsonl")
    for file in tmp_path.glob("log.db*"):
        file.unlink()
    sections, _, refused = checked()
    assert "belongs to another audit log" in sections["key"]["failed"]
    assert isinstance(refused, KeyFileError)
    assert not list(tmp_path.glob("log.db*"))


def test_a_configuration_that_cannot_be_read_ends_the_check(here):
    Path("shoal.toml").write_text("[")
    sections, shown, refused = checked()
    assert list(sections) == ["configuration"]
    assert isinstance(refused, ConfigError)
    assert shown["warnings"] == []


def test_a_budget_that_does_not_suffice_is_the_ledgers_to_refuse_and_the_key_is_looked_at(here):
    Path("shoal.toml").write_text(CONFIG.replace("epsilon = 4", "epsilon = 0.5"))
    key_file.new(here / "shoal.key")
    sections, shown, refused = checked()
    assert "a charge of epsilon 1 is more than the 0.5 left" in sections["ledger"]["failed"]
    assert sections["key"]["ok"] == "it fits this audit log"
    assert stands(shown)
    assert isinstance(refused, LedgerError)


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A folder in which a run over a file has finished."""
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path)
    desk.put("in.jsonl", lines(EVENTS))
    desk.run("in.jsonl")
    return desk


def test_after_a_file_run_the_same_may_be_repeated_and_the_guarantee_is_said(ended):
    # given a run that has finished, then nothing is wrong: the same run may be repeated
    sections, shown, refused = checked()
    assert refused is None
    assert sections["ledger"]["ok"] == (
        'metric "level" version 1 ended at 2024-01-01T03:59:00Z with the end of a file: the same input may be '
        "repeated, another needs a higher version"
    )
    assert shown["metrics"][0]["registered"] is True
    assert "The ledger then holds epsilon = 1" in shown["guarantee"]
    assert ended.call("--input", "in.jsonl", *OPTIONS).exception is None
    # and what is asked about people is answered
    said = CliRunner().invoke(app, ["check", "shoal.toml", "--people", "4"])
    assert said.exit_code == 0
    assert said.stdout.count("any 4 people in one hour each lose at most epsilon = 4\n") == 2


def test_a_version_of_file_runs_is_checked_for_them_and_workers_are_told_what_they_need(ended):
    Path("shoal.toml").write_text(KAFKA + CONFIG)
    sections, shown, _ = checked()
    assert 'metric "level" version 1 belongs to file runs, and was checked for them' in sections["ledger"]["warning"]
    assert "raise the version, and send the file into the topic with shoal produce" in sections["ledger"]["warning"]
    assert shown["metrics"][0]["registered"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("another key", "is registered with key"), ("retired", "version 1 is retired"), ("changed", "other parameters")],
)
def test_whatever_the_ledger_refuses_the_guarantee_is_said(ended, wrong, said):
    # given a ledger that does not take the metric as it is
    if wrong == "another key":
        Path("shoal.key").unlink()
        Path("shoal.key.used").unlink()
        key_file.new(Path("shoal.key"))
    elif wrong == "retired":
        with Ledger.open("sqlite:///log.db") as ledger:
            ledger.of("shoal").retire(VersionId("shoal", "level", 1))
    else:
        Path("shoal.toml").write_text(CONFIG.replace("[0, 100]", "[0, 50]"))
    # then it is refused, and what the configuration guarantees is said all the same
    sections, shown, refused = checked()
    assert said in sections["ledger"]["failed"]
    assert isinstance(refused, LedgerError)
    assert stands(shown)
    told = CliRunner().invoke(app, ["check", "shoal.toml", "--people", "4"]).stdout.splitlines()
    assert "    level version 1 (charge not checked)" in told
    assert told.count("      any 4 people in one hour each lose at most epsilon = 4") == 2
    assert "  not checked  what would be charged needs the key, and a ledger that takes these metrics" in told


def test_a_file_run_may_leave_out_a_metric_that_is_active(ended):
    # given an open stream of a metric that the file does not have any more
    Path("shoal.toml").write_text(CONFIG.replace('"level"', '"other"'))
    assert ended.call("--input", "in.jsonl", *OPTIONS, "--open").exception is None
    Path("shoal.toml").write_text(CONFIG)
    # then a run over a file goes on without it, and nobody is told to retire it
    assert checked()[2] is None


def test_people_read_what_to_do_below_what_is_wrong(here):
    said = CliRunner().invoke(app, ["check", "shoal.toml"]).stdout.splitlines()
    at = said.index(f"  failed       {here}/shoal.key does not exist")
    assert said[at - 1] == "key"
    assert said[at + 1] == f"               -> make it with: shoal key new {here}/shoal.key"


def test_a_warning_has_its_remedy_beside_it(here):
    high = CONFIG.replace("epsilon = 4", "epsilon = 40").replace("epsilon = 1\n", "epsilon = 30\n")
    Path("shoal.toml").write_text(high)
    key_file.new(here / "shoal.key")
    sections, shown, refused = checked()
    assert refused is None
    assert "is above" in sections["configuration"]["warning"]
    assert any("is above" in warning for warning in shown["warnings"])


def test_a_refusal_ends_its_own_section_only():
    findings = Findings("first", "second")
    with findings.looking_at("first") as found:
        found.ok("begun")
        raise InputError("a file is missing; name it")
    with findings.looking_at("second") as found:
        found.ok("whole")
    assert [section.is_failed for section in findings.sections.values()] == [True, False]
    assert list(findings.shown()) == [
        "first", "  ok           begun", "  failed       a file is missing", "               -> name it",
        "second", "  ok           whole",
    ]  # fmt: skip


def test_what_is_behind_the_first_semicolon_is_what_to_do():
    line = Line.of("failed", "it is broken; mend it; then go on")
    assert (line.text, line.remedy) == ("it is broken", "mend it; then go on")
    assert Line.of("failed", "it is broken").fields() == {"state": "failed", "text": "it is broken"}


def test_a_key_that_is_lost_is_asked_for_and_not_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given metrics that are registered, and then no key
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path)
    desk.put("in.jsonl", lines(EVENTS))
    desk.run("in.jsonl")
    held = key_file.read(desk.folder / "shoal.key").fingerprint
    Path("shoal.key").unlink()
    # then it is that key that is asked for
    sections, shown, refused = checked()
    (line,) = (one["lines"][0] for one in shown["sections"] if one["name"] == "key")
    assert sections["key"] == {"failed": f"{desk.folder}/shoal.key does not exist"}
    assert line["remedy"].startswith(
        f"put the key {held} back, with which metrics of this configuration are registered"
    )
    assert isinstance(refused, KeyFileError)
    assert held in str(desk.call("--input", "in.jsonl", *OPTIONS).exception)
    # and of versions that have not begun, a new one may be made
    Path("shoal.toml").write_text(CONFIG + "version = 2\n")
    assert "make it with: shoal key new" in str(checked()[2])
