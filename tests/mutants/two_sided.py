"""Mutants of what protects presence: sides that are noised for too little, share noise, or are exact."""

from tests.mutants.mutant import Mutant

FOLDER = "mechanisms/two_sided/"
TESTS = "mechanisms/two_sided/"
LAWS = TESTS + "test_laws.py::TestTwoSided::"
SIDES = TESTS + "test_sides.py::"
SENSITIVITY = TESTS + "test_sensitivity.py::"
ESTIMATES = TESTS + "test_estimates.py::"
BINNED = TESTS + "test_distribution.py::"
PAYS = SENSITIVITY + "test_a_unit_with_all_its_samples_pays_epsilon_and_none_pays_more"
MOVES = SENSITIVITY + "test_the_presence_of_a_unit_moves_all_sides_of_all_keys_by_its_samples_widths_at_most"
OWN = LAWS + "test_keys_groups_and_sides_have_noise_of_their_own"
PAST = LAWS + "test_a_key_that_begins_late_has_all_of_its_past"
BEGINS = TESTS + "test_laws.py::test_what_is_older_than_that_does_not_count_and_of_a_running_sum_all_does"

MUTANTS = (
    Mutant(
        name="sides that share noise",
        family="two-sided",
        file=FOLDER + "statistic.py",
        old='"tree", "step", 0, 0, self._side, number)',
        new='"tree", "step", 0, 0, number)',
        breach="the same draws are in both sides: their difference has none",
        tests=(OWN,),
        quick=True,
    ),
    Mutant(
        name="keys that share noise",
        family="two-sided",
        file=FOLDER + "statistic.py",
        old='derive(self._key, self._group, "tree"',
        new='derive(self._key, b"", "tree"',
        breach="two keys have one draw: their difference is exact",
        tests=(OWN,),
    ),
    Mutant(
        name="sides noised for one sample of a unit",
        family="two-sided",
        file=FOLDER + "statistic.py",
        old="self.made(self.max_contributions * self.sides.width",
        new="self.made(self.sides.width",
        breach="a unit moves the sums by as many widths as it has samples",
        tests=(PAYS,),
        quick=True,
    ),
    Mutant(
        name="epsilon split between sides by habit",
        family="two-sided",
        file=FOLDER + "statistic.py",
        old="self.sides.width, Fraction(self.epsilon))",
        new="self.sides.width, Fraction(self.epsilon) / len(self.sides.names))",
        breach="no breach, but noise that nothing asks for: both sides may have all of epsilon",
        tests=(PAYS,),
    ),
    Mutant(
        name="what a sample leaves, counted from the middle of the range",
        family="two-sided",
        file=FOLDER + "sides.py",
        old="return total, self.steps * samples - total",
        new="return total, self.steps * samples - 2 * total",
        breach="a sample at the upper end moves both sides by the width: twice what they are noised for",
        tests=(SIDES + "test_the_parts_of_every_sample_add_up_to_the_width_and_none_is_below_0",),
    ),
    Mutant(
        name="one side without noise",
        family="two-sided",
        file=FOLDER + "statistic.py",
        old="statistic.sums.summer(SideKeys(key, group, side)) for side in statistic.sides.names",
        new=(
            "statistic.sums.counts() if side == 'q' else statistic.sums.summer(SideKeys(key, group, side)) "
            "for side in statistic.sides.names"
        ),
        breach="a mean is divided by an exact number of samples, which tells who is there",
        tests=(OWN,),
        quick=True,
    ),
    Mutant(
        name="a middle side that is rounded",
        family="two-sided",
        file=FOLDER + "sides.py",
        old="middle, upper = 2 * product, self.steps * first - product",
        new="middle, upper = 3 * product, self.steps * first - product",
        breach="the parts of a sample in the middle of the range add up to more than the width",
        tests=(SIDES + "test_what_is_kept_of_a_step_gives_its_parts_again",),
    ),
    Mutant(
        name="a signed sum noised for the width of its range",
        family="two-sided",
        file=FOLDER + "sides.py",
        old="step = max(abs(low), abs(high)) / steps",
        new="step = (high - low) / steps / 2",
        breach="a unit with samples far from 0 comes, and moves the sum by more than it is noised for",
        tests=(SIDES + "test_a_signed_sum_moves_by_its_width_at_most_and_some_value_moves_it_so",),
    ),
    Mutant(
        name="users counted once per key, noised for once per key, but counted per step",
        family="two-sided",
        file=FOLDER + "keys.py",
        old='return "key" if spec.decay_or_none.kind == "none" else "step"',
        new='return "key" if spec.decay_or_none.kind != "none" else "step"',
        breach="a unit counts in each step in which it is there",
        tests=(TESTS + "test_keys.py::test_what_the_keys_say",),
    ),
    Mutant(
        name="newcomers that are samples",
        family="two-sided",
        file=FOLDER + "releaser.py",
        old="if contribution.number != NEWCOMERS:",
        new="if contribution.number >= 0:",
        breach="a unit that finds a key counts there once more than its samples",
        tests=(SENSITIVITY + "test_newcomers_of_a_key_are_no_samples",),
    ),
    Mutant(
        name="a past that counts twice",
        family="two-sided",
        file=FOLDER + "releaser.py",
        old="for age in range(min(steps, self._history), -1, -1):\n",
        new="for age in sorted([*range(min(steps, self._history) + 1), 0], reverse=True):\n",
        breach="a unit's samples before a key was shown are in its sums twice",
        tests=(BEGINS,),
    ),
    Mutant(
        name="a past whose length tells of the first record",
        family="two-sided",
        file=FOLDER + "releaser.py",
        old="for age in range(min(steps, self._history), -1, -1):",
        new="for age in range(min(max(ages, default=0), self._history), -1, -1):",
        breach="at which place of its trees a key is goes by when its first record came",
        tests=(PAST,),
    ),
    Mutant(
        name="a window's past with one age",
        family="two-sided",
        file=FOLDER + "statistic.py",
        old="                return length\n",
        new="                return 0\n",
        breach="no breach, but a wrong statistic: what came long ago is in the window as if it came now",
        tests=(PAST,),
    ),
    Mutant(
        name="a past that fades with one age",
        family="two-sided",
        file=FOLDER + "statistic.py",
        old="                return min(math.ceil(_FORGOTTEN / rate), EVERY)\n",
        new="                return 0\n",
        breach="no breach, but a wrong statistic: what came long ago weighs as if it came now",
        tests=(PAST,),
    ),
    Mutant(
        name="a polynomial's past with one age",
        family="two-sided",
        file=FOLDER + "statistic.py",
        old="                return min(math.ceil(2 ** (_FORGOTTEN / float(exponent))), EVERY)\n",
        new="                return 0\n",
        breach="no breach, but a wrong statistic: what came long ago weighs as if it came now",
        tests=(PAST,),
    ),
    Mutant(
        name="means that are told of any count",
        family="two-sided",
        file=FOLDER + "estimates.py",
        old='return self.whole > 0 and counts["count"] >= LEAST_COUNT * counts["count_sd"]',
        new="return self.whole > 0",
        breach="a quotient whose noise is beyond what is stated",
        tests=(ESTIMATES + "test_a_mean_is_told_only_where_the_released_count_is_three_of_its_deviations",),
    ),
    Mutant(
        name="the interval of a mean with the noise of one side",
        family="two-sided",
        file=FOLDER + "estimates.py",
        old="second - 2 * first * place + sides * place**2 - r * r",
        new="place**2 - r * r",
        breach="the truth is outside where the mean is near the lower end",
        tests=(ESTIMATES + "test_the_interval_of_a_mean_is_all_means_that_the_noise_may_have_hidden",),
    ),
    Mutant(
        name="audited: sides noised for less",
        family="two-sided",
        file=FOLDER + "statistic.py",
        old="self.made(self.max_contributions * self.sides.width, Fraction(self.epsilon))",
        new="self.made(-(-self.max_contributions * self.sides.width * 9 // 10), Fraction(self.epsilon))",
        breach="presence costs a ninth more than is declared",
        tests=("privacy/test_auditor.py::test_no_configuration_of_a_family_tells_more_than_its_epsilon[presence]",),
    ),
    Mutant(
        name="nodes noised for one level",
        family="two-sided",
        file=FOLDER + "distribution.py",
        old="return len(self.tree.shape)",
        new="return 1",
        breach="a sample is in a node of every level, the noise is for one of them",
        tests=(BINNED + "test_a_unit_moves_all_nodes_of_all_keys_by_its_samples_times_the_levels",),
    ),
    Mutant(
        name="levels of nodes that share noise",
        family="two-sided",
        file=FOLDER + "distribution.py",
        old='tuple(f"{level}.{node}" for level',
        new='tuple(f"{node}" for level',
        breach="differences of nodes on two levels are exact",
        tests=(BINNED + "test_every_sample_adds_one_to_one_node_of_each_level",),
    ),
    Mutant(
        name="samples in two bins",
        family="two-sided",
        file=FOLDER + "distribution.py",
        old="return 1 << _LANE * bin_of(index, self.bins, self.grid)",
        new="return 1 << _LANE * bin_of(index, self.bins, self.grid) | 1",
        breach="a sample moves two nodes of a level, which is twice what the noise is for",
        tests=(BINNED + "test_every_sample_adds_one_to_one_node_of_each_level",),
    ),
    Mutant(
        name="a distribution told whatever its count is",
        family="two-sided",
        file=FOLDER + "distribution.py",
        old="if size <= 0 or size < LEAST_COUNT",
        new="if size <= 0 and size < LEAST_COUNT",
        breach="no breach, but shares of next to nothing, with intervals that do not hold",
        tests=(BINNED + "test_it_is_told_where_the_released_count_is_three_of_its_deviations",),
    ),
)
