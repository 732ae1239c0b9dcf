"""What statistics that are released at every step share is none by itself."""

from fractions import Fraction

import pytest

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.stepped.statistic import SteppedStatistic
from shoal.mechanisms.sums.decays import Window


def test_parameters_alone_make_no_statistic() -> None:
    grid = Grid(Fraction(0), Fraction(1), 8)
    shared = SteppedStatistic(decay=Window(2), grid=grid, epsilon=Fraction(1))
    assert (shared.sum_grids, shared.rest, shared.is_exact, shared.noise_words("x")) == (
        (grid,), 2, False, "in units of x",
    )  # fmt: skip
    for missing in (
        lambda: shared.decayed,
        shared.breadth,
        lambda: shared.noise_of(1.0, None, 1.0),
        lambda: shared.releaser(bytes(32), b""),
    ):
        with pytest.raises(NotImplementedError):
            missing()
