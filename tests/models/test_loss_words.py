"""Laws of the sentences about loss: exact weeks and years, its numbers in all of them, and what bounds it for ever."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.parts.unit import PERIODS, PERSON, USER_SLOT, Unit
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.section import DAY
from shoal.models.config.unit import parse_unit
from shoal.models.loss_numbers import told
from shoal.models.loss_words import (
    WEEK,
    YEAR,
    beliefs,
    brief_of_release,
    clause,
    headline,
    loss_words,
    over,
    weakened,
)
from tests.support.effort import examples

HOUR = PERIODS["hour"]
PERIODIC = [("user-hour", 168, 8760), ("user-12h", 14, 730), ("user-day", 7, 365), ("user-week", 2, 53)]
EVENT = parse_unit("event")
epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000)
deltas = st.one_of(st.just(Fraction(0)), st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(1, 10**3)))
losses = st.builds(Loss, epsilons, deltas)
periods = st.integers(min_value=1, max_value=800).map(lambda hours: Unit("user-slot", hours * HOUR))
events = st.integers(min_value=1, max_value=500).map(lambda most: Unit("event", is_event=True, of_a_user=most))
units = st.one_of(st.just(PERSON), st.just(EVENT), periods, events)


@pytest.mark.parametrize(("name", "week", "year"), PERIODIC)
@examples(30)
@given(loss=losses)
def test_weeks_and_years_are_the_loss_of_a_group(name: str, week: int, year: int, loss: Loss) -> None:
    unit = parse_unit(name)
    assert over(unit, loss, WEEK) == loss.of_group(week)
    assert over(unit, loss, YEAR) == loss.of_group(year)
    said = loss_words(unit, loss)
    of_week, of_year = told(loss.of_group(week)), told(loss.of_group(year))
    spans = f"in a week (any 7 days) up to {of_week}, in a year (any 365 days) up to {of_year}"
    assert said.several.endswith(f" loses up to k times epsilon: {spans}.")
    assert said.brief == f"{told(loss)} per {unit.words()}, {spans}"


@examples(60)
@given(unit=periods, loss=losses)
def test_units_with_releases_of_their_own_add_up_and_never_to_more(unit: Unit, loss: Loss) -> None:
    apart, group = over(unit, loss, WEEK, apart=True), over(unit, loss, WEEK)
    assert apart is not None
    assert group is not None
    assert apart.epsilon == group.epsilon
    assert loss.delta <= apart.delta <= group.delta or apart.delta == 1


@examples(60)
@given(unit=periods, loss=losses)
def test_a_span_holds_every_period_that_it_has_a_part_in(unit: Unit, loss: Loss) -> None:
    # given spans that begin at any midnight
    assert unit.period is not None
    for days in (WEEK, YEAR):
        first = range(0, 24 * unit.period // HOUR, 24)
        touched = {((at + 24 * days) * HOUR - 1) // unit.period - at * HOUR // unit.period + 1 for at in first}
        bound = over(unit, loss, days)
        assert bound is not None
        assert bound.epsilon == max(touched) * loss.epsilon


@examples(100)
@given(unit=units, loss=losses)
def test_a_longer_time_and_a_larger_loss_never_cost_less(unit: Unit, loss: Loss) -> None:
    week, year = over(unit, loss, WEEK), over(unit, loss, YEAR)
    assert (week is None) == (year is None) == (unit.is_event and unit.of_a_user is None)
    if week is None or year is None:
        return
    assert loss.epsilon <= week.epsilon <= year.epsilon
    assert loss.delta <= week.delta <= year.delta
    more = over(unit, loss + Loss(Fraction(1, 10)), YEAR)
    assert more is not None
    assert more.epsilon > year.epsilon
    assert more.delta >= year.delta


@examples(100)
@given(unit=units, loss=losses, metrics=st.integers(min_value=1, max_value=5))
def test_all_sentences_of_a_loss_have_its_numbers(unit: Unit, loss: Loss, metrics: int) -> None:
    said = loss_words(unit, loss, metrics=metrics)
    assert said.brief.startswith(f"{told(loss)} per ")
    assert said.each.endswith(f": {told(loss)}.")
    assert (f", in {metrics} metrics: " in said.each) == (metrics > 1)
    assert said.cost == " ".join(filter(None, (said.each, said.several, said.bound)))
    assert said.brief in clause(unit, said, VALUES)
    assert said.cost in headline(unit, said, loss, VALUES)["rest"]
    for days in (WEEK, YEAR):
        bound = over(unit, loss, days)
        assert bound is None or told(bound) in said.several


@examples(60)
@given(unit=units, loss=losses)
def test_what_bounds_a_loss_for_ever_is_said_where_nothing_does(unit: Unit, loss: Loss) -> None:
    said = loss_words(unit, loss)
    assert ("for ever" in said.brief) != bool(said.bound)
    assert said.bound in ("", 'For one epsilon for ever use unit = "user".')
    with_slots = loss_words(unit, loss, needs_max_slots=True).bound
    assert with_slots == (said.bound and 'For one epsilon for ever use unit = "user" and max_slots.')


def test_events_have_a_limit_if_a_person_has_one() -> None:
    one = Loss(Fraction(1))
    limited = loss_words(Unit("event", is_event=True, of_a_user=24), one)
    assert limited.brief == "epsilon = 1 per event, per person up to epsilon = 24, for ever"
    assert limited.several == (
        "One person loses up to epsilon = 24 in a week, in a year and for ever: at most 24 events can count."
    )
    free = loss_words(EVENT, one)
    assert free.several == "One person with k events loses up to k times epsilon: a week and a year have no limit."


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ((0.5, 0, "user"), "epsilon = 0.5 per person, for ever"),
        ((1.0, 0, "user-day"), loss_words(parse_unit("user-day"), Loss(Fraction(1))).brief),
        ((1.0, 0, USER_SLOT, DAY), loss_words(parse_unit("user-day"), Loss(Fraction(1))).brief),
        ((1.0, 0, USER_SLOT), "epsilon = 1 per person and slot, without limit over time"),
        # of a delta it is not known whether units have releases of their own
        ((1.0, 1e-9, "user-day"), "epsilon = 1, delta = 1e-9 per person and day, without limit over time"),
        ((1.0, 1e-9, "user"), "epsilon = 1, delta = 1e-9 per person, for ever"),
        ((1.0, 0, "nobody"), "epsilon = 1 per nobody"),
        ((Fraction(1, 3), Fraction(0), "user"), "epsilon = 1/3 per person, for ever"),
        (("1", 0, "user"), ""), ((None, 0, "user"), ""), ((1.0, "1/0", "user"), ""), ((-1.0, 0, "user"), ""),
        ((float("nan"), 0, "user"), ""), ((float("inf"), 0, "user"), ""), ((1e300, 0, "user"), ""), 
        ((0, 0, "user"), ""), ((1e-300, 0, "user"), ""),
    ],
)  # fmt: skip
def test_releases_state_a_loss_whoever_wrote_them(given_: tuple[object, object, str], said: str) -> None:
    assert brief_of_release(*given_) == said


@examples(60)
@given(loss=losses)
def test_a_belief_never_exceeds_the_odds(loss: Loss) -> None:
    for sentence in beliefs(loss):
        stated = re.search(r"at most ([\d.]+) % likely", sentence)
        if stated:
            odds = Fraction(stated[1]) / (100 - Fraction(stated[1]))
            assert float(odds) * 9 >= float(2.718281828459045 ** float(loss.epsilon)) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("before", "after", "end"),
    [
        (8, 9, "be all but certain of it, as before"),
        (1, 9, "be all but certain of it instead of thinking it at most 23.2 % likely"),
        (1, 2, "think it at most 45.1 % likely instead of 23.2 %"),
    ],
)
def test_a_raised_budget_says_what_it_was(before: int, after: int, end: str) -> None:
    said = weakened(parse_unit("user-day"), Loss(Fraction(before)), Loss(Fraction(after)), ADD_REMOVE)
    assert said.startswith(
        f"the budget rises from epsilon = {before} to epsilon = {after} per person and day, without limit over time. "
        "If all of it is used, whether one person is there in one day changes the probability of anything"
    )
    assert said.endswith(end)
