"""Mutants of means with a delta: what calls, groups, coordinates and nodes cost in zCDP."""

from tests.mutants.mutant import Mutant

COST = "mechanisms/continual_mean/test_delta.py::TestCost::"
COUNTERS = "mechanisms/counters/test_gaussian_counters.py::"

MUTANTS = (
    Mutant(
        name="calls beside a rho not charged",
        family="deltas",
        file="mechanisms/continual_mean/sharp/parameters.py",
        old="return rho - sum(",
        new="return rho - 0 * sum(",
        breach="the counter uses up rho, and centre and scales come on top",
        tests=(COST + "test_calls_and_counter_of_a_group_cost_rho_together",),
        quick=True,
    ),
    Mutant(
        name="one octave paid for in rho",
        family="deltas",
        file="mechanisms/continual_mean/sharp/parameters.py",
        old="for _ in range(self._later_octaves))",
        new="for _ in range(min(1, self._later_octaves)))",
        breach="the counter uses up what the scales of later octaves need",
        tests=(COST + "test_calls_and_counter_of_a_group_cost_rho_together",),
    ),
    Mutant(
        name="all of rho for each group",
        family="deltas",
        file="mechanisms/continual_mean/mean.py",
        old="self.rho / self.groups",
        new="self.rho",
        breach="a unit in several groups loses rho in each",
        tests=(COST + "test_all_groups_and_coordinates_cost_what_epsilon_and_delta_allow",),
    ),
    Mutant(
        name="all of rho for each coordinate",
        family="deltas",
        file="mechanisms/continual_mean/statistic.py",
        old="noise.rho / len(spec.values)",
        new="noise.rho",
        breach="a unit loses rho in each coordinate",
        tests=(COST + "test_all_groups_and_coordinates_cost_what_epsilon_and_delta_allow",),
    ),
    Mutant(
        name="a unit's samples in nodes of their own",
        family="deltas",
        file="mechanisms/counters/gaussian_binary.py",
        old="sum(min(1 << level, self.elements) for level",
        new="sum(1 for level",
        breach="samples that share a node move it by their sum, whose square is more than the sum of squares",
        tests=(COUNTERS + "TestBinary::test_no_unit_moves_its_nodes_further",),
        quick=True,
    ),
    Mutant(
        name="a rho twice in an epoch",
        family="deltas",
        file="mechanisms/counters/growing_root.py",
        old="return self.spent",
        new="return 2 * self.spent",
        breach="the counter costs twice the rho that is left for it",
        tests=(COUNTERS + "TestRoot::test_one_change_in_the_first_element_costs_all_of_rho",),
    ),
    Mutant(
        name="epochs with the same draws",
        family="deltas",
        file="mechanisms/counters/growing_root.py",
        old="RootPrefixes(self.tree.epoch(epoch), self.subkey(epoch))",
        new="RootPrefixes(self.tree.epoch(epoch), self.subkey(0))",
        breach="a full epoch and the next have the same noise: their difference shows exact sums",
        tests=(COUNTERS + "TestRoot::test_the_noise_is_that_of_its_epochs",),
    ),
)
