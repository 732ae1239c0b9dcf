"""Best: what it goes by, what it takes, and how near that is to the best choice in hindsight."""

import math
import random
import statistics
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.algorithms import MEANS
from shoal.mechanisms.slot.cell import Cap, CellParameters
from shoal.mechanisms.slot.means import best, error_forecast, levy
from shoal.mechanisms.slot.means.clipping import arranged
from shoal.mechanisms.slot.means.error_forecast import ArraysOutlook, clamped, mismatch, outlook, quantile, size
from shoal.mechanisms.slot.means.linear import ARRAY_AVERAGING
from shoal.mechanisms.slot.means.quantile import FIXED
from tests.mechanisms.slot.cell_cases import COUNTS, EPSILONS, STEPS, cells, draws, parameters
from tests.support.cover import in_a_loop
from tests.support.effort import examples

few = examples(15)
CAPS: list[Cap] = [1, 3, "median", "optimal"]
FIVE = ["baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile"]


# --- what errors are likely


@in_a_loop
@pytest.mark.parametrize("power", [3, 4, 9, 15, 300])
@pytest.mark.parametrize("counts", [[3, 1], [1], [9, 4, 1, 1]])
def test_no_epsilon_is_too_large_to_choose(counts: list[int], power: int) -> None:
    """Noise that no float tells from none must not divide by its own size: a worker would end of it."""
    for cap in CAPS:
        of = CellParameters(grid=Grid(Fraction(0), Fraction(1), 2**20), epsilon=Fraction(10**power), cap=cap)
        assert all(0 <= one.error <= 1 for one in best.candidates(counts, of))


@in_a_loop
@pytest.mark.parametrize("normal", [0.0, 0.01, 0.5, 1.0, 3.0, 19.9, 20.1, 1000.0])
def test_the_size_of_a_sum_is_its_integral(normal: float) -> None:
    """E|x + L| = |x| + exp(-|x|) for a Laplace L of scale 1; x normal, on a fine grid."""
    x = np.linspace(0, 9, 200_001)
    density = np.exp(-x * x / 2) * math.sqrt(2 / math.pi) * (x[1] - x[0])
    density[0] /= 2
    expected = float(((normal * x + np.exp(-normal * x)) * density).sum())
    assert size(normal, 1.0) == pytest.approx(expected, rel=2e-5)
    assert size(7 * normal, 7.0) == pytest.approx(7 * expected, rel=2e-5)


@in_a_loop
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 1e5])
@pytest.mark.parametrize(("low", "high", "value"), [(0, 1, 0.5), (0.2, 0.9, 0.3), (0.6, 0.9, 0.6), (0, 0.1, 0.05)])
def test_a_clamped_error_is_its_integral(scale: float, low: float, high: float, value: float) -> None:
    """Over quantiles of the noise, close to one another."""
    uniform = (np.arange(200_000) + 0.5) / 200_000
    noise = scale * np.where(uniform < 0.5, np.log(2 * uniform), -np.log(2 * (1 - uniform)))
    expected = np.abs(np.clip(value + noise, low, high) - 0.5).mean()
    assert float(clamped(*np.array([scale, low, high, value]))) == pytest.approx(expected, rel=1e-3)


