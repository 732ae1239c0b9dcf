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
        with pytest.raises(KeyFileError, match='"m" version 1 was used by app "shoal", and this log does not know it'):
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
    with pytest.raises(KeyFileError, match='"shoal" for . releases, and this log has . of them: restore the newer log'):
        Run(app, VALUES)


@pytest.mark.parametrize("name", ["m", "n"])
def test_noise_is_known_under_whatever_app_it_comes_back(app: App, name: str) -> None:
    """Two inputs would meet one noise, also where another app of the log has a metric of the same name."""
    mine = app.config.read_text()
    other = mine.replace("[kafka]\n", '[kafka]\napp = "other"\n').replace('name = "m"', f'name = "{name}"')
    app.config.write_text(other.replace("users = 10", "users = 11"))
    Run(app, EVENTS).finish()
    app.published.clear()  # of another app, whose ids may be those of this one
    # given a log that was copied before the first app was registered, and restored
    app.copy_log()
    app.config.write_text(mine)
    Run(app, EVENTS).finish()
    app.restore_log()
    shown = app.rows
    # when that app comes back under another name, with another input
    app.config.write_text(mine.replace("[kafka]\n", '[kafka]\napp = "third"\n'))
    with pytest.raises(KeyFileError, match='"m" version 1 was used by app "shoal", and this log does not know it'):
        Run(app, VALUES)
    assert app.rows == shown


def test_a_log_that_workers_had_already_catches_up(app: App) -> None:
    worker = Worker(app)
    worker.bound(8)
    app.copy_log()
    worker.finish()
    app.restore_log()
    app.topics.audited.clear()  # the group's offsets are set back with the log
    Worker(app).finish()
    assert app.rows == app.stream_of(EVENTS, end=False)
    standing = app.session().app_ledger.standing()
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
    with pytest.raises(KeyFileError, match="restore the newer log"):
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
        # then each goes on, though one has released less than the other
        Run(app, EVENTS).finish()
        app.config.write_text(one)
        Run(app, EVENTS).finish()
        app.config.write_text(two)
        # and a log that lacks releases of the second is refused, though the first has as many
        app.restore_log()
        with pytest.raises(KeyFileError, match='app "two" for . releases, and this log has . of them'):
            Run(app, EVENTS)
