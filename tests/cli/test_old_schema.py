"""A SQLite log of an older version of shoal: what only reads changes nothing, and each says which command helps."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner, Result

from shoal.agents.audit.database import Database, NotMigrated
from shoal.agents.audit.migration import upgrade
from shoal.agents.cli.main import app
from shoal.agents.dashboard.ledger import budget_of
from tests.support.later_schema import LATER, NOW, later_schema

CONFIG = """
[privacy]
epsilon = 4
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
REMEDY = (
    f"[audit] url: schema not migrated, it is of an older version of shoal ({NOW}, not {LATER}); stop "
    "workers of that version, then run `shoal migrate CONFIG`"
)


@pytest.fixture
def log(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A log of this version, of which the next version has come."""
    monkeypatch.chdir(tmp_path)
    Path("shoal.toml").write_text(CONFIG)
    Path("visits.jsonl").write_text('{"who": "ann", "at": "2026-01-01T00:00:00Z"}\n')
    database = Database("sqlite:///shoal.db")
    with database.write() as connection:
        upgrade(connection, NOW)
        connection.execute(text("INSERT INTO log VALUES (1, 'id', 'then')"))
    database.close()
    with later_schema(tmp_path_factory.mktemp("later")):
        yield tmp_path / "shoal.db"


def revision(log: Path) -> str:
    connection = sqlite3.connect(log)
    (found,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    connection.close()
    return str(found)


def shoal(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    "command",
    [
        ("label", "shoal.toml"),
        ("export", "shoal.toml"),
        ("export", "--log", "sqlite:///shoal.db"),
        ("window", "shoal.toml", "--metric", "visits", "--length", "2h"),
        ("plan", "shoal.toml", "--values", "visits.jsonl"),
    ],
)
def test_what_only_reads_says_that_migrate_helps_and_it_does(log: Path, command: tuple[str, ...]) -> None:
    # given a log of an older version, when it is read, then what helps is said, and the log is as it was
    refused = shoal(*command)
    assert isinstance(refused.exception, NotMigrated), refused.output
    assert str(refused.exception) == REMEDY
    assert revision(log) == NOW
    # and it helps
    assert shoal("migrate", "shoal.toml").exit_code == 0
    assert "schema not migrated" not in str(shoal(*command).exception)


def test_the_dashboard_says_the_same(log: Path) -> None:
    with pytest.raises(NotMigrated) as refused:
        budget_of("sqlite:///shoal.db")
    assert (str(refused.value), revision(log)) == (REMEDY, NOW)


def test_a_check_says_it_too_and_changes_nothing(log: Path) -> None:
    before = log.read_bytes()
    assert REMEDY.partition("; ")[0] in shoal("check", "shoal.toml").stdout
    assert log.read_bytes() == before
    assert shoal("migrate", "shoal.toml").exit_code == 0
    assert "its schema is that of this version" in shoal("check", "shoal.toml").stdout


def test_what_may_write_migrates_by_itself(log: Path) -> None:
    assert shoal("budget", "shoal.toml").exit_code == 0
    assert revision(log) == LATER


def test_a_log_from_before_the_first_release_is_refused(log: Path) -> None:
    with contextlib.closing(sqlite3.connect(log)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '007'")
    refused = shoal("budget", "shoal.toml")
    assert "the schema (007) is that of a version before the first release; begin with a new log" in str(
        refused.exception
    )
