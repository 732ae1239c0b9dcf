"""How good decayed sums are: closed forms against averages, against what they must reach, and against real noise."""

import json
import math
from fractions import Fraction
from typing import Any

import pytest

from shoal.mechanisms.noise import laplace
from shoal.mechanisms.noise.keyed import MAX_INDEX, derive
from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.decays import AllWindows, Decay, Exponential, Forward, Listed, Polynomial, Undecayed, Window
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.forward import ForwardSum
from shoal.mechanisms.sums.patent.all_window_sum import AllWindowSum, answer, zeta
from shoal.mechanisms.sums.patent.exponential_sum import ExponentialSum
from shoal.mechanisms.sums.patent.polynomial_sum import PolynomialSum
from shoal.mechanisms.sums.patent.table_windows import TableWindows
from shoal.mechanisms.sums.patent.window_sum import DyadicWindow
from shoal.mechanisms.sums.running import RunningSum
from shoal.mechanisms.sums.steps.blue import BlueSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.table import TableSum
from shoal.mechanisms.sums.weights import Weights
from shoal.mechanisms.sums.window import WindowSum
from tests.mechanisms.counters.counter_cases import Injected
from tests.mechanisms.mechanism_cases import KEY, epoch_key
from tests.mechanisms.sums.decay_cases import SHORTER, Case, some_cases
from tests.support.cover import in_a_loop

ONE = Fraction(1)
FINE = 1 << 20  # grid steps of the range: noise is then as good as continuous


def in_ranges(variance: float) -> float:
    """For a range of 1 instead of FINE grid steps."""
    return variance / FINE**2


# ---------------------------------------------------------------- what must be reached


@in_a_loop
@pytest.mark.parametrize(
    ("length", "target"), [(1 << 6, 59), (1 << 8, 120), (1 << 10, 193), (1 << 12, 314), (1 << 16, 642)]
)
def test_sharp_windows_are_better_than_the_best_known(length: int, target: float) -> None:
    """Trees of blocks come to 70, 142, 242, 431 and 885."""
    assert in_ranges(WindowSum.best(length, width=FINE, epsilon=ONE).mean_variance) <= target


@pytest.mark.parametrize(("length", "mean"), [(1 << 6, 590), (1 << 8, 1297), (1 << 10, 2420)])
def test_the_patents_windows_have_the_variance_they_should(length: int, mean: float) -> None:
    sums = DyadicWindow(FINE, ONE, length)
    assert in_ranges(mean_after(sums, length, length)) == pytest.approx(mean, abs=0.6)
    # and in closed form: w + 1 - tz(p) nodes
    w = length.bit_length() - 1
    for p in range(1, length + 1):
        assert sums.nodes(3 * length + p) == (w + 1 - ((p & -p).bit_length() - 1) if p < length else 1)


def mean_after(sums: Any, start: int, count: int) -> float:
    return math.fsum(sums.variance(t) for t in range(start + 1, start + count + 1)) / count


@in_a_loop
@pytest.mark.parametrize("length", [*range(1, 20), 31, 32, 33, 63, 100, 365, 1000, 1024])
def test_sharp_windows_are_never_worse_than_the_patents_or_a_draw_per_step(length: int) -> None:
    best = in_ranges(WindowSum.best(length, width=FINE, epsilon=ONE).mean_variance)
    patent = in_ranges(mean_after(DyadicWindow(FINE, ONE, length), 2 * length, length))
    assert best <= min(patent, 2 * length) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("alpha", "blocks", "best"),
    [(Fraction(99, 100), 43.0, 37.1), (Fraction(999, 1000), 116.4, 95.5), (Fraction(9999, 10_000), 246.5, 197.0)],
)
def test_sharp_exponential_sums_are_as_good_as_the_best_known(alpha: Fraction, blocks: float, best: float) -> None:
    """Over all phases. Trees of blocks come to 43, 116 and 246, whatever their shape; hats are a fifth better."""
    decay = Exponential(alpha)
    assert in_ranges(decay.sharp(FINE, ONE).mean_variance) <= best
    trees = min(
        DecayedSteps(Exponentials.exponential(alpha), BlueSteps(FINE, ONE, *shape)).mean_variance
        for shape in ((17, 1), (14, 2), (13, 3), (21, 3))
    )
    assert in_ranges(trees) == pytest.approx(blocks, abs=0.1)
    assert decay.sharp(FINE, ONE).mean_variance <= decay.patent(FINE, ONE).mean_variance


@in_a_loop
@pytest.mark.parametrize(
    "alpha", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(19, 20), Fraction(49, 50)]
)
def test_sharp_exponential_sums_are_never_worse_than_others(alpha: Fraction) -> None:
    sharp = Exponential(alpha).sharp(FINE, ONE).mean_variance
    others = [ExponentialSum(FINE, ONE, alpha).mean_variance, 2 * FINE**2 / float(1 - alpha**2)]
    assert sharp <= min(others) * (1 + 1e-6)


