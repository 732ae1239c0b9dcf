"""The database of the audit log: made once, migrated once, refused when it does not fit."""

import re
import sqlite3
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, make_url, text

from shoal.agents.audit.database import Database, Unavailable, refuse_unwritable, revisions
from shoal.agents.audit.ledger import Ledger
from shoal.migrations.versions import v010_tables
from shoal.models.errors import LedgerError
from shoal.models.tables import Table
from tests.agents.audit.as_nobody import as_nobody
from tests.agents.audit.racing import race
from tests.support.empty_log import copied


def test_a_log_keeps_its_random_id(database_url: str) -> None:
    # given a log, made by whoever comes first
    with Ledger.open(database_url, migrate=True) as first:
        made = first.log_id
    # when it is opened again, it is the same log
    with Ledger.open(database_url, migrate=False) as second:
        assert second.log_id == made
    assert re.fullmatch("[0-9a-f]{32}", made)


def test_the_migrations_make_what_the_models_say(database_url: str) -> None:
    with Ledger.open(database_url, migrate=True) as ledger, ledger.database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Table.metadata) == []
        tables = inspect(connection)
        assert {*Table.metadata.tables} <= {*tables.get_table_names()}
        for table in Table.metadata.sorted_tables:  # constraints are compared by name: a migration drops them by name
            assert tables.get_pk_constraint(table.name)["name"] == table.primary_key.name
            assert {one["name"] for one in tables.get_foreign_keys(table.name)} == {
                constraint.name for constraint in table.foreign_key_constraints
            }


def test_the_copied_schema_of_tests_is_what_the_migrations_make(tmp_path: Path) -> None:
    def schema(name: str) -> list[str]:
        Ledger.open(f"sqlite:///{tmp_path / name}").close()
        with closing(sqlite3.connect(tmp_path / name)) as log:
            return [line for line in log.iterdump() if 'INTO "log"' not in line]

    made = schema("made.db")
    with copied():
        assert schema("first.db") == schema("second.db") == made


def test_the_revisions_are_those_of_the_steps() -> None:
    """Which are told by their files' names: who opens a log at head need not import what migrates one."""
    steps = ScriptDirectory(str(Path(v010_tables.__file__).parents[1]))
    assert revisions() == tuple(step.revision for step in reversed([*steps.walk_revisions()]))
    assert revisions()[-1] == steps.get_current_head()


@pytest.mark.slow
def test_processes_that_open_a_fresh_log_at_once_make_one(database_url: str, tmp_path: Path) -> None:
    # given no database yet, and four processes that all want it, then they name the same log
    (name,) = set(race(tmp_path, database_url, [("open",)] * 4))
    assert name


def test_threads_that_open_a_fresh_log_at_once_make_one(database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool, ExitStack() as stack:
        opened = pool.map(lambda _: Ledger.open(database_url, migrate=True), range(8))
        assert len({stack.enter_context(one).log_id for one in opened}) == 1


def test_postgresql_is_migrated_by_a_command_only(postgresql_url: str) -> None:
    # given an empty database, no command but migrate touches it
    with pytest.raises(LedgerError, match="schema not migrated: run `shoal migrate CONFIG`"):
        Ledger.open(postgresql_url)
    # when it is migrated, every command opens it, by any name of the driver
    Ledger.open(postgresql_url, migrate=True).close()
    Ledger.open(postgresql_url.replace("postgresql+psycopg:", "postgresql:")).close()


def test_a_newer_schema_is_refused(database_url: str) -> None:
    with Ledger.open(database_url, migrate=True) as ledger, ledger.database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '999'"))
    for migrate in (True, False):
        with pytest.raises(LedgerError, match=r"the schema \(999\) is newer than this shoal"):
            Ledger.open(database_url, migrate=migrate)


def test_sqlite_waits_for_other_processes_and_survives_a_power_cut(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path / 'log.db'}") as ledger, ledger.database.read() as connection:
        pragmas = ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in pragmas]
    assert found == ["wal", 1, 2, 30_000]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "is not a database URL"),
        ("mysql://host/name", "mysql is not supported"),
        ("sqlite://", "must outlive its process"),
        ("sqlite:///:memory:", "must outlive its process"),
        ("sqlite:////nowhere/at/all/log.db", "the folder of /nowhere/at/all/log.db does not exist"),
    ],
)
def test_a_url_that_is_no_log_is_refused(url: str, message: str) -> None:
    with pytest.raises(LedgerError, match=re.escape(message)):
        Ledger.open(url)


