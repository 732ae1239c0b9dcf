"""The ledger: what was agreed is charged once, compared ever after, and refused when it would drift."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.audit.app_ledger import End
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.requests import Registration, Request
from shoal.agents.audit.session import registration_of
from shoal.mechanisms.privacy.accounting import Loss
from shoal.models.digests import parameters_digest
from shoal.models.errors import LedgerError
from shoal.models.version import VersionId
from tests.agents.audit.audit_examples import APP, amounts, register, release, version
from tests.agents.audit.racing import race
from tests.stream.simulation import config


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url, migrate=True) as opened:
        yield opened


def check(ledger: Ledger, *versions: Registration, **terms: Any) -> Any:
    defaults: dict[str, Any] = {
        "app": APP,
        "budget_epsilon": Fraction(4),
        "budget_delta": Fraction(0),
        "key_fingerprint": "f00d",
    }
    said = {"file_run": "partitions" not in terms} | defaults | terms
    return ledger.check(Request(registrations=versions, **said))


def test_a_version_is_charged_once(ledger: Ledger) -> None:
    # given a metric that says what it will cost, before it costs anything
    assert check(ledger, version()).charged == (version(),)
    assert ledger.budget_report() is None
    # when it is registered again and again, as at every start of a worker
    assert register(ledger, version()).charged == (version(),)
    assert register(ledger, version()).charged == ()
    # then it has cost its epsilon once
    book = ledger.budget_report()
    assert book is not None
    assert (book.charged, book.left, book.unit) == (amounts(1, 0), amounts(3, 0), "user")
    assert [(row.metric, row.version, row.state) for row in ledger.of(APP).versions()] == [("basket", 1, "active")]
    assert ledger.of("other").versions() == []


def test_the_agreement_names_the_log_and_what_the_configuration_lacks(ledger: Ledger) -> None:
    register(ledger, version("basket"), version("visits"), partitions={"purchases": 4})
    agreement = register(ledger, version("basket"), partitions={"purchases": 4})
    assert agreement.log_id == ledger.log_id
    assert agreement.absent == (VersionId(APP, "visits", 1),)


def test_tenths_add_up_exactly(ledger: Ledger) -> None:
    # given a budget of 0.3, three charges of 0.1 fit: in floats they would not
    tenths = [version(f"m{number}", epsilon="0.1") for number in range(3)]
    register(ledger, *tenths, budget_epsilon=Fraction("0.3"))
    book = ledger.budget_report()
    assert book is not None
    assert book.left == amounts(0, 0)
    # and not the smallest bit more
    with pytest.raises(
        LedgerError, match='metric "more" version 1: a charge of epsilon 0.000000000000000000001 is more'
    ):
        register(ledger, *tenths, version("more", epsilon="1e-21"), budget_epsilon=Fraction("0.3"))


def test_a_budget_is_not_exceeded_over_all_apps_and_retired_versions(ledger: Ledger) -> None:
    register(ledger, version("basket", epsilon="2.5"))
    ledger.of(APP).retire(VersionId(APP, "basket", 1))
    with pytest.raises(
        LedgerError,
        match=r'metric "visits" version 1: a charge of epsilon 2 is more than the 1.5 left of 4; lower it, or have '
        r"\[privacy\] epsilon raised",
    ):
        register(ledger, version("visits", epsilon="2"), app="other")
    # nothing of a refused registration stays
    assert ledger.of("other").versions() == []


def test_metrics_that_come_together_share_what_is_left(ledger: Ledger) -> None:
    # given a budget of 4, into which each of two new metrics would fit alone
    with pytest.raises(
        LedgerError, match='metric "visits" version 1: a charge of epsilon 2.5 is more than the 1.5 left'
    ):
        register(ledger, version("basket", epsilon="2.5"), version("visits", epsilon="2.5"))
    # then neither was charged
    assert ledger.of(APP).versions() == []


@pytest.mark.parametrize(
    "section",
    [
        {"algorithm": "naive"},
        {"algorithm": "full", "group": "g", "max_groups": 7},
        {"value": ["x", "y", "z"], "range": [[0, 1]] * 3},
    ],
)
def test_a_metric_is_charged_its_whole_epsilon_whatever_it_is_divided_by(section: dict[str, Any]) -> None:
    configured = config({"epsilon": "0.7"} | section)
    registration = registration_of(configured, configured.metric[0])
    assert registration.epsilon == registration.charge_epsilon == Fraction("0.7")


def test_delta_has_a_budget_too(ledger: Ledger) -> None:
    rare = Registration(**(version().__dict__ | {"delta": "1e-6", "charge_delta": "1e-6"}))
    with pytest.raises(LedgerError, match="a charge of delta 0.000001 is more than the 0 left of 0"):
        register(ledger, rare)
    assert register(ledger, rare, budget_delta=Fraction("1e-6")).charged


def test_the_first_configuration_sets_the_budget_and_none_raises_it(ledger: Ledger) -> None:
    register(ledger, version(epsilon="3"))
    with pytest.raises(LedgerError, match="5 is more than the 4 of the ledger; set it back, or raise it explicitly"):
        register(ledger, version(epsilon="3"), budget_epsilon=Fraction(5))
    # less is a promise that this configuration keeps, if it still can
    register(ledger, version(epsilon="3"), budget_epsilon=Fraction(3))
    with pytest.raises(LedgerError, match="2 is less than the 3 already charged"):
        register(ledger, version(epsilon="3"), budget_epsilon=Fraction(2))
    with pytest.raises(LedgerError, match="more than the 0 left of 3"):
        register(ledger, version("visits"), budget_epsilon=Fraction(3))


def test_raising_the_budget_is_a_logged_act_of_its_own(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no budget yet"):
        ledger.raise_budget(Fraction(5), Fraction(0))
    register(ledger, version())
    assert ledger.raise_budget(Fraction(5), Fraction(0)).left == amounts(4, 0)
    assert ledger.raise_budget(Fraction(5), Fraction(0)).left == amounts(4, 0)
    for epsilon, delta in ((Fraction(4), Fraction(0)), (Fraction(5), Fraction(-1))):
        with pytest.raises(LedgerError, match="only ever raised"):
            ledger.raise_budget(epsilon, delta)
    with ledger.database.read() as connection:
        changes = connection.exec_driver_sql("SELECT epsilon, delta FROM budget_change ORDER BY number").all()
    assert [tuple(change) for change in changes] == [("4", "0"), ("5", "0")]
    register(ledger, version(), version("visits", epsilon="4"), budget_epsilon=Fraction(5))


def test_a_ledger_protects_one_unit(ledger: Ledger) -> None:
    register(ledger, version())
    with pytest.raises(LedgerError, match="unit is user, not user-day"):
        register(ledger, version(), unit="user-day")


def test_another_relation_is_named_before_the_unit_that_follows_from_it(ledger: Ledger) -> None:
    register(ledger, version(), counts_by="add-remove")
    with pytest.raises(LedgerError, match=r"\[privacy\] relation: the ledger counts by add-remove"):
        register(ledger, version(), unit="user-7d")


def test_changed_parameters_are_named_by_keys_and_not_by_what_follows_from_them(ledger: Ledger) -> None:
    register(ledger, version(end="2026-01-01", mechanism="tree of 3"))
    with pytest.raises(LedgerError, match=r"registered with other parameters \(end\);"):
        register(ledger, version(end="2027-01-01", mechanism="tree of 4"))
    with pytest.raises(LedgerError, match=r"registered with other parameters \(mechanism\);"):
        register(ledger, version(end="2026-01-01", mechanism="tree of 4"))


def test_changed_parameters_need_a_new_version(ledger: Ledger) -> None:
    register(ledger, version(every="1h", range=[0, 200]))
    with pytest.raises(LedgerError, match=r"registered with other parameters \(every, late\); set them back, or raise"):
        register(ledger, version(every="1d", range=[0, 200], late="drop"))
    # the new version is charged, and takes the place of the old one
    agreement = register(ledger, version(number=2, every="1d", late="drop"))
    assert agreement.retired == (VersionId(APP, "basket", 1),)
    assert agreement.absent == ()
    assert [row.state for row in ledger.of(APP).versions()] == ["retired", "active"]
    with pytest.raises(LedgerError, match="is retired and cannot return"):
        register(ledger, version(every="1h", range=[0, 200]))


def test_versions_only_rise(ledger: Ledger) -> None:
    register(ledger, version(number=3))
    with pytest.raises(LedgerError, match="version 3 is registered already; choose a higher version"):
        register(ledger, version(number=2))


def test_the_same_parameters_in_another_notation_are_another_text(ledger: Ledger) -> None:
    register(ledger, version())
    loose = version().parameters.replace(":", ": ")
    other = Registration(**(version().__dict__ | {"parameters": loose, "digest": parameters_digest(loose)}))
    with pytest.raises(LedgerError, match=r"\(their notation\)"):
        register(ledger, other)


def test_another_key_needs_a_new_version(ledger: Ledger) -> None:
    register(ledger, version())
    with pytest.raises(LedgerError, match="registered with key f00d, not beef; put that key file back"):
        register(ledger, version(), key_fingerprint="beef")


def test_a_changed_charge_needs_a_new_version(ledger: Ledger) -> None:
    register(ledger, version())
    with pytest.raises(LedgerError, match="registered with another charge_epsilon"):
        register(ledger, Registration(**(version().__dict__ | {"charge_epsilon": "2"})))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"digest": "00"}, "the digest is not that of its parameters"),
        ({"charge_epsilon": "0.5"}, "a charge is at least what the metric uses"),
        ({"epsilon": "-1"}, "neither is negative"),
    ],
)
def test_a_registration_that_contradicts_itself_is_refused(ledger: Ledger, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(LedgerError, match=message):
        register(ledger, Registration(**(version().__dict__ | wrong)))


def test_two_apps_do_not_share_the_noise_of_a_key(ledger: Ledger) -> None:
    register(ledger, version())
    with pytest.raises(LedgerError, match="runs under app 'shoal' with this key"):
        register(ledger, version(), app="other")
    assert register(ledger, version(), app="other", key_fingerprint="beef").charged


def hidden(topic: str = "purchases", steps: int = 1) -> Registration:
    """A metric of relation add-remove, charged so many steps."""
    return replace(version("presence", topic=topic), relation="add-remove", charge_epsilon=steps)


def test_a_ledger_counts_by_one_relation(ledger: Ledger) -> None:
    register(ledger, hidden(), counts_by="add-remove")
    book = ledger.budget_report()
    assert book is not None
    assert (book.relation, book.charged) == ("add-remove", amounts(1, 0))
    assert ledger.raise_budget(Fraction(5), Fraction(0)).relation == "add-remove"
    with pytest.raises(LedgerError, match=r"\[privacy\] relation: the ledger counts by add-remove, in which"):
        register(ledger, version(topic="orders"), app="other")
    assert ledger.of("other").versions() == []


def test_a_ledger_of_values_takes_what_hides_presence_if_that_is_said(ledger: Ledger) -> None:
    register(ledger, version())
    with pytest.raises(LedgerError, match='the ledger counts by values; use .* or set relation = "values" under'):
        register(ledger, hidden(topic="orders"), app="other", counts_by="add-remove")
    register(ledger, hidden(topic="orders", steps=2), app="other")
    book = ledger.budget_report()
    assert book is not None
    assert (book.relation, book.charged) == ("values", amounts(3, 0))


@pytest.mark.parametrize("counts_by", ["values", "add-remove"])
def test_a_metric_that_hides_presence_is_charged_twice_by_a_ledger_of_values(counts_by: str) -> None:
    section = {"relation": "add-remove", "every": "1d", "start": "2024-01-01", "users": None, "algorithm": None}
    found = {"group": "g", "delta": "1e-9", "life": "365d"}
    for more in ({}, found):
        configured = config({"epsilon": "0.7", "statistic": "sum"} | section | more)
        privacy = configured.privacy.model_copy(update={"relation": counts_by})
        configured = configured.model_copy(update={"privacy": privacy})
        registration = registration_of(configured, configured.metric[0])
        loss = Loss(Fraction("0.7"), Fraction(more.get("delta", 0)))
        expected = loss.of_group(2) if counts_by == "values" else loss
        assert (registration.charge_epsilon, registration.charge_delta) == (expected.epsilon, expected.delta)
        assert registration.relation == "add-remove"


def test_partition_counts_are_frozen(ledger: Ledger) -> None:
    register(ledger, version(), partitions={"purchases": 4})
    register(ledger, version(), partitions={"purchases": 4, "shoal.contributions": 8})
    with pytest.raises(LedgerError, match="topic purchases has 6 partitions instead of 4: partitions were added"):
        register(ledger, version(), partitions={"purchases": 6})
    register(ledger, version(), app="other", key_fingerprint="beef", partitions={"purchases": 6})


def test_the_end_of_a_file_ends_the_stream(ledger: Ledger) -> None:
    # given a run over a file that came to its end
    register(ledger, version())
    end = End(VersionId(APP, "basket", 1), "1997-02-01T00:00:00Z", "d1")
    ledger.of(APP).append([release(1)], ends=[end])
    # then the same file may be run again, and brings nothing new
    register(ledger, version(), file_run=True)
    assert ledger.of(APP).append([release(1)], ends=[end]).repeated == 1
    ledger.of(APP).append([], ends=[end])
    # and another input, or a worker, is refused
    with pytest.raises(
        LedgerError, match=r'metric "basket" version 1 ended at 1997-02-01T00:00:00Z with another input'
    ):
        ledger.of(APP).append([], ends=[replace(end, input_digest="d2")])
    with pytest.raises(LedgerError, match="belongs to file runs"):
        register(ledger, version(), partitions={"purchases": 4})
    [row] = ledger.of(APP).versions()
    assert (row.state, row.ended_at, row.input_digest) == ("ended", end.at, "d1")


def test_retired_is_for_good(ledger: Ledger) -> None:
    register(ledger, version())
    ledger.of(APP).retire(VersionId(APP, "basket", 1))
    with pytest.raises(LedgerError, match="is retired"):
        ledger.of(APP).append([], ends=[End(VersionId(APP, "basket", 1), "1997-02-01T00:00:00Z", "d1")])
    with pytest.raises(LedgerError, match="is not registered under app 'shoal'"):
        ledger.of(APP).retire(VersionId(APP, "basket", 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "answers"),
    [(["basket"] * 3, ["0", "0", "1"]), (["one", "two", "three"], ["1", "refused True", "refused True"])],
)
def test_racing_registrations_charge_once_and_never_too_much(
    ledger: Ledger, database_url: str, names: list[str], answers: list[str], tmp_path: Path
) -> None:
    # when three processes register the same metric, or three of which one fits into the budget
    said = race(tmp_path, database_url, [("register", name) for name in names])
    # then one wins, and the others compare with it
    assert sorted(said) == answers
    book = ledger.budget_report()
    assert book is not None
    assert book.charged == amounts(3, 0)
