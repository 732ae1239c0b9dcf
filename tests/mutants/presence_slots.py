"""Mutants of statistics per slot that protect presence: noise, and how a slot finds its cells."""

from tests.mutants.mutant import Mutant

FOLDER = "mechanisms/two_sided/per_slot/"
TESTS = "mechanisms/two_sided/per_slot/"
OWN = TESTS + "test_laws.py::test_sides_cells_slots_and_keys_have_noise_of_their_own"
SCALE = TESTS + "test_laws.py::test_noise_has_the_scale_of_all_samples_of_a_unit"
EXACT = TESTS + "test_laws.py::test_without_noise_the_release_is_the_exact_statistic"
DRAWS = TESTS + "test_found_cells.py::test_each_slot_and_cell_has_draws_of_its_own"
NOBODY = TESTS + "test_found_cells.py::test_nobody_shows_a_cell_whatever_the_draws_are"
SILENT = TESTS + "test_found_cells.py::test_of_what_is_not_shown_nothing_is_said_and_nothing_kept"
KEYS = TESTS + "test_keys.py::test_what_the_keys_say"
WEIGHTS = TESTS + "test_keys.py::test_a_unit_of_a_slot_weighs_most_in_its_first_cell_and_a_longer_one_alike_in_all"
REFUSED = TESTS + "test_keys.py::test_what_makes_no_sense_is_refused"
MOVES = TESTS + "test_sensitivity.py::test_a_unit_moves_all_sides_of_all_cells_and_slots_by_its_samples_widths_at_most"
LONGER = TESTS + "test_sensitivity.py::test_a_longer_unit_has_one_cap_for_all_its_slots"
LEVELS = TESTS + "test_distribution.py::test_levels_have_noise_of_their_own"
PAYS = TESTS + "test_distribution.py::test_a_unit_with_all_its_samples_pays_epsilon_and_none_pays_more"
NOISE = 'derive(key, cell, "side", "slot", 0, 0, slot, side)'
WORDS = 'derive(self._key, cell, name, "slot", 0, 0, slot)'

MUTANTS = (
    Mutant(
        name="sides of a slot that share noise",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old=NOISE,
        new='derive(key, cell, "side", "slot", 0, 0, slot)',
        breach="the same draw is in both sides: their difference has none",
        tests=(OWN,),
    ),
    Mutant(
        name="slots that share noise where presence is protected",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old=NOISE,
        new='derive(key, cell, "side", "slot", 0, 0, side)',
        breach="the difference of two slots of a cell is exact",
        tests=(OWN,),
    ),
    Mutant(
        name="cells that share noise where presence is protected",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old=NOISE,
        new='derive(key, b"", "side", "slot", 0, 0, slot, side)',
        breach="the difference of two cells of a slot is exact",
        tests=(OWN,),
    ),
    Mutant(
        name="a slot noised for one sample of a unit",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old="return self.max_contributions * self.sides.width / self.epsilon",
        new="return self.sides.width / self.epsilon",
        breach="a unit moves the sides by as many widths as it has samples",
        tests=(SCALE, MOVES),
        quick=True,
    ),
    Mutant(
        name="levels of a distribution that share noise",
        family="presence-slots",
        file=FOLDER + "distribution.py",
        old='return [(f"level {level}", self.scale / share, nodes)',
        new='return [("level", self.scale / share, nodes)',
        breach="the first nodes of two levels have the same noise: what they differ by is exact",
        tests=(LEVELS,),
    ),
    Mutant(
        name="each level of a distribution with all of epsilon",
        family="presence-slots",
        file=FOLDER + "distribution.py",
        old='return [(f"level {level}", self.scale / share, nodes)',
        new='return [(f"level {level}", self.scale, nodes)',
        breach="a sample moves a node of each level, and loses epsilon in each of them",
        tests=(PAYS,),
        quick=True,
    ),
    Mutant(
        name="a distribution noised for one sample of a unit",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old="self.grid, self.max_contributions / self.epsilon)",
        new="self.grid, 1 / self.epsilon)",
        breach="a unit moves as many nodes of a level as it has samples",
        tests=(PAYS,),
    ),
    Mutant(
        name="newcomers of a cell that are samples",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old="            if contribution.number != NEWCOMERS:  # who finds a cell",
        new="            if True:  # who finds a cell",
        breach="a unit's weight moves its cell's sides beside its samples",
        tests=(EXACT,),
    ),
    Mutant(
        name="a slot that shows cells by their records",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old="weight = sum(weight_of(one.total) for one in contributions if one.number == NEWCOMERS and not one.level)",
        new="weight = sum(one.samples for one in contributions)",
        breach="one unit with many records shows a cell that nobody else is in",
        tests=(NOBODY,),
    ),
    Mutant(
        name="slots that share the draw that finds cells",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old=WORDS,
        new='derive(self._key, cell, name, "slot", 0, 0)',
        breach="two slots tell apart numbers that one look does not",
        tests=(DRAWS,),
    ),
    Mutant(
        name="cells that share the draw that finds them",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old=WORDS,
        new='derive(self._key, b"", name, "slot", 0, 0, slot)',
        breach="whichever of two cells is shown alone tells that it has more units",
        tests=(DRAWS,),
    ),
    Mutant(
        name="one draw for the threshold and for crossing it",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old=WORDS,
        new='derive(self._key, cell, "rho", "slot", 0, 0, slot)',
        breach="the two draws that protect from either side are one",
        tests=(DRAWS,),
    ),
    Mutant(
        name="cells that are not shown, released without a value",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old="yield Closed(cell, None, is_published=False, is_hidden=True)",
        new="yield Closed(cell, None)",
        breach="a release tells of a cell that one unit alone came to",
        tests=(SILENT,),
        quick=True,
    ),
    Mutant(
        name="cells that are found for nothing",
        family="presence-slots",
        file=FOLDER + "statistic.py",
        old="epsilon=spec.epsilon - keys.selection_epsilon(spec),",
        new="epsilon=spec.epsilon,",
        breach="what finds cells and what is released of them cost more than epsilon together",
        tests=(KEYS,),
    ),
    Mutant(
        name="a whole weight in each cell of a day",
        family="presence-slots",
        file=FOLDER + "keys.py",
        old="else ((1,) * count, count)",
        new="else ((1,), 1)",
        breach="no breach, but a day counts for its first cell alone; with weights of 1 each it would be one",
        tests=(WEIGHTS,),
    ),
    Mutant(
        name="a unit that ends within a slot",
        family="presence-slots",
        file="mechanisms/rules.py",
        old="if unit.period is not None and unit.period % slot:",
        new="if False:",
        breach="a slot is that of two units of one person, of which the first decides whether the second is a newcomer",
        tests=(REFUSED,),
    ),
    Mutant(
        name="a cap for each slot of a longer unit",
        family="presence-slots",
        file=FOLDER + "keys.py",
        old="period=spec.privacy_unit.period,",
        new="period=spec.slot,",
        breach="a person's samples in all slots move the sides by more than m widths",
        tests=(LONGER, MOVES),
    ),
)  # fmt: skip