def test_the_patents_exponential_sum_has_the_variance_it_should() -> None:
    sums = ExponentialSum(FINE, ONE, Fraction(99, 100))
    assert sums.sensitivity / sums.denominator == pytest.approx(6.3777, abs=1e-4)
    assert max(in_ranges(sums.variance(t)) for t in range(1, 1024)) == pytest.approx(441.9, abs=0.1)
    assert mean_after(sums, 0, 1 << 12) == pytest.approx(sums.mean_variance, rel=0.01)


@pytest.mark.parametrize(("exponent", "bound"), [(Fraction(3, 2), 2.404), (Fraction(2), 2.165), (Fraction(3), 2.035)])
def test_sharp_polynomial_sums_are_at_the_bound_for_a_draw_per_step(exponent: Fraction, bound: float) -> None:
    sums = Polynomial(exponent).sharp(FINE, ONE)
    assert sums.mechanism == "per-step"
    assert in_ranges(sums.mean_variance) <= bound * 1.0001
    assert in_ranges(sums.variance(10**7)) == pytest.approx(in_ranges(sums.mean_variance), rel=1e-6)


@pytest.mark.parametrize(("error", "bound"), [(Fraction(1, 2), 28.7), (Fraction(1, 5), 43.5), (Fraction(1, 10), 54.2)])
def test_the_patents_polynomial_sum_has_a_variance_that_ends(error: Fraction, bound: float) -> None:
    sums = PolynomialSum(FINE, ONE, Fraction(2), error, 10**5)
    assert sum(aged.window.epsilon for aged in sums.windows) == 1
    assert 0.5 * bound < max(in_ranges(sums.variance(t)) for t in (10**6, 10**6 + 1, 10**6 + 7)) <= bound


def test_the_patents_weights_are_below_the_true_ones_by_the_stated_part_at_most() -> None:
    sums = PolynomialSum(1, ONE, Fraction(3, 2), Fraction(1, 5), 2000)
    for aged in sums.windows:
        weight = aged.weight / 2.0**96
        for age in (aged.age, aged.age + aged.window.length - 1):
            assert 0.8 - 1e-9 <= weight * (age + 1) ** 1.5 <= 1 + 1e-9


# ---------------------------------------------------------------- any window, after the fact


@pytest.mark.parametrize("make", [AllWindowSum, RunningSum, lambda width, epsilon: RunningSum(width, epsilon, 30)])
def test_any_window_is_answered_from_what_was_released(make: Any) -> None:
    """By anyone: the numbers released, the end and the length are enough."""
    sums: AllWindowSum | RunningSum = make(1, Fraction(10**9))  # no noise
    summer, steps, released = sums.summer(epoch_key), [(7 * t) % 11 for t in range(150)], {}
    for t, x in enumerate(steps, start=1):
        summer.add(x)
        released[t] = summer.released
    for end in range(1, 150, 3):
        for length in range(1, end + 1, 4):
            parts = sums.parts(end, length)
            assert all(part.step <= end for part in parts)
            assert answer(parts, released.__getitem__) == sum(steps[end - length : end])


@in_a_loop
@pytest.mark.parametrize("exponent", [Fraction(101, 100), Fraction(5, 4), Fraction(2), Fraction(5)], ids=str)
def test_zeta_is_an_upper_bound(exponent: Fraction) -> None:
    """Above what the first terms sum to and the integral below the others; and not far above."""
    s = float(exponent)
    least = sum(j**-s for j in range(1, 5000)) + 5000 ** (1 - s) / (s - 1)
    assert least < float(zeta(exponent)) < least * (1 + 1e-3)


def test_all_windows_have_the_variance_they_should() -> None:
    sums = AllWindowSum(FINE, ONE)
    for end, length in ((1000, 1), (1000, 37), (999, 512), (4096, 4096), (10**7, 10**6)):
        log = max((length - 1).bit_length(), 0)
        bound = (2 * log + 1) * 2 * float(zeta(sums.exponent)) ** 2 * (log + 1) ** 2.5
        assert in_ranges(sums.window_variance(end, length)) <= bound * (1 + 1e-6)
        assert len({part.step for part in sums.parts(end, length)}) <= 2 * log + 1
        sd = sums.window_variance(end, length) ** 0.5
        assert 1.95 * sd < sums.window_quantile(end, length) < 2.13 * sd


SPANS = ((0, 5), (3, 10), (10, 11), (4, 25), (0, 113), (5, 112), (9, 12), (10, 113), (20, 21), (60, 113), (110, 111))


