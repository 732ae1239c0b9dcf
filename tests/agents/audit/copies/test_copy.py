"""A copy of the audit log is one file with all that the log had at one moment, and damage of it is found."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, inspect, select, text

from shoal.agents.audit.copies.copy import open_copy, refuse_faulty, write_copy
from shoal.agents.audit.ledger import Ledger
from shoal.models.errors import AuditError, InputError, ShoalError
from shoal.models.tables import Owner
from tests.agents.audit.audit_examples import APP, release
from tests.agents.audit.copies.copy_examples import copied, fill, rows_of
from tests.support.later_schema import later_schema


@pytest.fixture
def log(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url, migrate=True) as opened:
        fill(opened)
        yield opened


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copied(tmp_path)


def test_a_copy_is_one_private_file_with_all_rows(log: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "a folder?#%20"
    folder.mkdir()
    file = folder / "copy.db"
    # when a log of either database is copied, then the copy has its id, and all rows
    assert write_copy(log, file) == 3
    with open_copy(file) as copy:
        assert refuse_faulty(copy, file, "") == 3
        assert (copy.log_id, rows_of(copy)) == (log.log_id, rows_of(log))
        assert all(rows_of(copy).values())
    # and nothing is left beside it, by who wrote it or by who read it
    assert os.listdir(folder) == ["copy.db"]
    assert file.stat().st_mode & 0o777 == 0o600
    # and no second copy takes its name
    with pytest.raises(InputError, match=r"copy.db: exists, and a copy is never overwritten; choose another name"):
        write_copy(log, file)
    with pytest.raises(InputError, match="cannot be written .No such file or directory.; choose another place"):
        write_copy(log, folder / "none" / "copy.db")


def test_a_copy_beside_a_writer_is_of_one_moment(log: Ledger, tmp_path: Path) -> None:
    # given a writer that goes on while copies are made
    copies = [tmp_path / f"{number}.db" for number in range(4)]
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [log.of(APP).append([release(seq)]) for seq in range(3, 60)])
        for file in copies:
            write_copy(log, file)
        writing.result()
    # then each copy has as many releases as it says that it must have
    counts = []
    for file in copies:
        with open_copy(file) as copy, copy.database.read() as connection:
            counts.append(copy.count_releases())
            assert connection.execute(select(func.sum(Owner.releases))).scalar_one() == counts[-1]
    assert counts == sorted(counts)


def test_a_log_that_is_not_in_order_is_not_copied(log: Ledger, tmp_path: Path) -> None:
    with log.database.write() as connection:
        connection.execute(text("DELETE FROM release"))
    with pytest.raises(AuditError, match=r"copy.db: is not in order: table release: it has lost rows: 3 are due"):
        write_copy(log, tmp_path / "copy.db")
    assert not list(tmp_path.glob("*copy.db*"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: os.urandom(len(content)),
        lambda content: content[: len(content) // 2],
        lambda _: b"",
        lambda content: content.replace(b"customer", b"\xff\xfeomer"),
    ],
    ids=["random", "cut", "empty", "no text"],
)
def test_a_damaged_copy_is_refused_by_its_name(copy: Path, damage: Callable[[bytes], bytes]) -> None:
    copy.write_bytes(damage(copy.read_bytes()))
    with (
        pytest.raises(ShoalError, match="copy.db: is not a copy of an audit log, or is damaged; use another copy"),
        open_copy(copy) as opened,
    ):
        refuse_faulty(opened, copy, "")


def test_what_is_not_a_finished_copy_is_refused(copy: Path, tmp_path: Path) -> None:
    def refused(file: Path, words: str) -> None:
        with pytest.raises(ShoalError, match=words), open_copy(file):
            pass

    refused(tmp_path / "none.db", "none.db: cannot be read .No such file")
    # a database of another program, and one of a later version
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE release (seq)")
    refused(tmp_path / "other.db", "is not a copy of an audit log")
    with closing(sqlite3.connect(copy, isolation_level=None)) as later:
        later.execute("UPDATE alembic_version SET version_num = '999'")
    refused(copy, r"copy.db: the schema \(999\) is newer than this shoal; install")
    # a log in use, whose newest rows are beside it
    with Ledger.open(f"sqlite:///{tmp_path / 'copied.db'}") as used:
        used.of(APP).append([release(3)])
        refused(tmp_path / "copied.db", "is a database in use, for .*copied.db-wal has rows of it")


def test_a_copy_of_an_older_version_is_read_and_stays_as_it_is(copy: Path, tmp_path: Path) -> None:
    with open_copy(copy) as opened:
        expected = rows_of(opened)
    content = copy.read_bytes()
    # given a version whose schema has one more step, then its rows can be restored, and a copy stays what it was
    with later_schema(tmp_path / "later"), open_copy(copy) as opened:
        with opened.database.read() as connection:
            assert inspect(connection).has_table("later")
        assert refuse_faulty(opened, copy, "") == 3
        assert rows_of(opened) == expected
    assert copy.read_bytes() == content
