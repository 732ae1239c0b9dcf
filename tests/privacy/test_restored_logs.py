"""A key meets one stream, also where the audit log is an older copy, or a registration was cut off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.models.errors import KeyFileError
from tests.support.streams import (
    ELSEWHERE,
    EVENTS,
    GROUPS,
    HALF,
    MEAN,
    VALUES,
    App,
    Run,
    Worker,
    app_of,
    home_of,
    of_one_stream,
    small_chunks,
)

__all__ = ["small_chunks"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_chunks")]


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
