"""One configuration for all workers of an app, whoever gets the new file first; and the way back."""

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.agents.audit import key_file, registration, verify
from shoal.agents.audit.app_ledger import AppLedger
from shoal.agents.audit.database import Unavailable
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import Session, former_topics, refuse_absent
from shoal.agents.worker import deployment
from shoal.agents.worker.deployment import Deployment
from shoal.models.errors import FailStop, LedgerError
from shoal.models.version import VersionId
from tests.agents.audit.audit_examples import APP, register, release, version
from tests.support.rollout import play
from tests.support.versions import config_of

FILE = Path("host.toml")


@pytest.mark.parametrize("seed", [0, 8, 15, 26])
def test_a_history_of_deploys_ends_well(seed, tmp_path):
    world = play(tmp_path, seed)
    assert world.released
    assert world.ends["watch"] + world.ends["refused"] + world.ends["fail_stop"]


def ledger_with(folder: Path, **versions: int) -> Ledger:
    """A ledger in which an app has registered these versions."""
    secret = folder / "shoal.key"
    ledger = Ledger.open(f"sqlite:///{folder}/shoal.db")
    key = key_file.read(secret) if secret.exists() else key_file.new(secret)
    Session(FILE, config_of(versions, secret), key, ledger).register(partitions={"events": 2, "more": 3})
    return ledger


Watching = Callable[[Ledger], Deployment]


def watching(**versions: int) -> Watching:
    return lambda ledger: Deployment(FILE, config_of(versions), ledger.of(APP))


def watch(one: Deployment, seconds: float = 60) -> None:
    asyncio.run(asyncio.wait_for(one.watch(), seconds))


def test_a_worker_goes_on_while_the_ledger_says_what_its_file_says(tmp_path):
    with ledger_with(tmp_path, a=1) as ledger, pytest.raises(TimeoutError):
        watch(watching(a=1)(ledger), 0.2)


def test_a_worker_ends_when_a_newer_file_was_registered_and_names_what_it_lacks(tmp_path):
    with ledger_with(tmp_path, a=1, b=1) as ledger, pytest.raises(FailStop) as ended:
        watch(watching(a=1)(ledger))
    assert str(ended.value) == (
        'host.toml: metric "b" version 1 is active in the ledger and missing here: a newer configuration is in use; '
        "start this worker with that one"
    )


def test_a_worker_ends_when_what_it_publishes_is_retired(tmp_path):
    with ledger_with(tmp_path, a=1, b=1) as ledger:
        ledger.of(APP).retire(VersionId(APP, "b", 1))
        with pytest.raises(FailStop) as ended:
            watch(watching(a=1, b=1)(ledger))
        # and one whose file is the older one, without it, goes on
        with pytest.raises(TimeoutError):
            watch(watching(a=1)(ledger), 0.2)
    assert str(ended.value) == (
        'host.toml: metric "b" version 1 is retired in the ledger and still here: a newer configuration is in use; '
        "start this worker with that one, or take the metric out of this one"
    )


def test_a_file_run_ends_no_worker(tmp_path):
    # given a worker, and a file run with a metric more, of another topic
    secret = tmp_path / "shoal.key"
    key = key_file.new(secret)
    with Ledger.open(f"sqlite:///{tmp_path}/shoal.db") as ledger:
        Session(FILE, config_of({"a": 1}, secret), key, ledger).register(partitions={"events": 2})
        session = Session(FILE, config_of({"a": 1, "b": 1}, secret), key, ledger)
        session.register(file_run=True, topic="more")
        # then the worker goes on; when the newer file with a raised version reaches another worker, it ends
        with pytest.raises(TimeoutError):
            watch(watching(a=1)(ledger), 0.2)
        session = Session(FILE, config_of({"a": 1, "b": 2}, secret), key, ledger)
        session.register(partitions={"events": 2, "more": 3})
        with pytest.raises(FailStop, match="is active in the ledger and missing here"):
            watch(watching(a=1)(ledger))


@pytest.mark.parametrize(
    ("here", "remedy"),
    [
        ({"a": 1}, "registered after all that is here, so a newer configuration is in use: use that one"),
        ({"b": 1}, "add it, or retire it for good: shoal budget host.toml --retire a"),
        ({"a": 1, "c": 1}, "add it, or retire it for good: shoal budget host.toml --retire b"),
    ],
)
def test_retiring_is_offered_to_nobody_who_has_an_older_file(tmp_path, monkeypatch, here, remedy):
    # given metric a, and later metric b
    secret = tmp_path / "shoal.key"
    key = key_file.new(secret)
    times = iter(["2026-01-01", "2026-01-02", "2026-01-03"])
    monkeypatch.setattr(registration, "now", lambda: next(times))
    partitions = {"events": 2, "more": 3}
    with Ledger.open(f"sqlite:///{tmp_path}/shoal.db") as ledger:
        for versions in ({"a": 1}, {"a": 1, "b": 1}):
            Session(FILE, config_of(versions, secret), key, ledger).register(partitions=partitions)
        # when a file without one of them comes, then it is an older one if it has nothing newer than what it lacks
        session = Session(FILE, config_of(here, secret), key, ledger)
        with pytest.raises(LedgerError, match=remedy):
            refuse_absent(session, session.check(partitions=partitions).absent)


class Away(AppLedger):
    """A ledger that gives no answer at first."""

    answers = itertools.count(1)

    def states_of_workers(self) -> dict[VersionId, str]:
        if next(self.answers) < 4:
            raise Unavailable("the database is away")
        return super().states_of_workers()


def test_a_ledger_that_is_away_stops_nobody_and_is_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(deployment, "LOOK_EVERY", 0.01)
    ledger_with(tmp_path, a=1, b=1).close()
    with Ledger.open(f"sqlite:///{tmp_path}/shoal.db") as ledger:
        away = Away(ledger.database, APP, "")
        with pytest.raises(FailStop, match="active in the ledger"):
            watch(Deployment(FILE, config_of({"a": 1}), away))
    assert next(away.answers) == 5


def test_topics_that_are_read_no_more_are_those_that_workers_have_read(tmp_path):
    with ledger_with(tmp_path, a=1, b=1) as ledger:
        assert former_topics(ledger.of(APP).partitions(), ["events"]) == {"more": 3}
        assert former_topics(ledger.of(APP).partitions(), ["more", "events"]) == {}


def test_the_log_takes_what_was_published_until_the_worker_ended(tmp_path):
    # given releases that are committed on Kafka, of which the log has the first when the version is retired
    with Ledger.open(f"sqlite:///{tmp_path}/shoal.db") as ledger:
        register(ledger, version())
        ledger.of(APP).append([release(1)])
        ledger.of(APP).retire(VersionId(APP, "basket", 1))
        # then the others get there, for they are public; and a worker that comes back with it is refused
        assert ledger.of(APP).append([release(1), release(2), release(3)]).written == 2
        assert not verify.verify(ledger)
        with pytest.raises(LedgerError, match="is retired and cannot return"):
            register(ledger, version())
