"""Who may add to a version's stream: the last file run, until the first worker, and from then on no file run ever."""

import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from sqlalchemy import insert, text

from shoal.agents.audit.database import Database, bring_to_head
from shoal.agents.audit.ledger import End, Ledger
from shoal.agents.audit.log import NotOwner, StreamEnded
from shoal.agents.audit.migration import upgrade
from shoal.agents.audit.owners import Ownership
from shoal.agents.audit.registration import Registration
from shoal.models.errors import AuditError
from shoal.models.tables import MetricVersion, Release
from tests.agents.audit.audit_examples import APP, activation, register, release, version

pytestmark = pytest.mark.slow

TOPICS = {"purchases": 4, "shoal.contributions": 8}
END = End("basket", 1, "1997-02-01T00:00:00Z", "d1")


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
    return ledger.standing(APP).owners["basket", 1]


def refused(ledger: Ledger, message: str, seq: int) -> None:
    """A file run may add neither a release nor an activation, nor end the stream; nothing of it is in the log."""
    before = ledger.standing(APP)
    for rows, activations, ends in (([release(seq)], [], []), ([], [activation(9)], []), ([], [], [END])):
        with pytest.raises(NotOwner, match=message):
            ledger.append(APP, rows, activations=activations, ends=ends, run=ledger.run)
    assert ledger.standing(APP) == before
    assert [row.state for row in ledger.versions(APP)] == ["active"]


def test_a_newer_file_run_takes_over_from_an_older_one(opened: Callable[[], Ledger]) -> None:
    # given a run under way
    old, new = opened(), opened()
    register(old, version(), file_run=True)
    assert old.append(APP, [release(1)], activations=[activation(1)], run=old.run).written == 1
    # when another one is registered
    register(new, version(), file_run=True)
    # then the older one may repeat what is published, and add nothing
    assert old.append(APP, [release(1)], activations=[activation(1)], run=old.run).repeated == 1
    refused(old, "another `shoal run` has taken it over", 2)
    assert new.append(APP, [release(1), release(2)], run=new.run).written == 1
    assert old.append(APP, [release(2)], run=old.run).repeated == 1


def test_workers_take_over_from_file_runs_for_good(opened: Callable[[], Ledger]) -> None:
    run, worker, later = opened(), opened(), opened()
    register(run, version(), file_run=True)
    run.append(APP, [release(1)], run=run.run)
    # when a worker is registered
    register(worker, version(), partitions=TOPICS)
    # then no file run adds anything, one that comes later no more than the one that was under way
    refused(run, "workers of this app publish it", 2)
    register(later, version(), file_run=True)
    refused(later, "workers of this app publish it", 2)
    assert later.append(APP, [release(1)], run=later.run).repeated == 1
    # and what the workers have published is written down
    assert worker.append(APP, [release(2)]).written == 1
    assert worker.append_activations(APP, [activation(1)]).written == 1
    assert (owner(worker).releases, owner(worker).activations) == (2, 1)


def test_a_worker_is_first(opened: Callable[[], Ledger]) -> None:
    worker, run = opened(), opened()
    register(worker, version(), partitions=TOPICS)
    assert owner(worker).made_again is None, "there was nothing to make again"
    register(run, version(), file_run=True)
    refused(run, "workers of this app publish it", 1)
    # nor is a version theirs that a file run brings to a topic which workers read
    register(run, version(), version("visits"), file_run=True)
    assert run.standing(APP).owners["visits", 1].by_workers


def test_a_file_run_takes_over_the_versions_of_its_topic_alone(opened: Callable[[], Ledger]) -> None:
    # given a run over one of two topics
    here, there = opened(), opened()
    both = (version(), version("orders", topic="orders"))
    register(here, *both, file_run=True, topic="purchases")
    # when another one begins over the other topic
    register(there, *both, file_run=True, topic="orders")
    # then each adds to its own
    assert here.append(APP, [release(1)], run=here.run).written == 1
    assert there.append(APP, [release(1, metric="orders")], run=there.run).written == 1
    with pytest.raises(NotOwner):
        here.append(APP, [release(2, metric="orders")], run=here.run)


def test_what_nobody_owns_nobody_adds_to(opened: Callable[[], Ledger]) -> None:
    ledger = opened()
    register(ledger, version(), file_run=True)
    with ledger.database.write() as connection:
        connection.execute(text("DELETE FROM owner"))
    with pytest.raises(NotOwner, match="nobody owns it"):
        ledger.append(APP, [release(1)], run=ledger.run)


def test_nothing_is_added_once_a_worker_was_registered(opened: Callable[[], Ledger]) -> None:
    """A run that adds as fast as it can, and a worker that registers meanwhile and reads what is published."""
    run, worker = opened(), opened()
    register(run, version(), file_run=True)
    ends: list[Exception] = []
    began = threading.Event()

    def add() -> None:
        try:
            for seq in range(1, 100_000):
                run.append(APP, [release(seq)], run=run.run)
                began.set()
        except AuditError as error:
            ends.append(error)

    adding = threading.Thread(target=add)
    adding.start()
    assert began.wait(60)
    register(worker, version(), partitions=TOPICS)
    seen = worker.standing(APP)
    adding.join(60)
    assert [type(error) for error in ends] == [NotOwner]
    assert worker.standing(APP) == seen


