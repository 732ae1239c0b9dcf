"""Best: of all mechanisms for a mean the one whose error is likely to be least, by public counts.

    candidates   baseline; array-averaging, levy, fixed-quantile and epsilon-quantile, each with the cap that is given
                 as a number, or with "optimal" and with "median"

Guarantee    pure epsilon-DP: that of the mechanism chosen, which gets all of epsilon
Relation     values: two cells differ in the values of one user; how many samples each user has is public
Choice       a function of the counts, epsilon and sigma alone, so it costs nothing: the least likely error
             (error_forecast.py); of several the first, after rounding to 9 digits, so that machines agree
Proof        docs/proofs/clipping.md
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from shoal.mechanisms.slot import (
    array_averaging,
    baseline,
    clipping,
    epsilon_quantile,
    error_forecast,
    fixed_quantile,
    levy,
)
from shoal.mechanisms.slot.cell import Cap, CellParameters, Counts, Draws, Users
from shoal.mechanisms.slot.clipping import Arrays
from shoal.mechanisms.slot.error_forecast import outlook
from shoal.mechanisms.slot.packing import best_fit
from shoal.mechanisms.statistic import Estimate

Release = Callable[[Users, CellParameters, Draws], Estimate]
CAPS: tuple[Cap, ...] = ("optimal", "median")
CLIPPING: tuple[tuple[str, Release], ...] = (
    ("levy", levy.release),
    ("fixed-quantile", fixed_quantile.release),
    ("epsilon-quantile", epsilon_quantile.release),
)


class Candidate(NamedTuple):
    """A mechanism with a cap, and its predicted error in parts of the range."""

    name: str
    cap: Cap
    error: float
    release: Release


def candidates(counts: Counts, of: CellParameters) -> Iterator[Candidate]:
    """All of them, in the order in which ties are decided."""
    error = error_forecast.linear(baseline.weighting(counts, of), counts, of)
    yield Candidate("baseline", of.cap, error, baseline.release)

    @cache  # two caps may be the same number
    def clipped(capacity: int) -> tuple[float, float, float]:
        arrays = Arrays(capacity, best_fit(counts, capacity))
        found = outlook(counts, arrays, of)
        fixed, dependent = fixed_quantile.likely_error(found, of), epsilon_quantile.likely_error(found, of)
        return levy.likely_error(found, arrays, of), fixed, dependent

    for cap in (of.cap,) if isinstance(of.cap, int) else CAPS:
        capped = replace(of, cap=cap)
        error = error_forecast.linear(array_averaging.weighting(counts, capped), counts, of)
        yield Candidate("array-averaging", cap, error, array_averaging.release)
        errors = clipped(clipping.cap(counts, capped))
        for (name, release_it), error in zip(CLIPPING, errors, strict=True):
            yield Candidate(name, cap, error, release_it)


def chosen(counts: Counts, of: CellParameters) -> Candidate:
    """The one that is used.

    >>> from fractions import Fraction
    >>> from shoal.mechanisms.grid import Grid
    >>> of = CellParameters(grid=Grid(Fraction(0), Fraction(65), 1 << 20), epsilon=Fraction(1))
    >>> [chosen(counts, of).name for counts in ([9] * 9, [4000] * 20, [50] * 2000)]
    ['baseline', 'levy', 'fixed-quantile']
    """
    return min(candidates(counts, of), key=lambda candidate: float(f"{candidate.error:.8e}"))


def release(users: Users, of: CellParameters, draws: Draws) -> Estimate:
    """What the chosen mechanism gives."""
    choice = chosen([len(user) for user in users], of)
    found = choice.release(users, replace(of, cap=choice.cap), draws)
    return replace(found, details={**found.details, "mechanism": f"best: {found.details['mechanism']}"})


def predicted_error(counts: Counts, of: CellParameters) -> float:
    """The error that is likely for the mechanism chosen, in units of the range."""
    return chosen(counts, of).error * float(of.grid.high - of.grid.low)
