"""The trees of the counters: which one is chosen for a number of elements."""

from fractions import Fraction
from typing import Any

import pytest

from shoal.mechanisms.counters.tree_row import Rows
from tests.mechanisms.counters.counter_cases import CASES, CasesOf, over_cases
from tests.support.cover import in_a_loop


class ShapeLaws(CasesOf):
    """What the choice of the best tree of every class of `cases` fulfils."""

    @over_cases
    @in_a_loop
    @pytest.mark.parametrize("elements", [1, 2, 3, 10, 1000, 10**6, 10**9, 10**14])
    def test_there_is_a_tree_for_every_number_of_elements(self, best: Any, elements: int) -> None:
        tree = best(elements, width=3, epsilon=Fraction(1, 7))
        assert (tree.width, tree.epsilon) == (3, Fraction(1, 7))
        assert tree.variance(elements) > 0
        # and it reaches so far, if it is of the kind that does not go on with equal trees by design
        assert isinstance(tree, Rows) or elements > 10**12 or tree.locate(elements)[0] == 0

    @over_cases
    def test_no_elements_make_no_tree(self, best: Any) -> None:
        with pytest.raises(ValueError, match="must be greater than 0, not 0"):
            best(0, width=1, epsilon=Fraction(1))


class TestShapes(ShapeLaws):
    cases = CASES
