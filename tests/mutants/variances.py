"""Mutants of variances: sums that are noised for less than a sample moves, noise used twice, and bars that lie."""

from tests.mutants.mutant import Mutant

FILE = "mechanisms/decayed_variance/statistic.py"
LAWS = "mechanisms/decayed_variance/test_laws.py::TestVariance::"
JOINT = LAWS + "test_a_sample_moves_both_sums_by_the_joint_sensitivity_at_most_and_some_sample_does"
ACCURACY = "mechanisms/decayed_variance/test_accuracy.py::"
BARS = ACCURACY + "test_releases_are_right_on_average_and_their_error_bars_too"

TOGETHER = "mechanisms/test_together.py::"

MUTANTS = (
    Mutant(
        name="intervals of many releases as of one",
        family="variances",
        file="mechanisms/error_bars.py",
        old="1 - (1 - COVERAGE) / (releases * numbers)",
        new="COVERAGE",
        breach="of 40 releases some are outside their intervals",
        tests=(TOGETHER + "test_so_many_releases_stay_within_their_intervals_together",),
    ),
    Mutant(
        name="one tail of two",
        family="variances",
        file="mechanisms/error_bars.py",
        old="logs = math.log(2 / (1 - coverage))",
        new="logs = math.log(1 / (1 - coverage))",
        breach="noise is beyond its bound twice as often",
        tests=(TOGETHER + "test_a_bound_by_variance_and_largest_draw_is_never_too_small",),
    ),
    Mutant(
        name="a variance's interval of several releases as if its sums were seldom off together",
        family="variances",
        file=FILE,
        old="return six_digits(off * halves[0] + halves[1])",
        new="return six_digits(math.hypot(off * halves[0], halves[1]))",
        breach="where both sums are at the ends of their intervals, the variance is outside its own",
        tests=(TOGETHER + "test_a_variance_lies_between_low_and_high_wherever_both_sums_are_within_their_bars",),
    ),
    Mutant(
        name="a variance noised for values that jump from end to end",
        family="variances",
        file=FILE,
        old="j = (3 * steps + 2) // 4  # the integer next to 3 W / 4",
        new="j = steps",
        breach="a value that moves by three quarters of the range costs 9/8 of epsilon",
        tests=(JOINT + "[8]",),
        quick=True,
    ),
    Mutant(
        name="both sums of a variance with all of epsilon",
        family="variances",
        file=FILE,
        old="first, second = self.spent",
        new="first = second = self.epsilon",
        breach="what both sums tell of a value adds up to more than epsilon",
        tests=(JOINT + "[8]",),
    ),
    Mutant(
        name="a variance for one sample of a unit",
        family="variances",
        file=FILE,
        old="steps, m = self.grid.steps, self.max_contributions",
        new="steps, m = self.grid.steps, 1",
        breach="a unit with all its samples moves the sums by as many widths",
        tests=(JOINT + "[8]",),
    ),
    Mutant(
        name="sums of a variance that share noise",
        family="variances",
        file=FILE,
        old='("step", "product")[index]',
        new='("step", "step")[index]',
        breach="the same draws are in both sums: a difference of them has none",
        tests=(LAWS + "test_groups_keys_and_both_sums_have_noise_of_their_own",),
        quick=True,
    ),
    Mutant(
        name="variances of groups that share noise",
        family="variances",
        file=FILE,
        old='derive(key, group, "tree", name',
        new='derive(key, b"", "tree", name',
        breach="two groups have one draw: their difference is exact",
        tests=(LAWS + "test_groups_keys_and_both_sums_have_noise_of_their_own",),
    ),
    Mutant(
        name="audited: sums of a variance for values that jump from end to end",
        family="scale",
        file=FILE,
        old="return j * (3 * steps - 2 * j)",
        new="return steps * steps",
        breach="a variance costs an eighth more than is declared",
        tests=("privacy/test_auditor.py::test_no_configuration_of_a_family_tells_more_than_its_epsilon[variances]",),
    ),
    Mutant(
        name="error bars of the mean alone",
        family="variances",
        file=FILE,
        old="return six_digits(math.hypot(off * halves[0], halves[1]))",
        new="return six_digits(off * halves[0])",
        breach="the interval does not cover the noise of the second sum",
        tests=(BARS + "[decay0-1-0.5-2]",),
    ),
)
