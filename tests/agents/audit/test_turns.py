"""Turns of the ledger: a restart of clocks holds for versions that are registered after it, and is never lost."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.requests import Registration
from shoal.models.errors import LedgerError
from shoal.models.losses import Place
from shoal.models.version import VersionId
from tests.agents.audit.audit_examples import APP, register, version


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url, migrate=True) as opened:
        yield opened


def test_restarts_are_counted_by_app_and_topic(ledger: Ledger) -> None:
    register(ledger, version())
    assert [ledger.of(APP).restart_clock("purchases", "operator") for _ in range(2)] == [1, 2]
    assert ledger.of(APP).restart_clock("visits", "operator") == 1
    assert ledger.of(APP).epochs() == {"purchases": 2, "visits": 1}
    assert ledger.of("other").epochs() == {}


def test_a_new_version_has_the_clock_of_the_last_restart_or_is_refused(ledger: Ledger) -> None:
    register(ledger, version())
    ledger.of(APP).restart_clock("purchases", "operator")
    with pytest.raises(LedgerError, match="restarted just now; start again"):
        register(ledger, version(number=2))
    # what is registered keeps its clock, and is charged once
    assert register(ledger, version()).charged == ()
    assert register(ledger, version(number=2, epoch=1)).retired == (VersionId(APP, "basket", 1),)


def test_metrics_that_protect_presence_have_one_clock_on_both_sides_of_a_restart(ledger: Ledger) -> None:
    def hidden(*args: Any, **more: Any) -> Registration:
        return replace(version(*args, **more), relation="add-remove")

    terms = {"counts_by": "add-remove"}
    register(ledger, hidden("basket"), hidden("visits"), **terms)
    ledger.of(APP).restart_clock("purchases", "operator")
    with pytest.raises(LedgerError, match='metric "visits" version 1 has the clock from before its restart'):
        register(ledger, hidden("basket", 2, epoch=1), hidden("visits"), **terms)
    register(ledger, hidden("basket", 2, epoch=1), hidden("visits", 2, epoch=1), **terms)


def test_a_log_that_lost_a_restart_is_refused(ledger: Ledger) -> None:
    register(ledger, version())
    ledger.of(APP).restart_clock("purchases", "operator")
    register(ledger, version(number=2, epoch=1))
    with ledger.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM turn")
    with pytest.raises(LedgerError, match="table turn of the audit log has lost rows"):
        register(ledger, version(number=2, epoch=1))


def test_accepted_losses_are_kept_by_app_and_partition_in_their_order(ledger: Ledger) -> None:
    register(ledger, version())
    places = {0: Place("f00d", "id", first=7, next=9), 2: Place("beef", "id", first=1, next=4)}
    found = ledger.of(APP).accept_loss("purchases", places, "operator")
    assert [(loss.topic, loss.partition, loss.place, loss.who) for loss in found] == [
        ("purchases", partition, place, "operator") for partition, place in places.items()
    ]
    later = ledger.of(APP).accept_loss("purchases", {0: Place("cafe", "id", sealed="f00d", beat=10**15)}, "another")
    assert ledger.of(APP).losses() == [*found, *later]
    assert ledger.of("other").losses() == []
    # and they are no restarts of clocks
    assert ledger.of(APP).epochs() == {}
