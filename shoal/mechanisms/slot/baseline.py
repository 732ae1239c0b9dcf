"""Baseline: the mean of all samples alike, with noise for the user who has most.

Guarantee    pure epsilon-DP: `linear.py` with weights of 1
Sensitivity  of the sum, exact: steps * m, m the most samples of a user that count; of the mean of S samples, that / S
Cap          if given as a number, of each user that many first samples count; else all do
Proof        docs/proofs/slots.md
Source       Rameshwar, Tandon, Gupta, Singh, Chakraborty and Sharma (2024), "Baseline"; Dwork et al. (2006)
"""

from shoal.mechanisms.slot import linear
from shoal.mechanisms.slot.cap import contribution_cap
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users
from shoal.mechanisms.statistic import Estimate


def weighting(counts: Counts, cell: CellParameters) -> linear.Weighting:
    """The weights with which all samples count alike, up to a cap that is a number.

    >>> from fractions import Fraction
    >>> from shoal.mechanisms.grid import Grid
    >>> speeds = Grid(Fraction(0), Fraction(65), 1 << 20)
    >>> weighting([2, 9], CellParameters(grid=speeds, epsilon=Fraction(1), cap=5))
    Weighting(kept=[2, 5], weights=[1, 1], mechanism="baseline, up to 5 of a user's samples")
    """
    cap = contribution_cap(counts, cell) if isinstance(cell.cap, int) else max(counts)
    kept = [min(count, cap) for count in counts]
    return linear.Weighting(kept, [1] * len(kept), f"baseline, up to {cap} of a user's samples")


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """(sum of the samples + noise) / their number."""
    return linear.release(weighting([len(user) for user in users], cell), users, cell, draws)


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """The worst expected error of the mean, in units of the range: its noise, and a bias where samples are left out."""
    return linear.predicted_error(weighting(counts, cell), counts, cell)
