"""Mutants of accounting: groups, shares, composition, parts of the data, and conversions of rho."""

from tests.mutants.mutant import Mutant

ACCOUNTING = "mechanisms/privacy/test_accounting.py::"
GROUP = ACCOUNTING + "test_the_delta_of_a_group_is_the_sum_and_a_little_more"
SHARE = ACCOUNTING + "test_a_share_is_as_much_as_so_many_events_may_lose"
CHAIN = ACCOUNTING + "test_a_chain_reaches_the_delta_of_its_group"
ADVANCED = ACCOUNTING + "test_advanced_composition_is_its_formula_and_a_little_more"
RHO = ACCOUNTING + "test_a_share_of_rho_is_noise_for_so_many_events"
TOGETHER = "mechanisms/privacy/test_together.py::"
WORST = ACCOUNTING + "test_rho_of_epsilon_bounds_what_is_worst[1.001-0.01]"


def mutant(
    name: str, old: str, new: str, breach: str, *tests: str, quick: bool = False, module: str = "accounting"
) -> Mutant:
    """One of accounting."""
    file = f"mechanisms/privacy/{module}.py"
    return Mutant(name=name, family="accounts", file=file, old=old, new=new, breach=breach, tests=tests, quick=quick)


MUTANTS = (
    mutant(
        "halves of time as parts of the data",
        'if over != "users":',
        'if over not in ("users", "time"):',
        "a user comes back, and loses epsilon in each half",
        ACCOUNTING + "test_two_halves_of_time_cost_the_same_user_twice",
        quick=True,
    ),
    mutant(
        "a group loses what one does",
        "count * self.epsilon, group_delta(",
        "self.epsilon, group_delta(",
        "who has k events loses k epsilon",
        GROUP,
    ),
    mutant(
        "delta charged like epsilon",
        "times = ((count * rate).exp() - 1) / (rate.exp() - 1)",
        "times = Decimal(count)",
        "delta of several units grows with e**epsilon, not with their number",
        "models/config/test_unit.py::test_several_units_lose_epsilon_so_often_and_delta_by_group_privacy",
        CHAIN,
    ),
    mutant(
        "delta of a group rounded down",
        "_rounded(delta * _times(count, epsilon), _UP)",
        "_rounded(delta * _times(count, epsilon), _DOWN)",
        "a delta that is a little less than what is lost",
        GROUP,
        quick=True,
    ),
    mutant(
        "a share of delta by its number",
        "_rounded(self.delta / _times(count, epsilon), _DOWN)",
        "_rounded(self.delta / count, _DOWN)",
        "events that lose delta / k each, and epsilon / k, lose more than delta together",
        SHARE,
    ),
    mutant(
        "a share of all",
        "epsilon = self.epsilon / count",
        "epsilon = self.epsilon",
        "every event may lose what a user has",
        SHARE,
    ),
    mutant(
        "the larger loss instead of both",
        "type(self)(self.epsilon + other.epsilon, self.delta + other.delta)",
        "type(self)(max(self.epsilon, other.epsilon), self.delta + other.delta)",
        "mechanisms on the same data are not parallel",
        ACCOUNTING + "test_losses_add_up_exactly_in_any_order",
        "agents/audit/test_ledger.py::test_tenths_add_up_exactly[sqlite]",
        quick=True,
    ),
    mutant(
        "the smaller loss of parts",
        "Loss(max(loss.epsilon for loss in all_of_them)",
        "Loss(min(loss.epsilon for loss in all_of_them)",
        "users of the other part lose more",
        ACCOUNTING + "test_parts_by_users_cost_the_largest",
    ),
    mutant(
        "rho of a group like epsilon",
        "count**2 * self.rho",
        "count * self.rho",
        "noise of k times the shift has k**2 rho",
        RHO,
    ),
    mutant(
        "a share of rho like epsilon",
        "self.rho / count**2",
        "self.rho / count",
        "k events lose k rho",
        RHO,
    ),
    mutant(
        "half the rho of a pure mechanism",
        "epsilon**2 / 2",
        "epsilon**2 / 4",
        "answers at random have more",
        WORST,
    ),
    mutant(
        "half the rho of the exponential mechanism",
        "epsilon**2 / 8",
        "epsilon**2 / 16",
        "a choice of two has more",
        WORST,
    ),
    mutant(
        "advanced composition without the mean",
        "return Loss(mean + root_above(",
        "return Loss(root_above(",
        "losses have a mean, too, which grows with their number",
        ADVANCED,
    ),
    mutant(
        "advanced composition with half the variance",
        "root_above(2 * squares",
        "root_above(squares",
        "delta is larger than what was said",
        ADVANCED,
    ),
    mutant(
        "deltas forgotten in advanced composition",
        "sum((loss.delta for loss in all_of_them), delta)",
        "delta",
        "what the mechanisms may fail by adds up beside the further delta",
        ADVANCED,
    ),
    mutant(
        "half the root of rho",
        "self.rho + 2 * root_above(",
        "self.rho + root_above(",
        "an epsilon that rho does not keep",
        ACCOUNTING + "test_the_simple_conversion_of_rho_and_the_better_one",
    ),
    Mutant(
        name="epsilon of rho without its order",
        family="accounts",
        file="mechanisms/privacy/zcdp.py",
        old="_CEILING.subtract(_CEILING.multiply(most, rho), ",
        new="_CEILING.subtract(_CEILING.multiply(beta, rho), ",
        breach="an epsilon that is less than what rho may lose",
        tests=(ACCOUNTING + "test_rounding_is_to_the_safe_side",),
    ),
    mutant(
        "people in zCDP by their number",
        "Concentrated(self.rho).of_group(count * self.touched)",
        "Concentrated(count * self.touched * self.rho)",
        "k people move Gaussian noise by k, which is k**2 rho",
        TOGETHER + "test_gaussian_noise_keeps_its_bounds[epsilon1-4]",
        module="together",
    ),
    mutant(
        "people in a slot lose delta by their number",
        "group = self.loss.of_group(count)",
        "group = Loss(count * self.loss.epsilon, count * self.loss.delta)",
        "several people are in one slot, and their delta grows with e**epsilon",
        TOGETHER + "test_periods_with_releases_of_their_own_lose_as_often_and_not_as_a_larger_group[2-2]",
        module="together",
    ),
    mutant(
        "a total in zCDP without what is pure",
        "yield spent.loss(delta) + rest",
        "yield spent.loss(delta)",
        "metrics without Gaussian noise lose, too",
        TOGETHER + "test_small_pure_losses_are_counted_in_zcdp_where_that_is_less",
        module="together",
    ),
)
