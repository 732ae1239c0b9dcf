"""All mutants, in the order of their tables and families."""

from tests.mutants.mutant import Mutant
from tests.mutants.tables import FOLDER, read_all

TABLES = (
    "noise", "drawing", "counters", "gaussians", "decays", "deltas", "variances", "sharps", "sigmas", "means",
    "people", "slots", "clippings", "clips", "few", "places", "times", "losses", "presence", "presence_slots",
    "vectors", "cells", "crossings", "selection", "two_sided", "units", "accounts", "relations", "readers",
    "changelogs", "records", "ledgers", "library", "replays", "audits", "drafts", "strangers", "golden", "kernel",
)  # fmt: skip
MUTANTS: tuple[Mutant, ...] = read_all([FOLDER / f"{name}.toml" for name in TABLES])
FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(mutant.family for mutant in MUTANTS))
