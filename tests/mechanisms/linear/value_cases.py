"""Sums of samples under relation values, as their tests make them."""

from typing import Any

from shoal.mechanisms.linear.sides import sides_of_values
from shoal.mechanisms.linear.statistic import ONE, LinearStatistic


def of_values(**given: Any) -> LinearStatistic:
    """A statistic with the sides of its class and grid."""
    return LinearStatistic(sides=sides_of_values(given["statistic"], given.get("grid", ONE)), **given)
