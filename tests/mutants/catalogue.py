"""All mutants, family by family."""

from tests.mutants import counters, means, noise, people, records
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (*noise.MUTANTS, *counters.MUTANTS, *means.MUTANTS, *people.MUTANTS, *records.MUTANTS)
FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(mutant.family for mutant in MUTANTS))
