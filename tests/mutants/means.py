"""Mutants of the means on blocks: their levels, clip intervals, shares and priors; and of what means withhold."""

from tests.mutants.mutant import Mutant

MEANS = "mechanisms/test_statistic_laws.py::TestMean::"
FULL = "mechanisms/continual_mean/test_full.py::"
SENSITIVITY = "privacy/test_sensitivity.py::"
GIVEN_LOSS = "mechanisms/continual_mean/test_given_prior.py::test_no_neighbours_differ_by_more_than_epsilon"
SHARES = SENSITIVITY + "test_the_shares_of_a_user_who_is_everywhere_sum_to_epsilon_exactly"

LEVELS = (
    Mutant(
        name="ln for log2 of the levels",
        family="levels",
        file="mechanisms/continual_mean/blocks.py",
        old="return (max_contributions - 1).bit_length()",
        new="return -int(-__import__('math').log(max_contributions) // 1)",
        breach="the budget is shared by ceil(ln m) levels, and a unit is in ceil(log2 m) of them",
        tests=("mechanisms/test_grid_blocks_checks.py::test_top_level_is_the_ceiling_of_the_binary_logarithm",),
    ),
    Mutant(
        name="levels off by one",
        family="levels",
        file="mechanisms/continual_mean/blocks.py",
        old="return (max_contributions - 1).bit_length()",
        new="return max_contributions.bit_length() - 1",
        breach="the top level is not paid for where m is no power of two",
        tests=("mechanisms/test_grid_blocks_checks.py::test_top_level_is_the_ceiling_of_the_binary_logarithm",),
    ),
    Mutant(
        name="shares of the levels sum to more than epsilon",
        family="levels",
        file="mechanisms/continual_mean/full.py",
        old="return self.group_epsilon / (2 * (self.top + 1))",
        new="return self.group_epsilon / (2 * self.top)",
        breach="L + 1 counters, each with one L-th of the half",
        tests=(SHARES + "[1-3-1]",),
    ),
    Mutant(
        name="prior not charged",
        family="levels",
        file="mechanisms/continual_mean/full.py",
        old="return self.group_epsilon / (2 * (self.top + 1))",
        new="return self.group_epsilon / (self.top + 1)",
        breach="the counters use up epsilon, and the priors come on top",
        tests=(SHARES + "[1-3-1]",),
        quick=True,
    ),
    Mutant(
        name="each prior has what is for all",
        family="levels",
        file="mechanisms/continual_mean/full.py",
        old="return self.group_epsilon / (2 * self.top)",
        new="return self.group_epsilon / 2",
        breach="the priors of the levels sum to L times their share",
        tests=(SHARES + "[1-5-1]",),
    ),
    Mutant(
        name="priors share their randomness",
        family="levels",
        file="mechanisms/continual_mean/full.py",
        old='"prior", "mean", self._coordinate, level.index, 0)',
        new='"prior", "mean", self._coordinate, 0, 0)',
        breach="the choices of all levels hang on one another, their losses do not add up as stated",
        tests=("mechanisms/test_breaches.py::test_each_prior_has_bits_of_its_own",),
    ),
)

