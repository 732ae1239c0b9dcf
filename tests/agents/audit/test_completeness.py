"""A log that lost rows is refused, wherever somebody would build on it: what is missing must not read as "not yet"."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import Executable, create_engine, select, text
from typer.testing import CliRunner

from shoal.agents.audit.budget import report, write_budget
from shoal.agents.audit.database import log_id
from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.main import app as shoal
from shoal.models.errors import LedgerError
from shoal.models.tables import Table
from tests.support.streams import FULL, App, Run, Worker, event

EVENTS = [event(f"user{n % 4}", 0.5, 3 * n) for n in range(48)]
TABLES = {
    "log": "table log of the audit log has lost rows",
    "ledger_budget": "table ledger_budget of .* metric versions are charged, and to no budget",
    "budget_change": "table budget_change of .* no record of how it came",
    "metric_version": "table metric_version of .* nothing was ever charged to it",
    "partition_count": "table partition_count of .* workers own .* and no partitions are noted",
    "person": "table person of .* metrics count people of topic events, and no field names a person there",
    "turn": 'table turn of .* metric "m" began after restart 1 of the clocks of topic events',
    "owner": 'table owner of .* metric "m" version 1 has no owner',
    "release": 'table release of .* are due of metric "m" version 1',
    "activation": 'table activation of .* are due of metric "m" version 1, and none is there',
}


@pytest.fixture
def app(tmp_path: Path, database_url: str) -> App:
    """One that has published releases and activations; the topics of workers are noted, too."""
    with Ledger.open(database_url, migrate=True) as ledger:
        ledger.of("shoal").restart_clock("events", "operator")
    with App(tmp_path, FULL, EVENTS, url=database_url) as made:
        Worker(made).finish()
        assert made.rows
    return made


def behind_its_back(url: str, *statements: Executable) -> None:
    """Change the log without its constraints, as a restore of single tables would."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET session_replication_role = replica"))
        for statement in statements:
            connection.execute(statement)
    engine.dispose()


def starts(app: App) -> dict[str, Callable[[], object]]:
    """Wherever somebody would build on the log."""
    return {
        "file run": lambda: Run(app, EVENTS),
        "worker": lambda: Worker(app),
        "check": lambda: call(app, "check"),
        "budget": lambda: call(app, "budget"),
        "raise": lambda: call(app, "budget", "--raise"),
    }


def call(app: App, *command: str) -> None:
    said = CliRunner().invoke(shoal, [*command[:1], str(app.config), *command[1:]])
    if said.exception is not None:
        raise said.exception


def test_a_table_that_was_emptied_is_refused(app: App, database_url: str) -> None:
    app.config.write_text(app.config.read_text().replace('[kafka]\nbrokers = "localhost:1"\n', ""))
    with app:
        assert {table.name for table in Table.metadata.sorted_tables} == set(TABLES)
        for name, message in TABLES.items():
            # given a log of which one table is empty
            table = Table.metadata.tables[name]
            with app.session().ledger.database.read() as connection:
                rows = [dict(row._mapping) for row in connection.execute(select(table))]
            assert rows, name
            behind_its_back(database_url, table.delete())
            # then nobody goes on, and is told which table it is and what to do
            for where, start in starts(app).items():
                with pytest.raises(LedgerError, match=message) as refused:
                    start()
                assert "restore the log as it was" in str(refused.value), where
            behind_its_back(database_url, table.insert().values(rows))
        # and whoever may does when the rows are back
        for where in ("worker", "budget", "raise"):
            starts(app)[where]()


@pytest.mark.parametrize("rows", ["seq > 2", "seq > 1"])
def test_a_chain_that_lost_its_end_is_refused(app: App, database_url: str, rows: str) -> None:
    behind_its_back(database_url, text(f"DELETE FROM release WHERE {rows}"))
    with (
        app,
        pytest.raises(LedgerError, match="table release of the audit log has lost rows: . are due of .* are there"),
    ):
        Worker(app)


def test_an_activation_that_is_lost_is_missed(app: App, database_url: str) -> None:
    behind_its_back(database_url, text("DELETE FROM activation WHERE level = (SELECT MAX(level) FROM activation)"))
    with (
        app,
        pytest.raises(LedgerError, match="table activation of the audit log has lost rows: . are due of .* are th"),
    ):
        Worker(app)


def test_a_version_that_is_gone_leaves_its_owner(app: App, database_url: str) -> None:
    statement = (
        "INSERT INTO owner (app, metric, version, kind, run, releases, activations) "
        "VALUES ('shoal', 'gone', 1, 'file', '', 0, 0)"
    )
    behind_its_back(database_url, text(statement))
    with app, pytest.raises(LedgerError, match='table metric_version .* "gone" version 1 has an owner and is not reg'):
        Worker(app)


def test_a_new_log_is_whole(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/log.db") as ledger:
        assert ledger.budget_report() is None


def test_a_reader_sees_one_state(database_url: str) -> None:
    """A table would seem to have lost what another process wrote between two looks."""
    with Ledger.open(database_url, migrate=True) as ledger:
        with ledger.database.read() as connection:
            assert ledger.log_id == log_id(connection)
            with ledger.database.write() as other:
                write_budget(other, Fraction(1), Fraction(0), unit="user")
            assert report(connection) is None
        assert connection.closed
