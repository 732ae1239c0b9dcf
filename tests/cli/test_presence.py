"""What `shoal run` tells where presence is protected, and what `shoal beat` and `shoal produce` refuse."""

import gzip
import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shoal.agents.cli.commands.run import UNSEEN
from shoal.agents.cli.main import app
from tests.privacy.attended import scripted
from tests.support.desk import Desk, lines

CONFIG = """
[audit]
url = "sqlite:///log.db"
[privacy]
key_file = "shoal.key"
epsilon = 4
[[metric]]
name = "level"
topic = "readings"
user = "who"
value = "x"
time = "at"
group = "room"
groups = ["a", "b"]
statistic = "mean"
relation = "add-remove"
range = [0, 100]
epsilon = 1
max_contributions = 4
every = "1h"
start = "2024-01-01"
end = "2024-01-02"
"""
EVENTS: list[dict[str, Any]] = [
    {"who": f"u{n % 20}", "at": f"2024-01-01T{n // 20:02d}:{n % 20:02d}:00Z", "x": n % 100, "room": "abc"[n % 3]}
    for n in range(200)
]
OTHERS = [event for event in EVENTS if event["who"] != "u0"]
OF_ONE = [
    *(event for event in EVENTS if event["who"] == "u0"),
    {"who": "u0", "at": "2030-01-01", "x": 5, "room": "a"},
    {"who": "u0", "at": "never", "x": 5, "room": "a"},
]
RANDOM = {"log_id", "input_digest", "run"}


def told(desk: Desk, folder: Path, content: bytes, *options: str) -> dict[str, Any]:
    """All that a run tells, with scripted noise."""
    desk.forget()
    desk.put("in.jsonl", content)
    with scripted():
        result = desk.call("--input", "in.jsonl", "--output", "out.jsonl", *options)
    releases = (folder / "out.jsonl").read_bytes() if (folder / "out.jsonl").exists() else None
    said = f"{result.output}{result.exception or ''}"
    audited = CliRunner().invoke(app, ["audit", "verify", str(folder / "shoal.toml"), "--json"]).output
    kept = {"releases": releases, "log": rows(folder / "log.db"), "audited": audited}
    return {"status": result.exit_code, "said": said, **kept}


def rows(path: Path) -> dict[str, list[Any]]:
    """The audit log, but for wall times, ids that are drawn at random and the keyed digest of the whole input."""
    found: dict[str, list[Any]] = {}
    with sqlite3.connect(path) as log:
        log.row_factory = sqlite3.Row
        for (table,) in log.execute("select name from sqlite_master where type = 'table'").fetchall():
            each = [dict(row) for row in log.execute(f"select * from {table}")]
            found[table] = [
                {key: value for key, value in row.items() if not _is_drawn(table, key, value)} for row in each
            ]
    return found


def _is_drawn(table: str, key: str, value: Any) -> bool:
    is_wall_time = isinstance(value, str) and value.startswith(str(datetime.now(UTC).year))
    return is_wall_time or (table, key) == ("log", "id") or key in RANDOM


@pytest.fixture
def quiet(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.say(CONFIG)
    return desk


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_run_tells_nothing_of_a_unit_that_is_there(quiet: Desk, tmp_path: Path, options: tuple[str, ...]):
    there = told(quiet, tmp_path, lines([*OTHERS, *OF_ONE]), *options)
    assert there == told(quiet, tmp_path, lines(OTHERS), *options)
    assert there == told(quiet, tmp_path, lines([]), *options)
    assert (there["status"], there["releases"].count(b"\n")) == (0, 48)
    ends = [row["ended_at"] for row in there["log"]["metric_version"]]
    assert ends == ["2024-01-02T00:00:00Z"]  # the configuration's, not that of a record


def test_a_range_that_is_chosen_is_in_the_log_and_nothing_before_it(quiet: Desk, tmp_path: Path):
    """And a second run over the same input, with its key, makes the same releases and activations again."""
    clip = "epsilon = 40\nclip = { share = 0.5, epsilon = 13, crossing = 2 }\n"
    quiet.say(CONFIG.replace("epsilon = 4\n", "epsilon = 40\n").replace("epsilon = 1\n", clip))
    quiet.put("in.jsonl", lines(EVENTS))
    assert quiet.call("--input", "in.jsonl", "--output", "out.jsonl").exit_code == 0
    made = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    activations = [json.loads(row["body"]) for row in rows(tmp_path / "log.db")["activation"]]
    assert {one["group"]: one["epsilon"] for one in activations} == {"a": 15.0, "b": 15.0}
    chosen = {one["group"]: (one["at"], one["high"]) for one in activations}
    for one in made:
        at, high = chosen[one["group"]]
        assert one["clip"] == (high if one["at"] >= at else None)
        assert one["at"] >= at or (one["value"], one["count"], one["low"], one["high"]) == (None, None, 0, 100)
    assert len(made) == 48
    verified = CliRunner().invoke(app, ["audit", "verify", str(tmp_path / "shoal.toml")])
    assert verified.exit_code == 0, verified.output
    assert quiet.call("--input", "in.jsonl", "--output", "again.jsonl").exit_code == 0
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "out.jsonl").read_text()


