"""Best: of all mechanisms for a mean the one whose error is likely to be least, by public counts.

    candidates   baseline; array-averaging, levy, fixed-quantile and epsilon-quantile, each with the cap that is given
                 as a number, or with "optimal" and with "median"; deviations, if a share of epsilon is set aside

Guarantee    pure epsilon-DP: that of the mechanism chosen, which gets all of epsilon
Relation     values: two cells differ in the values of one user; how many samples each user has is public
Choice       a function of the counts, epsilon, its shares and sigma alone, so it costs nothing: the least likely error
             (error_forecast.py); of several the first, after rounding to 9 digits, so that machines agree
Proof        docs/proofs/clipping.md
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from shoal.mechanisms.slot.cell import Cap, CellParameters, Counts, Draws, Release, Users
from shoal.mechanisms.slot.means import clipping, deviations, error_forecast, levy, quantile
from shoal.mechanisms.slot.means.clipping import Arrays
from shoal.mechanisms.slot.means.error_forecast import outlook
from shoal.mechanisms.slot.means.linear import ARRAY_AVERAGING, BASELINE
from shoal.mechanisms.slot.means.packing import best_fit
from shoal.mechanisms.statistic import Estimate

CAPS: tuple[Cap, ...] = ("optimal", "median")
CLIPPING: tuple[tuple[str, Release], ...] = (
    ("levy", levy.release),
    (quantile.FIXED.name, quantile.FIXED.release),
    (quantile.DEPENDENT.name, quantile.DEPENDENT.release),
)


class Candidate(NamedTuple):
    """A mechanism with a cap, and its predicted error in parts of the range."""

    name: str
    cap: Cap
    error: float
    release: Release


def candidates(counts: Counts, cell: CellParameters) -> Iterator[Candidate]:
    """All candidates, in the order in which ties are decided."""
    error = error_forecast.linear(BASELINE.weighting(counts, cell), counts, cell)
    yield Candidate("baseline", cell.cap, error, BASELINE.release)

    @cache  # two caps may be the same number
    def clipped(capacity: int) -> tuple[float, float, float]:
        arrays = Arrays(capacity, best_fit(counts, capacity))
        expected = outlook(counts, arrays, cell)
        fixed, dependent = (way.likely_error(expected, cell) for way in (quantile.FIXED, quantile.DEPENDENT))
        return levy.likely_error(expected, arrays, cell), fixed, dependent

    for cap in (cell.cap,) if isinstance(cell.cap, int) else CAPS:
        capped = replace(cell, cap=cap)
        error = error_forecast.linear(ARRAY_AVERAGING.weighting(counts, capped), counts, cell)
        yield Candidate("array-averaging", cap, error, ARRAY_AVERAGING.release)
        errors = clipped(clipping.cap(counts, capped))
        for (name, release_it), error in zip(CLIPPING, errors, strict=True):
            yield Candidate(name, cap, error, release_it)
    if cell.spread_share is not None:
        yield Candidate("deviations", cell.cap, deviations.likely_error(counts, cell), deviations.release)


def chosen(counts: Counts, cell: CellParameters) -> Candidate:
    """The candidate of least likely error.

    >>> from fractions import Fraction
    >>> from shoal.mechanisms.grid import Grid
    >>> cell = CellParameters(grid=Grid(Fraction(0), Fraction(65), 1 << 20), epsilon=Fraction(1))
    >>> [chosen(counts, cell).name for counts in ([9] * 9, [4000] * 20, [50] * 2000)]
    ['baseline', 'levy', 'fixed-quantile']
    """
    return min(candidates(counts, cell), key=lambda candidate: float(f"{candidate.error:.8e}"))


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """The release of the chosen mechanism, which is named in it."""
    return release_of([len(user) for user in users], cell)(users, cell, draws)


def release_of(counts: Counts, cell: CellParameters) -> Release:
    """The release of the mechanism that is chosen by these counts, for any coordinate of the cell."""
    choice = chosen(counts, cell)

    def released(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
        estimate = choice.release(users, replace(cell, cap=choice.cap), draws)
        return replace(estimate, details={**estimate.details, "mechanism": f"best: {estimate.details['mechanism']}"})

    return released


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """The likely error of the chosen mechanism, in units of the range."""
    return chosen(counts, cell).error * float(cell.grid.high - cell.grid.low)