CLIPS = (
    Mutant(
        name="clip missing",
        family="clipping",
        file="mechanisms/continual_mean/full.py",
        old="sums[level] += low if total < low else high if total > high else total",
        new="sums[level] += total",
        breach="a block moves the sum by all its samples, the noise is for the interval",
        tests=(FULL + "test_projection_clips_to_the_interval_on_both_sides",),
        quick=True,
    ),
    Mutant(
        name="one-sided clip",
        family="clipping",
        file="mechanisms/continual_mean/full.py",
        old="sums[level] += low if total < low else high if total > high else total",
        new="sums[level] += high if total > high else total",
        breach="a block far below the interval moves the sum by more than its width",
        tests=(FULL + "test_projection_clips_to_the_interval_on_both_sides",),
    ),
    Mutant(
        name="clip after the sum",
        family="clipping",
        file="mechanisms/continual_mean/full.py",
        old="self._sums[index] = sum(min(max(total, low), high) for total in waiting)",
        new="self._sums[index] = min(max(sum(waiting), low * len(waiting)), high * len(waiting))",
        breach="one of the blocks that waited moves the sum by the widths of all of them",
        tests=("mechanisms/test_breaches.py::test_blocks_that_waited_are_clipped_one_by_one",),
        quick=True,
    ),
    Mutant(
        name="noise for half the interval",
        family="clipping",
        file="mechanisms/continual_mean/full.py",
        old="BinaryTree(self.users, 2 * half_width, self.tree_epsilon)",
        new="BinaryTree(self.users, half_width, self.tree_epsilon)",
        breach="a block moves by 2 D, the noise is for D",
        tests=(FULL + "test_constants_are_those_of_the_paper",),
    ),
)

PRIORS = (
    Mutant(
        name="several numbers of a user in one median",
        family="prior",
        file="mechanisms/continual_mean/full.py",
        old="yield UnitSamples(samples, (first & TIME) - ZERO, pseudonym, (first >> TIME_BITS) + total)",
        new="""for below in range(samples.bit_length()):
                    weight, block = blocks.weight(below), self._kept[below - 1][pseudonym] if below else first
                    yield UnitSamples(weight, (first & TIME) - ZERO, pseudonym, block >> TIME_BITS)""",
        breach="a user's blocks lie in several arrays, and each moves every cost",
        tests=(SENSITIVITY + "test_each_prior_sees_each_user_in_one_array",),
        quick=True,
    ),
    Mutant(
        name="a prior may be late",
        family="prior",
        file="mechanisms/continual_mean/full.py",
        old="run = min((~mask & (mask + 1)).bit_length() - 1, level)",
        new="run = min(mask.bit_count(), level)",
        breach="a unit offers samples that are not there: its arrays hold other blocks than were counted",
        tests=(FULL + "test_a_block_that_overtakes_an_earlier_one_waits_for_it",),
    ),
)

RESTARTS = (
    Mutant(
        name="kept block counted twice after a restart",
        family="state",
        file="mechanisms/continual_mean/full.py",
        old="""            for contribution in kept:
                self._keep(contribution)""",
        new="""            for contribution in kept:
                self.add(contribution)""",
        breach="a unit is two elements of a level's counter",
        tests=(MEANS + "test_the_state_survives_a_restart_anywhere[1-epsilon0-full]",),
        quick=True,
    ),
    Mutant(
        name="a block that comes twice counts twice",
        family="state",
        file="mechanisms/continual_mean/full.py",
        old="if before >> level & 1:",
        new="if pseudonym is None:",
        breach="a unit is two elements of a level's counter",
        tests=(FULL + "test_a_block_that_comes_twice_stops",),
    ),
)

GIVEN = (
    Mutant(
        name="interval twice as wide as its noise",
        family="levels",
        file="mechanisms/continual_mean/given_prior.py",
        old="self.interval(weight, position, half)",
        new="self.interval(weight, position, 2 * half)",
        breach="a unit moves by 4 D, the noise is for 2 D",
        tests=(GIVEN_LOSS + "[Wishful-None-1-1]",),
    ),
    Mutant(
        name="no clip around a given prior",
        family="levels",
        file="mechanisms/continual_mean/given_prior.py",
        old="self._sums[counter] += low if total < low else high if total > high else total",
        new="self._sums[counter] += total",
        breach="a block moves the sum by all its samples, the noise is for the interval",
        tests=(GIVEN_LOSS + "[MultiTree-None-4-2]",),
    ),
    Mutant(
        name="single tree for one element of a unit",
        family="levels",
        file="mechanisms/continual_mean/single_tree.py",
        old="widths[-1] * elements,",
        new="widths[-1],",
        breach="a unit is in the tree L + 1 times, the noise is for once",
        tests=(GIVEN_LOSS + "[SingleTree-None-4-2]",),
        quick=True,
    ),
    Mutant(
        name="multi-tree gives each level all",
        family="levels",
        file="mechanisms/continual_mean/multi_tree.py",
        old="self.counters_epsilon / (self.top + 1)",
        new="self.counters_epsilon",
        breach="the levels sum to L + 1 times epsilon",
        tests=(GIVEN_LOSS + "[MultiTree-None-4-2]",),
    ),
)