@pytest.mark.slow
def test_windows_of_a_running_sum_have_the_variance_of_the_draws_used() -> None:
    """Within a tree, from its border, and over several: by linear algebra."""
    sums, injected, unit = RunningSum(1, ONE), Injected(), 10**30
    times = sorted({t for span in SPANS for t in span})

    def noises() -> dict[int, float]:
        counter = sums.tree.counter(epoch_key)
        return {t: counter.noise(t) / unit for t in times}

    exact = dict.fromkeys(SPANS, 0.0)
    with injected.instead():
        noises()
        for at in list(injected.asked):
            injected.values = {at: unit}
            found = noises()
            (scale,) = injected.scales[at[0]]
            for start, end in SPANS:
                exact[start, end] += (found[end] - found[start]) ** 2 * laplace.variance(scale)
    for (start, end), variance in exact.items():
        assert sums.window_variance(end, end - start) == pytest.approx(variance, rel=1e-9)
        quantile = RunningSum(FINE, ONE).window_quantile(end, end - start) / FINE
        assert 1.9 * variance**0.5 < quantile < 2.2 * variance**0.5


def test_windows_of_a_running_sum_beat_the_patents() -> None:
    one, other = AllWindows(1 << 16).sharp(FINE, ONE), AllWindowSum(FINE, ONE)
    for length in (10, 100, 1000, 10_000):
        mean = sum(one.window_variance(end, length) for end in range(40_000, 41_000, 37)) / 28
        assert mean < sum(other.window_variance(end, length) for end in range(40_000, 41_000, 37)) / 28 * 0.5


def test_nodes_that_end_in_silence_are_not_released() -> None:
    sums = AllWindowSum(1, Fraction(10**9))
    summer = sums.summer(epoch_key)
    assert [summer.add(5), summer.released] == [5, (5,)]
    summer.skip(2)
    assert summer.released == ()
    assert [summer.add(2), summer.released] == [7, (2, 2, 7)]


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize(("arity", "height"), [(2, 3), (5, 2)])
def test_error_bars_of_a_window_are_those_of_its_place_in_the_trees(arity: int, height: int) -> None:
    sums = WindowSum(17, BlueSteps(FINE, ONE, arity, height))
    for t in (1, 16, 17, 18, 25, 26, 1000, 1001, 10**7):
        assert sums.noise_sd(t) == pytest.approx(sums.variance(t) ** 0.5, rel=1e-5)


@in_a_loop
@pytest.mark.parametrize(("arity", "height", "length"), [(2, 3, 5), (3, 2, 9), (3, 2, 10), (5, 1, 12), (4, 2, 1)])
def test_a_windows_mean_variance_is_the_mean_of_its_variances(arity: int, height: int, length: int) -> None:
    steps = BlueSteps(FINE, ONE, arity, height)
    sums = WindowSum(length, steps)
    assert mean_after(sums, 10 * steps.size + length, steps.size) == pytest.approx(sums.mean_variance, rel=1e-12)


@in_a_loop
@pytest.mark.parametrize(
    "decay", [Exponentials.exponential(Fraction(9, 10)), Exponentials.polynomial(Fraction(3, 2), 100)]
)
@pytest.mark.parametrize(("arity", "height"), [(2, 3), (5, 2)])
def test_a_decayed_sums_mean_variance_is_the_mean_of_its_variances(
    decay: Exponentials, arity: int, height: int
) -> None:
    steps = BlueSteps(FINE, ONE, arity, height)
    sums = DecayedSteps(decay, steps)
    assert mean_after(sums, 10**6 // steps.size * steps.size, steps.size) == pytest.approx(sums.mean_variance, rel=1e-9)
    per_step = DecayedSteps(decay, LaplaceSteps(FINE, ONE))
    assert per_step.variance(10**6) == pytest.approx(per_step.mean_variance, rel=1e-9)


# ---------------------------------------------------------------- real noise


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case for case in SHORTER if case.name not in {"all-windows-patent", "exponential-patent-fast"}]
)
def test_real_noise_has_the_variance_stated(case: Case) -> None:
    """Few keys and short runs: sums that rest on few independent draws vary most, hence the margin."""
    ratios = []
    for key in range(120):
        sums = case.sums(1 << 10)
        summer = sums.summer(lambda number, key=key: derive(KEY, key, number))
        for t in range(1, min(case.length, 24) + 1):
            noise = summer.add(0) / sums.denominator
            ratios.append(noise**2 / sums.variance(t))
    assert sum(ratios) / len(ratios) == pytest.approx(1, abs=0.2)


# ---------------------------------------------------------------- time without end


