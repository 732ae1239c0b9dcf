"""The cap that pays: forecasts and their limits; it is a function of the pattern, so nothing here is private."""

import dataclasses
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp.cap import CLOSED, WORTH, Forecast, blocks_pay, choose_cap, is_even
from tests.mechanisms.continual_mean.sharp.sharp_cases import sharp

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


@given(FORECASTS, st.fractions(Fraction(1, 100), 100), st.sampled_from([1, 2, 5, 63, 64, 100, 1024]))
def test_the_cap_chosen_is_one_of_those_that_may_be(forecast: Forecast, epsilon: Fraction, m: int) -> None:
    parameters = sharp(epsilon, m)
    cap, shape = parameters.choose_cap(forecast), parameters.shape
    assert 1 <= cap <= m
    # a whole level of single samples, or the end of a block: then what is counted of a unit is its first samples
    assert cap == shape.singles or cap & (cap - 1) == 0 or cap in shape.ends
    # it rises with epsilon
    assert cap <= sharp(epsilon * 4, m).choose_cap(forecast)


@given(FORECASTS, st.fractions(Fraction(1, 10**4), 100), st.sampled_from([1, 2, 5, 63, 64, 100, 1024]))
def test_the_cap_chosen_has_the_least_error(forecast: Forecast, epsilon: Fraction, m: int) -> None:
    def error(cap: int) -> Fraction:
        left_out = 1 - forecast.kept(cap) / forecast.kept(m)
        return forecast.noise_sd(cap, Fraction(cap), epsilon) ** 2 + (left_out**2 / 30) ** 2

    caps = sharp(1, m).caps
    assert choose_cap(forecast, caps, m, epsilon) == min(caps, key=lambda cap: (error(cap), cap))


@given(st.integers(1, 5000))
def test_the_caps_there_are_ascend_to_the_last_sample_that_can_count(m: int) -> None:
    parameters = sharp(1, m)
    caps, shape = parameters.caps, parameters.shape
    assert list(caps) == sorted(set(caps))
    assert caps[0] == 1
    assert caps[-1] == (shape.end(shape.blocks - 1) if m > 64 else m)
    assert 2 * caps[-1] > m


def test_without_noise_all_samples_count_and_with_much_noise_one() -> None:
    forecast = Forecast(100, 400, 100, Fraction(10))
    assert choose_cap(forecast, (1, 2, 4, 8), 8, Fraction(10**9)) == 8
    assert choose_cap(forecast, (1, 2, 4, 8), 8, Fraction(1, 10**9)) == 1


@given(FORECASTS, st.integers(2, 10**5))
def test_noise_grows_with_the_logarithm_of_the_releases(forecast: Forecast, releases: int) -> None:
    one, many = (
        dataclasses.replace(forecast, releases=count).noise_sd(4, Fraction(4), Fraction(1))
        for count in (releases, releases**2)
    )
    assert 1 < many / one <= 2


@given(FORECASTS, st.integers(1, 64), st.fractions(1, 2000))
def test_blocks_pay_where_units_have_many_samples(forecast: Forecast, cap: int, width: Fraction) -> None:
    pay = blocks_pay(forecast, cap, 1024, width)
    # by definition: samples in closed blocks, over the width, are half as many again as those of the cap
    assert pay == (CLOSED * forecast.kept(1024) / width >= WORTH * forecast.kept(cap) / cap)
    # and they go on to if units have more
    more = dataclasses.replace(forecast, samples=2 * forecast.samples)
    assert not pay or blocks_pay(more, cap, 1024, width)


@given(st.integers(1, 10**5), st.integers(1, 1024), st.fractions(1, 1000), st.data())
def test_units_are_even_where_more_have_many_than_with_a_long_tail(
    units: int, count: int, mean: Fraction, data: st.DataObject
) -> None:
    reached = data.draw(st.integers(0, units))
    by_law = units * (mean / (mean + count)) ** 2
    assert is_even(mean, count, units, reached) == (2 * reached >= 3 * by_law or 10 * reached >= 9 * units)


def test_even_and_uneven_patterns() -> None:
    # given 8 samples each, all have them; given 8 on average and a few with hundreds, one in four has
    assert is_even(Fraction(8), 8, 1000, 1000)
    assert not is_even(Fraction(8), 8, 1000, 250)
    # however many samples they have, almost all is enough
    assert is_even(Fraction(800), 8, 1000, 900)
    assert not is_even(Fraction(800), 8, 1000, 899)
