"""How long a mean waits: by ticks of event time, never beyond the tick that its releases name."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.looks import Wait, last_look, next_look, stride
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.sharp.cap import LEAST_PATIENCE, brief
from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.statistic import Contribution
from tests.support.effort import examples

GRID = Grid(Fraction(0), Fraction(1), 64)
KEY = bytes(32)
DAYS = {1: 365, 24: 8760, 1440: 525_600}  # releases of a day -> those of a year


def sharp(day: int | None = 24, **more: Any) -> Sharp:
    said: dict[str, Any] = {"grid": GRID, "epsilon": Fraction(1), "max_contributions": 16, "users": 2000}
    return Sharp(**said | {"horizon": DAYS[day or 24], "day": day} | more)


def sigma(day: int | None = 24, **more: Any) -> Subgaussian:
    said: dict[str, Any] = {"grid": GRID, "epsilon": Fraction(1), "max_contributions": 16, "users": 2000}
    return Subgaussian(**said | {"horizon": DAYS[day or 24], "day": day, "sigma": Fraction(1, 8)} | more)


@given(st.integers(1, 1 << 40))
def test_looks_are_in_order_and_often(ticks: int) -> None:
    before, after = last_look(ticks), next_look(ticks)
    assert before <= ticks <= after
    assert {before % stride(before), after % stride(after)} == {0}
    assert after - before <= max(1, ticks // 64)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=200), st.integers(-(10**9), 10**9))
def test_every_look_comes_once_whatever_ticks_have_something(gaps: list[int], first: int) -> None:
    wait, tick, looks = Wait(), first, []
    for gap in gaps:
        look = wait.look(tick)
        assert wait.ticks == tick - first + 1
        assert look is None or last_look(wait.ticks) == look
        looks += [] if look is None else [look]
        again = Wait()
        again.restore(wait.head())
        assert (again.ticks, again.first) == (wait.ticks, wait.first)
        tick += gap
    assert looks == sorted(set(looks))


@pytest.mark.parametrize(("day", "most"), [(1, 23), (24, LEAST_PATIENCE), (1440, 1440)])
def test_a_year_waits_for_single_samples_at_most_a_day_or_64_ticks_twice(day: int, most: int) -> None:
    made = sharp(day)
    assert made.brief_patience == most == brief(made.patience, day)
    assert made.latest(0) == next_look(2 * most)
    assert sharp(day, max_contributions=64).latest(0) == next_look(2 * made.patience)  # for blocks it waits as before
    assert sharp(None, horizon=DAYS[day]).brief_patience == made.patience  # nobody says how long a tick is
    assert sigma(day).patience == most


def test_two_thousand_people_a_minute_have_their_first_release_on_day_two() -> None:
    made = sharp(1440)
    assert made.latest(0) == 2 * 1440


def test_what_does_not_wait_begins_at_once() -> None:
    naive = Naive(grid=GRID, epsilon=Fraction(1), max_contributions=16, users=20)
    assert naive.latest(7) == 7


@examples(60)
@given(
    st.sampled_from([sharp(), sharp(users=1), sharp(max_contributions=200), sharp(1), sigma(), sigma(1, users=1)]),
    st.lists(st.integers(1, 40), min_size=1, max_size=80),
    st.integers(0, 10**6),
)
def test_a_group_begins_at_its_first_release_from_that_tick_on_at_the_latest(
    made: Sharp | Subgaussian, gaps: list[int], first: int
) -> None:
    """And no release moves that tick."""
    releaser, tick, until = made.releaser(KEY, b""), first, first + made.latest(0) - 1
    for number, gap in enumerate(gaps):
        releaser.add(Contribution(tick, f"{number:04}", 1, 0, 1, number % 64))
        releaser.close(tick)
        released = releaser.estimate()
        assert released is not None
        if released.ticks_ahead is None:
            assert released.samples > 0
            return
        assert (released.samples, tick + released.ticks_ahead) == (0, until)
        assert tick < until
        tick += gap


@pytest.mark.parametrize("made", [sharp(None, each=True), sigma(None, each=True)])
def test_with_a_release_per_contribution_a_tick_is_a_release(made: Sharp | Subgaussian) -> None:
    releaser = made.releaser(KEY, b"")
    for tick in (10, 10**15):  # times, not numbers
        releaser.add(Contribution(tick, f"{tick:020}", 1, 0, 1, 5))
        releaser.close(tick)
    released = releaser.estimate()
    assert released is not None
    assert (released.samples, released.ticks_ahead) == (0, None)
