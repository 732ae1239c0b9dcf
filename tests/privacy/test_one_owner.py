"""A key meets one stream: file runs and workers of one app, in the orders in which they met two.

Every story ends with the same look: all that was ever shown or committed is what one input makes.
"""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from sqlalchemy import func, select

from shoal.agents import key_file
from shoal.agents.database import Unavailable
from shoal.agents.ledger import Ledger, NotOwner
from shoal.models.errors import AuditError, FailStop, KeyFileError, LedgerError
from shoal.models.log import Activation
from shoal.models.records import record_key
from shoal.stream import runner
from shoal.stream.partitioning import PARTITIONERS
from tests.support.streams import CELLS, FULL, GROUPS, MEAN, OFTEN, App, Run, Worker, event

PEOPLE = [(f"user{n % 4}", 0.25 * (n % 5), 3 * n, "ab"[n % 2]) for n in range(14)]
EVENTS = [event(*one) for one in PEOPLE]
HALF = EVENTS[:8]
VALUES = [event(user, 1 - value, time, group) for user, value, time, group in PEOPLE]
ELSEWHERE = [event(user, value, time, "c") for user, value, time, _ in PEOPLE]
METRICS = {"groups": GROUPS, "cells": CELLS, "plain": MEAN, "often": OFTEN}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CHUNK", 2)


@pytest.fixture
def url(database_url: str) -> str:
    Ledger.open(database_url, migrate=True).close()
    return database_url


def app_of(folder: Path, metric: str, topic: list[bytes], url: str = "") -> App:
    return App(folder, metric, topic, url=url)


def home_of(group: str) -> int:
    """The contributions partition of a group, of two."""
    return PARTITIONERS["murmur2"](record_key("m", group).encode(), 2)


def of_one_stream(app: App, *inputs: list[bytes]) -> None:
    assert app.rows
    assert any(app.rows <= app.stream_of(events) for events in inputs or (EVENTS, VALUES, ELSEWHERE))


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


@pytest.mark.parametrize("metric", METRICS)
def test_workers_go_on_where_a_file_ended(tmp_path: Path, metric: str) -> None:
    with app_of(tmp_path, METRICS[metric], EVENTS) as app:
        Run(app, HALF).finish()
        Worker(app).finish()
        assert app.rows == app.stream_of(EVENTS, end=False)


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


# ---------------------------------------------------------------- restored copies


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with app_of(tmp_path, GROUPS, EVENTS) as made:
        made.session()  # makes the log
        yield made


def test_a_log_that_was_copied_before_a_version_was_registered_is_refused(app: App) -> None:
    app.copy_log()
    Run(app, EVENTS).finish()
    app.restore_log()
    for start in (
        lambda: Run(app, VALUES),
        lambda: Run(app, EVENTS),
        lambda: Worker(app),
        lambda: app.session().check(),
    ):
        with pytest.raises(
            KeyFileError, match="m/1 has used this key, and the audit log does not know it.*raise the ver"
        ):
            start()
    # the way on
    app.config.write_text(app.config.read_text() + "version = 2\n")
    Run(app, VALUES).finish()


@pytest.mark.parametrize("steps", [0, 4])
def test_a_log_that_was_copied_while_a_run_was_under_way_is_refused(app: App, steps: int) -> None:
    run = Run(app, EVENTS)
    for _ in range(steps):
        run.step()
    app.copy_log()
    copied = len(app.rows)
    while len(app.rows) == copied:
        run.step()
    run.kill()
    app.restore_log()
    for start in (lambda: Run(app, VALUES), lambda: Worker(app)):
        with pytest.raises(
            KeyFileError, match="m/1 has . releases, and the audit log has . of them: the log was restored"
        ):
            start()