def test_no_input_is_refused_for_its_records(quiet: Desk, tmp_path: Path):
    unusable = told(quiet, tmp_path, b"no event\n")
    assert unusable == told(quiet, tmp_path, lines(OTHERS))
    assert (unusable["status"], unusable["said"]) == (0, f"{UNSEEN}\n48 releases\n")


@pytest.mark.parametrize(
    "record", [b"[1,2", b"{", b"\xff\xfea", b"PK\x03\x04", b"\x1f\x8b", b"\x00", b'{"a": "'], ids=repr
)
def test_no_record_changes_how_the_others_are_read(quiet: Desk, tmp_path: Path, record: bytes):
    there = told(quiet, tmp_path, record + b"\n" + lines(OTHERS))
    assert there == told(quiet, tmp_path, lines(OTHERS))


def _no_file(_: Path) -> None:
    """Make none."""


def _not_permitted(path: Path) -> None:
    path.symlink_to(path.name)  # a loop, which root may not open either


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("in.jsonl", _no_file),
        ("in.jsonl", Path.mkdir),
        ("in.jsonl", _not_permitted),
        ("in.jsonl.gz", lambda path: path.write_bytes(lines(OTHERS))),
        ("in.jsonl.gz", Path.touch),
    ],
    ids=["missing", "folder", "not-to-be-opened", "not-gzip", "empty-gzip"],
)
def test_an_input_that_cannot_be_opened_is_refused_before_anything_is_charged(
    quiet: Desk, tmp_path: Path, name: str, make: Callable[[Path], object]
):
    """Regression: it was registered and charged before, so that each correction had to be a new version."""
    make(tmp_path / name)
    refusal = quiet.refused(name)
    assert "cannot be read" in refusal
    assert "csv" not in refusal
    assert quiet.charged() == 0


