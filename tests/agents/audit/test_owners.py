"""Who may add to a version's stream: file runs, of which the last one, or workers; for the life of the version."""

import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from sqlalchemy import text

from shoal.agents.audit.app_ledger import End
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.log import NotOwner, StreamEnded
from shoal.agents.audit.owners import Ownership
from shoal.agents.audit.requests import Registration
from shoal.models.errors import AuditError, LedgerError
from shoal.models.version import VersionId
from tests.agents.audit.audit_examples import APP, activation, register, release, version

pytestmark = pytest.mark.slow

TOPICS = {"purchases": 4, "shoal.contributions": 8}
END = End(VersionId(APP, "basket", 1), "1997-02-01T00:00:00Z", "d1")


@pytest.fixture
def opened(database_url: str) -> Iterator[Callable[[], Ledger]]:
    """Opens the log once more, as another process would."""
    ledgers: list[Ledger] = []

    def one_more() -> Ledger:
        ledgers.append(Ledger.open(database_url, migrate=True))
        return ledgers[-1]

    yield one_more
    for ledger in ledgers:
        ledger.close()


def owner(ledger: Ledger) -> Ownership:
    return ledger.of(APP).standing().owners[VersionId(APP, "basket", 1)]


def refused(ledger: Ledger, message: str, seq: int) -> None:
    """A file run may add neither a release nor an activation, nor end the stream; nothing of it is in the log."""
    before = ledger.of(APP).standing()
    for rows, activations, ends in (([release(seq)], [], []), ([], [activation(9)], []), ([], [], [END])):
        with pytest.raises(NotOwner, match=message):
            ledger.of(APP).append(rows, activations=activations, ends=ends, run=ledger.run)
    assert ledger.of(APP).standing() == before
    assert [row.state for row in ledger.of(APP).versions()] == ["active"]


def test_a_newer_file_run_takes_over_from_an_older_one(opened: Callable[[], Ledger]) -> None:
    # given a run under way
    old, new = opened(), opened()
    register(old, version(), file_run=True)
    assert old.of(APP).append([release(1)], activations=[activation(1)], run=old.run).written == 1
    # when another one is registered
    register(new, version(), file_run=True)
    # then the older one may repeat what is published, and add nothing
    assert old.of(APP).append([release(1)], activations=[activation(1)], run=old.run).repeated == 1
    refused(old, "another `shoal run` has taken it over", 2)
    assert new.of(APP).append([release(1), release(2)], run=new.run).written == 1
    assert old.of(APP).append([release(2)], run=old.run).repeated == 1


def test_a_version_of_file_runs_is_never_the_workers(opened: Callable[[], Ledger]) -> None:
    run, worker = opened(), opened()
    register(run, version(), file_run=True)
    run.of(APP).append([release(1)], run=run.run)
    # when a worker comes with the version, it is told how the file gets into its topic
    with pytest.raises(LedgerError, match="belongs to file runs.*shoal produce, under a version of its own"):
        register(worker, version(), partitions=TOPICS)
    # then the run goes on
    assert run.of(APP).append([release(2)], run=run.run).written == 1
    # and a raised version is the workers', for which the file's one is retired
    raised = register(worker, version(number=2), partitions=TOPICS)
    assert raised.retired == (VersionId(APP, "basket", 1),)
    assert [one.kind for one in worker.of(APP).standing().owners.values()] == ["file", "workers"]


def test_a_version_of_workers_is_never_a_file_runs(opened: Callable[[], Ledger]) -> None:
    worker, run = opened(), opened()
    register(worker, version(), partitions=TOPICS)
    worker.of(APP).append([release(1)])
    # when a file run comes with it, with another metric of the topic, or with a version that would retire it
    for versions, why in (
        ((version(),), "belongs to workers, and a version has one owner for life"),
        ((version("visits"),), "workers of app 'shoal' read topic 'purchases'"),
        ((version(number=2, topic="orders"),), "would retire the version that workers publish"),
    ):
        # then it is told what computes them again
        with pytest.raises(LedgerError, match=f"{why}; shoal audit replay --from events computes it again"):
            register(run, *versions, file_run=True)
    assert (owner(worker).kind, owner(worker).releases) == ("workers", 1)
    # and of another topic, or under another app, it runs
    register(run, version("orders", topic="orders"), file_run=True)
    register(run, version("visits"), file_run=True, app="other")