@few
@given(COUNTS, st.sampled_from(CAPS), st.floats(0, 0.5))
def test_the_mismatch_is_the_variance_of_a_difference_of_means(counts: list[int], cap: Cap, within: float) -> None:
    """Of each sample and of each user, the weight that it has in one mean less that in the other."""
    arrays = arranged(counts, parameters(cap=cap))
    kept, shares = [min(count, arrays.cap) for count in counts], [0.0] * len(counts)
    for array in arrays.arrays:
        for user in array.users:
            shares[user] = 1 / array.fill / len(arrays.arrays)
    total, square = sum(counts), 0.0
    for count, k, share in zip(counts, kept, shares, strict=True):
        samples = [share - 1 / total] * k + [-1 / total] * (count - k)
        square += within**2 * math.fsum(x * x for x in samples) + error_forecast.BETWEEN**2 * math.fsum(samples) ** 2
    assert mismatch(counts, kept, shares, within) == pytest.approx(math.sqrt(square), rel=1e-6, abs=1e-9)
    predicted = outlook(counts, arrays, parameters()).mismatch
    assert predicted == pytest.approx(mismatch(counts, kept, shares, error_forecast.WITHIN), rel=1e-12)


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize(("count", "epsilon"), [(1, 1), (2, 1), (5, 1), (30, 2), (200, 5), (200, 1)])
@pytest.mark.parametrize("q", [Fraction(1, 10), Fraction(1, 2)])
def test_the_error_of_quantiles_is_as_simulated(
    count: int, epsilon: int, q: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Normal array means, private quantiles of each data set, clipping, noise, clamping."""
    monkeypatch.setattr(error_forecast, "SKEW", 0.0)
    rng, sd, errors = np.random.default_rng(1), 0.05, []
    for _ in range(2000):
        means = np.sort(np.clip(0.5 + sd * rng.normal(size=count), 0, 1))
        ends, found = np.concatenate(([0.0], means, [1.0])), []
        for wanted in (q * count, count - q * count):
            law = np.diff(ends) * np.exp(-epsilon / 8 * np.abs(np.arange(count + 1) - float(wanted)))
            gap = rng.choice(count + 1, p=law / law.sum())
            found.append(rng.uniform(ends[gap], ends[gap + 1]))
        low, high = sorted(found)
        noise = rng.laplace(0, 2 * (high - low) / (count * epsilon))
        errors.append(abs(np.clip(np.clip(means, low, high).mean() + noise, low, high) - means.mean()))
    assert quantile(ArraysOutlook(count, 0.0, sd), q, *[Fraction(epsilon)] * 2) == pytest.approx(
        statistics.fmean(errors), rel=0.2
    )


@in_a_loop
@pytest.mark.parametrize("bins", [1, 2, 9])
@pytest.mark.parametrize(("count", "epsilon"), [(2, 1), (40, 1)])
def test_the_error_of_levy_is_noise_or_a_bin_that_was_missed(bins: int, count: int, epsilon: int) -> None:
    found = error_forecast.levy(ArraysOutlook(count, 0.0, 0.0), 0.25, bins, *[Fraction(epsilon)] * 2)
    sure = error_forecast.levy(ArraysOutlook(count, 0.0, 0.0), 0.25, 1, *[Fraction(epsilon)] * 2)  # [1/4, 3/4]
    assert sure == pytest.approx(1 / (count * epsilon) * (1 - math.exp(-count * epsilon / 4)))
    missed = (bins - 1) * math.exp(-count * epsilon / 4)
    assert found <= sure * 1.3 + 0.5 * missed / (1 + missed)


def test_a_stated_sigma_makes_the_outlook_better_and_never_worse() -> None:
    counts = [50] * 40
    errors = [FIXED.predicted_error(counts, parameters(sigma=sigma)) for sigma in (None, 1, 1000)]
    assert errors[1] < errors[0] == errors[2]


# --- what is taken


@given(COUNTS, st.sampled_from(CAPS), EPSILONS)
@few
def test_candidates_are_all_five_and_each_foretells_its_own_error(
    counts: list[int], cap: Cap, epsilon: Fraction
) -> None:
    of = parameters(cap=cap, epsilon=epsilon)
    found = list(best.candidates(counts, of))
    caps: tuple[Any, ...] = (cap,) if isinstance(cap, int) else ("optimal", "median")
    expected = [("baseline", cap), *((name, one) for one in caps for name in FIVE[1:])]
    assert [(one.name, one.cap) for one in found] == expected
    for one in found:
        if one.name in ("levy", "fixed-quantile"):
            predicted = MEANS[one.name].predicted_error(counts, replace(of, cap=one.cap))
            assert predicted == pytest.approx(65 * one.error, rel=1e-12)
    # the first of those that are least to nine digits
    taken = best.chosen(counts, of)
    least = min(float(f"{one.error:.8e}") for one in found)
    assert taken == next(one for one in found if float(f"{one.error:.8e}") == least)
    assert best.predicted_error(counts, of) == 65 * taken.error


def test_ties_go_to_the_first_whatever_the_last_digits_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def tied(*_: object) -> list[best.Candidate]:
        errors = [0.3, 0.2 * (1 + 1e-12), 0.2]
        return [best.Candidate(str(i), 1, error, levy.release) for i, error in enumerate(errors)]

    monkeypatch.setattr(best, "candidates", tied)
    assert best.chosen([1], parameters()).name == "1"


@few
@given(cells(), st.sampled_from(CAPS), EPSILONS)
@example([[STEPS] * 50] * 20, "optimal", Fraction(10))  # the choice would be another one of fewer samples
def test_the_choice_has_all_of_epsilon_and_is_named(users: list[list[int]], cap: Cap, epsilon: Fraction) -> None:
    of = parameters(cap=cap, epsilon=epsilon)
    choice = best.chosen([len(user) for user in users], of)
    found = best.release(users, of, draws())
    expected = choice.release(users, replace(of, cap=choice.cap), draws())
    assert found == replace(
        expected, details={**expected.details, "mechanism": f"best: {expected.details['mechanism']}"}
    )
    assert found.details["mechanism"].startswith(f"best: {choice.name}, ")
    # values have no say
    assert best.release([[0] * len(user) for user in users], of, draws()).details == found.details


@in_a_loop
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**30), Fraction(10**6)])
@pytest.mark.parametrize("counts", [[1], [1] * 9, [500] * 40])
def test_a_choice_is_made_at_any_epsilon(counts: list[int], epsilon: Fraction) -> None:
    assert 0 <= best.predicted_error(counts, parameters(epsilon=epsilon)) <= 65 / 2


def test_scaling_laws_of_the_outlook() -> None:
    """More samples of each user help whoever clips, and no other; more users help all."""
    of = parameters()
    counts = [100, 200, 300, 400] * 20
    many = [16 * count for count in counts]
    assert ARRAY_AVERAGING.predicted_error(many, of) == pytest.approx(ARRAY_AVERAGING.predicted_error(counts, of))
    assert levy.predicted_error(many, of) < levy.predicted_error(counts, of) / 2
    assert best.predicted_error(many, of) < best.predicted_error(counts, of) / 2
    assert best.predicted_error(counts * 4, of) < best.predicted_error(counts, of) / 2


def errors(users: list[list[int]], of: CellParameters) -> dict[tuple[str, Cap], float]:
    """The mean error of each candidate over some slots."""
    samples = [sample for user in users for sample in user]
    mean = statistics.fmean(samples) * 65 / STEPS
    found = {}
    for one in best.candidates([len(user) for user in users], of):
        capped = replace(of, cap=one.cap)
        values = [one.release(users, capped, draws(slot=slot)).value for slot in range(80)]
        found[one.name, one.cap] = statistics.fmean(abs(value - mean) for value in values)
    return found


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize("between", [0.0, 0.05])
@pytest.mark.parametrize(
    ("counts", "epsilon"),
    [([30] * 60, 1), ([1, 2, 4, 8, 16, 200] * 4, 1), ([400] * 25, 2), ([3] * 12, Fraction(1, 2))],
)
def test_best_is_near_the_best_in_hindsight(between: float, counts: list[int], epsilon: Fraction) -> None:
    """Independent samples, and users who differ; 80 slots tell errors apart by a fifth or so."""
    rng, users = random.Random(1), []
    for count in counts:
        centre = 0.4 + between * rng.gauss(0, 1)
        users.append([int(STEPS * min(max(rng.gauss(centre, 0.2), 0), 1)) for _ in range(count)])
    of = parameters(epsilon=Fraction(epsilon))
    found, taken = errors(users, of), best.chosen(counts, of)
    assert found[taken.name, taken.cap] <= 1.4 * min(found.values())
    assert found[taken.name, taken.cap] < max(found.values())
