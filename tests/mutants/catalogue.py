"""All mutants, family by family."""

from tests.mutants import (
    accounts,
    audits,
    cells,
    clippings,
    counters,
    crossings,
    decays,
    deltas,
    few,
    gaussians,
    golden,
    means,
    noise,
    people,
    places,
    records,
    sharps,
    slots,
    units,
    variances,
)
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *noise.MUTANTS,
    *counters.MUTANTS,
    *gaussians.MUTANTS,
    *decays.MUTANTS,
    *deltas.MUTANTS,
    *variances.MUTANTS,
    *sharps.MUTANTS,
    *means.MUTANTS,
    *people.MUTANTS,
    *slots.MUTANTS,
    *clippings.MUTANTS,
    *few.MUTANTS,
    *places.MUTANTS,
    *cells.MUTANTS,
    *crossings.MUTANTS,
    *units.MUTANTS,
    *accounts.MUTANTS,
    *records.MUTANTS,
    *audits.MUTANTS,
    *golden.MUTANTS,
)
FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(mutant.family for mutant in MUTANTS))
