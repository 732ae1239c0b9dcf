"""Sums of samples under relation values, as their tests make them."""

from dataclasses import replace
from typing import Any

from shoal.mechanisms.linear.sides import sides_of_values
from shoal.mechanisms.linear.statistic import ONE, LinearStatistic
from shoal.mechanisms.statistic import Estimate


def of_values(**given: Any) -> LinearStatistic:
    """A statistic with the sides of its class and grid."""
    return LinearStatistic(sides=sides_of_values(given["statistic"], given.get("grid", ONE)), **given)


def variance_of(estimate: Estimate) -> Estimate:
    """The variance of an estimate of mean and variance, alone."""
    names = ("value", "noise_sd", "low", "high")
    parts = {name: getattr(estimate, name) for name in names}
    return replace(estimate, **{name: part and part["variance"] for name, part in parts.items()})
