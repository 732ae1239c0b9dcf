"""A log that lost rows is refused, wherever somebody would build on it: what is missing must not read as "not yet"."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

from shoal.agents.cli.main import app as shoal
from shoal.agents.ledger import Ledger
from shoal.models.errors import LedgerError
from tests.support.streams import FULL, App, Run, Worker, event

EVENTS = [event(f"user{n % 4}", 0.5, 3 * n) for n in range(48)]
TABLES = {
    "log": "table log of the audit log has lost rows",
    "budget": "table budget of .* metric versions are charged, and to no budget",
    "budget_change": "table budget_change of .* no record of how it came",
    "metric_version": "table metric_version of .* nothing was ever charged to it",
    "partition_count": "table partition_count of .* workers own .* and no partitions are noted",
    "owner": 'table owner of .* metric "m" version 1 has no owner',
    "release": 'table release of .* are due of metric "m" version 1',
    "activation": 'table activation of .* are due of metric "m" version 1, and none is there',
}


@pytest.fixture
def app(tmp_path: Path, database_url: str) -> App:
    """One whose worker has published releases and activations."""
    Ledger.open(database_url, migrate=True).close()
    with App(tmp_path, FULL, EVENTS, url=database_url) as made:
        Worker(made).finish()
        assert made.rows
    return made


def delete(url: str, statement: str) -> None:
    """Change the log behind the back of its constraints, as a restore of single tables would."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute(statement)
        return
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("SET session_replication_role = replica"))
        connection.execute(text(statement))
    engine.dispose()


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_was_emptied_is_refused(app: App, database_url: str, table: str) -> None:
    # given a log of which one table is empty
    delete(database_url, f"DELETE FROM {table}")
    # then neither a file run nor a worker starts
    starts: list[Callable[[], object]] = [lambda: Run(app, EVENTS), lambda: Worker(app)]
    for start in starts:
        with app, pytest.raises(LedgerError, match=TABLES[table]) as refused:
            start()
        assert "restore the log as it was" in str(refused.value)
    # and `check` says so, and `budget`
    config = app.config.read_text().replace('[kafka]\nbrokers = "localhost:1"\n', "")
    app.config.write_text(config)
    for name in ("check", "budget"):
        said = CliRunner().invoke(shoal, [name, str(app.config)])
        assert isinstance(said.exception, LedgerError), said.output
        assert f"table {table} of the audit log has lost rows" in str(said.exception)


@pytest.mark.parametrize("rows", ["seq > 2", "seq > 1"])
def test_a_chain_that_lost_its_end_is_refused(app: App, database_url: str, rows: str) -> None:
    delete(database_url, f"DELETE FROM release WHERE {rows}")
    with (
        app,
        pytest.raises(LedgerError, match="table release of the audit log has lost rows: . are due of .* are there"),
    ):
        Worker(app)


def test_a_version_that_is_gone_leaves_its_owner(app: App, database_url: str) -> None:
    statement = (
        "INSERT INTO owner (app, metric, version, kind, run, releases, activations, made_again) "
        "VALUES ('shoal', 'gone', 1, 'file-run', '', 0, 0, 'all')"
    )
    delete(database_url, statement)
    with app, pytest.raises(LedgerError, match='table metric_version .* "gone" version 1 has an owner and is not reg'):
        Worker(app)


def test_a_new_log_is_whole(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/log.db") as ledger:
        assert ledger.budget_report() is None
