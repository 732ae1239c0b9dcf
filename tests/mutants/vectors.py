"""Mutants of means of several coordinates: noise that they have in common, and what each spends."""

from tests.mutants.mutant import Mutant

CUBE = "mechanisms/noise/test_cube.py::"
SEVERAL = "mechanisms/slot/means/test_several.py::"
LAW = CUBE + "test_draws_follow_the_law"
SPENT = SEVERAL + "test_all_coordinates_together_spend_what_one_would"

MUTANTS = (
    Mutant(
        name="a cube of one dimension less",
        family="vectors",
        file="mechanisms/noise/cube.py",
        old="for _ in range(coordinates + 1))",
        new="for _ in range(coordinates))",
        breach="the radius is too small: small vectors are more likely than exp(-max / scale) says",
        tests=(LAW,),
        quick=True,
    ),
    Mutant(
        name="all radii without an offset",
        family="vectors",
        file="mechanisms/noise/cube.py",
        old=" + _offset(coordinates, scale, words)",
        new="",
        breach="the law of the radius is another one, and ratios of probabilities go beyond the bound",
        tests=(LAW,),
    ),
    Mutant(
        name="an offset whatever the scale",
        family="vectors",
        file="mechanisms/noise/cube.py",
        old="        if is_below_exp(rest, proposed / scale, _BITS, words):",
        new="        if is_below_exp(rest, Fraction(0), _BITS, words) or rest >= 0:",
        breach="weights that are rounded up are taken as they are",
        tests=(CUBE + "test_a_top_is_too_much_by_what_is_rejected",),
    ),
    Mutant(
        name="a cube without its upper end",
        family="vectors",
        file="mechanisms/noise/cube.py",
        old="wide_uniform(2 * radius + 1, ",
        new="wide_uniform(2 * radius + (not radius), ",
        breach="a coordinate never is R: a shift by one makes impossible what was possible",
        tests=(LAW,),
    ),
    Mutant(
        name="one number for all coordinates",
        family="vectors",
        file="mechanisms/noise/cube.py",
        old="self._bits.draw(1 + coordinate)",
        new="self._bits.draw(1)",
        breach="all coordinates have the same noise: their difference is exact",
        tests=(SEVERAL + "test_coordinates_have_noise_of_their_own",),
        quick=True,
    ),
    Mutant(
        name="a whole epsilon for each coordinate",
        family="vectors",
        file="mechanisms/slot/means/several.py",
        old="epsilon=cell.epsilon / d,",
        new="epsilon=cell.epsilon,",
        breach="a release of d coordinates costs d times its epsilon",
        tests=(SPENT + "[counts1-2-levy]",),
        quick=True,
    ),
    Mutant(
        name="one draw as if it were for one coordinate's share twice",
        family="vectors",
        file="mechanisms/slot/cell.py",
        old="        each = scale / self._coordinates\n",
        new="        each = scale / self._coordinates**2\n",
        breach="the noise of all coordinates is for a share that only one more had",
        tests=(SEVERAL + "test_the_draw_is_one_for_all_and_has_the_error_bars_of_its_law",),
    ),
    Mutant(
        name="noise in parts of another interval",
        family="vectors",
        file="mechanisms/slot/means/clipping.py",
        old="draws.noise_for(purpose, scale * FINE / width)",
        new="draws.noise_for(purpose, scale)",
        breach="the noise is for 2**-16 of a step, and counts 2**-40 of the interval",
        tests=(SEVERAL + "test_a_user_moves_a_clipped_sum_by_its_parts",),
    ),
    Mutant(
        name="coordinates share the bits of a choice",
        family="vectors",
        file="mechanisms/slot/cell.py",
        old='"slot", part, 1 + self._axis, self._slot)',
        new='"slot", part, 1, self._slot)',
        breach="two choices hang on one another, and their losses do not add up",
        tests=(SEVERAL + "test_subkeys_of_coordinates_are_those_of_nothing_else",),
    ),
    Mutant(
        name="one draw for two scales",
        family="vectors",
        file="mechanisms/slot/cell.py",
        old="if cube.scale != each:",
        new="if cube.scale < each / 2:",
        breach="noise that is too small for one coordinate is used for it",
        tests=(SEVERAL + "test_coordinates_with_other_scales_have_no_draw_in_common",),
    ),
)
