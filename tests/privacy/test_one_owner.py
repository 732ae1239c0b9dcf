"""A key meets one stream: file runs and workers of one app, in the orders in which they met two.

Every story ends with the same look: all that was ever shown or committed is what one input makes.
"""

from pathlib import Path

import orjson
import pytest
from sqlalchemy import func, select

from shoal.agents.audit.database import Unavailable
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.log import NotOwner
from shoal.models.errors import AuditError, FailStop, LedgerError
from shoal.models.tables import Activation
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
    Run,
    Worker,
    app_of,
    event,
    home_of,
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


def test_a_worker_that_starts_while_a_run_is_under_way_ends_it(tmp_path: Path, url: str) -> None:
    # given a run that has shown something, of other values than the topic has
    with app_of(tmp_path, GROUPS, VALUES, url) as app:
        run = Run(app, EVENTS)
        while not app.rows:
            run.step()
        shown = app.rows
        # when a worker starts, the run shows nothing more
        worker = Worker(app)
        with pytest.raises(NotOwner, match="workers of this app publish it"):
            run.finish()
        assert app.rows == shown
        # and the worker publishes nothing in its place, nor beside it
        with pytest.raises(FailStop, match="already published with other bytes"):
            worker.finish()
        assert app.rows == shown
        of_one_stream(app)


def test_a_run_that_was_registered_first_and_begins_last_shows_nothing(tmp_path: Path) -> None:
    with app_of(tmp_path, MEAN, VALUES) as app:
        run = Run(app, EVENTS)
        Worker(app).finish()
        with pytest.raises(AuditError, match="has two values"):
            run.finish()
        of_one_stream(app, VALUES)


def test_a_run_while_workers_publish_only_repeats(tmp_path: Path, url: str) -> None:
    # given a worker that has published a part
    with app_of(tmp_path, MEAN, EVENTS, url) as app:
        worker = Worker(app)
        worker.bound(8)
        worker.release(0, 100)
        worker.release(1, 100)
        worker.audit()
        published = app.rows
        # then a run over the same events shows that part, over more of them nothing more, over others nothing
        Run(app, HALF).finish()
        with pytest.raises(LedgerError, match="is read by workers"):
            Run(app, EVENTS).finish()
        with pytest.raises(AuditError):
            Run(app, VALUES).finish()
        assert app.rows == published
        # and the worker goes on
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


# ---------------------------------------------------------------- workers that continue a file


@in_a_loop
@pytest.mark.parametrize("metric", METRICS)
def test_workers_go_on_where_a_file_ended(tmp_path: Path, metric: str) -> None:
    with app_of(tmp_path, METRICS[metric], EVENTS) as app:
        Run(app, HALF).finish()
        Worker(app).finish()
        assert app.rows == app.stream_of(EVENTS, end=False)


@in_a_loop
@pytest.mark.parametrize("metric", METRICS)
def test_workers_do_not_go_on_with_another_stream_than_the_files(tmp_path: Path, metric: str) -> None:
    """What is published costs users their groups, wherever it was published."""
    # given releases of a file, and a topic whose events are of the same people in other groups or with other values
    for topic in (ELSEWHERE, VALUES) if metric != "plain" else (VALUES,):
        folder = tmp_path / str(topic is VALUES)
        folder.mkdir()
        with app_of(folder, METRICS[metric], topic) as app:
            Run(app, HALF).finish()
            shown = app.rows
            worker = Worker(app)
            # then nothing of the topic is published, whether it meets what is published or waits for it
            if topic is VALUES:
                with pytest.raises(FailStop, match="already published with other bytes"):
                    worker.finish()
            else:
                worker.finish()
                assert worker.withheld == {"m/1"}
            assert app.rows == shown


@pytest.mark.parametrize("way_out", ["raise", "retire"])
def test_a_version_that_waits_for_ever_holds_back_no_metric_once_it_is_raised_or_retired(
    tmp_path: Path, way_out: str
) -> None:
    """A transaction is all or nothing: what one version withholds keeps back all that its partition makes."""
    other = (
        MEAN + '[[metric]]\nname = "n"\ntopic = "events"\nuser = "u"\nvalue = "x"\ntime = "t"\nrange = [0, 1]\n' + MEAN
    )
    with app_of(tmp_path, GROUPS, ELSEWHERE) as app:
        # given a file whose releases the topic does not make, and a metric beside it that no file has met
        Run(app, HALF).finish()
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
                ledger.retire("shoal", "m", 1)
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