def test_a_database_that_is_away_is_unavailable_and_the_password_stays_unsaid() -> None:
    with pytest.raises(Unavailable, match="does not answer") as caught:
        Ledger.open("postgresql://me:hunter2@127.0.0.1:1/log")
    assert "hunter2" not in str(caught.value)


def test_a_connection_cut_in_mid_use_is_unavailable_and_the_next_use_connects_again(postgresql_url: str) -> None:
    database = Database(postgresql_url)
    with pytest.raises(Unavailable), database.read() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    with database.read() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
    database.close()


def test_a_fault_of_ours_is_not_taken_for_an_outage(database_url: str) -> None:
    database = Database(database_url)
    with pytest.raises(Exception, match="does_not_exist") as caught, database.read() as connection:
        connection.execute(text("SELECT does_not_exist"))
    assert not isinstance(caught.value, LedgerError)
    database.close()


def test_a_sqlite_file_locked_by_someone_else_is_waited_for(tmp_path: Path) -> None:
    # given someone who holds a new file, and never lets go
    holder = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    holder.execute("CREATE TABLE other (number)")
    holder.execute("BEGIN EXCLUSIVE")
    # then we wait, and say that the database does not answer
    database = Database(f"sqlite:///{tmp_path / 'log.db'}", patience=0.1)
    with pytest.raises(Unavailable, match="locked"), database.read():
        pass
    holder.close()
    database.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    file.write_bytes(b"letters" * 1000)
    with pytest.raises(LedgerError, match="no SQLite database"):
        Ledger.open(f"sqlite:///{file}")
    assert file.read_bytes() == b"letters" * 1000


def test_more_users_than_connections_is_an_outage_too(database_url: str) -> None:
    database = Database(database_url, patience=0.1)
    with ExitStack() as stack:
        for _ in range(15):
            stack.enter_context(database.read())
        with pytest.raises(Unavailable, match="busy"):
            stack.enter_context(database.read())
    database.close()


def test_the_log_is_not_unmade() -> None:
    with pytest.raises(NotImplementedError):
        v010_tables.downgrade()


def test_tables_other_than_ours_are_left_alone(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'log.db'}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE other (number INTEGER)"))
    engine.dispose()
    with Ledger.open(f"sqlite:///{tmp_path / 'log.db'}") as ledger, ledger.database.read() as connection:
        assert inspect(connection).has_table("other")


@pytest.fixture
def guarded() -> Iterator[Path]:
    """A log that no ordinary user may write, in a folder that others can reach."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        Ledger.open(f"sqlite:///{folder / 'log.db'}").close()
        (folder / "log.db").chmod(0o444)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


def test_a_log_of_another_user_is_refused_by_name(guarded: Path, tmp_path: Path) -> None:
    """A worker that took it for a database that is away would wait for ever, while a check says ok."""
    old, new = (f"sqlite:///{guarded / name}" for name in ("log.db", "new.db"))
    opened, checked, made = as_nobody(tmp_path / "own.db", [("open", old), ("check", old), ("check", new)])
    refusal = "[audit] url: this user may not write {}, and a SQLite log takes a file and its folder"
    assert opened.startswith(refusal.format(guarded / "log.db"))
    assert checked == opened
    assert made.startswith(refusal.format(guarded))
    assert not (guarded / "new.db").exists()


def test_a_check_names_the_right_that_a_role_lacks(postgresql_url: str) -> None:
    Ledger.open(postgresql_url, migrate=True).close()
    refuse_unwritable(postgresql_url)
    url = make_url(postgresql_url)
    role = f"worker_{url.database}"
    with psycopg.connect(url.set(drivername="postgresql").render_as_string(False), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        owner.execute(f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO {role}")
        with pytest.raises(LedgerError, match="may not UPDATE log, as a worker has to; GRANT it"):
            refuse_unwritable(url.set(username=role).render_as_string(False))
        owner.execute(f"GRANT UPDATE ON log, metric_version, owner TO {role}")
    refuse_unwritable(url.set(username=role).render_as_string(False))
