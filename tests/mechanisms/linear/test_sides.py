"""The parts of a sample: integers that add up to the width, whatever the sample is."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.sides import Samples, Sides, Signed, ThreeSides, TwoSides, signed_grid
from shoal.mechanisms.moments import GRID, Moments
from shoal.mechanisms.sums.decays import Undecayed
from tests.mechanisms.linear.presence_cases import NAMES, contribution, two_sided
from tests.support.cover import in_a_loop

ENDS = st.fractions(-1000, 1000, max_denominator=1000)


@in_a_loop
@pytest.mark.parametrize("steps", [1, 2, 3, 8, 33])
@pytest.mark.parametrize("statistic", NAMES)
def test_the_parts_of_every_sample_add_up_to_the_width_and_none_is_below_0(statistic, steps):
    of = two_sided(statistic, Undecayed(), steps=steps, ends=(Fraction(0), Fraction(1)))
    sides: Any = of.sides
    for i in range(of.grid.steps + 1):
        parts = sides.parts(1, contribution(of, [i]).total)
        assert sum(parts) == sides.width
        assert min(parts) >= 0


@given(ENDS, ENDS, st.integers(1, 100))
def test_a_signed_sum_moves_by_its_width_at_most_and_some_value_moves_it_so(low, high, steps):
    low, high = sorted((low, high))
    if low == high:
        return
    largest = max(abs(low), abs(high))
    if high - low < largest / steps:
        with pytest.raises(ValueError, match="raise grid"):
            signed_grid(low, high, steps)
        return
    grid, side = signed_grid(low, high, steps)
    parts = [side.parts(1, i)[0] for i in range(grid.steps + 1)]
    assert max(map(abs, parts)) == side.width == steps
    # a part is the value at its grid point, exactly, in steps of the larger end over `steps`
    assert [part * largest / steps for part in parts] == [
        grid.low + i * (grid.high - grid.low) / grid.steps for i in range(grid.steps + 1)
    ]
    assert low <= grid.low < grid.high <= high


@in_a_loop
@pytest.mark.parametrize("sides", [TwoSides(7), ThreeSides(7), Samples(), Signed(-3, 7)])
@given(samples=st.lists(st.integers(0, 7), max_size=9))
def test_what_is_kept_of_a_step_gives_its_parts_again(sides: Sides, samples: list[int]):
    moments = Moments(7)
    total: Any = sum(samples)
    if isinstance(sides, ThreeSides):
        total = moments.unpack(sum(moments.pack([i]) for i in samples), len(samples))
    parts = sides.parts(len(samples), total)
    assert sides.parts(*sides.whole(parts)) == parts
    if isinstance(sides, ThreeSides):
        assert parts == (
            sum((7 - i) ** 2 for i in samples),
            sum(2 * i * (7 - i) for i in samples),
            sum(i * i for i in samples),
        )


def test_sums_of_all_samples_of_a_step_fit_into_the_lanes():
    moments, most = Moments(GRID), (1 << 32) - 1
    total = most * moments.pack([GRID])
    assert moments.unpack(total, most) == [most * GRID, 0]
    middle = most * moments.pack([GRID // 2])
    assert moments.unpack(middle, most) == [most * GRID // 2, most * (GRID // 2) ** 2]
    assert max(moments.unpack(middle, most)) < 1 << 63


def test_a_sum_of_a_range_that_ends_at_0_has_two_sides_and_others_one():
    for ends, names in (((0, 5), ("p", "q")), ((-5, 0), ("p", "q")), ((-5, 5), ("s",)), ((2, 5), ("s",))):
        of = two_sided("sum", Undecayed(), ends=(Fraction(ends[0]), Fraction(ends[1])))
        assert tuple(side.draw[1] for side in of.sides.noised) == names
        assert of.sums.width == 5 * 8  # m samples of as many steps as the larger end has
    with pytest.raises(ValueError, match="range is narrower than a step of the grid"):
        two_sided("sum", Undecayed(), ends=(Fraction(999), Fraction(1000)))
    assert two_sided("sum", Undecayed(), ends=(Fraction(-5), Fraction(5))).grid == Grid(Fraction(-5), Fraction(5), 16)
