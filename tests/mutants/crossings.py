"""Mutants of when unknown keys are shown."""

from tests.mutants.mutant import Mutant

FILE = "mechanisms/selection/first_crossing.py"
TESTS = "mechanisms/selection/test_first_crossing.py::"
SPENT = TESTS + "test_all_ticks_for_ever_spend_delta_at_most_and_hardly_less"
LAW = TESTS + "test_one_draw_for_each_change_has_the_law_of_a_draw_at_each_tick"

MUTANTS = (
    Mutant(
        name="all of delta in each doubling",
        family="crossings",
        file=FILE,
        old="else selection.delta / (2 << doubling)",
        new="else selection.delta / 2",
        breach="a stream that goes on for ever shows the key of one person alone with more than delta",
        tests=(SPENT,),
        quick=True,
    ),
    Mutant(
        name="ticks that nobody counts",
        family="crossings",
        file=FILE,
        old="ticks = selection.horizon << max(doubling - 1, 0)",
        new="ticks = selection.horizon",
        breach="later doublings have more ticks than their share of delta is for",
        tests=(SPENT,),
    ),
    Mutant(
        name="the first of several keys alone",
        family="crossings",
        file=FILE,
        old="for weight in selection.weights), Decimal(0))",
        new="for weight in selection.weights[:1]), Decimal(0))",
        breach="any of a person's keys may be the one that is shown",
        tests=(SPENT,),
    ),
    Mutant(
        name="a threshold rounded down",
        family="crossings",
        file=FILE,
        old="return ceiling((decimal(ticks / share) * alone / both).ln() / decimal(rate))",
        new="return ceiling((decimal(ticks / share) * alone / both).ln() / decimal(rate)) - 1",
        breach="the key of one person alone is shown with more than delta",
        tests=(SPENT,),
    ),
    Mutant(
        name="a threshold that is a float",
        family="crossings",
        file=FILE,
        old="return ceiling((decimal(ticks / share) * alone / both).ln() / decimal(rate))",
        new="return int(float(ceiling((decimal(ticks / share) * alone / both).ln() / decimal(rate))))",
        breach="it is rounded to either side, and another one on another machine",
        tests=(TESTS + "test_a_threshold_is_the_least_integer_that_spends_no_more_than_its_share",),
    ),
    Mutant(
        name="weights that add up to anything",
        family="crossings",
        file=FILE,
        old="or sum(self.weights) > self.unit",
        new="or max(self.weights) > self.unit",
        breach="a person with two keys loses twice epsilon",
        tests=(TESTS + "test_wrong_parameters_are_refused",),
    ),
    Mutant(
        name="a threshold without a noise of its own",
        family="crossings",
        file=FILE,
        old="return geometric(exactly(self.epsilon / self.unit), words)",
        new="return 0",
        breach="with fresh draws alone, each tick at which a key is not shown loses again",
        tests=(LAW,),
    ),
    Mutant(
        name="half of the noise",
        family="crossings",
        file=FILE,
        old="until_success(self.epsilon * missing / self.unit)",
        new="until_success(self.epsilon * 2 * missing / self.unit)",
        breach="one person more changes a tick's chance by more than exp(epsilon)",
        tests=(LAW,),
    ),
)
