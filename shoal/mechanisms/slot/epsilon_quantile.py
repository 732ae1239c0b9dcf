"""Epsilon-quantile: array means clipped to an interval that leaves out 2 / epsilon of them on either side.

Guarantee    pure epsilon-DP; relation, unit, sensitivity and noise are those of quantile.py
Proof        docs/proofs/clipping.md
Source       Amin, Kulesza, Munoz Medina and Vassilvitskii (2019);
             Rameshwar, Tandon, Gupta, Singh, Chakraborty and Sharma (2024)
"""

from shoal.mechanisms.slot import quantile
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users
from shoal.mechanisms.slot.error_forecast import Outlook
from shoal.mechanisms.statistic import Estimate


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """The mean of what is clipped to the interval between two private quantiles."""
    return quantile.release(users, cell, draws, quantile.dependent, "epsilon-quantile")


def likely_error(expected: Outlook, cell: CellParameters) -> float:
    """The likely error for these arrays, in parts of the range."""
    return quantile.likely_error(expected, cell, quantile.dependent)


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """The likely error for these counts, in units of the range."""
    return quantile.predicted_error(counts, cell, quantile.dependent)