def test_a_file_run_goes_on_when_workers_begin_to_read_its_topic(opened: Callable[[], Ledger]) -> None:
    """Its version has an owner already: a run that was killed makes again what it had published, and ends."""
    run, worker, again = opened(), opened(), opened()
    register(run, version(), file_run=True)
    run.of(APP).append([release(1)], run=run.run)
    register(worker, version("visits"), partitions=TOPICS)
    register(again, version(), file_run=True)
    assert again.of(APP).append([release(1), release(2)], ends=[END], run=again.run).written == 1


def test_a_run_adds_nothing_to_a_version_that_was_retired(opened: Callable[[], Ledger]) -> None:
    run, worker = opened(), opened()
    register(run, version(), file_run=True)
    register(worker, version(number=2), partitions=TOPICS)
    with pytest.raises(NotOwner, match="it is retired; raise its version"):
        run.of(APP).append([release(1)], run=run.run)


def test_workers_need_no_version_of_file_runs(opened: Callable[[], Ledger]) -> None:
    run, worker = opened(), opened()
    register(run, version("orders", topic="orders"), file_run=True)
    agreement = register(worker, version(), partitions=TOPICS)
    assert agreement.absent == ()
    assert register(worker, version("visits"), partitions=TOPICS).absent == (VersionId(APP, "basket", 1),)


def test_what_nobody_owns_nobody_adds_to(opened: Callable[[], Ledger]) -> None:
    ledger = opened()
    register(ledger, version(), file_run=True)
    with ledger.database.write() as connection:
        connection.execute(text("DELETE FROM owner"))
    with pytest.raises(NotOwner, match="nobody owns it"):
        ledger.of(APP).append([release(1)], run=ledger.run)


def test_nothing_is_added_once_a_newer_run_was_registered(opened: Callable[[], Ledger]) -> None:
    """A run that adds as fast as it can, and one that registers meanwhile and reads what is published."""
    old, new = opened(), opened()
    register(old, version(), file_run=True)
    ends: list[Exception] = []
    began = threading.Event()

    def add() -> None:
        try:
            for seq in range(1, 100_000):
                old.of(APP).append([release(seq)], run=old.run)
                began.set()
        except AuditError as error:
            ends.append(error)

    adding = threading.Thread(target=add)
    adding.start()
    assert began.wait(60)
    register(new, version(), file_run=True)
    seen = new.of(APP).standing()
    adding.join(60)
    assert [type(error) for error in ends] == [NotOwner]
    assert new.of(APP).standing() == seen


def test_an_ended_version_takes_nothing_new(opened: Callable[[], Ledger]) -> None:
    """A centre that was chosen from another input would stand in the log, and no end would cover it."""
    ledger = opened()
    register(ledger, version(), file_run=True)
    ledger.of(APP).append([release(1)], activations=[activation(1)], ends=[END], run=ledger.run)
    for run in (ledger.run, None):
        with pytest.raises(StreamEnded, match="the stream ended and this input goes on"):
            ledger.of(APP).append([release(1)], activations=[activation(1), activation(2)], run=run)
        with pytest.raises(StreamEnded):
            ledger.of(APP).append([release(2)], run=run)
        assert ledger.of(APP).append([release(1)], activations=[activation(1)], ends=[END], run=run).repeated == 1
    assert (owner(ledger).releases, owner(ledger).activations) == (1, 1)


def test_a_version_is_added_if_workers_had_its_topic_already(opened: Callable[[], Ledger]) -> None:
    """Where presence is protected it begins at a beat: how far workers had read by then depends on load."""
    ledger, orders = opened(), {"orders": 2}

    def come(*versions: Registration, **terms: Any) -> None:
        register(ledger, *versions, budget_epsilon=Fraction(9), **terms)

    # what file runs and the first workers register reads the topic from its first record
    come(version("of-a-run"), file_run=True)
    come(version("first"), partitions=TOPICS)
    # what comes later does not, unless nobody has read its topic
    for _ in range(2):
        come(version("later"), version("elsewhere", topic="orders"), partitions=TOPICS | orders)
    come(version("elsewhere", 2, topic="orders"), partitions=TOPICS | orders)
    assert {(row.metric, row.version): row.added for row in ledger.of(APP).versions()} == {
        ("of-a-run", 1): False, ("first", 1): False, ("later", 1): True, ("elsewhere", 1): False,
        ("elsewhere", 2): True,
    }  # fmt: skip
