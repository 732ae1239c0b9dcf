"""`shoal audit backup` and `restore` as an operator types them; the rest is in tests/agents/audit/copies."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.main import app
from shoal.models.errors import ShoalError
from tests.agents.audit.audit_examples import register, version
from tests.support.built_once import built_once

CONFIG = """
[privacy]
key_file = "shoal.key"
epsilon = 4
[audit]
url = "sqlite:///shoal.db"
[[metric]]
name = "visits"
topic = "visits"
user = "who"
time = "at"
statistic = "count"
epsilon = 1
max_contributions = 4
every = "1h"
decay = { kind = "none" }
"""
EVENTS = [b'{"who": "ann", "at": "2026-01-01T0%d:00:00Z"}\n' % hour for hour in range(6)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a key, a log of some releases, and its copy; the log has two more releases than that."""
    monkeypatch.chdir(tmp_path)
    Path("shoal.toml").write_text(CONFIG)
    key_file.new(Path("shoal.key"))
    with built_once():
        assert "there is no audit log yet" in shoal("backup", "copy.db", status=1)
        run(4)
        assert shoal("backup", "copy.db") == "copy.db: 3 releases, in order\n"
        run(6)
        yield tmp_path


def shoal(name: str, *arguments: str, status: int = 0) -> str:
    """Run `shoal audit NAME` to its expected status; its output, and the text of its error."""
    done = CliRunner().invoke(app, ["audit", name, "shoal.toml", *arguments])
    assert done.exit_code == status, done.output
    return done.output + (str(done.exception) if isinstance(done.exception, ShoalError) else "")


def run(events: int) -> None:
    Path("events.jsonl").write_bytes(b"".join(EVENTS[:events]))
    command = ["run", "shoal.toml", "--input", "events.jsonl", "--output", "out.jsonl", "--open"]
    assert CliRunner().invoke(app, command).exit_code == 0


def log() -> str:
    return shoal("verify").splitlines()[-1]


def test_what_a_copy_lacks_is_lost_only_with_consent(folder: Path) -> None:
    # given no terminal to ask on, then a newer log stays
    refused = shoal("restore", "copy.db", status=1)
    assert refused.endswith("nothing is written: there is no terminal to ask on; add --yes")
    assert log() == "the audit log is in order: 5 releases"
    # and with consent it is the copy again, which the file run goes on from
    said = shoal("restore", "copy.db", "--yes").splitlines()
    assert said[:2] == [
        "shoal: compared with the present log, copy.db lacks 2 releases of file runs",
        "shoal: workers read missing releases and activations again from the topics; all else of it is lost",
    ]
    assert said[-1].endswith(": 3 releases, restored from copy.db")
    assert log() == "the audit log is in order: 3 releases"
    # and where nothing would be lost, nobody is asked
    assert orjson.loads(shoal("restore", "copy.db", "--json"))["releases"] == 3


def test_a_copy_is_checked_and_not_the_log(folder: Path) -> None:
    # given a copy of random bytes beside a log that is in order
    Path("bad.db").write_bytes(os.urandom(3000))
    words = "bad.db: is not a copy of an audit log, or is damaged; use another copy"
    assert shoal("verify", "--copy", "bad.db", status=1) == words
    assert shoal("restore", "bad.db", "--yes", status=1) == words
    # and one in which somebody has changed a release
    content = Path("copy.db").read_bytes()
    Path("bad.db").write_bytes(content.replace(b'"seq":2', b'"seq":9'))
    assert 'visits" version 1 release 2: its bytes are not those of' in shoal("verify", "--copy", "bad.db", status=1)
    refused = shoal("restore", "bad.db", "--yes", status=1)
    assert refused.startswith('bad.db: is not in order: app "shoal" metric "visits" version 1 release 2: its bytes are')
    assert refused.endswith(
        "(and 1 finding more); use another copy, or see all: shoal audit verify shoal.toml --copy bad.db"
    )
    assert log() == "the audit log is in order: 5 releases"
    # and the copy is found in order whatever has become of the log
    Path("shoal.db").write_bytes(os.urandom(3000))
    assert shoal("verify", "--copy", "copy.db").splitlines()[-1] == "copy.db: 3 releases, in order"
    assert "the log that was there is damaged, and kept as" in shoal("restore", "copy.db", "--yes")
    assert log() == "the audit log is in order: 3 releases"


def test_a_copy_of_another_log_is_refused(folder: Path) -> None:
    # given a log that another key belongs to
    shutil.move("copy.db", "other.db")
    for file in folder.glob("shoal.[dk]*"):
        file.unlink()
    key_file.new(Path("shoal.key"))
    run(4)
    refused = shoal("restore", "other.db", "--yes", status=1)
    assert "other.db: is a copy of audit log " in refused
    assert "shoal.key belongs to audit log" in refused
    # and no file has two uses
    assert "are one file" in shoal("restore", "shoal.db", "--yes", status=1)
    assert "are one file" in shoal("backup", "shoal.db-wal", status=1)


def test_brokers_that_are_away_leave_the_offsets_to_another_run(folder: Path) -> None:
    with Path("shoal.toml").open("a") as config:
        config.write('[kafka]\nbrokers = "127.0.0.1:1"\n')
    # given file runs alone, which have none, then nothing is left to do
    shoal("restore", "copy.db", "--yes")
    # and given workers, somebody has to come back
    with Ledger.open("sqlite:///shoal.db") as ledger:
        for name in ("shoal", "other"):
            register(ledger, version("walks", topic=f"walks-{name}"), app=name, partitions={f"walks-{name}": 1})
    shoal("backup", "both.db")
    said = shoal("restore", "both.db", status=1)
    assert "note: run this with the configuration of other, too, before its workers start" in said
    assert said.endswith("; the group's offsets are not set: mend that, then run this command again")
    assert log() == "the audit log is in order: 3 releases"
