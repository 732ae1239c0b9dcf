"""A key meets one stream: file runs and workers of one app, in the orders in which they met two.

Every story ends with the same look: all that was ever shown or committed is what one input makes.
"""

from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from sqlalchemy import func, select

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.log import NotOwner
from shoal.models.errors import AuditError, LedgerError
from shoal.models.tables import ActivationRow
from shoal.models.version import VersionId
from tests.support.cover import in_a_loop
from tests.support.streams import (
    CELLS,
    ELSEWHERE,
    EVENTS,
    FULL,
    GROUPS,
    HALF,
    MEAN,
    OFTEN,
    VALUES,
    App,
    Run,
    Worker,
    app_of,
    event,
    of_one_stream,
    small_chunks,
)

METRICS = {"groups": GROUPS, "cells": CELLS, "plain": MEAN, "often": OFTEN}

__all__ = ["small_chunks"]  # a fixture
pytestmark = pytest.mark.usefixtures("small_chunks")


@pytest.fixture
def url(database_url: str) -> str:
    Ledger.open(database_url, migrate=True).close()
    return database_url


# ---------------------------------------------------------------- runs and workers


@in_a_loop
@pytest.mark.parametrize("metric", METRICS)
def test_workers_never_go_on_where_a_file_ended(tmp_path: Path, metric: str, url: str) -> None:
    """Whatever the topic has, one version has one owner."""
    for topic in (EVENTS, VALUES, ELSEWHERE):
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        folder.mkdir()
        with app_of(folder, METRICS[metric], topic) as app:
            # given a run that has shown something, and is under way
            run = Run(app, EVENTS)
            while not app.rows:
                run.step()
            # when a worker starts, it is refused
            with pytest.raises(LedgerError, match="belongs to file runs"):
                Worker(app)
            run.finish()
            assert app.rows == app.stream_of(EVENTS, end=False)
            # and the next version is the workers', with noise of its own
            shown = app.rows
            app.config.write_text(app.config.read_text().replace('name = "m"', 'name = "m"\nversion = 2'))
            Worker(app).finish()
            assert {orjson.loads(row)["version"] for row in app.rows - shown} == {2}
            with pytest.raises(LedgerError, match="audit replay --from events computes it again"):
                Run(app, EVENTS)


def test_a_run_never_adds_to_what_workers_publish(tmp_path: Path, url: str) -> None:
    # given a worker that has published a part
    with app_of(tmp_path, MEAN, EVENTS, url) as app:
        worker = Worker(app)
        worker.bound(8)
        worker.release(0, 100)
        worker.release(1, 100)
        worker.audit()
        # then a run is refused whatever it reads, and the worker goes on
        for events in (HALF, EVENTS, VALUES):
            with pytest.raises(LedgerError, match="audit replay --from events computes it again"):
                Run(app, events)
        worker.finish()
        assert app.rows == app.stream_of(EVENTS, end=False)


def test_of_two_runs_the_newer_goes_on(tmp_path: Path, url: str) -> None:
    with app_of(tmp_path, GROUPS, EVENTS, url) as app:
        old = Run(app, EVENTS)
        while not app.rows:
            old.step()
        # given a newer run over a longer input; the older one stops at the next that is new
        newer = Run(app, EVENTS)
        with pytest.raises(NotOwner, match="another `shoal run` has taken it over"):
            old.finish()
        newer.finish()
        assert app.rows == app.stream_of(EVENTS, end=False)
        # and a newer one over another input shows nothing
        with pytest.raises(AuditError):
            Run(app, VALUES).finish()
        with pytest.raises(LedgerError, match="this input does not make it"):
            Run(app, ELSEWHERE).finish()
        of_one_stream(app, EVENTS)


def test_a_run_that_died_leaves_nothing_to_clear(tmp_path: Path, url: str) -> None:
    with app_of(tmp_path, GROUPS, EVENTS, url) as app:
        dead = Run(app, EVENTS)
        while not app.rows:
            dead.step()
        dead.kill()
        Run(app, EVENTS, end=True).finish()
        assert app.rows == app.stream_of(EVENTS)


# ---------------------------------------------------------------- topics that are older than the log


def lose_topics(app: App, events: Sequence[bytes]) -> None:
    """Begin all topics anew; the source has other events."""
    app.topics.states.clear()
    for logs in (app.topics.contributions, app.topics.releases, app.topics.activations):
        for log in logs:
            log.clear()
    app.topics.audited.clear()
    app.topics.events[:] = []
    app.add(events)


