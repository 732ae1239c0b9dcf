"""Mutants of the counters beside the binary one: BLUE, alone and growing."""

from tests.mutants.mutant import Mutant

LAWS = "mechanisms/counters/test_counters.py::TestCounters::"
WORST = LAWS + "test_the_worst_element_costs_epsilon_exactly"
PREFIX = LAWS + "test_noise_times_nodes_is_the_prefix_sums"

MUTANTS = (
    Mutant(
        name="scale without the root's level",
        family="counters",
        file="mechanisms/counters/tree_row.py",
        old="return _scale(self.width * (tree.height + 1), Fraction(self.epsilon))",
        new="return _scale(self.width * max(1, tree.height), Fraction(self.epsilon))",
        breach="the noise is made for one node less than an element is in",
        tests=(WORST + "[growing-2-1-epsilon0]",),
    ),
    Mutant(
        name="weights of the prefix are wrong",
        family="counters",
        file="mechanisms/counters/least_squares.py",
        old="between(i, first, first + tree.arity) * parent_rest)",
        new="between(i, first, first + tree.arity) * rest)",
        breach="L R is not A: a release holds noise that no node's sum was paid with",
        tests=(PREFIX + "[blue-3-3]",),
        quick=True,
    ),
    Mutant(
        name="weights of a whole tree are wrong",
        family="counters",
        file="mechanisms/counters/complete_tree.py",
        old="self.sizes[i] * sum(values[self.first(i)",
        new="sum(values[self.first(i)",
        breach="the total of a full tree is not what its nodes pay for",
        tests=(PREFIX + "[growing-2]",),
    ),
    Mutant(
        name="rounded before the prefix",
        family="counters",
        file="mechanisms/counters/least_squares.py",
        old="noise = self._sums.root * t * (tree.denominator // (tree.leaves * tree.nodes))",
        new="noise = self._sums.root * t // (tree.leaves * tree.nodes) * tree.denominator",
        breach="a part of the noise is rounded on its own, so moving the draws does not move the release by the sums",
        tests=(LAWS + "test_moving_the_draws_by_the_nodes_moves_the_noise_by_the_sums[blue-3-3]",),
    ),
    Mutant(
        name="rounded half to even",
        family="counters",
        file="mechanisms/counters/counter.py",
        old="return (2 * numerator + denominator) // (2 * denominator)",
        new="return round(Fraction(numerator, denominator))",
        breach="where halves go depends on the sum, so neighbours' releases have other probabilities",
        tests=(LAWS + "test_moving_the_draws_by_the_nodes_moves_the_noise_by_the_sums",),
    ),
    Mutant(
        name="epochs of BLUE share noise",
        family="counters",
        file="mechanisms/counters/tree_row.py",
        old="laplace.DiscreteLaplace(self._scale, self._subkey(self._number))",
        new="laplace.DiscreteLaplace(self._scale, self._subkey(0))",
        breach="a full tree and the next have the same draws",
        tests=(PREFIX + "[blue-5-2]",),
    ),
    Mutant(
        name="sums of draws overflow",
        family="counters",
        file="mechanisms/counters/complete_tree.py",
        old=">= 1 << 62 else",
        new=">= 1 << 162 else",
        breach="noise wraps around at 64 bits: it is no longer the sum of its draws",
        tests=("mechanisms/test_breaches.py::test_sums_of_draws_do_not_overflow",),
    ),
    Mutant(
        name="subtrees that share noise",
        family="counters",
        file="mechanisms/counters/complete_tree.py",
        old="self._drawn(i, parent * sizes[height + 1 - i], sizes[height + 1 - i])",
        new="self._drawn(i, 0, sizes[height + 1 - i])",
        breach="every subtree has the draws of the first: the difference of their sums is exact",
        tests=(PREFIX + "[blue-3-3]",),
    ),
    Mutant(
        name="a way that does not go back",
        family="counters",
        file="mechanisms/counters/complete_tree.py",
        old="if path[at] != parent:",
        new="if path[at] < parent:",
        breach="a prefix holds the draws of a later subtree, whose own prefixes hold them, too",
        tests=(
            "mechanisms/counters/test_counters_blue.py::TestLeastSquares::"
            "test_a_tree_that_is_drawn_piece_by_piece_has_the_same_prefixes[2-7]",
        ),
    ),
)
