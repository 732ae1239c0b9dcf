"""Life of a metric: what it is where nothing is stated, and the releases that it expects."""

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.life import DAY, MOST, expected_releases, in_words, is_default, life_of, uses_life
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.lengths import Even
from shoal.models.config.metric import MetricSection
from shoal.stream.parameters import canonical
from tests.support.effort import examples

VALUE = {"value": "x", "range": (0, 1), "grid": 64}
MEAN = VALUE | {"statistic": "mean", "algorithm": "sharp", "users": 500}
STEPPED = {"algorithm": "sharp"} | VALUE
PRESENT = {"relation": "add-remove", "start": "1970-01-01"}
COUNTING: dict[str, dict[str, Any]] = {
    "mean": MEAN,
    "mean of coordinates": MEAN | {"value": ("x", "y"), "range": ((0, 1), (0, 9))},
    "mean with Gaussian noise": MEAN | {"delta": "1e-6"},
    "mean with a sigma": MEAN | {"sigma": "0.1"},
    "mean that tells what it withholds": MEAN | {"withheld": True},
    "sum": STEPPED | {"statistic": "sum"},
    "decayed mean": STEPPED | {"statistic": "mean", "decay": {"kind": "forward", "exponent": 2}},
    "sum over any window": STEPPED | {"statistic": "sum", "decay": {"kind": "all-windows"}},
    "variance": STEPPED | {"statistic": "variance"},
    "presence: mean": PRESENT | VALUE | {"statistic": "mean"},
    "presence: users": PRESENT | {"statistic": "users"},
    "presence: distribution": PRESENT | VALUE | {"statistic": "distribution", "bins": 8},
}
OTHERS: dict[str, dict[str, Any]] = {
    "naive": MEAN | {"algorithm": "naive"},
    "contributions": MEAN | {"every": "contribution"},
    "window": STEPPED | {"statistic": "sum", "decay": {"kind": "window", "length": "120h"}},
    "patent": STEPPED | {"statistic": "sum", "algorithm": "patent", "decay": {"kind": "all-windows"}},
    "count": {"statistic": "count"},
    "slot": VALUE | {"statistic": "mean", "slot": "1h", "unit": "user-slot"},
    "presence: window": PRESENT | {"statistic": "count", "decay": {"kind": "window", "length": "120h"}},
    "presence: slot": PRESENT | VALUE | {"statistic": "mean", "slot": "1h", "unit": "user-slot"},
}
CADENCES = ("1m", "10m", "1h", "1d", "5d")


def metric(said: dict[str, Any], cadence: str = "1h", **more: Any) -> MetricSection:
    usual: dict[str, Any] = {"name": "m", "topic": "t", "user": "u", "epsilon": 1, "max_contributions": 4}
    if "slot" not in said:
        usual["every"] = cadence
    return MetricSection.model_validate(usual | said | more)


@pytest.mark.parametrize("cadence", CADENCES)
@pytest.mark.parametrize("name", COUNTING)
def test_without_a_life_a_metric_is_that_of_365_days(name: str, cadence: str) -> None:
    """The mechanism, hence its noise, its waiting and every plan; and the digest, hence the key."""
    usual, stated = metric(COUNTING[name], cadence), metric(COUNTING[name], cadence, life="365d")
    assert uses_life(usual.parts)
    assert is_default(usual.parts)
    assert statistic_of(usual.parts) == statistic_of(stated.parts)
    assert canonical(usual.parts) == canonical(stated.parts)
    assert canonical(usual.parts)["at"]["life"] == 365 * DAY
    assert (
        expected_releases(usual.parts)
        == expected_releases(stated.parts)
        == expect(usual.parts.length, Even).count(365 * DAY)
    )


@pytest.mark.parametrize("name", COUNTING)
def test_another_life_is_another_mechanism_and_another_digest(name: str) -> None:
    year, trial = metric(COUNTING[name]), metric(COUNTING[name], life="1d")
    assert statistic_of(year.parts) != statistic_of(trial.parts)
    assert canonical(year.parts) != canonical(trial.parts)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_made_for_no_number_of_releases_has_no_default_in_its_digest(name: str) -> None:
    made = metric(OTHERS[name])
    assert not uses_life(made.parts)
    assert canonical(made.parts)["at"].get("life") is None


@examples(100)
@given(st.integers(1, 10**6), st.integers(1, 10**5))
def test_expected_releases_cover_the_life(life: int, cadence: int) -> None:
    made = metric(MEAN, f"{cadence}s", life=f"{life}s")
    assert (expected_releases(made.parts) - 1) * cadence < life <= expected_releases(made.parts) * cadence


@given(st.integers(1, 400))
def test_a_metric_that_ends_lives_until_then_unless_it_says_otherwise(days: int) -> None:
    end = date(1970, 1, 1) + timedelta(days=days)
    made = metric(PRESENT | {"statistic": "users", "start": "1970-01-01", "end": end.isoformat()})
    assert (life_of(made.parts), expected_releases(made.parts)) == (days * DAY, 24 * days)
    assert not is_default(made.parts)
    stated = made.model_copy(update={"life": 7 * DAY})
    assert (life_of(stated.parts), expected_releases(stated.parts)) == (7 * DAY, 168)


@pytest.mark.parametrize(("users", "cap", "releases"), [(500, 4, 2000), (None, 4, 4000), (1 << 40, 4, MOST)])
def test_a_release_per_contribution_is_expected_of_each_that_may_come(
    users: int | None, cap: int, releases: int
) -> None:
    said = {key: value for key, value in (MEAN | {"users": users}).items() if value is not None}
    made = metric(said, every="contribution", max_contributions=cap)
    assert expected_releases(made.parts) == releases


def test_a_life_in_words() -> None:
    usual, trial = metric(MEAN), metric(MEAN, life="1d")
    assert in_words(usual.parts) == "life is 365d, by default: 8,760 releases of a group are expected"
    assert in_words(trial.parts) == "life is 1d: 24 releases of a group are expected"
