"""Mutants of averages that are clipped privately: how the interval is chosen, and what noise it takes."""

from tests.mutants.mutant import Mutant

CLIPPING = "mechanisms/slot/means/test_clipping.py::"
EXACT = "mechanisms/selection/test_exact_quantile.py::"
BEST = "mechanisms/slot/means/test_best.py::"
RELEASED = CLIPPING + "test_a_release_is_the_clipped_mean_with_noise_for_half_of_epsilon"
MOVED = CLIPPING + "test_a_user_moves_one_array_and_the_clipped_sum_by_the_width"
QUARTERS = CLIPPING + "test_quantiles_are_drawn_with_a_quarter_of_epsilon_each"

QUANTILES = (
    Mutant(
        name="quantile at twice its epsilon",
        family="quantiles",
        file="mechanisms/selection/exact_quantile.py",
        old="weights(candidates, wanted, epsilon / 2, bits)",
        new="weights(candidates, wanted, epsilon, bits)",
        breach="one value moves a cost up and another down, and each by a whole epsilon",
        tests=(EXACT + "test_a_run_is_where_the_distribution_passes_the_real_that_the_words_spell",),
        quick=True,
    ),
    Mutant(
        name="exponentials that are not enclosed",
        family="quantiles",
        file="mechanisms/selection/exact_quantile.py",
        old="return max(near - 1, 0), min(near + 2, 1 << bits)",
        new="return near, near",
        breach="what is drawn hangs on the rounding of weights, which hangs on values",
        tests=(EXACT + "test_two_integers_enclose_an_exponential",),
    ),
    Mutant(
        name="powers that are not enclosed",
        family="quantiles",
        file="mechanisms/selection/exact_quantile.py",
        old="-(-most * ratio_most >> bits)",
        new="most * ratio_least >> bits",
        breach="what is drawn hangs on the rounding of weights, which hangs on values",
        tests=(EXACT + "test_powers_stay_enclosed",),
    ),
    Mutant(
        name="run that is not certain",
        family="quantiles",
        file="mechanisms/selection/exact_quantile.py",
        old="        if first == last:\n",
        new="        if first <= last:\n",
        breach="near the border of two runs the first bits decide, and not the exact law",
        tests=(EXACT + "test_what_the_first_bits_leave_open_is_decided_by_more",),
    ),
    Mutant(
        name="cells that weigh as one",
        family="quantiles",
        file="mechanisms/selection/exact_quantile.py",
        old="cells, read, bits = [run.cells for run in candidates], 0, 0",
        new="cells, read, bits = [1 for run in candidates], 0, 0",
        breach="a value splits a run into three, so that all its cells become three times as likely at once",
        tests=(EXACT + "test_a_run_is_where_the_distribution_passes_the_real_that_the_words_spell",),
    ),
    Mutant(
        name="each quantile with what is for both",
        family="quantiles",
        file="mechanisms/slot/means/quantile.py",
        old="cell.grid.steps, q, cell.epsilon / 4, draws)",
        new="cell.grid.steps, q, cell.epsilon / 2, draws)",
        breach="two quantiles use up epsilon, and the noise comes on top",
        tests=(QUARTERS,),
        quick=True,
    ),
    Mutant(
        name="quantiles share their randomness",
        family="quantiles",
        file="mechanisms/slot/means/quantile.py",
        old='draws.words("quantile", 1)',
        new='draws.words("quantile", 0)',
        breach="the two choices hang on one another, and their losses do not add up as stated",
        tests=(RELEASED + "[fixed-quantile]",),
    ),
    Mutant(
        name="interval of the array means themselves",
        family="quantiles",
        file="mechanisms/slot/means/quantile.py",
        old="low, high = interval(means, cell.grid.steps, q, cell.epsilon / 4, draws)",
        new="low, high = min(means), max(means) + 1",
        breach="the width of the interval, which the noise tells, is a value of some user",
        tests=(QUARTERS,),
        quick=True,
    ),
)

CLIPS = (
    Mutant(
        name="noise for half the interval of a cell",
        family="clips of a cell",
        file="mechanisms/slot/means/clipping.py",
        old="scale = (high - low) / epsilon\n",
        new="scale = (high - low) / (2 * epsilon)\n",
        breach="an array moves the sum by the whole width",
        tests=(CLIPPING + "test_an_interval_holds_a_grid_step_at_least_and_its_ends_are_in_order[fixed-quantile]",),
        quick=True,
    ),
    Mutant(
        name="one-sided clip of a cell",
        family="clips of a cell",
        file="mechanisms/slot/means/clipping.py",
        old="low if mean < low else high if mean > high else mean",
        new="high if mean > high else mean",
        breach="an array far below the interval moves the sum by more than its width",
        tests=(MOVED + "[counts2-3]",),
    ),
    Mutant(
        name="samples beyond the cap of an array",
        family="clips of a cell",
        file="mechanisms/slot/means/clipping.py",
        old="sum(users[u][:cap])",
        new="sum(users[u])",
        breach="an array mean is none: it moves by more than the range",
        tests=(CLIPPING + "test_what_lies_beyond_the_cap_does_not_count[levy]",),
    ),
    Mutant(
        name="bin with all of epsilon",
        family="clips of a cell",
        file="mechanisms/slot/means/levy.py",
        old='cell.epsilon, draws.words("interval"))',
        new='2 * cell.epsilon, draws.words("interval"))',
        breach="the bin uses up epsilon, and the noise comes on top",
        tests=(CLIPPING + "test_the_bin_is_drawn_with_half_of_epsilon",),
        quick=True,
    ),
    Mutant(
        name="noise with all of epsilon",
        family="clips of a cell",
        file="mechanisms/slot/means/levy.py",
        old="chosen_from.interval(index), cell.epsilon / 2, arrays",
        new="chosen_from.interval(index), cell.epsilon, arrays",
        breach="the noise uses up epsilon, and the bin comes on top",
        tests=(RELEASED + "[levy]",),
    ),
    Mutant(
        name="best by values",
        family="clips of a cell",
        file="mechanisms/slot/means/best.py",
        old="choice = chosen([len(user) for user in users], cell)",
        new="choice = chosen([max(1, sum(map(bool, user))) for user in users], cell)",
        breach="which mechanism there is, and hence its noise, tells of values",
        tests=(BEST + "test_the_choice_has_all_of_epsilon_and_is_named",),
        quick=True,
    ),
)

MUTANTS = (*QUANTILES, *CLIPS)
