"""Which cadence is recommended, and the life that a metric has under another one."""

from typing import Any

import pytest

from shoal.mechanisms.continual_mean.planning.comparison import MANY, finest, with_cadence
from shoal.mechanisms.life import DAY, stated_life
from shoal.mechanisms.outlook import Look
from shoal.mechanisms.parts.lengths import Even
from shoal.models.config.metric import MetricSection

HOUR = 3_600_000_000
ONE, TWO, FOUR, EIGHT = (Even(hours * HOUR) for hours in (1, 2, 4, 8))
MEAN: dict[str, Any] = {
    "name": "m", "topic": "t", "user": "u", "value": "x", "range": (0, 1), "grid": 64, "epsilon": 1,
    "max_contributions": 8, "statistic": "mean", "every": "1h",
}  # fmt: skip


def look(error: float) -> Look:
    return Look(part=1.0, at=None, samples=1.0, noise_sd=error, half_interval=None, left_out=0.0, bias=0.0)


def test_the_finest_that_costs_little_is_taken_of_those_with_many_releases() -> None:
    tried = [(ONE, look(2.0)), (TWO, look(1.2)), (FOUR, look(1.0)), (EIGHT, look(0.1))]
    assert finest(tried, 4 * MANY * HOUR) == TWO


def test_where_no_cadence_has_many_releases_all_are_compared() -> None:
    tried = [(ONE, look(2.0)), (TWO, look(1.2)), (FOUR, look(1.0))]
    assert finest(tried, HOUR) == finest(tried, None) == TWO


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
