"""The lemma on sides by brute force: what one sample changes costs epsilon over m at most, and some sample costs it.

Widths, epsilons and parts are those of the product's own classes, so that a width that is wrong there fails here.
"""

from fractions import Fraction
from itertools import product

import pytest

from shoal.mechanisms.linear.statistic import LinearStatistic
from tests.mechanisms.linear.forms import NOISED, made, total

GRIDS = (8, 9, 12)


def changes(of: LinearStatistic) -> list[tuple[int, ...]]:
    """What one sample can change the noised sides by: all of its parts, or under relation values any difference."""
    public = of.sides.public
    parts = [of.sides.parts(1, total(of, [i])) for i in range(of.grid.steps + 1)]
    if not public:
        return parts
    assert {part[0] for part in parts} == {1}, "whoever contributes what, the public side is the same"
    return [tuple(a - b for a, b in zip(one[1:], other[1:], strict=True)) for one, other in product(parts, repeat=2)]


def loss(of: LinearStatistic, change: tuple[int, ...]) -> Fraction:
    """The loss of a sample over all sides, as the decayed sums that make their noise are built."""
    pairs = zip(change, of.decayed, strict=True)
    return sum((abs(part) * sums.epsilon / sums.width for part, sums in pairs), Fraction(0))


@pytest.mark.parametrize("steps", GRIDS)
@pytest.mark.parametrize("form", NOISED)
def test_a_unit_loses_epsilon_at_most_and_some_unit_loses_it(form: str, steps: int) -> None:
    of = made(form, steps=steps)
    assert of.max_contributions * max(loss(of, change) for change in changes(of)) == of.epsilon


@pytest.mark.parametrize("bins", [2, 4, 8])
def test_a_distribution_loses_epsilon_whatever_its_tree_is(bins: int) -> None:
    of = made("distribution", steps=12, bins=bins)
    assert {of.max_contributions * loss(of, change) for change in changes(of)} == {of.epsilon}


@pytest.mark.parametrize("form", NOISED)
def test_sides_are_made_for_m_samples_of_their_own_width_and_share(form: str) -> None:
    of = made(form, m=5)
    for side, sums in zip(of.sides.noised, of.decayed, strict=True):
        assert (sums.width, sums.epsilon) == (5 * side.width, side.share * of.epsilon)


@pytest.mark.parametrize("form", NOISED)
def test_parts_of_several_samples_add_up(form: str) -> None:
    of = made(form)
    samples = [0, 3, 3, of.grid.steps]
    each = [of.sides.parts(1, total(of, [i])) for i in samples]
    assert of.sides.parts(len(samples), total(of, samples)) == tuple(map(sum, zip(*each, strict=True)))
