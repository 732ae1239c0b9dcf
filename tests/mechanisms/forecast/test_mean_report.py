"""Which cadence is recommended, and the life that a metric has under another one."""

from typing import Any

import pytest

from shoal.mechanisms.forecast.axis import Trial
from shoal.mechanisms.forecast.mean_report import MANY, finest, with_cadence
from shoal.mechanisms.forecast.point import Point
from shoal.mechanisms.life import DAY, stated_life
from shoal.mechanisms.parts.lengths import Even
from shoal.models.config.metric import MetricSection

HOUR = 3_600_000_000
ONE, TWO, FOUR, EIGHT = (Even(hours * HOUR) for hours in (1, 2, 4, 8))
MEAN: dict[str, Any] = {
    "name": "m", "topic": "t", "user": "u", "value": "x", "range": (0, 1), "grid": 64, "epsilon": 1,
    "max_contributions": 8, "statistic": "mean", "every": "1h",
}  # fmt: skip


METRIC = MetricSection.model_validate(MEAN).parts


def tried(*errors: tuple[Even, float]) -> list[Trial]:
    return [
        Trial(length, METRIC, Point(at=None, samples=1.0, left_out=0.0, noise_sd=error)) for length, error in errors
    ]


def test_the_finest_that_costs_little_is_taken_of_those_with_many_releases() -> None:
    trials = tried((ONE, 2.0), (TWO, 1.2), (FOUR, 1.0), (EIGHT, 0.1))
    assert finest(trials, 4 * MANY * HOUR).value == TWO


def test_where_no_cadence_has_many_releases_all_are_compared() -> None:
    trials = tried((ONE, 2.0), (TWO, 1.2), (FOUR, 1.0))
    assert finest(trials, HOUR).value == finest(trials, None).value == TWO


@pytest.mark.parametrize(
    ("more", "every", "life"),
    [
        ({}, 24 * HOUR, 90 * DAY),
        ({}, HOUR, None),  # what is configured stays as it is
        ({"life": "365d"}, 24 * HOUR, 365 * DAY),
        ({"algorithm": "naive", "users": 9}, 24 * HOUR, None),
    ],
)
def test_under_another_cadence_a_life_by_default_is_the_time_of_the_plan(
    more: dict[str, Any], every: int, life: int | None
) -> None:
    changed = with_cadence(MetricSection.model_validate(MEAN | more).parts, Even(every), 90 * DAY)
    assert (changed.length, stated_life(changed)) == (Even(every), life)
