"""The cap that pays: forecasts and their limits; it is a function of the pattern, so nothing here is private."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.caps import Forecast, blocks_pay, choose_cap
from tests.mechanisms.sharp_cases import LONG, sharp

FORECASTS = st.builds(
    lambda units, each, users, longer: Forecast(units, units * each, users, longer),
    st.integers(1, 10**6),
    st.integers(1, 1000),
    st.integers(1, 10**6),
    st.fractions(1, 400),
)


@given(FORECASTS, st.integers(1, 2000))
def test_a_higher_cap_keeps_more_and_never_all(forecast: Forecast, cap: int) -> None:
    users = max(forecast.users, forecast.units)
    assert 1 <= forecast.mean
    assert forecast.kept(cap) < forecast.kept(cap + 1) < users * forecast.mean
    assert forecast.kept(cap) <= users * cap
    assert forecast.noise_sd(cap, Fraction(cap), Fraction(1)) < forecast.noise_sd(
        cap + 1, Fraction(cap + 1), Fraction(1)
    )


@given(FORECASTS, st.fractions(Fraction(1, 100), 100), st.sampled_from([1, 2, 5, 64, 100]))
def test_the_cap_chosen_is_one_of_those_that_may_be(forecast: Forecast, epsilon: Fraction, m: int) -> None:
    parameters = sharp(epsilon, m)
    cap = parameters.choose_cap(forecast)
    assert 1 <= cap <= m
    assert cap == m or cap & (cap - 1) == 0
    # it rises with epsilon
    assert cap <= sharp(epsilon * 4, m).choose_cap(forecast)


def test_without_noise_all_samples_count_and_with_much_noise_one() -> None:
    forecast = Forecast(100, 400, 100, Fraction(10))
    assert choose_cap(forecast, (1, 2, 4, 8), 8, Fraction(10**9)) == 8
    assert choose_cap(forecast, (1, 2, 4, 8), 8, Fraction(1, 10**9)) == 1


@given(FORECASTS)
def test_blocks_pay_where_units_have_many_samples(forecast: Forecast) -> None:
    pay = blocks_pay(forecast, LONG.singles, LONG.max_contributions, LONG.relative_width(None))
    assert (LONG.choose_cap(forecast) == 1024) == pay
    # with so few samples that a unit rarely has a 65th they do not
    assert pay <= (forecast.mean > 64)


def test_relative_widths_are_those_of_the_counter() -> None:
    assert [LONG.relative_width(cap) for cap in (1, 32, 64)] == [1, 32, 64]
    assert LONG.relative_width(None) == LONG.relative_width(1024)
    budget = LONG.block_budget(1 << 20)
    assert LONG.relative_width(1024) == 64 + Fraction(budget, 1 << 20)
    assert sharp(1, 100).relative_width(100) == 100
