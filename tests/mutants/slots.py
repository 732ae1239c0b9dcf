"""Mutants of what is released of a cell of a slot: whose samples count, for what, and how much noise that takes."""

from tests.mutants.mutant import Mutant

LINEAR = "mechanisms/slot/means/test_linear.py::"
VARIANCE = "mechanisms/slot/test_mean_variance.py::"
MOVES = LINEAR + "test_a_user_moves_the_sum_by_what_the_noise_is_for"
BOTH_MOVE = VARIANCE + "test_a_user_moves_both_numbers_by_what_the_noise_is_for"
OWN_NOISE = LINEAR + "test_each_cell_and_slot_has_noise_of_its_own"

MEANS = (
    Mutant(
        name="noise for one sample of a cell",
        family="slots",
        file="mechanisms/slot/means/linear.py",
        old="scale = weighting.heaviest * cell.grid.steps",
        new="scale = max(weighting.weights) * cell.grid.steps",
        breach="a user moves the sum by all its samples, the noise is for one of them",
        tests=(MOVES + "[counts5-3-baseline]",),
        quick=True,
    ),
    Mutant(
        name="noise for a user like the others",
        family="slots",
        file="mechanisms/slot/means/linear.py",
        old="""        return max(map(int.__mul__, self.weights, self.kept))""",
        new="""        return self.weight // len(self.kept)""",
        breach="the user who has most moves the sum by more than the average one",
        tests=(MOVES + "[counts5-3-baseline]",),
    ),
    Mutant(
        name="half the noise of a cell",
        family="slots",
        file="mechanisms/slot/means/linear.py",
        old="cell.grid.steps / cell.epsilon\n",
        new="cell.grid.steps / (2 * cell.epsilon)\n",
        breach="a release of a cell costs twice its epsilon",
        tests=(MOVES + "[counts3-1-array-averaging]",),
    ),
    Mutant(
        name="samples beyond the cap of a cell",
        family="slots",
        file="mechanisms/slot/means/linear.py",
        old="w * sum(user[:k])",
        new="w * sum(user)",
        breach="a user moves the sum by all its samples, the noise is for those that count",
        tests=(MOVES + "[counts5-1-array-averaging]",),
    ),
    Mutant(
        name="arrays of users with values",
        family="slots",
        file="mechanisms/slot/means/linear.py",
        old="weighting([len(user) for user in users], cell)",
        new="weighting([max(1, sum(map(bool, user))) for user in users], cell)",
        breach="who shares an array, and the scale of the noise, depends on values",
        tests=(MOVES + "[counts5-3-array-averaging]",),
        quick=True,
    ),
    Mutant(
        name="slots share noise",
        family="slots",
        file="mechanisms/slot/cell.py",
        old='"slot", part, 0, self._slot)',
        new='"slot", part, 0, 0)',
        breach="the difference of two slots is exact",
        tests=(OWN_NOISE,),
    ),
    Mutant(
        name="cells share noise",
        family="slots",
        file="mechanisms/slot/cell.py",
        old='return derive(self._key, self._cell, purpose, "slot", part, 0, self._slot)',
        new='return derive(self._key, b"", purpose, "slot", part, 0, self._slot)',
        breach="the difference of two cells is exact",
        tests=(OWN_NOISE,),
    ),
)

VARIANCES = (
    Mutant(
        name="variance of a user with most samples",
        family="slots",
        file="mechanisms/slot/worst_error.py",
        old="ends = min(free, samples // 2)",
        new="ends = free",
        breach="a user with more than half of the samples moves the variance most with half of all samples",
        tests=(BOTH_MOVE + "[counts2-3]", BOTH_MOVE + "[counts5-3]"),
        quick=True,
    ),
    Mutant(
        name="variance of an even number of samples",
        family="slots",
        file="mechanisms/slot/worst_error.py",
        old="return ends * (samples - ends)",
        new="return ends * ends",
        breach="of an odd number of samples the halves are not alike: the variance moves by more",
        tests=(BOTH_MOVE + "[counts2-3]",),
    ),
    Mutant(
        name="variance in steps, not their squares",
        family="slots",
        file="mechanisms/slot/mean_variance.py",
        old="steps**2 * variance_sensitivity(kept, most) / half",
        new="steps * variance_sensitivity(kept, most) / half",
        breach="the noise on the variance is too small by the number of steps",
        tests=(BOTH_MOVE + "[counts3-1]",),
    ),
    Mutant(
        name="mean and variance with all of epsilon each",
        family="slots",
        file="mechanisms/slot/mean_variance.py",
        old="steps, half = cell.grid.steps, cell.epsilon / 2",
        new="steps, half = cell.grid.steps, cell.epsilon",
        breach="both together cost twice epsilon",
        tests=(BOTH_MOVE + "[counts3-1]",),
    ),
    Mutant(
        name="mean and variance share noise",
        family="slots",
        file="mechanisms/slot/mean_variance.py",
        old='draws.laplace("variance", wide)',
        new='draws.laplace("mean", wide)',
        breach="one draw for two numbers: their losses do not add up as stated",
        tests=(VARIANCE + "test_a_release_has_one_draw_of_noise_for_each",),
    ),
    Mutant(
        name="variance of all samples",
        family="slots",
        file="mechanisms/slot/mean_variance.py",
        old="values = [user[:most] for user in users]",
        new="values = users",
        breach="samples beyond the cap move both numbers, the noise is for those that count",
        tests=(BOTH_MOVE + "[counts5-1]",),
    ),
)

MUTANTS = (*MEANS, *VARIANCES)