def test_all_partitions_make_again_what_was_published(opened: Callable[[], Ledger]) -> None:
    run, worker = opened(), opened()
    register(run, version(), file_run=True)
    run.append(APP, [release(1)], run=run.run)
    register(worker, version(), partitions=TOPICS)
    assert owner(worker).made_again == frozenset()
    # when workers tell of their partitions, in any order and more than once
    for made in ({0, 1}, {1}, {3}, {2, 0}):
        found = worker.made_again(APP, {("basket", 1): made}, partitions=4)
    # then nothing is left when all have, and that stays
    assert found["basket", 1].made_again is None
    register(opened(), version(), partitions=TOPICS)
    assert owner(worker).made_again is None


@pytest.mark.parametrize("partitions", [{}, TOPICS])
def test_an_ended_version_takes_nothing_new(opened: Callable[[], Ledger], partitions: dict[str, int]) -> None:
    """A centre that was chosen from another input would stand in the log, and no end would cover it."""
    ledger = opened()
    register(ledger, version(), file_run=True)
    ledger.append(APP, [release(1)], activations=[activation(1)], ends=[END], run=ledger.run)
    for run in (ledger.run, None):
        with pytest.raises(StreamEnded, match="the stream ended and this input goes on"):
            ledger.append(APP, [release(1)], activations=[activation(1), activation(2)], run=run)
        with pytest.raises(StreamEnded):
            ledger.append(APP, [release(2)], run=run)
        assert ledger.append(APP, [release(1)], activations=[activation(1)], ends=[END], run=run).repeated == 1
    assert (owner(ledger).releases, owner(ledger).activations) == (1, 1)


def test_a_log_without_owners_gets_them(database_url: str) -> None:
    # given a log of the first schema: a version that workers publish, one of a file run, and one that has ended
    database = Database(database_url)
    with database.write() as connection:
        upgrade(connection, "001")
        connection.execute(text("INSERT INTO log VALUES (1, 'id', 'then')"))
        connection.execute(text("INSERT INTO budget VALUES (1, '4', '0', 'user')"))
        connection.execute(text("INSERT INTO budget_change VALUES (1, 'then', '4', '0')"))
        connection.execute(text("INSERT INTO partition_count VALUES ('shoal', 'purchases', 4)"))
        for metric, topic, state in (
            ("basket", "purchases", "active"), ("visits", "visits", "active"), ("old", "purchases", "ended"),
        ):  # fmt: skip
            one = version(metric, topic=topic)
            said = {"app": APP, "metric": metric, "version": 1, "digest": one.digest, "parameters": one.parameters}
            said |= {"epsilon": 1, "delta": 0, "unit": "user", "relation": "values", "key_fingerprint": "f00d"}
            said |= {"charge_epsilon": 1, "charge_delta": 0, "state": state, "registered": "then"}
            connection.execute(insert(MetricVersion).values(said))
        row = {
            "app": APP,
            "version": 1,
            "group": "",
            "id": "",
            "at": "",
            "body": "{}",
            "previous_hash": b"",
            "hash": b"",
        }
        rows = [("basket", 1), ("basket", 2), ("visits", 1)]
        connection.execute(insert(Release), [row | {"metric": metric, "seq": seq} for metric, seq in rows])
    # when it is brought to head
    bring_to_head(database, migrate=True)
    database.close()
    # then what workers publish is theirs, to be looked through once, and what file runs publish the next one's
    with Ledger.open(database_url) as ledger:
        owners = ledger.standing(APP).owners
        assert owners == {
            ("basket", 1): Ownership("workers", "", 2, 0, frozenset()),
            ("visits", 1): Ownership("file-run", "", 1, 0, frozenset()),
            ("old", 1): Ownership("file-run", "", 0, 0, None),
        }
        register(ledger, version("visits", topic="visits"), file_run=True)
        assert ledger.standing(APP).owners["visits", 1].run == ledger.run


def test_a_version_is_added_if_workers_had_its_topic_already(opened: Callable[[], Ledger]) -> None:
    """Where presence is protected it begins at a beat: how far workers had read by then depends on load."""
    ledger, orders = opened(), {"orders": 2}

    def come(*versions: Registration, **terms: Any) -> None:
        register(ledger, *versions, budget_epsilon=Fraction(9), **terms)

    # what file runs and the first workers register reads the topic from its first record
    come(version("of-a-run"), file_run=True)
    come(version("of-a-run"), version("first"), partitions=TOPICS)
    # what comes later, from whomever, does not, unless nobody has read its topic
    come(version("by-a-run"), file_run=True)
    for _ in range(2):
        come(version("later"), version("elsewhere", topic="orders"), partitions=TOPICS | orders)
    come(version("elsewhere", 2, topic="orders"), partitions=TOPICS | orders)
    assert {(row.metric, row.version): row.added for row in ledger.versions(APP)} == {
        ("of-a-run", 1): False, ("first", 1): False, ("by-a-run", 1): True, ("later", 1): True,
        ("elsewhere", 1): False, ("elsewhere", 2): True,
    }  # fmt: skip
