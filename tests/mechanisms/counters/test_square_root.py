"""Laws of the square-root counter, by brute force over the matrix that its coefficients spell out."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.counters.square_root import SquareRoot, SquareRootCounter, draws, prefixes
from shoal.mechanisms.counters.square_root_coefficients import STEP_BITS, Root
from shoal.mechanisms.noise.gaussian import DiscreteGaussian
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.privacy.zcdp import largest_rho
from tests.mechanisms.mechanism_cases import KEY, epoch_key
from tests.support.cover import in_a_loop
from tests.support.effort import examples

Matrix = list[list[int]]
ONE, TINY = Fraction(1), Fraction(1, 10**6)
both = pytest.mark.parametrize("unit_columns", [True, False])


def matrix(root: Root) -> Matrix:
    """R, entry by entry."""
    lags = [root.values[sum(start <= lag for start in root.starts) - 1] for lag in range(root.size)]
    weights = list(root.weights())
    return [[lags[t - s] * weights[s] if s <= t else 0 for s in range(root.size)] for t in range(root.size)]


def times(rows: Matrix, x: Sequence[int]) -> list[int]:
    return [sum(a * b for a, b in zip(row, x, strict=True)) for row in rows]


@in_a_loop
@both
@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 10, 11, 40])
def test_columns_are_no_longer_than_the_first(size: int, unit_columns: bool) -> None:
    """The L2 sensitivity to one element, exactly; with unit columns all are as long as the first, or just shorter."""
    root = Root.of(size, unit_columns=unit_columns)
    squares = [sum(entry**2 for entry in column) for column in zip(*matrix(root), strict=True)]
    assert squares[0] == root.squared_column == max(squares)
    if unit_columns:
        assert min(squares) > squares[0] * (1 - 2**-15)


@pytest.mark.parametrize("capacity", [3, 12])
def test_sensitivity_of_a_unit_past_the_capacity(capacity: int) -> None:
    """All placements of changes that sum to 3 over three epochs: together they move R x by 3 columns at most."""
    tree = SquareRoot(capacity, 3, ONE, TINY)
    rows = np.array(matrix(tree.root), dtype=np.float64) / 2.0**STEP_BITS
    r = np.kron(np.eye(3), rows)
    gram, worst = r.T @ r, 0.0
    for places in itertools.combinations_with_replacement(range(3 * capacity), 3):
        for signs in itertools.product((-1, 1), repeat=3):
            d = np.zeros(3 * capacity)
            np.add.at(d, list(places), signs)
            worst = max(worst, float(d @ gram @ d))
    # reached by a unit whose changes are all in one element
    assert math.sqrt(worst) == pytest.approx(tree.l2_sensitivity, rel=1e-9)


NUMBERS = st.integers(-(1 << 70), 1 << 70)


@both
@examples(30)
@given(data=st.data())
def test_noise_moves_with_the_elements(unit_columns: bool, data: st.DataObject) -> None:
    """r(z + R d) = r(z) + A d for all integers: so a release is a function of R x + z, and costs what that costs."""
    root = Root.of(data.draw(st.integers(1, 30)), unit_columns=unit_columns)
    z = data.draw(st.lists(NUMBERS, min_size=root.size, max_size=root.size))
    d = data.draw(st.lists(st.integers(-(1 << 40), 1 << 40), min_size=root.size, max_size=root.size))
    moved = [a + b for a, b in zip(z, times(matrix(root), d), strict=True)]
    expected = [a + b for a, b in zip(prefixes(root, iter(z)), itertools.accumulate(d), strict=True)]
    assert list(prefixes(root, iter(moved))) == expected


@both
@examples(30)
@given(data=st.data())
def test_noise_is_what_the_matrix_takes_nearest_to_the_draws(unit_columns: bool, data: st.DataObject) -> None:
    root = Root.of(data.draw(st.integers(1, 40)), unit_columns=unit_columns)
    z = data.draw(st.lists(NUMBERS, min_size=root.size, max_size=root.size))
    sums = list(prefixes(root, iter(z)))
    elements = [b - a for a, b in itertools.pairwise([0, *sums])]
    rows = matrix(root)
    for t, (drawn, met) in enumerate(zip(z, times(rows, elements), strict=True)):
        assert -rows[t][t] <= 2 * (drawn - met) < rows[t][t]


def test_inputs_that_moved_would_show_in_a_float_counter() -> None:
    """Regression: the same map in floats breaks the law, and with it the claim."""
    root = Root.of(20, unit_columns=True)
    rows = np.array(matrix(root), dtype=np.float64)
    z, d = DiscreteGaussian(1 << 184, KEY).draw_block(0, 20).tolist(), [3, -1] * 10
    moved = [a + b for a, b in zip(z, times(matrix(root), d), strict=True)]
    floats = [np.rint(np.cumsum(np.linalg.solve(rows, np.array(x, dtype=np.float64)))) for x in (z, moved)]
    assert (floats[1] - floats[0]).tolist() != list(itertools.accumulate(d))


@given(visits=st.lists(st.integers(0, 60), min_size=1, max_size=20))
def test_noise_is_a_function_of_key_and_element(visits: list[int]) -> None:
    tree = SquareRoot(11, 5, Fraction(1, 3), TINY)
    counter = tree.counter(epoch_key)
    assert [counter.noise(t) for t in visits] == [tree.counter(epoch_key).noise(t) for t in visits]
    assert counter.noise(0) == 0


def test_epochs_add_up_and_share_no_draw() -> None:
    tree = SquareRoot(7, 5, ONE, TINY)
    parts = [list(prefixes(tree.root, draws(tree, epoch_key(epoch)))) for epoch in range(3)]
    counter = tree.counter(epoch_key)
    assert [counter.noise(t) for t in (7, 8, 14, 15, 21)] == [
        parts[0][6],
        parts[0][6] + parts[1][0],
        parts[0][6] + parts[1][6],
        parts[0][6] + parts[1][6] + parts[2][0],
        sum(part[6] for part in parts),
    ]
    assert len({part[6] for part in parts}) == 3


def test_each_element_has_the_draw_of_its_index() -> None:
    """Also where an epoch takes several blocks of draws."""
    tree = SquareRoot(9000, 5, ONE, TINY)
    noise, drawn = DiscreteGaussian(tree.sigma2, KEY), list(draws(tree, KEY))
    assert len(set(drawn)) == len(drawn) == 9000
    for index in (0, 1, 4095, 4096, 4097, 8191, 8192, 8999):
        assert drawn[index] == noise.draw(index)


@both
def test_the_draws_have_the_stated_sigma(unit_columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Fraction, bytes]] = []
    real = DiscreteGaussian.__init__

    def init(noise: DiscreteGaussian, sigma2: Fraction | int, subkey: bytes) -> None:
        made.append((Fraction(sigma2), subkey))
        real(noise, sigma2, subkey)

    monkeypatch.setattr(DiscreteGaussian, "__init__", init)
    tree = SquareRoot(6, 5, Fraction(1, 2), TINY, unit_columns)
    tree.counter(epoch_key).noise(13)
    longest = max(sum(entry**2 for entry in column) for column in zip(*matrix(tree.root), strict=True))
    sigma2 = 25 * longest / (2 * largest_rho(Fraction(1, 2), TINY))
    assert made == [(sigma2, epoch_key(epoch)) for epoch in range(3)]


def variances(tree: SquareRoot) -> list[float]:
    """The closed form from the matrix itself."""
    r = np.array(matrix(tree.root), dtype=np.float64) / 2.0**STEP_BITS
    rows = np.cumsum(np.linalg.inv(r), axis=0)
    errors = float(tree.sigma2) / 4.0**STEP_BITS + np.diag(r) ** 2 / 12
    found: list[float] = (rows**2 @ errors).tolist()
    return found


@in_a_loop
@both
@pytest.mark.parametrize("capacity", [1, 2, 9, 100])
def test_variance_is_that_of_the_matrix(capacity: int, unit_columns: bool) -> None:
    tree = SquareRoot(capacity, 3, ONE, TINY, unit_columns)
    exact = [0.0, *variances(tree)]
    for t in {0, 1, capacity // 2, capacity}:
        assert tree.variance(t) == pytest.approx(exact[t], rel=1e-9)
        assert tree.variance(2 * capacity + t) == pytest.approx(2 * exact[-1] + exact[t], rel=1e-9)


@in_a_loop
@both
@pytest.mark.parametrize("capacity", [1, 70, 1000])
def test_error_bars_are_those_of_the_variance(capacity: int, unit_columns: bool) -> None:
    tree = SquareRoot(capacity, 1 << 20, ONE, TINY, unit_columns)
    for t in {*range(0, 2 * capacity, 1 + capacity // 40), capacity, capacity + 1, 2 * capacity}:
        sd = math.sqrt(tree.variance(t))
        assert tree.noise_sd(t) == pytest.approx(sd, rel=2e-4)
        assert tree.noise_quantile(t) == pytest.approx(1.959964 * sd, rel=2e-4)


# Mean variance in units of what one release alone would have. The published root has 9.67, 19.66, 28.28; the one with
# unit columns, from the matrix itself, 8.948 at 2**10.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("bits", "unit_columns", "mean"),
    [
        (10, True, 8.83),
        (16, True, 18.40),
        pytest.param(20, True, 26.73, marks=pytest.mark.long),
        (16, False, 19.66),
    ],
)
def test_mean_variance_is_that_of_the_best_known(bits: int, unit_columns: bool, mean: float) -> None:
    tree = SquareRoot(1 << bits, 1 << 20, ONE, TINY, unit_columns)
    alone = float(Fraction(tree.width) ** 2 / (2 * tree.rho))
    places, weights = np.polynomial.legendre.leggauss(6)
    found = sum(w * tree.variance(round((1 + x) / 2 * tree.capacity)) for x, w in zip(places, weights, strict=True)) / 2
    assert found / alone == pytest.approx(mean, rel=0.03)


@pytest.mark.slow
@both
def test_measured_variance_is_the_closed_form(unit_columns: bool) -> None:
    """Monte Carlo over 100 epochs of 2**10 elements, within four standard errors."""
    tree = SquareRoot(1 << 10, 1 << 20, ONE, TINY, unit_columns)
    exact = np.array([tree.variance(t) for t in range(1, tree.capacity + 1)])
    measured = []
    for run in range(100):
        noise = np.array(list(prefixes(tree.root, draws(tree, derive(KEY, "root", run)))), dtype=np.float64)
        measured.append(np.mean(noise**2 / exact))
    error = float(np.std(measured)) / 10
    assert error < 0.1
    assert abs(float(np.mean(measured)) - 1) < 4 * error


def test_rounding_counts_where_steps_are_coarse() -> None:
    """With noise of a few grid steps an element's rounding shows, and the closed form has it."""
    tree = SquareRoot(64, 1, Fraction(20), Fraction(1, 100))
    exact = np.array([tree.variance(t) for t in range(1, 65)])
    runs = [np.array(list(prefixes(tree.root, draws(tree, derive(KEY, "fine", run))))) for run in range(400)]
    measured = [float(np.mean(run**2 / exact)) for run in runs]
    assert abs(np.mean(measured) - 1) < 4 * np.std(measured) / 20
    without = float(np.mean([1 - 1 / 12 / (tree.sigma2 / tree.root.values[0] ** 2 / 2**32 + Fraction(1, 12))]))
    assert without < 0.95


def test_a_counter_refuses_what_makes_no_sense() -> None:
    for capacity, width, epsilon in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="must be greater than 0"):
            SquareRoot(capacity, width, Fraction(epsilon), TINY)
    with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
        SquareRoot(1, 1, ONE, Fraction(0))
    with pytest.raises(ValueError, match="t must be 0 or more"):
        SquareRootCounter(SquareRoot(1, 1, ONE, TINY), epoch_key).noise(-1)
