"""Windows with correlated Gaussian noise: spans of a square-root counter, whose laws are in test_square_root.py."""

import itertools
from fractions import Fraction

import numpy as np
import orjson
import pytest

from shoal.mechanisms.counters.square_root import draws, prefixes
from shoal.mechanisms.counters.square_root_coefficients import STEP_BITS
from shoal.mechanisms.sums.decays import Window
from shoal.mechanisms.sums.gaussian_window import LARGEST, RootWindow
from shoal.mechanisms.sums.window import WindowSum
from tests.mechanisms.counters.test_square_root import matrix
from tests.mechanisms.mechanism_cases import epoch_key

ONE, TINY = Fraction(1), Fraction(1, 10**6)
FINE = 1 << 20


def test_the_noise_of_a_window_is_that_of_its_steps_over_epochs() -> None:
    """Each epoch's steps have e, of which x + e is a function of R x + z; a window's noise is their sum."""
    sums = RootWindow(5, ONE, TINY, 6)
    summer = sums.summer(epoch_key)
    steps: list[int] = []
    for epoch in range(3):
        running = list(prefixes(sums.tree.root, draws(sums.tree, epoch_key(epoch))))
        steps += [b - a for a, b in itertools.pairwise([0, *running])]
    assert [summer.add(0) for _ in steps] == [sum(steps[max(t - 6, 0) : t]) for t in range(1, len(steps) + 1)]


@pytest.mark.parametrize("length", [1, 5])
def test_its_variance_is_that_of_the_matrix(length: int) -> None:
    sums = RootWindow(FINE, ONE, TINY, length)
    size = sums.tree.capacity
    r = np.array(matrix(sums.tree.root), dtype=np.float64) / 2.0**STEP_BITS
    rows = np.vstack([np.zeros(size), np.tril(np.ones((size, size))) @ np.linalg.inv(r)])
    unit = float(sums.tree.sigma2) / 4.0**STEP_BITS
    found = []
    for t in range(1, 3 * size + 1):
        exact, start = 0.0, max(t - length, 0)
        for epoch in range(3):
            low, high = (min(max(place - epoch * size, 0), size) for place in (start, t))
            exact += unit * float(np.sum((rows[high] - rows[low]) ** 2))
        assert sums.variance(t) == pytest.approx(exact, rel=1e-6)
        assert sums.noise_sd(t) == pytest.approx(exact**0.5, rel=1e-5)
        assert sums.noise_quantile(t) == pytest.approx(1.96 * exact**0.5, rel=1e-3)
        found.append(exact)
    mean = sum(found[size : 2 * size]) / size
    assert sums.mean_variance == pytest.approx(mean, rel=0.02)


def test_standard_deviations_are_near_those_that_are_computed() -> None:
    sums = RootWindow(FINE, ONE, TINY, 300)
    for t in (*range(1, 100, 7), *range(290, 320, 3), *range(1150, 1300, 7), *range(1480, 1520, 3), 10**6):
        assert sums.noise_sd(t) == pytest.approx(sums.variance(t) ** 0.5, rel=2e-3)


def test_a_restart_changes_no_release_and_without_noise_it_is_the_sum() -> None:
    sums = RootWindow(5, ONE, TINY, 4)
    steady, stopping, counts = sums.summer(epoch_key), sums.summer(epoch_key), sums.counts()
    values = [3, 0, 0, 4, 1, 0, 5, 9, 0, 0, 0, 2] * 4
    for t, x in enumerate(values, start=1):
        fresh = sums.summer(epoch_key)
        fresh.restore(orjson.loads(orjson.dumps(stopping.head())), dict(stopping.kept))
        stopping = fresh
        assert stopping.add(x) == steady.add(x)
        assert counts.add(x) == sum(values[max(t - 4, 0) : t])


@pytest.mark.parametrize(("delta", "made"), [(Fraction(1, 1000), RootWindow), (Fraction(1, 10**12), WindowSum)])
def test_sharp_windows_take_gaussian_noise_where_delta_makes_it_less(delta: Fraction, made: type) -> None:
    sharp = Window(4096).sharp(FINE, ONE, delta)
    assert type(sharp) is made
    assert sharp.mean_variance <= Window(4096).sharp(FINE, ONE).mean_variance


@pytest.mark.parametrize(
    ("delta", "length", "message"),
    [
        (Fraction(0), 5, "delta must lie between 0 and 1"),
        (TINY, 0, "length must be greater than 0"),
        (TINY, LARGEST + 1, "length must be at least 0 and below"),
    ],
)
def test_what_makes_no_sense_is_refused(delta: Fraction, length: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RootWindow(1, ONE, delta, length)
    assert Window(LARGEST + 1).sharp(1, ONE, TINY).mechanism == "hats"