@in_a_loop
@pytest.mark.parametrize("metric", METRICS)
def test_workers_make_again_what_the_log_has_and_go_on(tmp_path: Path, metric: str) -> None:
    with app_of(tmp_path, METRICS[metric], HALF) as app:
        Worker(app).finish()
        lose_topics(app, EVENTS)
        Worker(app).finish()
        assert app.rows == app.stream_of(EVENTS, end=False)


@pytest.mark.parametrize("way_out", ["raise", "retire"])
def test_a_version_that_waits_for_ever_holds_back_no_metric_once_it_is_raised_or_retired(
    tmp_path: Path, way_out: str
) -> None:
    """A transaction is all or nothing: what one version withholds keeps back all that its partition makes."""
    other = (
        MEAN + '[[metric]]\nname = "n"\ntopic = "events"\nuser = "u"\nvalue = "x"\ntime = "t"\nrange = [0, 1]\n' + MEAN
    )
    with app_of(tmp_path, GROUPS, HALF) as app:
        # given a log with releases that the topic does not make again, and a metric beside that was not published
        Worker(app).finish()
        lose_topics(app, ELSEWHERE)
        shown = app.rows
        app.config.write_text(app.config.read_text() + other[len(MEAN) :])
        worker = Worker(app)
        worker.finish()
        assert worker.withheld == {"m/1"}
        assert app.rows == shown
        # when an operator raises the version, or retires the metric, and starts the worker again
        if way_out == "raise":
            app.config.write_text(app.config.read_text().replace('name = "m"', 'name = "m"\nversion = 2'))
        else:
            with Ledger.open(f"sqlite:///{tmp_path}/log.db") as ledger:
                ledger.of("shoal").retire(VersionId("shoal", "m", 1))
            text = app.config.read_text()
            begin = text.index("[[metric]]")
            app.config.write_text(text[:begin] + text[text.index("[[metric]]", begin + 1) :])
        app.add(event("user1", 0.5, 60 + number) for number in range(0, 40, 10))
        worker = Worker(app)
        worker.finish()
        # then all others go on where they were, and nothing waits
        assert worker.withheld == set()
        made = [orjson.loads(row) for row in app.rows - shown]
        seqs = {one["seq"]: one["at"] for one in made if one["metric"] == "n"}
        assert list(sorted(seqs)) == list(range(1, len(seqs) + 1))
        assert seqs[1] == "1970-01-01T00:00:10Z", "from the first event on"
        others = {(one["metric"], one["version"]) for one in made if one["metric"] != "n"}
        assert others == ({("m", 2)} if way_out == "raise" else set())


# ---------------------------------------------------------------- the end of a version


def test_an_ended_version_logs_no_activation_of_another_input(tmp_path: Path, url: str) -> None:
    """Another input may make all releases again and still activate something else: that would stand in the log."""
    many = [event(f"user{n % 4}", 0.5, 3 * n) for n in range(48)]
    with app_of(tmp_path, FULL, many, url) as app:
        Run(app, many, end=True).finish()
        ledger = app.session().ledger
        before = ledger.of("shoal").standing()
        assert before.activated
        # when an input goes on with so many values that more is activated
        more = [*many, *(event(f"user{n % 9}", 1.0, 3 * 48 + n) for n in range(60))]
        with pytest.raises(AuditError):
            Run(app, more, end=True).finish()
        after = ledger.of("shoal").standing()
        assert (after.heads, after.activated) == (before.heads, before.activated)
        with ledger.database.read() as connection:
            assert connection.scalar(select(func.count()).select_from(ActivationRow)) == len(before.activated)


def test_an_input_that_makes_all_releases_again_and_not_an_activation_is_another_one(tmp_path: Path) -> None:
    # given a run over a part, and a log with an activation that it did not make
    many = [event(f"user{n % 4}", 0.5, 3 * n) for n in range(48)]
    with app_of(tmp_path, FULL, many) as app:
        Run(app, many[:40]).finish()
        ledger, published = app.session().ledger, app.rows
        assert ledger.of("shoal").standing().activated
        fields = {"metric": "m", "version": 1, "group": None, "level": 20, "at": "1970-01-01T00:00:09Z", "prior": 0}
        ledger.of("shoal").append_activations([orjson.dumps(fields)])
        # then the input shows nothing new, as what is published is of another one
        with pytest.raises(LedgerError, match="the activation of level 20 is in the audit log and this input does not"):
            Run(app, many).finish()
        assert app.rows == published
