"""What a file run shows, and when: rows are written many together, and none is shown before it is in the log."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import select

from shoal.agents.audit.app_ledger import AppLedger
from shoal.models.errors import LedgerError
from shoal.models.tables import ReleaseRow
from shoal.stream import file_run
from tests.support.streams import GROUPS, App, Run, event

EVENTS = [event(f"u{n % 9}", n % 2, 10 * n, "ab"[n % 2]) for n in range(30)]


class Watched(App):
    """An app of which each release must be in the log when it is shown."""

    def publish(self, values: Sequence[bytes]) -> None:
        with self.session().ledger.database.read() as connection:
            bodies = set(connection.execute(select(ReleaseRow.body)).scalars())
        assert {value.decode() for value in values} <= bodies
        super().publish(values)


@pytest.fixture
def appended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many releases came with each append."""
    monkeypatch.setattr(file_run, "CHUNK", 1)
    sizes: list[int] = []
    append = AppLedger.append

    def counting(ledger: AppLedger, rows: Sequence[bytes], **named: Any) -> Any:
        sizes.append(len(rows))
        return append(ledger, rows, **named)

    monkeypatch.setattr(AppLedger, "append", counting)
    return sizes


@pytest.mark.parametrize("together", [1, 3, 100])
def test_a_run_shows_the_same_however_many_rows_it_writes_together(tmp_path: Path, together: int) -> None:
    with Watched(tmp_path, GROUPS, EVENTS) as app:
        Run(app, EVENTS, end=True, together=together).finish()
        assert app.rows == app.stream_of(EVENTS)


def test_rows_wait_until_there_are_enough_for_a_transaction(tmp_path: Path, appended: list[int]) -> None:
    with Watched(tmp_path, GROUPS, EVENTS) as app:
        # given a run that writes eight rows together
        run = Run(app, EVENTS, together=8)
        # when it has made fewer, then nothing is written or shown
        while not appended:
            assert not app.rows
            run.step()
        # and once it has made them, all are
        assert len(appended) == 1 < appended[0] == len(app.rows)
        # and the rest when its input has ended
        run.finish()
        assert max(appended) <= 8
        assert app.rows == app.stream_of(EVENTS, end=False)


def test_a_run_that_ends_while_rows_wait_has_shown_none_of_them_and_another_goes_on(
    tmp_path: Path, appended: list[int]
) -> None:
    with Watched(tmp_path, GROUPS, EVENTS) as app:
        run = Run(app, EVENTS, together=8)
        for _ in range(14):
            run.step()
        run.kill()
        assert len(app.rows) == sum(appended) < len(app.stream_of(EVENTS[:14], end=False))
        Run(app, EVENTS, end=True, together=8).finish()
        assert app.rows == app.stream_of(EVENTS)


def test_new_rows_wait_for_all_that_the_log_has_however_many_there_are(tmp_path: Path, appended: list[int]) -> None:
    with Watched(tmp_path, GROUPS, EVENTS) as app:
        # given a log with releases of half the events
        Run(app, EVENTS[:15]).finish()
        shown = app.rows
        appended.clear()
        # when a run has other events, then it makes releases, and writes and shows none of them
        other = [orjson.dumps(orjson.loads(raw) | {"g": "c"}) for raw in EVENTS]
        run = Run(app, other, together=8)
        with pytest.raises(LedgerError, match="this input does not make it"):
            run.finish()
        assert not appended
        assert app.rows == shown
