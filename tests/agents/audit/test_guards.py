"""Guards of registration: what one metric is refused beside another one, in the same app or in another app of the log.

Each story registers two metrics. It is told with both in one app, in two apps under different names, and in two apps
under one name: a version of one app hides none of another one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.requests import Registration
from shoal.models.errors import LedgerError
from tests.agents.audit.audit_examples import APP, register, version

WAYS = {"one app": ("n", APP), "two apps": ("n", "other"), "two apps, one name": ("m", "other")}


@dataclass
class Story:
    """Two metrics of one topic: the parameters of each, and what the second one is refused for."""

    first: dict[str, Any]
    second: dict[str, Any]
    refusal: str
    terms: dict[str, Any] = field(default_factory=dict)


def hidden(registration: Registration) -> Registration:
    return replace(registration, relation="add-remove", charge_epsilon=2)


BY_DAY: dict[str, Any] = {"unit": "user-day"}
CELL = {"h3": 8, "lat": "there.lat", "lon": "there.lon"}
ROLES = "'amount' is the value of one metric of this log and 'amount' is public in another"
GROUPED = {"value": "weight", "group": "amount"}
STORIES = {
    "value, then group": Story({}, GROUPED, ROLES),
    "group, then value": Story(GROUPED, {}, ROLES),
    "value, then a part of it": Story({}, GROUPED | {"group": "amount.currency"}, "'amount.currency' is public"),
    "value, then latitude": Story({}, {"value": "weight", "cell": CELL | {"lat": "amount"}}, ROLES),
    "value, then longitude": Story({}, {"value": "weight", "cell": CELL | {"lon": "amount"}}, ROLES),
    "another time": Story(BY_DAY, BY_DAY | {"time": "paid"}, "periods by at and by paid", {"unit": "user-day"}),
    "another time of a hidden count": Story(
        BY_DAY | {"hides": True}, BY_DAY | {"hides": True, "time": "paid", "statistic": "count"},
        "periods by at and by paid", {"unit": "user-day", "counts_by": "add-remove"},
    ),
    "another person": Story(
        {}, {"user": "phone"}, 'counts people by "phone", and this ledger counts them by "customer": use "cust'
    ),
    "another person of events with a limit": Story(
        {}, {"user": "phone", "unit": "event", "max_events_per_user": 3}, 'counts people by "phone", and this ledger'
    ),
    "too much": Story({}, {}, "a charge of epsilon 1 is more than the 0.5 left", {"budget_epsilon": Fraction("1.5")}),
    "hidden, then shown": Story({"hides": True}, {}, "hides who contributes, and .* publishes it; choose one relation"),
    "shown, then hidden": Story({}, {"hides": True}, "hides who contributes, and .* publishes it; choose one relation"),
}  # fmt: skip


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url, migrate=True) as opened:
        yield opened


def made(name: str, said: dict[str, Any], topic: str = "purchases") -> Registration:
    keys = {key: value for key, value in said.items() if key != "hides"}
    if said.get("hides"):
        return hidden(version(name, topic=topic, relation="add-remove", **keys))
    return version(name, topic=topic, **keys)


@pytest.mark.parametrize("state", ["active", "retired"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("story", STORIES)
def test_the_second_metric_is_refused_in_whichever_app_it_is(ledger: Ledger, story: str, way: str, state: str) -> None:
    told, (name, app) = STORIES[story], WAYS[way]
    # given a metric, which may be out of use by now: what it published stays known
    first = made("m", told.first)
    register(ledger, first, **told.terms)
    if state == "retired":
        ledger.of(APP).retire(first.id)
    # then the second is refused, and nothing of it stays
    second: Callable[..., Registration] = lambda **more: made(name, told.second, **more)  # noqa: E731
    with pytest.raises(LedgerError, match=told.refusal):
        register(ledger, second(), **told.terms, app=app, key_fingerprint="beef")
    assert [row.metric for row in ledger.versions()] == ["m"]
    # and of another topic it is not, but for what it costs
    if story != "too much":
        register(ledger, second(topic="orders"), **told.terms, app=app, key_fingerprint="beef")


@pytest.mark.parametrize("way", WAYS)
def test_events_without_a_limit_may_have_any_user_field(ledger: Ledger, way: str) -> None:
    """Nothing is added up for a person: the loss is per event."""
    name, app = WAYS[way]
    register(ledger, version("m", user="phone", unit="event"))
    assert ledger.persons() == {}
    register(ledger, version(name), app=app, key_fingerprint="beef")
    register(ledger, version("third", user="tablet", unit="event"), app=app, key_fingerprint="beef")
    assert ledger.persons() == {"purchases": "customer"}


def test_a_public_count_may_have_any_time(ledger: Ledger) -> None:
    """Nobody loses anything to it, in whichever period."""
    register(ledger, version("m", **BY_DAY), unit="user-day")
    register(ledger, version("n", **BY_DAY, time="paid", statistic="count"), unit="user-day")


def test_the_person_of_a_topic_is_for_good(ledger: Ledger) -> None:
    register(ledger, version("m", user="phone"))
    ledger.of(APP).retire(version("m").id)
    with pytest.raises(
        LedgerError, match='"m" version 2 counts people by "tablet", and this ledger counts them by "pho'
    ):
        register(ledger, version("m", 2, user="tablet"))
    register(ledger, version("m", 2, user="phone"))


def test_one_noise_is_of_one_app(ledger: Ledger) -> None:
    """Of one key: app and topic are not in the noise's name, and another key has other noise."""
    register(ledger, version("m"))
    with pytest.raises(LedgerError, match="runs under app 'shoal' with this key; the same noise on two streams"):
        register(ledger, version("m"), app="other")
    register(ledger, version("m"), app="other", key_fingerprint="beef")
    register(ledger, version("m", every="1h"), app="third")


def test_a_version_of_one_app_hides_none_of_another(ledger: Ledger) -> None:
    """Between the first metric and the second one stands a harmless one of the first one's name."""
    register(ledger, version("m"))
    register(ledger, version("m", value="weight"), app="the-last", key_fingerprint="beef")
    with pytest.raises(LedgerError, match=ROLES):
        register(ledger, version("n", value="weight", group="amount"), app="other", key_fingerprint="beef")