@in_a_loop
@some_cases
def test_the_state_stays_small_after_ten_million_steps(case: Case) -> None:
    summer = case.sums(FINE).summer(epoch_key)
    for far in (1, 10**3, 10**7):
        for x in (FINE, 0, 5 * FINE):
            summer.add(x)
        summer.skip(far)
    assert len(json.dumps([summer.head(), dict(summer.kept)])) < 2500
    assert summer.add(1) != summer.add(1)
    assert case.sums(FINE).variance(10**7) < 10**7 * FINE**2


def test_steps_beyond_the_last_name_of_a_draw_are_refused() -> None:
    for sums in (
        AllWindowSum(1, ONE),
        ExponentialSum(1, ONE, Fraction(1, 2)),
        PolynomialSum(1, ONE, Fraction(2), Fraction(1, 2), 1),
    ):
        summer = sums.summer(epoch_key)
        summer.skip(MAX_INDEX - 1)
        with pytest.raises(ValueError, match="must be at least 0 and below"):
            [summer.add(x) for x in (1, 2)]


# ---------------------------------------------------------------- decays by name


@in_a_loop
@pytest.mark.parametrize(
    ("decay", "sharp", "patent"),
    [
        (Undecayed(), RunningSum, None),
        (Window(64), WindowSum, DyadicWindow),
        (AllWindows(), RunningSum, AllWindowSum),
        (Exponential(Fraction(9, 10)), DecayedSteps, ExponentialSum),
        (Polynomial(Fraction(2), 100), DecayedSteps, PolynomialSum),
        (Listed(Weights.of([ONE, Fraction(1, 3)])), TableSum, TableWindows),
        (Forward(Fraction(2)), ForwardSum, None),
    ],
)
def test_a_decay_says_how_it_is_released(decay: Decay, sharp: type, patent: type | None) -> None:
    assert type(decay.sharp(5, Fraction(1, 2))) is sharp
    if patent is None:
        with pytest.raises(ValueError, match="the patent has no mechanism for"):
            decay.patent(5, Fraction(1, 2))
    else:
        made = decay.patent(5, Fraction(1, 2))
        assert (type(made), made.mechanism, made.width, made.epsilon) == (patent, "patent", 5, Fraction(1, 2))


def test_a_half_life_is_an_alpha_and_long_ones_have_hats() -> None:
    assert Exponential.half_life(Fraction(1)).alpha == pytest.approx(Fraction(1, 2))
    assert Exponential.half_life(Fraction(24)).sharp(1, ONE).mechanism == "hats"
    assert Exponential.half_life(Fraction(1, 3)).sharp(1, ONE).mechanism == "per-step"


def test_what_is_hardly_forgotten_takes_no_more_planning() -> None:
    sums = Exponential(1 - Fraction(1, 10**12)).sharp(1, ONE)
    assert (sums.mechanism, 5 < sums.noise_sd(10**6) < 50) == ("blue", True)


def test_windows_from_a_few_steps_on_have_hats() -> None:
    made = [Window(length).sharp(1, ONE).mechanism for length in (1, 2, 4, 8, 16, 32)]
    assert made == ["per-step"] * 4 + ["hats"] * 2


@in_a_loop
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Window(0).sharp(1, ONE), "length must be greater than 0"),
        (lambda: WindowSum(0, LaplaceSteps(1, ONE)), "length must be greater than 0"),
        (lambda: Window(0).patent(1, ONE), "length must be greater than 0"),
        (lambda: Window(1 << 47).patent(1, ONE), "length must be at least 0 and below"),
        (lambda: Exponential(ONE), "alpha must lie between 0 and 1"),
        (lambda: Exponential(Fraction(0)), "alpha must lie between 0 and 1"),
        (lambda: Exponential(1 - Fraction(1, 10**15)).patent(1, ONE), "alpha must lie between"),
        (lambda: Exponential(Fraction(1, 10**40)).patent(1, ONE), "alpha must lie between"),
        (lambda: Polynomial(ONE).patent(1, ONE), "exponent must be greater than 1"),
        (lambda: Polynomial(Fraction(2), 0).patent(1, ONE), "horizon must be greater than 0"),
        (lambda: Polynomial(Fraction(2), 5, ONE).patent(1, ONE), "error must lie between 0 and 1"),
        (lambda: AllWindowSum(1, ONE, ONE), "exponent must be greater than 1"),
        (lambda: AllWindowSum(1, ONE).parts(5, 6), "start must be 0 or more"),
        (lambda: AllWindowSum(1, ONE).parts(5, 0), "length must be greater than 0"),
        (lambda: RunningSum(1, ONE).parts(5, 6), "start must be 0 or more"),
        (lambda: RunningSum(1, ONE).parts(5, 0), "length must be greater than 0"),
    ],
)
def test_decays_refuse_what_makes_no_sense(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