def test_an_input_that_opens_is_charged_whatever_is_in_it(quiet: Desk, tmp_path: Path):
    packed = gzip.compress(lines(OTHERS))
    quiet.put("in.jsonl.gz", packed[: len(packed) // 2])
    assert "its gzip data is cut off" in quiet.refused("in.jsonl.gz")
    assert quiet.charged() == 1


def test_whoever_may_see_the_events_finds_a_wrong_field_before_it_is_charged(quiet: Desk):
    wrong = CONFIG.replace('value = "x"', 'value = "minute"')
    quiet.say(wrong + "[web]\ncounters = true\n")
    quiet.put("in.jsonl", lines(OTHERS))
    assert "there is no field 'minute'" in quiet.refused("in.jsonl", "--dry-run")
    assert quiet.charged() == 0
    quiet.say(wrong)
    result = quiet.call("--input", "in.jsonl", "--output", "out.jsonl")
    assert (result.exit_code, result.stderr) == (0, f"{UNSEEN}\n48 releases\n")
    assert quiet.charged() == 1


@pytest.mark.parametrize("name", ["in.csv", "in.json", "in.pb", "in.xls"])
def test_an_input_that_is_not_lines_is_refused(quiet: Desk, name: str):
    quiet.put(name, lines(OTHERS))
    result = quiet.call("--input", name, "--output", "out.jsonl")
    assert "an input has a JSON object in every line" in str(result.exception)
    assert quiet.charged() == 0


def test_a_packed_input_is_told_by_its_name(quiet: Desk, tmp_path: Path):
    quiet.put("in.jsonl.gz", gzip.compress(lines(OTHERS)))
    with scripted():
        assert quiet.call("--input", "in.jsonl.gz", "--output", "out.jsonl").exit_code == 0
    unpacked = (tmp_path / "out.jsonl").read_bytes()
    assert told(quiet, tmp_path, lines(OTHERS))["releases"] == unpacked


def test_whoever_may_see_the_events_is_told_of_them(quiet: Desk, tmp_path: Path):
    quiet.say(CONFIG + "[web]\ncounters = true\n")
    assert "200 events, 48 releases" in told(quiet, tmp_path, lines(EVENTS))["said"]
    assert "no record can be used" in told(quiet, tmp_path, b"no event\n")["said"]
    assert "200 events; usable: 200 for level" in told(quiet, tmp_path, lines(EVENTS), "--dry-run")["said"]


def test_beats_in_a_file_are_no_events(quiet: Desk, tmp_path: Path):
    quiet.say(CONFIG + "[web]\ncounters = true\n")
    beats = [{"shoal-beat": "2024-01-01T05:00:00Z"}]
    late = [{"who": "late", "at": "2024-01-01T00:00:00Z", "x": 100, "room": "a"}]
    plain = told(quiet, tmp_path, lines([*OTHERS, *late]))
    beaten = told(quiet, tmp_path, lines([*OTHERS, *beats, *late]))
    assert plain["releases"] == beaten["releases"]  # with scripted noise; but the late event counts in another step
    assert f"{len(OTHERS) + 2} events" in beaten["said"]
    assert "dead_letters" not in beaten["said"]


@pytest.mark.parametrize(
    ("config", "options", "answer"),
    [
        (CONFIG.replace('end = "2024-01-02"\n', ""), (), 'metric "level" has no end'),
        (CONFIG, ("--sort",), "--sort is for relation values"),
        (CONFIG, ("--dry-run", "--max-late", "0.5"), "--dry-run and --max-late would tell how many events there are"),
    ],
)
def test_what_a_run_lacks_or_may_not_tell_is_refused(
    quiet: Desk, tmp_path: Path, config: str, options: tuple[str, ...], answer: str
):
    quiet.say(config)
    quiet.put("in.jsonl", lines(OTHERS))
    result = quiet.call("--input", "in.jsonl", "--output", "out.jsonl", *options)
    assert result.exception is not None
    assert answer in str(result.exception)


VALUES = CONFIG.replace('groups = ["a", "b"]\n', "").replace('relation = "add-remove"\n', "").split("start = ")[0]
VALUES = VALUES.replace("max_contributions", "max_per_group")


@pytest.mark.parametrize(
    ("config", "command", "answer"),
    [
        (VALUES, ("beat",), "they have no use for beats"),
        (CONFIG, ("beat", "--once", "--at", "2999-01-01"), "still to come"),
        (
            CONFIG.replace('end = "2024-01-02"\n', ""),
            ("produce", "--input", "in.jsonl", "--end"),
            "has no end to which",
        ),
        (CONFIG.replace("2024-01-02", "2999-01-01"), ("produce", "--input", "in.jsonl", "--end"), "still to come"),
        (CONFIG, ("beat", "--at", "2024-01-01"), "add --once"),
        (CONFIG, ("beat", "--once", "--at", "noon"), "is no time"),
        (CONFIG, ("beat", "--every", "0s"), "longer than 0s"),
        (CONFIG, ("beat", "--every", "soon"), "is not a duration"),
    ],
)
def test_beats_that_nobody_needs_or_that_are_to_come_are_refused(
    quiet: Desk, config: str, command: tuple[str, ...], answer: str
):
    quiet.say(config + '[kafka]\nbrokers = "localhost:9"\n')
    quiet.put("in.jsonl", lines(OTHERS))
    name, *options = command
    result = CliRunner().invoke(app, [name, str(quiet.folder / "shoal.toml"), *options])
    assert answer in f"{result.output}{result.exception}"
    assert result.exit_code in (1, 2)
