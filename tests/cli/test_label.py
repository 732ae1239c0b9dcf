"""`shoal label`: the same words as `check`, without the key; a digest that says when something else is released."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from shoal.agents.cli.main import app
from shoal.models.errors import InputError, LedgerError
from tests.support.desk import CONFIG, EVENTS, Desk, lines

SECOND = CONFIG.partition("[[metric]]")[2].replace('"level"', '"second"')


def label(*arguments: object) -> Result:
    ran = CliRunner().invoke(app, ["label", "shoal.toml", *map(str, arguments)])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran


def checked() -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(CliRunner().invoke(app, ["check", "shoal.toml", "--json"]).stdout)
    return shown


@pytest.fixture
def shop(desk: Desk, monkeypatch) -> Desk:
    monkeypatch.chdir(desk.folder)
    (desk.folder / "shoal.toml").write_text(CONFIG)
    return desk


def test_a_label_needs_neither_key_nor_ledger_and_makes_neither(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("shoal.toml").write_text(CONFIG)
    said = label().stdout
    assert "PRIVACY FACTS of shoal" in said
    assert "level version 1 (not registered): mean of x by room in each slot of 1h" in said
    assert "(no audit log yet)" in said
    assert [path.name for path in tmp_path.iterdir()] == ["shoal.toml"]


def test_its_words_are_those_of_check(shop):
    shown, said = json.loads(label("--json").stdout), checked()
    assert [metric["guarantee"] for metric in shown["metrics"]] == [metric["guarantee"] for metric in said["metrics"]]
    sentences = " ".join(shown["protected"] + shown["not_protected"] + shown["loss"])
    assert said["guarantee"].startswith(sentences)


def test_a_label_describes_what_is_registered_until_something_else_is(shop):
    Path("events.jsonl").write_bytes(lines(EVENTS))
    before = json.loads(label("--json").stdout)
    shop.run("events.jsonl", "--output", "out.jsonl")
    Path("label.json").write_text(label("--json").stdout)
    shown = json.loads(Path("label.json").read_text())
    assert shown["metrics"][0]["state"] == "ended"
    assert shown["digest"] != before["digest"]  # it had no log
    assert shown["charged"]["epsilon"] == 1.0
    assert shown["left"]["epsilon"] == 3.0

    assert label("--verify", "label.json").exit_code == 0
    Path("shoal.toml").write_text(CONFIG + "[[metric]]" + SECOND)
    differs = label("--verify", "label.json")
    assert differs.exit_code == 1
    assert "differs: shoal: second version 1: new" in differs.stderr
    Path("shoal.toml").write_text(CONFIG.replace("epsilon = 4", "epsilon = 3"))
    assert label("--verify", "label.json").exit_code == 0  # the ledger's budget is what counts


def test_a_charge_of_another_app_is_on_the_label(shop):
    Path("events.jsonl").write_bytes(lines(EVENTS))
    shop.run("events.jsonl", "--output", "out.jsonl")
    Path("label.json").write_text(label("--json").stdout)
    Path("shoal.toml").write_text(CONFIG.replace("[audit]", '[kafka]\napp = "other"\n[audit]').replace("level", "mine"))
    shown = json.loads(label("--json").stdout)
    assert [(other["app"], other["metric"], other["state"]) for other in shown["others"]] == [
        ("shoal", "level", "ended")
    ]
    assert shown["charged"]["epsilon"] == 2.0
    assert "Charged besides" in label().stdout
    assert "Charged to the same budget besides" in label("--html", "-").stdout
    assert "differs: other: mine version 1: new" in label("--verify", "label.json").stderr


def test_a_version_with_other_parameters_than_the_registered_ones_gets_no_label(shop):
    Path("events.jsonl").write_bytes(lines(EVENTS))
    shop.run("events.jsonl", "--output", "out.jsonl")
    Path("shoal.toml").write_text(CONFIG.replace("[0, 100]", "[0, 50]"))
    with pytest.raises(LedgerError, match=r"registered with other parameters .*\(range\); set them back"):
        label()


def test_a_label_that_was_changed_or_is_none_is_noticed(shop):
    shown = json.loads(label("--json").stdout)
    Path("label.json").write_text(json.dumps(shown | {"digest": "0" * 64}))
    assert "its digest" in label("--verify", "label.json").stderr
    shown["describes"]["metrics"] = []
    shown["describes"]["epsilon"] = "0.1"
    Path("label.json").write_text(json.dumps(shown | {"digest": "0" * 64}))
    said = label("--verify", "label.json").stderr
    assert "epsilon: 0.1 then, 4 now" in said
    for text in ("{}", "no json", "[]", '{"digest": "", "describes": {}}'):
        Path("label.json").write_text(text)
        with pytest.raises(InputError, match="is no label"):
            label("--verify", "label.json")
    with pytest.raises(InputError, match="cannot be read"):
        label("--verify", "absent.json")


def test_a_changed_metric_and_one_that_is_gone_are_named(shop):
    Path("shoal.toml").write_text(CONFIG + "[[metric]]" + SECOND)
    Path("label.json").write_text(label("--json").stdout)
    Path("shoal.toml").write_text(CONFIG.replace("[0, 100]", "[0, 50]"))
    said = label("--verify", "label.json").stderr
    assert "shoal: level version 1: parameters" in said
    assert "shoal: second version 1: described then, not there now" in said


def test_the_page_loads_nothing_and_shows_hostile_names_as_text(shop):
    hostile = '<script>alert("x")</script>'
    Path("shoal.toml").write_text(CONFIG.replace('group = "room"', f"group = '{hostile}'"))
    assert label("--html", "label.html").stdout == ""
    page = Path("label.html").read_text()
    assert hostile not in page
    assert "&lt;script&gt;" in page
    style = re.search("<style>(.*)</style>", page, re.DOTALL)
    assert style is not None
    assert f"style-src 'sha256-{b64encode(sha256(style[1].encode()).digest()).decode()}'" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_record_for_the_registry_is_made_again_with_what_was_filled_in(shop):
    assert "to be filled in: deployment.basic.name" in label("--registry", "record.yaml").stderr
    record = yaml.safe_load(Path("record.yaml").read_text())
    record["deployment"]["basic"]["name"] = "Our rooms"
    Path("record.yaml").write_text(yaml.safe_dump(record))
    assert "basic.name" not in label("--registry", "record.yaml").stderr
    assert yaml.safe_load(Path("record.yaml").read_text())["deployment"]["basic"]["name"] == "Our rooms"
    assert yaml.safe_load(label("--registry", "-").stdout)["deployment"]["basic"]["name"].startswith("TODO")
    Path("record.yaml").write_text("{")
    with pytest.raises(InputError, match="cannot be read as YAML"):
        label("--registry", "record.yaml")
    Path("record.yaml").write_text("[1]")
    with pytest.raises(InputError, match="record.yaml: the former record has no"):
        label("--registry", "record.yaml")