def test_a_log_that_was_copied_before_workers_took_over_is_refused(app: App) -> None:
    """A run would find what the file had published, make it again, and go on beside what is in Kafka."""
    Run(app, HALF).finish()
    app.copy_log()
    Worker(app).finish()
    app.restore_log()
    for start in (lambda: Run(app, [*HALF, *VALUES[8:]]), lambda: Worker(app)):
        with pytest.raises(
            KeyFileError, match="workers publish metric version m/1, and the audit log does not know it"
        ):
            start()


def test_a_log_that_workers_had_already_catches_up(app: App) -> None:
    Run(app, HALF).finish()
    worker = Worker(app)
    app.copy_log()
    worker.finish()
    app.restore_log()
    app.topics.audited.clear()  # the group's offsets are set back with the log
    Worker(app).finish()
    assert app.rows == app.stream_of(EVENTS, end=False)
    standing = app.session().ledger.standing("shoal")
    assert sum(head.seq for head in standing.heads.values()) == len(app.rows)


def test_topics_that_are_older_than_the_log_make_again_what_the_log_has(app: App) -> None:
    worker = Worker(app)
    worker.finish()
    # given topics that lost everything but the events, and then other events in other groups
    app.topics.states.clear()
    for logs in (app.topics.contributions, app.topics.releases, app.topics.activations):
        for log in logs:
            log.clear()
    app.topics.audited.clear()
    kept = app.topics.events[:]
    app.topics.events[:] = [type(one)(one.offset, raw) for one, raw in zip(kept, ELSEWHERE, strict=True)]
    # then the partition that has lost releases adds none of another group
    Worker(app, [home_of("b")]).finish()
    of_one_stream(app, EVENTS)


# ---------------------------------------------------------------- crashes of a registration

POINTS = {
    "before the announcement": (key_file, "announce", False),
    "after the announcement": (key_file, "announce", True),
    "before the ledger": (Ledger, "register", False),
    "after the ledger": (Ledger, "register", True),
    "before the confirmation": (key_file, "bind", False),
    "after the confirmation": (key_file, "bind", True),
}


class Killed(BaseException):
    """The process ended here."""


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("restores", [False, True])
def test_a_registration_that_was_cut_off_locks_nobody_out(
    app: App, monkeypatch: pytest.MonkeyPatch, point: str, restores: bool
) -> None:
    app.copy_log()
    place, name, after = POINTS[point]
    call = getattr(place, name)

    def killed(*arguments: object, **named: object) -> None:
        if after:
            call(*arguments, **named)
        raise Killed

    # given a process that was killed there; it has published nothing, so its log may even be restored
    with monkeypatch.context() as during:
        during.setattr(place, name, killed)
        with pytest.raises(Killed):
            Run(app, VALUES)
    if restores and point != "after the confirmation":
        app.restore_log()
    # then the next one goes on, with whatever input
    Run(app, EVENTS).finish()
    assert app.rows == app.stream_of(EVENTS, end=False)
    # and from then on the log is the one
    app.restore_log()
    with pytest.raises(KeyFileError, match="the log was restored from an older copy"):
        Run(app, VALUES)


def test_two_apps_of_a_log_may_have_metrics_of_one_name(tmp_path: Path) -> None:
    # given two apps with one log and key, each with a metric "m" that has parameters, and so noise, of its own
    with app_of(tmp_path, MEAN, EVENTS) as app:
        one = app.config.read_text()
        two = one.replace("[[metric]]", 'app = "two"\n[[metric]]').replace("users = 10", "users = 11")
        Run(app, EVENTS).finish()
        app.config.write_text(two)
        Run(app, HALF).finish()
        app.copy_log()
        # then each goes on, though one has released less than the other, and though workers own but one
        Run(app, EVENTS).finish()
        app.config.write_text(one)
        Worker(app)
        app.config.write_text(two)
        Run(app, EVENTS).finish()
        # and a log that lacks releases of the second is refused, though the first has as many
        app.restore_log()
        with pytest.raises(KeyFileError, match="m/1 has . releases, and the audit log has . of them"):
            Run(app, EVENTS)
