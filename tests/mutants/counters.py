"""Mutants of the counters beside the binary one: BLUE, k-ary, with subtraction, smooth, bottom-up, hybrid."""

from tests.mutants.mutant import Mutant

LAWS = "mechanisms/counters/test_counters.py::"
WORST = LAWS + "test_the_worst_element_costs_epsilon_exactly"
PREFIX = LAWS + "test_noise_times_nodes_is_the_prefix_sums"

BLUE = (
    Mutant(
        name="scale without the root's level",
        family="counters",
        file="mechanisms/counters/tree_row.py",
        old="return self.width * (tree.height + 1) / Fraction(self.epsilon)",
        new="return self.width * max(1, tree.height) / Fraction(self.epsilon)",
        breach="the noise is made for one node less than an element is in",
        tests=(WORST + "[1-epsilon0-growing-2]",),
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
        old="laplace.DiscreteLaplace(self.tree.scale(tree), self.subkey(epoch))",
        new="laplace.DiscreteLaplace(self.tree.scale(tree), self.subkey(0))",
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
        old="self._drawn(i, number * sizes[self._cut - i], sizes[self._cut - i])",
        new="self._drawn(i, 0, sizes[self._cut - i])",
        breach="every subtree has the draws of the first: the difference of their sums is exact",
        tests=(
            "mechanisms/counters/test_counters_blue.py::"
            "test_a_tree_that_is_cut_into_subtrees_has_the_same_prefixes[2-7-LeastSquares]",
        ),
    ),
)

OTHERS = (
    Mutant(
        name="nodes with noise of one level",
        family="counters",
        file="mechanisms/nodes.py",
        old="return self.width * self.levels",
        new="return self.width",
        breach="each level is given the whole epsilon",
        tests=(WORST + "[1-epsilon0-kary-3-2]",),
        quick=True,
    ),
    Mutant(
        name="nodes with half the scale",
        family="counters",
        file="mechanisms/nodes.py",
        old="return self.l1_sensitivity / Fraction(self.epsilon)",
        new="return self.l1_sensitivity / (2 * Fraction(self.epsilon))",
        breach="twice the epsilon claimed",
        tests=(WORST + "[7-epsilon1-elders-3-3]",),
    ),
    Mutant(
        name="draws of the epoch before",
        family="counters",
        file="mechanisms/nodes.py",
        old="self._epoch, self._kept = epoch, {}",
        new="self._epoch = epoch",
        breach="nodes of a new tree have the noise of the old one",
        tests=(PREFIX + "[kary-5-1]",),
    ),
    Mutant(
        name="k-ary with a level too few",
        family="counters",
        file="mechanisms/kary.py",
        old="return self.height\n",
        new="return max(1, self.height - 1)\n",
        breach="an element is in one node more than the noise is made for",
        tests=(WORST + "[1-epsilon0-kary-2-3]",),
    ),
    Mutant(
        name="subtraction forgotten",
        family="counters",
        file="mechanisms/elders.py",
        old="(range(end, at), -1)",
        new="(range(end, at), 1)",
        breach="L R is not A: nodes that hold elements to come are added",
        tests=(PREFIX + "[elders-3-3]",),
    ),
    Mutant(
        name="signed digits one too far",
        family="counters",
        file="mechanisms/elders.py",
        old="return int((self.arity**self.height - 1) // 2)",
        new="return int((self.arity**self.height + 1) // 2)",
        breach="the last prefix of a tree has no h signed digits: what is released is another sum",
        tests=(PREFIX + "[elders-3-3]",),
    ),
    Mutant(
        name="smooth with a level too few",
        family="counters",
        file="mechanisms/smooth.py",
        old="return self.zeros\n",
        new="return max(1, self.zeros - 1)\n",
        breach="an element is in one left child more than the noise is made for",
        tests=(WORST + "[1-epsilon0-smooth-2-2]",),
    ),
    Mutant(
        name="bottom-up weights are wrong",
        family="counters",
        file="mechanisms/honaker.py",
        old="noise += inside * (tree.denominator // tree.ratios[i])",
        new="noise += inside * (tree.denominator // tree.ratios[max(i - 1, 0)])",
        breach="L R is not A: an estimate is not the sum of its nodes",
        tests=(PREFIX + "[honaker-3-3]",),
    ),
    Mutant(
        name="hybrid without a split",
        family="counters",
        file="mechanisms/hybrid.py",
        old="(1 - self.share) * self.epsilon)",
        new="self.epsilon)",
        breach="the sums of the epochs come on top of an inner counter that uses up epsilon",
        tests=(WORST + "[1-epsilon0-hybrid-binary]",),
    ),
    Mutant(
        name="hybrid with one name for two",
        family="counters",
        file="mechanisms/hybrid.py",
        old="return lambda inner: self.subkey(first + inner)",
        new="return lambda inner: self.subkey(inner)",
        breach="the sums of the epochs and the nodes inside share their bits",
        tests=(PREFIX + "[hybrid-binary]",),
        otherwise="too many values to unpack",  # of the scales of one subkey
    ),
)

MUTANTS = (*BLUE, *OTHERS)
