"""The ledger and units that differ: periods have one time, and a finer unit is charged as often as it is touched."""

from fractions import Fraction

import pytest

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import registration_of
from shoal.models.errors import ConfigError, LedgerError
from tests.agents.audit.audit_examples import amounts, register, version
from tests.agents.audit.test_ledger import check, ledger
from tests.stream.simulation import config

__all__ = ["ledger"]  # a fixture


def test_a_ledgers_period_is_one_of_one_time(ledger: Ledger) -> None:
    """By another time, what happened in one of its days could lie in any number of days, and each has its epsilon."""
    day = version(unit="user-day")
    register(ledger, day, version("visits", topic="visits", time="seen", unit="user-day"), unit="user-day")
    assert check(ledger, day, unit="user-24h").charged == (), "the same by another name"
    # given metrics by another time of the same topic: of periods, of people and of events
    other = version("other", time="paid", unit="user-12h")
    stamped = version("stamped", time=None, unit="user-day")
    for one, said in (
        (other, "have periods by at and by paid; a ledger of unit user-day"),
        (stamped, "at and by the record's timestamp"),
    ):
        with pytest.raises(LedgerError, match=said):
            check(ledger, day, one, unit="user-day")
    for unit in ("user", "event"):
        assert len(check(ledger, day, version("other", time="paid", unit=unit), unit="user-day").charged) == 1


def test_a_ledger_without_periods_takes_any_times(ledger: Ledger) -> None:
    versions = [version(time="at", unit="user-day"), version("other", time="paid", unit="user-day")]
    assert len(register(ledger, *versions, unit="event").charged) == 2


def test_a_finer_unit_is_charged_as_often_as_the_ledgers_unit_has_it(ledger: Ledger) -> None:
    cfg = config(
        {"statistic": "sum", "every": "1h", "unit": "user-5h", "epsilon": "0.5"},
        {"statistic": "count", "every": "1h", "unit": "user-day", "epsilon": "0"},
    )
    days, people = (
        cfg.model_copy(update={"privacy": cfg.privacy.model_copy(update={"unit": unit})})
        for unit in ("user-day", "user")
    )
    found = [registration_of(days, metric) for metric in days.metric]
    assert [(one.epsilon, one.charge_epsilon) for one in found] == [(Fraction("0.5"), 3), (0, 0)]
    register(ledger, *found, unit="user-day")
    book = ledger.budget_report()
    assert book is not None
    assert book.left == amounts(1, 0)
    # and refused where there is no most
    with pytest.raises(ConfigError, match='metric "m0": unit user-5h under a ledger per person'):
        registration_of(people, people.metric[0])
