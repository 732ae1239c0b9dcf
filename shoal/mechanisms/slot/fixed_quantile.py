"""Fixed-quantile: array means clipped to an interval between the tenth and the ninetieth percentile.

Guarantee    pure epsilon-DP; relation, unit, sensitivity and noise are those of quantile.py
Proof        docs/proofs/clipping.md
Source       Smith (2011);
             Rameshwar, Tandon, Gupta, Singh, Chakraborty and Sharma (2024)
"""

from shoal.mechanisms.slot import quantile
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users
from shoal.mechanisms.slot.error_forecast import Outlook
from shoal.mechanisms.statistic import Estimate


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """The mean of what is clipped to the interval between two private quantiles."""
    return quantile.release(users, cell, draws, quantile.fixed, "fixed-quantile")


def likely_error(expected: Outlook, cell: CellParameters) -> float:
    """The likely error for these arrays, in parts of the range."""
    return quantile.likely_error(expected, cell, quantile.fixed)


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """The likely error for these counts, in units of the range."""
    return quantile.predicted_error(counts, cell, quantile.fixed)
