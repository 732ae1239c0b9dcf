"""Which cadence is recommended."""

from shoal.mechanisms.continual_mean.comparison import MANY, finest
from shoal.mechanisms.outlook import Look

HOUR = 3_600_000_000


def look(error: float) -> Look:
    return Look(part=1.0, at=None, samples=1.0, noise_sd=error, half_interval=None, left_out=0.0, bias=0.0)


def test_the_finest_that_costs_little_is_taken_of_those_with_many_releases() -> None:
    tried = [(HOUR, look(2.0)), (2 * HOUR, look(1.2)), (4 * HOUR, look(1.0)), (8 * HOUR, look(0.1))]
    assert finest(tried, 4 * MANY * HOUR) == 2 * HOUR


def test_where_no_cadence_has_many_releases_all_are_compared() -> None:
    tried = [(HOUR, look(2.0)), (2 * HOUR, look(1.2)), (4 * HOUR, look(1.0))]
    assert finest(tried, HOUR) == finest(tried, None) == 2 * HOUR