@pytest.mark.parametrize("crashes", [False, True])
def test_workers_wait_for_one_another(tmp_path: Path, crashes: bool) -> None:
    """What one partition must make again holds back the new releases of every other one."""
    with app_of(tmp_path, GROUPS, EVENTS) as app:
        Run(app, HALF).finish()
        shown = app.rows
        # given two workers, each with a partition, of which one lags behind
        workers = [Worker(app, [0]), Worker(app, [1], bound=False)]
        ahead, behind = sorted(workers, key=lambda worker: worker.homes[0] != home_of("a"))
        workers[0].bound(1000)
        ahead.release(ahead.homes[0], 1000)
        ahead.ask()
        ahead.release(ahead.homes[0], 1000)
        assert app.rows == shown, "it has made again what is its own, and must wait for the other"
        assert ahead.withheld == {"m/1"}
        if crashes:
            ahead.crash()
        # when the other one has done its part
        behind.release(behind.homes[0], 1000)
        behind.ask()
        # then both go on
        for worker in (*workers, *workers):
            worker.finish()
        assert app.rows == app.stream_of(EVENTS, end=False)


def test_a_database_that_is_away_delays_workers_that_continue_a_file_and_no_others(tmp_path: Path) -> None:
    with app_of(tmp_path, MEAN, EVENTS) as app:
        # given a worker of an app that has no file, whose database goes away
        worker = Worker(app)
        app.is_away = True
        worker.bound(1000)
        for home in worker.homes:
            worker.release(home, 1000)
        assert app.rows == app.stream_of(EVENTS, end=False)
    other = tmp_path / "other"
    other.mkdir()
    with app_of(other, MEAN, EVENTS) as app:
        # and one that must tell of what it has made again
        Run(app, HALF).finish()
        shown = app.rows
        worker = Worker(app)
        worker.bound(4)
        for home in worker.homes:
            worker.release(home, 1000)
        app.is_away = True
        with pytest.raises(Unavailable):
            worker.ask()
        assert app.rows == shown
        app.is_away = False
        worker.finish()
        assert app.rows == app.stream_of(EVENTS, end=False)


# ---------------------------------------------------------------- the end of a version


def test_an_ended_version_logs_no_activation_of_another_input(tmp_path: Path, url: str) -> None:
    """Another input may make all releases again and still activate something else: that would stand in the log."""
    many = [event(f"user{n % 4}", 0.5, 3 * n) for n in range(48)]
    with app_of(tmp_path, FULL, many, url) as app:
        Run(app, many, end=True).finish()
        ledger = app.session().ledger
        before = ledger.standing("shoal")
        assert before.activated
        # when an input goes on with so many values that more is activated
        more = [*many, *(event(f"user{n % 9}", 1.0, 3 * 48 + n) for n in range(60))]
        with pytest.raises(AuditError):
            Run(app, more, end=True).finish()
        after = ledger.standing("shoal")
        assert (after.heads, after.activated) == (before.heads, before.activated)
        with ledger.database.read() as connection:
            assert connection.scalar(select(func.count()).select_from(Activation)) == len(before.activated)


def test_an_input_that_makes_all_releases_again_and_not_an_activation_is_another_one(tmp_path: Path) -> None:
    # given a run over a part, and a log with an activation that it did not make
    many = [event(f"user{n % 4}", 0.5, 3 * n) for n in range(48)]
    with app_of(tmp_path, FULL, many) as app:
        Run(app, many[:40]).finish()
        ledger, published = app.session().ledger, app.rows
        (group, _), *_ = ledger.standing("shoal").activated
        fields = {**group._asdict(), "group": None, "level": 20, "at": "1970-01-01T00:00:09Z", "prior": 0}
        ledger.append_activations("shoal", [orjson.dumps(fields)])
        # then the input shows nothing new, as what is published is of another one
        with pytest.raises(LedgerError, match="the activation of level 20 is in the audit log and this input does not"):
            Run(app, many).finish()
        assert app.rows == published
