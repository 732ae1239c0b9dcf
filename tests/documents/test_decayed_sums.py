"""Decayed sums against an independent reading of Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013).

Its text describes a dyadic tree of intervals, a recursion for prefixes, and which nodes each algorithm adds up; the
tables are pictures. Here the intervals are made as it says, and compared with the nodes that shoal adds up.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.noise import laplace
from shoal.mechanisms.sums.patent.all_window_sum import AllWindowSum
from shoal.mechanisms.sums.patent.exponential_sum import ExponentialSum
from shoal.mechanisms.sums.patent.polynomial_sum import PolynomialSum
from shoal.mechanisms.sums.patent.window_sum import DyadicWindow
from shoal.mechanisms.sums.sums import UNIT
from tests.support.cover import in_a_loop

Interval = tuple[int, int]  # its first and last step

ONE = Fraction(1)
FINE = 1 << 20  # grid steps of the range: noise is then as good as continuous


def prefix(first: int, height: int, u: int) -> Iterator[Interval]:
    """s(u, T): the nodes of the tree over 2**height leaves from `first` on that make up [first, u]."""
    sizes = [2**k for k in range(height + 1)]
    if u - first + 1 in sizes:
        yield first, u
        return
    size = max(size for size in sizes if first + size - 1 < u)
    yield first, first + size - 1
    yield from prefix(first + size, size.bit_length() - 1, u)


def suffix(height: int, last: int, u: int) -> Iterator[Interval]:
    """The same from the right end of the tree whose last leaf is `last`, for [u, last]."""
    for low, high in prefix(1, height, last - u + 1):
        yield last + 1 - high, last + 1 - low


def size(interval: Interval) -> int:
    return interval[1] - interval[0] + 1


def is_left(interval: Interval) -> bool:
    """Whether a node of the tree from step 1 on precedes its sibling."""
    return (interval[0] - 1) // size(interval) % 2 == 0


@given(st.integers(1, 40), st.integers(0, 6), st.data())
def test_assertion_1_a_prefix_is_left_nodes_of_different_levels(first: int, height: int, data: st.DataObject) -> None:
    u = data.draw(st.integers(first, first + 2**height - 1))
    nodes = list(prefix(first, height, u))
    assert [step for low, high in nodes for step in range(low, high + 1)] == list(range(first, u + 1))
    assert len({size(node) for node in nodes}) == len(nodes) <= math.log2(u - first + 1) + 1
    # then all but the whole tree precede their sibling
    assert all((low - first) // size((low, high)) % 2 == 0 for low, high in nodes)


# ---------------------------------------------------------------- WindowSum


@in_a_loop
@pytest.mark.parametrize("w", range(6))
def test_a_window_is_the_end_of_one_block_and_the_beginning_of_the_next(w: int) -> None:
    length = 2**w
    sums = DyadicWindow(1, ONE, length)
    for j in range(1, 4 * length + 1):
        block, within = divmod(j - 1, length)
        begin = block * length
        nodes = set(prefix(begin + 1, w, j))
        if block and within + 1 < length:
            nodes |= set(suffix(w, begin, j - length + 1))
        assert {interval(at, w) for at in sums.places(j)} == nodes
        # the standard deviation is O(log**1.5 W), whatever j
        assert len(nodes) <= 2 * (w + 1)


def interval(place: tuple[int, int], w: int) -> Interval:
    """What a node of shoal's covers: its number in a block's tree, the root being 1."""
    block, node = place
    height = w + 1 - node.bit_length()
    low = block * 2**w + (node << height) - 2**w + 1
    return low, low + 2**height - 1


@in_a_loop
@pytest.mark.parametrize("w", range(6))
def test_equation_13_a_step_is_in_log_w_plus_1_nodes(w: int) -> None:
    sums, epsilon = DyadicWindow(3, Fraction(1, 2), 2**w), 0.5
    assert {len(sums.column(step)) for step in range(1, 2 ** (w + 2))} == {w + 1}
    # Theorem 1, for values that move by 3
    assert float(sums.scale) == 3 * (w + 1) / epsilon


# ---------------------------------------------------------------- AllWindowSum


@cache
def zeta(exponent: float) -> float:
    """The sum of i**-exponent: a part of it, and the integral of the rest, by Euler and Maclaurin."""
    n = 100_000.0
    rest = n ** (1 - exponent) / (exponent - 1) - n**-exponent / 2
    return math.fsum(float(i) ** -exponent for i in range(1, int(n) + 1)) + float(rest)


@pytest.mark.parametrize("delta", [1.25, 1.5, 2.0])
def test_level_k_of_all_windows_has_its_part_of_zeta(delta: float) -> None:
    scales = AllWindowSum(FINE, ONE, exponent=Fraction(delta)).scales_by_height
    shares = [FINE / float(scale) for scale in scales]
    for k, share in enumerate(shares, start=1):
        assert share == pytest.approx(k**-delta / zeta(delta), rel=1e-3)
    assert sum(shares) <= 1


@given(st.integers(1, 70), st.integers(0, 200))
def test_any_window_is_a_suffix_and_a_prefix_of_blocks_at_most_twice_as_long(length: int, before: int) -> None:
    end = before + length
    height = (length - 1).bit_length()  # W' = 2**height lies in [W, 2 W]
    border = (end - 1) // 2**height * 2**height
    parts = {(part.step - 2**part.place + 1, part.step) for part in AllWindowSum(1, ONE).parts(end, length)}
    if before + 1 > border:  # inside one block, where the text says nothing: there are no more nodes
        assert len(parts) <= 2 * height + 1
        return
    assert parts == {*suffix(height, border, before + 1), *prefix(border + 1, height, end)}
    assert all(size(part) <= 2**height for part in parts)


# ---------------------------------------------------------------- ExponentialSum


def holders(step: int, steps: int) -> list[Interval]:
    """The left nodes of the tree over 1 .. steps that hold a step, the smallest first."""
    dyadic = ((step - 1 >> k << k, k) for k in range(steps.bit_length()))
    return [node for low, k in dyadic if is_left(node := (low + 1, low + 2**k))]


def test_assertion_2_ages_double() -> None:
    for step in range(1, 300):
        for k, (_, u) in enumerate(holders(step, 1 << 12), start=1):
            assert u - step >= 2 ** (k - 1) - 1


@pytest.mark.parametrize("alpha", [Fraction(7, 10), Fraction(9, 10), Fraction(99, 100)])
def test_an_exponential_sum_has_the_sensitivity_and_variance_of_its_left_nodes(alpha: Fraction) -> None:
    sums, a, steps = ExponentialSum(FINE, ONE, alpha), float(alpha), 1 << 13
    # each step weighs a**(u - i) in every left node that ends at u; the worst is the first
    moved = [sum(a ** (u - step) for _, u in holders(step, steps)) for step in range(1, 200)]
    assert max(moved) == moved[0] == pytest.approx(sums.sensitivity / UNIT, rel=1e-6)
    # each release is the decayed sum of the prefix's nodes
    unit = laplace.variance(sums.scale) / UNIT**2
    for j in (*range(1, 70), 1023, 1024, 4095):
        nodes = list(prefix(1, 13, j))
        assert all(map(is_left, nodes))
        assert sums.variance(j) == pytest.approx(unit * sum(a ** (2 * (j - u)) for _, u in nodes), rel=1e-5)


def test_equation_37_bounds_the_sensitivity_by_a_logarithm() -> None:
    """log of 1 / (1 - alpha), and a constant, for alpha in (2/3, 1)."""
    for alpha in (Fraction(7, 10), *(1 - Fraction(1, 10**k) for k in range(1, 8))):
        sensitivity = ExponentialSum(1, ONE, alpha).sensitivity / UNIT
        assert sensitivity <= math.log2(1 / (1 - alpha)) + 1


# ---------------------------------------------------------------- PolynomialSum


def border(c: float, beta: float, j: int) -> int:
    """b(j) = max{i: g(i) >= (1 - beta)**j}, by looking."""
    i = 0
    while (i + 2.0) ** -c >= (1 - beta) ** j * (1 - 1e-12):
        i += 1
    return i


@pytest.mark.parametrize(("c", "beta"), [(Fraction(2), Fraction(1, 5)), (Fraction(3, 2), Fraction(1, 10))])
def test_windows_of_a_polynomial_sum_lie_between_the_bs(c: Fraction, beta: Fraction) -> None:
    windows = PolynomialSum(1, ONE, c, beta, 400).windows
    borders = [-1, *(border(float(c), float(beta), j) for j in range(60))]
    read = [(low + 1, high - low, j) for j, (low, high) in enumerate(pairwise(borders)) if high > low]
    for window, (age, length, j) in zip(windows, read, strict=False):
        assert (window.age, window.window.length) == (age, length)
        assert window.weight / 2**96 == pytest.approx((1 - float(beta)) ** j, rel=1e-9)


@pytest.mark.parametrize("beta", [0.1, 0.3])
def test_equation_42_needs_another_exponent_than_equation_41_prints(beta: float) -> None:
    """(1 - beta) F <= F' <= F with (1 - beta)**j for ages from b(j - 1) + 1 to b(j); with j - 1, as printed, F' > F."""

    def holds(weight: Callable[[int], float]) -> bool:
        weights = (((i + 1.0) ** -2, weight(j)) for j in range(1, 30) for i in ages(j))
        return all((1 - beta) * g <= w * (1 + 1e-9) and w <= g * (1 + 1e-9) for g, w in weights)

    def ages(j: int) -> range:
        return range(border(2, beta, j - 1) + 1, border(2, beta, j) + 1)

    assert holds(lambda j: (1 - beta) ** j)
    assert not holds(lambda j: (1 - beta) ** (j - 1))


def test_noise_of_one_scale_as_printed_has_a_variance_that_grows_with_time() -> None:
    """Why each window has its own budget: nodes of all windows at one scale add up to more the longer it runs."""
    c, beta = Fraction(2), Fraction(1, 5)
    printed, ours = [], []
    for horizon in (10**3, 10**6):
        sums = PolynomialSum(FINE, ONE, c, beta, horizon)
        heights = [(aged.window.length - 1).bit_length() + 1 for aged in sums.windows]
        weights = [aged.weight / 2**96 for aged in sums.windows]
        common = sum(w * h for w, h in zip(weights, heights, strict=True))  # the sensitivity, steps being weighed
        printed.append(2 * common**2 * sum(heights))
        ours.append(2 * sum(h * w ** (2 / 3) for w, h in zip(weights, heights, strict=True)) ** 3)
    assert printed[1] > 2 * printed[0]
    assert ours[1] < 1.02 * ours[0]
