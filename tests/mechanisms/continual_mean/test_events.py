"""Event-level means: an event is a unit, as if every event had a user of its own (u_i = i)."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.accounts import Site
from shoal.mechanisms.continual_mean import OF_EVENTS
from shoal.mechanisms.kinds import kind_of, statistic_of
from shoal.models.config.metric import MetricSection
from shoal.models.config.unit import charge, parse_unit
from tests.support.cover import in_a_loop
from tests.support.effort import examples
from tests.support.metric_keys import limited

USUAL: dict[str, Any] = {
    "name": "m", "topic": "t", "user": "u", "value": "x", "statistic": "mean", "range": (0, 16), "grid": 16,
    "epsilon": "40", "users": 50, "every": "1h",
}  # fmt: skip
EVENT = {"unit": "event"}
PERSON = {"max_contributions": 1}
Event = tuple[bytes, str | None, int]  # user, group, value


def metric(algorithm: str, **more: Any) -> MetricSection:
    return MetricSection.model_validate(limited(USUAL | {"algorithm": algorithm} | more))


def sent(section: MetricSection, events: list[Event]) -> tuple[list[Any], list[Any]]:
    """What the accounts of a metric send, without users, and why other events do not count."""
    blocks: list[Any] = []
    site = Site("m", lambda group, effective, user, block: blocks.append((group, effective, block)), lambda user: True)
    accounts = kind_of(section.parts).accounts(section.parts, statistic_of(section.parts).bounder(), site)
    reasons = [accounts.add(user, group, value, at, at) for at, (user, group, value) in enumerate(events)]
    return blocks, reasons


streams = st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.sampled_from(["x", "y"]), st.integers(0, 16)))
algorithms = pytest.mark.parametrize("algorithm", [algorithm.name for algorithm in OF_EVENTS])


@in_a_loop
@algorithms
@pytest.mark.parametrize("group", [{}, {"group": "g"}])
@examples(40)
@given(events=streams)
def test_an_event_is_what_a_user_of_its_own_would_be(
    algorithm: str, group: dict[str, str], events: list[Event]
) -> None:
    """From users to events, as Maddi has it: u_i = i. Then each user has one sample."""
    grouped = [(user, where if group else None, value) for user, where, value in events]
    alone = [(b"%d" % index, where, value) for index, (_, where, value) in enumerate(grouped)]
    by_event, reasons = sent(metric(algorithm, **EVENT, **group), grouped)
    assert by_event == sent(metric(algorithm, **PERSON, **group), alone)[0]
    assert reasons == [None] * len(events)


@algorithms
def test_the_mechanism_is_that_of_one_sample_of_each_user(algorithm: str) -> None:
    event, person = (metric(algorithm, **unit) for unit in (EVENT, PERSON))
    assert statistic_of(event.parts) == statistic_of(person.parts)
    assert statistic_of(event.parts).epsilon == Fraction(40)


@algorithms
@examples(20)
@given(events=streams, most=st.integers(1, 4))
def test_a_limit_lets_the_first_events_of_a_user_count_in_all_groups_together(
    algorithm: str, events: list[Event], most: int
) -> None:
    few = metric(algorithm, **EVENT, group="g", max_events_per_user=most)
    counted = [
        (user, group, value)
        for index, (user, group, value) in enumerate(events)
        if sum(other == user for other, _, _ in events[:index]) < most
    ]
    blocks, reasons = sent(few, events)
    without_times = [(group, block) for group, _, block in blocks]
    unlimited, _ = sent(metric(algorithm, **EVENT, group="g"), counted)
    assert without_times == [(group, block) for group, _, block in unlimited]
    assert set(reasons) <= {None, "over_cap"}
    assert reasons.count(None) == len(counted)
    # and a ledger per person is charged for so many
    epsilon, _ = charge(parse_unit("user"), few.parts.unit, few.epsilon, few.delta)
    assert epsilon == most * few.epsilon


@in_a_loop
@pytest.mark.parametrize(
    ("algorithm", "more", "message"),
    [
        ("full", {}, "full is not for unit event, which has no blocks; use one of: sharp, naive"),
        ("wishful", {"prior": 3}, "wishful is not for unit event"),
        ("naive", {"every": "contribution"}, "every must be a duration with unit event"),
        (
            "sharp",
            {"value": ("x", "y"), "range": ((0, 1), (0, 1))},
            "sharp has no sums of several values over a tick, as unit event needs; use naive",
        ),
        ("sharp", {"sigma": 1}, "sigma is not for unit event, which has no blocks; remove it"),
        ("naive", {"max_contributions": 3}, "max_contributions is not for unit event"),
        ("naive", {"group": "g", "max_per_group": 3}, "max_per_group is not for unit event"),
        ("naive", {"group": "g", "max_groups": 3}, "max_groups is not for unit event: an event is in one group"),
        ("naive", {"users": None}, "users is missing"),
        (
            "naive",
            {"unit": "user-day"},
            "unit 'user-day' is not built for means without a decay; they have: user, event",
        ),
    ],
)
def test_what_has_no_event_level_is_refused(algorithm: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metric(algorithm, **EVENT | more)


def test_several_values_of_an_event_are_one_unit() -> None:
    both = metric("naive", **EVENT, **{"value": ("x", "y"), "range": ((0, 16), (0, 8))})
    blocks, _ = sent(both, [(b"a", None, 3), (b"a", None, 5)])
    assert [block.samples for _, _, block in blocks] == [1, 1]
    assert statistic_of(both.parts).epsilon == 40
