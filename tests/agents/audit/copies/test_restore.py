"""A copy is restored into either database, whatever is there: all of it, or nothing."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from shoal.agents.audit.copies.copy import open_copy
from shoal.agents.audit.copies.restore import apps_of_workers, lacking, restore
from shoal.agents.audit.database import Unavailable
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.verify import verify
from tests.agents.audit.audit_examples import APP, activation, amounts, register, release, version
from tests.agents.audit.copies.copy_examples import copied, fill, rows_of

Rows = dict[str, list[tuple[object, ...]]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return copied(tmp_path)


@pytest.fixture
def copy(file: Path) -> Iterator[Ledger]:
    with open_copy(file) as opened:
        yield opened


def present(url: str) -> Rows:
    with Ledger.open(url) as log:
        assert verify(log) == []
        return rows_of(log)


def test_a_log_is_made_of_a_copy_and_goes_on(copy: Ledger, database_url: str) -> None:
    # given nothing, or an empty database, then nothing would be lost
    assert lacking(copy, database_url) == []
    restore(copy, database_url)
    assert present(database_url) == rows_of(copy)
    # and the log goes on, with numbers that no row has
    with Ledger.open(database_url) as log:
        log.of(APP).append([release(3)])
        log.of(APP).restart_clock("purchases", "bob")
        log.raise_budget(*amounts(9, 0))
        assert verify(log) == []
    # and to restore again says what the copy lacks, and takes it back
    assert lacking(copy, database_url) == ["1 release of workers", "1 budget change", "1 operator decision"]
    restore(copy, database_url)
    assert lacking(copy, database_url) == []
    assert present(database_url) == rows_of(copy)


def test_what_a_copy_lacks_is_said_by_who_may_publish_it_again(copy: Ledger, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'copied.db'}"
    with Ledger.open(url) as log:
        register(log, version("filed", topic="files", user="customer"), app="runs")
        log.of("runs").append([release(1, metric="filed"), release(2, metric="filed")], run=log.run)
        register(log, version("basket", 2, every="2h", epoch=1), partitions={"purchases": 4})  # which retires version 1
        log.of(APP).append([], activations=[activation(1)])
    assert lacking(copy, url) == [
        "2 releases of file runs",
        "1 activation",
        "3 metric version states",
        "1 user field of a topic",
    ]
    # and whose workers read again: those of either log
    register(log := Ledger.open(url), version("late", topic="calls", epsilon="0"), app="other", partitions={"calls": 4})
    log.close()
    assert apps_of_workers(copy, url) == {APP, "other"}


def test_another_log_is_lacking_as_a_whole(copy: Ledger, database_url: str) -> None:
    with Ledger.open(database_url, migrate=True) as other:
        assert lacking(copy, database_url) == [
            f"every row: the present log is {other.log_id}, and the copy is of log {copy.log_id}"
        ]
    restore(copy, database_url)
    assert present(database_url) == rows_of(copy)


def test_a_wal_of_another_file_does_not_undo_it(copy: Ledger, file: Path, tmp_path: Path) -> None:
    # given a log whose worker was killed, so that its newest rows are in its -wal
    live = tmp_path / "live.db"
    with Ledger.open(f"sqlite:///{tmp_path / 'copied.db'}") as log:
        log.of(APP).append([release(3), release(4)])
        for side in ("", "-wal"):
            shutil.copy(tmp_path / f"copied.db{side}", f"{live}{side}")
    # when somebody copies a file over it, then SQLite still reads what the -wal has
    shutil.copy(file, live)
    assert len(present(f"sqlite:///{live}")["release"]) == 5
    # and a restored log is the copy
    restore(copy, f"sqlite:///{live}")
    assert present(f"sqlite:///{live}") == rows_of(copy)


@pytest.mark.parametrize("damaged", [True, False])
def test_a_file_that_is_damaged_is_set_aside(copy: Ledger, tmp_path: Path, damaged: bool) -> None:
    live = tmp_path / "live.db"
    url = f"sqlite:///{live}"
    for aside in (tmp_path / "live.db.damaged", tmp_path / "live.db.damaged1"):
        Path(f"{live}-wal").write_bytes(b"of another file")
        live.write_bytes(content := os.urandom(3000))
        if not damaged:  # but gone
            live.unlink()
            assert lacking(copy, url) == []
            assert restore(copy, url) is None
        else:
            assert lacking(copy, url) == [
                "an unknown number of rows: the present log cannot be read (the file is no SQLite database, or damaged)"
            ]
            assert restore(copy, url) == aside
            assert aside.read_bytes() == content
        assert present(url) == rows_of(copy)


def test_a_restore_that_fails_changes_nothing(file: Path, database_url: str) -> None:
    with Ledger.open(database_url, migrate=True) as log:
        fill(log)
        before = rows_of(log)
    # given a copy of which a late row cannot be written
    with closing(sqlite3.connect(file, isolation_level=None)) as changed:
        changed.execute("PRAGMA ignore_check_constraints = ON")
        changed.execute("UPDATE owner SET kind = 'nobody' WHERE metric = 'visits'")
    with open_copy(file) as copy, pytest.raises(IntegrityError):
        restore(copy, database_url)
    assert present(database_url) == before


def test_a_log_that_somebody_writes_is_not_replaced(
    copy: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.agents.audit.database.Database.__init__.__kwdefaults__", {"patience": 0.1})
    url = f"sqlite:///{tmp_path / 'copied.db'}"
    with Ledger.open(url) as log, log.database.write(), pytest.raises(Unavailable, match="database is locked"):
        restore(copy, url)
