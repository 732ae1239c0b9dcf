"""Clipped means of arrays: who lies where, sensitivity by brute force, and what Levy and the quantiles make of them."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.error_bars import noise_quantile, noise_sd
from shoal.mechanisms.selection.exact_quantile import nearest, runs
from shoal.mechanisms.selection.median import costs
from shoal.mechanisms.slot.cap import candidates
from shoal.mechanisms.slot.cell import Algorithm, Cap, CellParameters, Draws, Users
from shoal.mechanisms.slot.means import levy, quantile
from shoal.mechanisms.slot.means.clipping import ONE, arranged, clip, sharpest_cap
from shoal.mechanisms.slot.means.quantile import DEPENDENT, FIXED, TENTH, Quantile
from tests.mechanisms.slot.cell_cases import (
    COUNTS,
    EPSILONS,
    KEY,
    PATTERNS,
    STEPS,
    all_cells,
    cells,
    draws,
    farthest_neighbours,
    few,
    parameters,
)
from tests.support.cover import in_a_loop

LEVY = Algorithm(levy.release, levy.predicted_error)
WAYS: list[Algorithm | Quantile] = [LEVY, FIXED, DEPENDENT]
every = pytest.mark.parametrize("way", WAYS, ids=["levy", "fixed-quantile", "epsilon-quantile"])
CAPS: list[Cap] = [1, 2, 3, "median", "optimal"]


class Silent(Draws):
    """Draws of a cell without the noise, which tell its scale and which words were read."""

    def __init__(self, slot: int = 0) -> None:
        super().__init__(KEY, b"cell", slot)
        self.scales: list[Fraction] = []
        self.purposes: list[tuple[str, int]] = []

    def words(self, purpose: str, part: int = 0) -> Iterator[int]:
        self.purposes.append((purpose, part))
        return super().words(purpose, part)

    def laplace(self, purpose: str, scale: Fraction, part: int = 0) -> int:
        self.scales.append(scale)
        return 0


def interval(way: Algorithm | Quantile, users: Users, of: CellParameters, silent: Silent) -> int:
    """The width of the interval in grid steps, from the scale of the noise, which is for half of epsilon."""
    way.release(users, of, silent)
    return int(silent.scales[-1] * of.epsilon / 2 / ONE)


# --- the arrays


@few
@given(COUNTS)
def test_the_sharpest_cap_is_best_of_all_numbers(counts: list[int]) -> None:
    def arrays_by_root(cap: int) -> Fraction:
        return Fraction(sum(min(count, cap) for count in counts) ** 2, cap)

    best = max(range(1, max(counts) + 1), key=arrays_by_root)
    assert arrays_by_root(sharpest_cap(counts)) == arrays_by_root(best)
    assert sharpest_cap(counts) == min(
        cap for cap, _ in candidates(counts) if arrays_by_root(cap) == arrays_by_root(best)
    )


@few
@given(cells(), st.sampled_from(CAPS))
def test_an_array_mean_is_that_of_the_samples_kept_rounded_down(users: list[list[int]], cap: Cap) -> None:
    arrays = arranged([len(user) for user in users], parameters(cap=cap))
    for array, mean in zip(arrays.arrays, arrays.means(users), strict=True):
        kept = [sample for user in array.users for sample in users[user][: arrays.cap]]
        assert 0 <= Fraction(sum(kept), len(kept)) - Fraction(mean, ONE) < Fraction(1, ONE)


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("counts", PATTERNS)
def test_a_user_moves_one_array_and_the_clipped_sum_by_the_width(cap: Cap, counts: tuple[int, ...]) -> None:
    steps = 1 if sum(counts) > 4 else 2
    arrays = arranged(counts, parameters(steps=steps, cap=cap))
    means = {users: arrays.means(users) for users in all_cells(counts, steps)}
    for low, high in [(0, steps * ONE), (ONE // 3, ONE // 2), (0, 1)]:
        sums = {users: clip(found, low, high) for users, found in means.items()}
        # any user can take an array from below the interval to above where the array is the user's; one always is
        alone = any(len(array.users) == 1 for array in arrays.arrays)
        assert (farthest_neighbours(sums) == high - low) if alone else (farthest_neighbours(sums) <= high - low)
    for place in range(len(arrays.arrays)):
        assert farthest_neighbours({users: found[place] for users, found in means.items()}) <= steps * ONE
    # one array at most
    for users in itertools.islice(means, 40):
        for user in range(len(users)):
            other = (*users[:user], tuple(steps - sample for sample in users[user]), *users[user + 1 :])
            assert sum(one != two for one, two in zip(means[users], means[other], strict=True)) <= 1


# --- Levy


@few
@given(COUNTS, st.fractions(Fraction(1, 10**6), Fraction(1, 2)), st.sampled_from([None, Fraction(1), Fraction(100)]))
def test_tau_is_the_formula_rounded_up(counts: list[int], failure: Fraction, sigma: Fraction | None) -> None:
    of = replace(parameters(sigma=sigma), failure=failure)
    arrays = arranged(counts, of)
    spread = Decimal(STEPS * ONE)
    if sigma is not None:
        spread = min(spread, 2 * Decimal(int(sigma)) * STEPS * ONE / 65 + ONE)
    with localcontext(prec=80):
        logarithm = (2 * len(arrays.arrays) / (Decimal(failure.numerator) / failure.denominator)).ln()
        true = spread * (logarithm / (2 * arrays.cap)).sqrt()
    found = levy.bins(arrays, of)
    assert 0 <= found.tau - true <= 1 + Decimal(10) ** -9
    # the bins cover the range, none is wider than 2 tau, and each interval holds its bin
    assert found.count * 2 * found.tau >= found.full > (found.count - 1) * 2 * found.tau
    for index in {0, found.count // 2, found.count - 1}:
        low, high = found.interval(index)
        assert 0 <= low <= index * found.full // found.count
        assert -(-(index + 1) * found.full // found.count) <= high <= found.full
        assert high - low <= 4 * found.tau + 1


@in_a_loop
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("counts", PATTERNS)
def test_a_user_moves_each_cost_of_a_bin_by_one(cap: Cap, counts: tuple[int, ...]) -> None:
    steps = 1 if sum(counts) > 4 else 2
    arrays = arranged(counts, parameters(steps=steps, cap=cap))
    found = {users: costs(arrays.means(users), steps * ONE, 3) for users in all_cells(counts, steps)}
    assert max(farthest_neighbours({users: cost[place] for users, cost in found.items()}) for place in range(3)) == 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(4)])
def test_the_bin_costs_half_of_epsilon_at_most(epsilon: Fraction) -> None:
    """All cells of four users with a sample each, all neighbours: the exact law, without a sample."""
    laws = {}
    for means in itertools.product(range(4), repeat=4):
        weights = [math.exp(-float(epsilon) / 4 * cost) for cost in costs(means, 4, 4)]
        laws[means] = [weight / sum(weights) for weight in weights]
    worst = max(
        abs(math.log(one / other))
        for means, ones in laws.items()
        for value in range(4)
        for one, other in zip(ones, laws[value, *means[1:]], strict=True)
    )
    assert epsilon / 5 <= worst <= epsilon / 2 + Fraction(1, 10**9)


def test_the_bin_is_drawn_with_half_of_epsilon() -> None:
    # given four arrays that say 0, and two bins, of which one costs nothing and the other 4
    users, of, missed = [[0] * 50] * 4, parameters(epsilon=Fraction(1)), 0
    assert levy.bins(arranged([50] * 4, of), of).count == 2
    # when it is drawn often, its interval is told by the value without noise
    for slot in range(1500):
        missed += levy.release(users, of, Silent(slot)).value > 0
    expected = 1500 / (1 + math.exp(1))  # exp(-(1 / 2) * 4 / 2)
    assert abs(missed - expected) <= 4 * math.sqrt(expected * (1 - expected / 1500))


def test_levy_needs_less_noise_the_more_samples_users_have() -> None:
    scales = {}
    for factor in (1, 4, 16):
        silent = Silent()
        levy.release([[STEPS // 2] * 200 * factor] * 30, parameters(epsilon=Fraction(20)), silent)
        scales[factor] = float(silent.scales[0])
    assert scales[4] / scales[1] == pytest.approx(1 / 2, rel=1e-6)
    assert scales[16] / scales[1] == pytest.approx(1 / 4, rel=1e-6)


# --- quantiles


@pytest.mark.parametrize("way", [FIXED, DEPENDENT])
def test_a_user_moves_one_cell_of_a_quantile(way: Quantile) -> None:
    """The costs move by one then (test_exact_quantile.py)."""
    seen = []

    def noting(values: list[int], count: int, q: Fraction, epsilon: Fraction, words: Iterator[int]) -> int:
        seen.append((tuple(values), count, q, epsilon))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantile, "choose", noting)
        of = parameters(steps=2, epsilon=Fraction(3), cap=2)
        for users in all_cells((2, 1, 1), 2):
            way.release(users, of, Silent())
    q = {FIXED: Fraction(1, 10), DEPENDENT: Fraction(1, 2)}[way]
    assert {(count, wanted, epsilon) for _, count, wanted, epsilon in seen} == {
        (2, q, Fraction(3, 4)),
        (2, 1 - q, Fraction(3, 4)),
    }
    # an array that says the end of the range is in the last cell
    assert {values for values, *_ in seen} == set(itertools.product(range(2), repeat=2))


def test_quantiles_are_drawn_with_a_quarter_of_epsilon_each() -> None:
    # given ten arrays of equal values on a grid of two steps, each in the lower one: rank 0 .. 10 there, 10 above
    users, of, wide = [[0]] * 10, parameters(steps=2, epsilon=Fraction(8)), 0
    for slot in range(1500):
        wide += interval(FIXED, users, of, Silent(slot)) == 2
    lower, upper = (1 / (1 + math.exp(cost)) for cost in (9, 1))  # of the upper step: exp(-(8 / 4) / 2 * cost)
    expected = 1500 * (lower * (1 - upper) + upper * (1 - lower))
    assert abs(wide - expected) <= 4 * math.sqrt(expected)


@given(st.integers(1, 500), EPSILONS)
def test_so_many_lie_outside_as_clipping_one_more_is_worth(count: int, epsilon: Fraction) -> None:
    q = quantile.dependent(count, epsilon)
    assert q == min(Fraction(math.ceil(2 / epsilon), count), Fraction(1, 2))


@every
def test_an_interval_holds_a_grid_step_at_least_and_its_ends_are_in_order(way: Algorithm | Quantile) -> None:
    widths = Counter(interval(way, [[5], [5], [6]], parameters(steps=9), Silent(slot)) for slot in range(60))
    assert min(widths) >= 1
    assert max(widths) <= 9
    # equal values and epsilon enough: that one step, by the general path
    assert interval(FIXED, [[5]] * 5, parameters(steps=9, epsilon=Fraction(500)), Silent()) == 1


# --- the shares of epsilon


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(7)])
def test_interval_and_noise_cost_epsilon_together(epsilon: Fraction) -> None:
    """All cells of three users with a sample each, all neighbours, all intervals and noisy sums: never more."""

    def law(values: tuple[int, ...], q: Fraction) -> list[float]:
        found, wanted = runs(values, 3), 3 * q
        weights = {run.start: math.exp(-float(epsilon / 8 * abs(nearest(run, wanted) - wanted))) for run in found}
        cells = [weights[max(start for start in weights if start <= cell)] for cell in range(3)]
        return [weight / sum(cells) for weight in cells]

    def chosen(values: tuple[int, ...]) -> dict[tuple[int, int], float]:
        found: dict[tuple[int, int], float] = {}
        for (i, p), (j, r) in itertools.product(enumerate(law(values, TENTH)), enumerate(law(values, 1 - TENTH))):
            found[min(i, j), max(i, j) + 1] = found.get((min(i, j), max(i, j) + 1), 0) + p * r
        return found

    worst = 0.0
    laws = {values: chosen(values) for values in itertools.product(range(3), repeat=3)}
    for values, one in laws.items():
        for value in range(3):
            other = (value, *values[1:])
            for (low, high), p in one.items():
                moved = abs(clip(values, low, high) - clip(other, low, high))
                loss = abs(math.log(p / laws[other][low, high])) + moved * float(epsilon) / (2 * (high - low))
                worst = max(worst, loss)
    assert epsilon / 2 <= worst <= epsilon + Fraction(1, 10**9)


@every
@given(EPSILONS)
@few
def test_the_shares_sum_to_epsilon_exactly(way: Algorithm | Quantile, epsilon: Fraction) -> None:
    shares = []

    def quantile_noting(_values: object, _cells: int, _q: object, share: Fraction, _words: object) -> int:
        shares.append(share)
        return 2

    def bin_noting(_means: object, full: int, _count: int, share: Fraction, _words: object) -> int:
        shares.append(share / 2)  # what `median_bin` costs
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantile, "choose", quantile_noting)
        patch.setattr(levy, "median_bin", bin_noting)
        silent, of = Silent(), parameters(steps=9, epsilon=epsilon)
        way.release([[3]] * 5, of, silent)
    low, high = levy.bins(arranged([1] * 5, of), of).interval(0) if way is LEVY else (2 * ONE, 3 * ONE)
    assert sum(shares) + (high - low) / silent.scales[0] == epsilon


# --- what is released


@every
@few
@given(cells(), st.sampled_from(CAPS), EPSILONS, st.booleans())
def test_a_release_is_the_clipped_mean_with_noise_for_half_of_epsilon(
    way: Algorithm | Quantile, users: list[list[int]], cap: Cap, epsilon: Fraction, clamps: bool
) -> None:
    of, silent = parameters(epsilon=epsilon, cap=cap, clamps=clamps), Silent(7)
    found, quiet = way.release(users, of, draws()), way.release(users, of, silent)
    (scale,) = silent.scales
    arrays = arranged([len(user) for user in users], of)
    count = len(arrays.arrays)
    width = scale * epsilon / 2
    assert width.denominator == 1
    assert 1 <= width <= STEPS * ONE
    if way is LEVY:
        chosen_from = levy.bins(arrays, of)
        ends = [chosen_from.interval(index) for index in range(chosen_from.count)]
        assert width in {high - low for low, high in ends}
    # a subkey for each choice, and one for the noise
    assert len(set(silent.purposes)) == len(silent.purposes) == (1 if way is LEVY else 2)
    # the error bars are those of this noise
    unit = 65 / (STEPS * ONE * count)
    assert found.noise_sd == pytest.approx(noise_sd(((scale, 1),)) * unit, rel=1e-12)
    assert (found.high - found.low) / 2 == pytest.approx(noise_quantile(((scale, 1),)) * unit, rel=1e-6, abs=1e-12)
    assert found.samples == quiet.samples == sum(array.fill for array in arrays.arrays)
    assert found.details["error"] is None
    # a value that is clamped lies within the width of the one without noise, and in the range
    middle = (found.low + found.high) / 2
    if clamps:
        assert 0 <= found.value <= 65
        assert abs(found.value - quiet.value) <= float(width) * 65 / (STEPS * ONE) * (1 + 1e-9) + 1e-9
    else:
        assert found.value == pytest.approx(middle, rel=1e-9, abs=1e-6)


@every
@few
@given(cells(), cells(), st.sampled_from(CAPS))
def test_values_decide_nothing_that_is_public(
    way: Algorithm | Quantile, users: list[list[int]], others: list[list[int]], cap: Cap
) -> None:
    of = parameters(cap=cap)
    same = [
        [value for value, _ in zip(itertools.cycle(other), user, strict=False)]
        for user, other in zip(users, itertools.cycle(others), strict=False)
    ]
    one, other = way.release(users, of, draws()), way.release(same, of, draws())
    assert (one.samples, one.details) == (other.samples, other.details)
    assert one == way.release(users, of, draws())
    assert one != way.release(users, of, draws(slot=8))


@every
def test_what_lies_beyond_the_cap_does_not_count(way: Algorithm | Quantile) -> None:
    of = parameters(cap=2)
    assert way.release([[1, 2], [3, 4]], of, draws()) == way.release([[1, 2, 99], [3, 4, 5]], of, draws())


@in_a_loop
@every
@pytest.mark.parametrize("users", [[[7]], [[7] * 9], [[7], [7], [7]], [[STEPS]], [[0]]])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**30), Fraction(1), Fraction(10**6)])
def test_small_cells_take_the_general_path(
    way: Algorithm | Quantile, users: list[list[int]], epsilon: Fraction
) -> None:
    found = way.release(users, parameters(epsilon=epsilon), draws())
    assert 0 <= found.value <= 65
    name = {LEVY: "levy", FIXED: "fixed-quantile", DEPENDENT: "epsilon-quantile"}[way]
    assert found.details["mechanism"].startswith(f"{name}, {len(users)} array")
    assert 0 < way.predicted_error([len(user) for user in users], parameters(epsilon=epsilon)) <= 65
