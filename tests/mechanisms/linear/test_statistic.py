"""What statistics that are released at every step share is none by itself."""

from fractions import Fraction

import pytest

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.decayed_sum import Stepped
from shoal.mechanisms.linear.stepped import PlannedStatistic
from shoal.mechanisms.parts.of import Mean
from shoal.mechanisms.sums.decays import Window


def test_parameters_alone_make_no_statistic() -> None:
    grid = Grid(Fraction(0), Fraction(1), 8)
    with pytest.raises(TypeError, match="abstract methods breadth, decayed, noise_of, releaser"):
        PlannedStatistic(decay=Window(2), grid=grid, epsilon=Fraction(1))  # type: ignore[abstract]


def test_what_statistics_share_is_that_of_a_mean_of_one_sum() -> None:
    grid = Grid(Fraction(0), Fraction(1), 8)
    shared = Stepped(statistic=Mean, decay=Window(2), grid=grid, epsilon=Fraction(1))
    assert (shared.sum_grids, shared.rest, shared.is_exact, shared.noise_words("x")) == (
        (grid,), 2, False, "in units of x",
    )  # fmt: skip