DETAILS = (
    Mutant(
        name="interval one step too wide",
        family="clipping",
        file="mechanisms/continual_mean/levels.py",
        old="return middle - half_width, middle + half_width",
        new="return middle - half_width, middle + half_width + 1",
        breach="a block moves by 2 D + 1 steps, the noise is for 2 D",
        tests=(GIVEN_LOSS + "[MultiTree-None-4-2]",),
    ),
    Mutant(
        name="prior made with the whole epsilon",
        family="prior",
        file="mechanisms/continual_mean/full.py",
        old="level.bins, mean.median_epsilon, words)",
        new="level.bins, mean.group_epsilon, words)",
        breach="each prior costs what is for all priors and counters",
        tests=("mechanisms/test_breaches.py::test_a_prior_is_made_with_its_share",),
    ),
    Mutant(
        name="prior made as if no unit were in it",
        family="prior",
        file="mechanisms/continual_mean/full.py",
        old="return self.prior_epsilon * Fraction(2, self.sensitivity)",
        new="return self.prior_epsilon * Fraction(4, self.sensitivity)",
        breach="each prior costs twice its share",
        tests=("mechanisms/test_breaches.py::test_a_prior_is_made_with_its_share",),
    ),
)

WITHHELD_TESTS = "stream/test_withheld.py::"
WITHHELD = (
    Mutant(
        name="samples of value 0 are not said to be withheld",
        family="withheld",
        file="mechanisms/withheld.py",
        old="LONE_COUNT if block is None else block",
        new="LONE_COUNT if block is None and value else block",
        breach="a number that is published without noise says how many values are 0",
        tests=(WITHHELD_TESTS + "test_what_came_is_what_counts_and_what_is_withheld",),
        quick=True,
    ),
    Mutant(
        name="what is over a cap is withheld by its value",
        family="withheld",
        file="mechanisms/withheld.py",
        old="if reason in COUNTED:",
        new="if reason in COUNTED and value:",
        breach="a number that is published without noise says how many values are 0",
        tests=(WITHHELD_TESTS + "test_what_came_is_what_counts_and_what_is_withheld",),
    ),
    Mutant(
        name="what came counts twice after a restart",
        family="withheld",
        file="mechanisms/withheld.py",
        old="self._came = int(came)",
        new="self._came = 2 * int(came)",
        breach="a release that is made again has other bytes: a second stream under one key",
        tests=(WITHHELD_TESTS + "test_what_came_survives_a_crash_after_every_message",),
        quick=True,
    ),
    Mutant(
        name="a block counts all its samples as new",
        family="withheld",
        file="mechanisms/withheld.py",
        old="self._came += 1 if contribution.pseudonym else contribution.samples",
        new="self._came += contribution.samples",
        breach="samples of a block are counted when they come and again when it closes",
        tests=(WITHHELD_TESTS + "test_whose_samples_are_withheld",),
    ),
    Mutant(
        name="a tick in which nothing counts is a tick of the mean",
        family="withheld",
        file="mechanisms/withheld.py",
        old="if any(contribution.level != LEVEL for contribution in came):",
        new="if came:",
        breach="there are more releases, of which each has noise of its own, than the mean was planned for",
        tests=(WITHHELD_TESTS + "test_it_adds_a_field_to_releases_and_changes_nothing_else",),
    ),
)

MUTANTS = (*LEVELS, *CLIPS, *PRIORS, *RESTARTS, *GIVEN, *DETAILS, *WITHHELD)
