"""Laws of the counters that a rho is spent on, by brute force over all that a unit can do."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.counters import growing_root
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.counters.gaussian_binary import GaussianBinaryTree
from shoal.mechanisms.counters.growing_root import GrowingRoot
from shoal.mechanisms.counters.square_root import draws, prefixes
from shoal.mechanisms.noise.gaussian import DiscreteGaussian
from tests.mechanisms.counters.test_square_root import matrix, times
from tests.mechanisms.mechanism_cases import KEY, epoch_key
from tests.support.cover import in_a_loop
from tests.support.effort import examples, tries

RHO = Fraction(1, 40)


class TestBinary:
    """The binary counter with Gaussian noise."""

    @in_a_loop
    @pytest.mark.parametrize("capacity", [1, 3, 7, 15])
    @pytest.mark.parametrize("elements", [1, 2, 3, 4])
    def test_no_unit_moves_its_nodes_further(self, capacity: int, elements: int) -> None:
        """Every set of distinct elements in two trees, each moved by one step; moves of one sign are the worst."""
        tree, plain = GaussianBinaryTree(capacity, 1, elements, RHO), BinaryTree(capacity, 1, Fraction(1))
        worst, concentrated = 0, elements**2 * tree.height
        for chosen in itertools.combinations(range(1, 2 * capacity + 1), min(elements, 2 * capacity)):
            moved: dict[tuple[int, int], int] = {}
            for element in chosen:
                for node in plain.nodes_of(element):
                    moved[node] = moved.get(node, 0) + 1
            worst = max(worst, sum(count**2 for count in moved.values()))
        assert worst <= tree.squared_sensitivity <= concentrated
        if elements == 1:
            assert worst == tree.squared_sensitivity
        # and what is spent is rho, exactly
        assert tree.squared_sensitivity / (2 * tree.sigma2) == RHO

    def test_steps_and_signs(self) -> None:
        """Changes of any size and sign up to `steps` move them no further."""
        tree, plain = GaussianBinaryTree(7, 3, 3, RHO), BinaryTree(7, 1, Fraction(1))
        for chosen in itertools.combinations(range(1, 8), 3):
            for changes in itertools.product((-3, -1, 2, 3), repeat=3):
                moved = dict.fromkeys(range(1, 8), 0)
                for element, change in zip(chosen, changes, strict=True):
                    for _, node in plain.nodes_of(element):
                        moved[node] += change
                assert sum(change**2 for change in moved.values()) <= tree.squared_sensitivity

    def test_a_release_has_the_draws_of_its_nodes(self) -> None:
        tree = GaussianBinaryTree(5, 100, 2, RHO)
        counter, node = tree.counter(epoch_key), DiscreteGaussian(tree.sigma2, epoch_key(0)).draw
        assert [counter.noise(t) for t in (0, 3, 4, 7)] == [
            0, node(2) + node(3), node(4), node(4) + node(6) + node(7),
        ]  # fmt: skip
        assert counter.noise(8) == counter.noise(7) + DiscreteGaussian(tree.sigma2, epoch_key(1)).draw(1)
        assert tree.scales(7).variance == tree.variance(7) == 3 * tree.sigma2

    def test_spread_elements_need_less_than_those_in_one_place(self) -> None:
        """Sixteen samples of each of a thousand users: a quarter less variance."""
        tree = GaussianBinaryTree(16_000, 1, 16, RHO)
        assert tree.squared_sensitivity == 16 * (1 + 2 + 4 + 8 + 10 * 16)
        assert tree.squared_sensitivity < Fraction(4, 5) * 16**2 * tree.height

    @in_a_loop
    @pytest.mark.parametrize("wrong", [{"capacity": 0}, {"steps": 0}, {"elements": 0}, {"rho": Fraction(0)}])
    def test_what_makes_no_sense_is_refused(self, wrong: dict[str, int]) -> None:
        with pytest.raises(ValueError, match="must be greater than 0"):
            GaussianBinaryTree(**({"capacity": 1, "steps": 1, "elements": 1, "rho": RHO} | wrong))  # type: ignore[arg-type]


class TestRoot:
    """The growing square-root counter."""

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(growing_root, "LARGEST", 12)

    def test_epochs_double_up_to_the_largest(self) -> None:
        tree = GrowingRoot(1, RHO, horizon=3)
        assert [tree.epoch(number).capacity for number in range(5)] == [3, 6, 12, 12, 12]
        ends = list(itertools.accumulate([3, 6, 12, 12, 12], initial=0))
        for epoch, (start, end) in enumerate(itertools.pairwise(ends)):
            assert [tree.locate(t) for t in range(start + 1, end + 1)] == [
                (epoch, t) for t in range(1, end - start + 1)
            ]
        assert tree.locate(0) == (0, 0)
        assert GrowingRoot(1, RHO, horizon=10**9).epoch(10**6).capacity == 12

    @examples(30)
    @given(data=st.data())
    def test_a_unit_costs_rho_wherever_its_changes_are(self, data: st.DataObject) -> None:
        """Changes that sum to the width, over all epochs: the squares over 2 sigma2 sum to rho at most, exactly."""
        tree = GrowingRoot(data.draw(st.integers(1, 9)), RHO, horizon=data.draw(st.integers(1, 5)))
        left, spent = tree.width, Fraction(0)
        for number in range(3):
            epoch = tree.epoch(number)
            d = [0] * epoch.capacity
            for _ in range(3):
                change = data.draw(st.integers(-left, left))
                d[data.draw(st.integers(0, epoch.capacity - 1))] += change
                left -= abs(change)
            spent += sum(moved**2 for moved in times(matrix(epoch.root), d)) / (2 * epoch.sigma2)
        assert spent <= RHO

    def test_one_change_in_the_first_element_costs_all_of_rho(self) -> None:
        epoch = GrowingRoot(5, RHO, horizon=4).epoch(2)
        moved = times(matrix(epoch.root), [5] + [0] * (epoch.capacity - 1))
        assert sum(one**2 for one in moved) / (2 * epoch.sigma2) == RHO == epoch.rho

    def test_the_noise_is_that_of_its_epochs(self) -> None:
        tree, expected, total = GrowingRoot(1000, RHO, horizon=3), [0], 0
        for number in range(4):
            epoch = tree.epoch(number)
            sums = list(prefixes(epoch.root, draws(epoch, epoch_key(number))))
            expected += [total + one for one in sums]
            total += sums[-1]
        counter = tree.counter(epoch_key)
        assert [counter.noise(t) for t in range(len(expected))] == expected
        # and asked in any order it is the same
        assert [counter.noise(t) for t in (20, 2, 11)] == [expected[t] for t in (20, 2, 11)]

    def test_variance_is_that_of_the_noise(self) -> None:
        tree, many = GrowingRoot(1 << 10, RHO, horizon=5), tries(1500)
        keys = [lambda epoch, n=n: KEY[:20] + n.to_bytes(8, "big") + epoch.to_bytes(4, "big") for n in range(many)]
        found = np.array([[counter.noise(t) for t in (1, 5, 6, 15, 40)] for counter in map(tree.counter, keys)])
        for t, column in zip((1, 5, 6, 15, 40), found.T.astype(float), strict=True):
            assert np.mean(column**2) == pytest.approx(tree.variance(t), rel=6 * (2 / many) ** 0.5)
            assert tree.scales(t).variance == tree.variance(t)

    @in_a_loop
    @pytest.mark.parametrize("wrong", [{"width": 0}, {"rho": Fraction(0)}, {"horizon": 0}])
    def test_what_makes_no_sense_is_refused(self, wrong: dict[str, int]) -> None:
        with pytest.raises(ValueError, match="must be greater than 0"):
            GrowingRoot(**({"width": 1, "rho": RHO, "horizon": 1} | wrong))  # type: ignore[arg-type]
