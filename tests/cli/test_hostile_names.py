"""Names that strangers chose reach a terminal through every command without a character that it would obey."""

import contextlib
import json
import unicodedata
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import shoal
from shoal.agents.cli.main import app
from shoal.models.errors import ShoalError
from tests.support.desk import MEAN, Desk, changed, lines

ESCAPES = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x7f"
NAMES = (ESCAPES, 'a\n{"event":"forged"}\nb', "good\rbad", "\u009b31mred\u009c", "user\u202egnp.exe", "a\u2028b\u200dc")
COMMANDS = (
    "run shoal.toml --input in.jsonl --output - --dead-letters dead.jsonl",
    "run shoal.toml --input bad.jsonl --output new.jsonl --dead-letters -",
    "tail --input out.jsonl",
    "tail --input out.jsonl --json",
    "export --input out.jsonl",
    "export --input out.jsonl --format jsonl",
    "export --input named.jsonl --metric none",
    "plan shoal.toml --values in.jsonl",
    "map named.jsonl --metric none",
    "init new.toml --sample sample.jsonl --yes --no-key --relation values --range 0..1 --users 9 --user none",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events with hostile groups, what a run made of them, and releases of hostile metrics."""
    desk = Desk(tmp_path_factory.mktemp("hostile"))
    desk.say(MEAN)
    events = changed(room=lambda event: NAMES[int(event["who"][1:]) % len(NAMES)])
    desk.put("in.jsonl", lines(events))
    made = desk.run("in.jsonl")
    releases = [json.loads(line) for line in made.splitlines()]
    desk.put(
        "named.jsonl",
        lines({**one, "metric": ESCAPES, "group": "881f1d4887fffff"} for one in releases if one["group"] == ESCAPES),
    )
    desk.put("bad.jsonl", lines(events) + b'{"who":"\x1b[31m","x":"\\u001b[31m"}\nnot \x1b[2J\n')
    desk.put("sample.jsonl", lines([{ESCAPES: 1, "who": "u1"}]))
    desk.put("kept.jsonl", made)
    return desk.folder


def called(folder: Path, typed: str) -> Result:
    with contextlib.chdir(folder):
        return CliRunner().invoke(app, typed.split())


@pytest.mark.parametrize("typed", COMMANDS)
def test_no_name_moves_the_cursor(folder: Path, typed: str) -> None:
    """Standard output is not a terminal here: before `| head` it must not be one either."""
    (folder / "out.jsonl").write_bytes((folder / "kept.jsonl").read_bytes())
    done = called(folder, typed)
    printed = done.output + (str(done.exception) if isinstance(done.exception, ShoalError) else "")
    assert "\\u001b" in printed or "\\x1b" in printed, "the command shows no name, so that it proves nothing"
    assert not [one for one in printed if one != "\n" and unicodedata.category(one) in {"Cc", "Cf", "Zl", "Zp"}]
    assert '\n{"event"' not in printed, "a name made a line of its own"


def test_lines_of_json_on_a_pipe_mean_what_the_file_does(folder: Path) -> None:
    done = called(folder, "export --input kept.jsonl --format jsonl")
    file = (folder / "kept.jsonl").read_bytes().splitlines()
    assert [json.loads(line) for line in done.stdout_bytes.splitlines()] == [json.loads(line) for line in file]


def test_a_notebook_shows_no_control_character(folder: Path) -> None:
    assert repr(shoal.read(folder / "named.jsonl")).isprintable()
