"""Sums, counts and means that are released at every step: what meets the noise, and that the noise is of the group."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.statistic import LinearReleaser, LinearStatistic
from shoal.mechanisms.parts.of import PublicCount, Sum
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.sums.decays import AllWindows, Decay, Exponential, Polynomial, Undecayed, Window
from shoal.models.config import forms
from tests.mechanisms.linear.restart_cases import check_restarts
from tests.mechanisms.linear.value_cases import of_values
from tests.support.cover import in_a_loop

KEY = b"k" * 32
BOTH: tuple[str, str] = ("sum", "mean")
GRID = Grid(Fraction(-1), Fraction(3), 8)
DECAYS: list[Decay] = [
    Undecayed(), Window(3), Window(64), AllWindows(), Exponential(Fraction(9, 10)), Polynomial(Fraction(3, 2), 1000),
]  # fmt: skip
made = st.tuples(st.sampled_from(DECAYS), st.sampled_from(["sharp", "patent"])).filter(
    lambda pair: pair[1] == "sharp" or not isinstance(pair[0], Undecayed)
)
steps = st.lists(st.lists(st.integers(0, 8), max_size=3), min_size=1, max_size=12)


def stepped(decay: Decay, algorithm: str = "sharp", statistic: str = "sum") -> LinearStatistic:
    cls: Any = forms.SUMS.statistics[statistic]
    return of_values(
        statistic=cls, decay=decay, algorithm=algorithm, grid=GRID, epsilon=Fraction(1), max_contributions=5
    )


def step(releaser: LinearReleaser, values: list[int]) -> Any:
    """A step with these samples, one by one."""
    for value in values:
        assert releaser.add(Contribution(0, "", 0, 0, 1, value)) == ()
    assert releaser.close() == ()
    return releaser.estimate()


@in_a_loop
@pytest.mark.parametrize("algorithm", ["sharp", "patent"])
@pytest.mark.parametrize("decay", DECAYS[1:], ids=repr)
def test_the_noise_is_made_for_all_that_a_unit_may_change_in_all_groups_together(decay: Decay, algorithm: str) -> None:
    sums = stepped(decay, algorithm).sums
    assert (sums.width, sums.epsilon) == (5 * 8, Fraction(1))


@given(made, steps, steps)
def test_neighbours_meet_the_same_noise(pair, one, other) -> None:
    """With one key and one pattern the releases of two streams differ by exactly what their sums differ by."""
    pattern = [[min(len(a), len(b))] for a, b in zip(one, other, strict=False)]
    streams = [[values[:n] for values, (n,) in zip(rows, pattern, strict=False)] for rows in (one, other)]
    mechanism = stepped(*pair)
    noisy, exact = (
        [releases_of(make, stream) for stream in streams]
        for make in (lambda: mechanism.releaser(KEY, b"g"), lambda: mechanism.sums.counts())
    )
    for (a, b), (c, d) in zip(zip(*noisy, strict=True), zip(*exact, strict=True), strict=True):
        # a recursion with rounded weights is a function of the noised steps: what it rounds is below a millionth
        assert (a - b) == pytest.approx(c - d, abs=mechanism.sums.denominator * 1e-6)


def releases_of(make: Any, stream: list[list[int]]) -> list[int]:
    machine = make()
    if not isinstance(machine, LinearReleaser):
        return [machine.add(sum(values)) for values in stream]
    found = []
    for values in stream:
        step(machine, values)
        found.append(machine.released[1])
    return found


@given(made)
def test_groups_and_keys_have_noise_of_their_own(pair) -> None:
    mechanism = stepped(*pair)
    found = [
        tuple(releases_of(lambda key=key, group=group: mechanism.releaser(key, group), [[]] * 6))
        for key, group in ((KEY, b"a"), (KEY, b"b"), (b"K" * 32, b"a"))
    ]
    assert len(set(found)) == 3
    assert releases_of(lambda: mechanism.releaser(KEY, b"a"), [[]] * 6) == list(found[0])


@given(made, st.sampled_from(["sum", "count", "mean"]), steps, st.data())
def test_a_restart_at_any_step_changes_nothing(pair, statistic, stream, data) -> None:
    decay, algorithm = pair
    mechanism = stepped(decay, algorithm, statistic)
    check_restarts(lambda: mechanism.releaser(KEY, b"g"), stream, step, data)


@pytest.mark.parametrize("exponent", [8, 16])
def test_the_patent_leaves_out_what_has_no_weight(exponent: int) -> None:
    sums = stepped(Polynomial(Fraction(exponent)), "patent").sums
    assert sums.noise_sd(10**7) == pytest.approx(sums.noise_sd(10**5), rel=0.2)


def test_a_count_has_no_noise_and_needs_no_epsilon() -> None:
    count = of_values(statistic=PublicCount, decay=Window(2), max_contributions=5)
    releaser = count.releaser(KEY, b"")
    assert [step(releaser, [0] * n).value for n in (3, 1, 0)] == [3, 4, 1]
    assert count.mechanism == "exact"
    with pytest.raises(ValueError, match="epsilon must be greater than 0"):
        of_values(statistic=Sum, decay=Window(2))


def test_a_mean_is_the_sum_over_the_number_and_so_are_its_error_bars() -> None:
    of_sums, of_means = (stepped(Window(3), "sharp", statistic).releaser(KEY, b"") for statistic in BOTH)
    for values in ([1, 2], [8], []):
        total, mean = step(of_sums, values), step(of_means, values)
        assert mean.value == pytest.approx(total.value / total.samples)
        assert mean.noise_sd == pytest.approx(total.noise_sd / total.samples)
        assert mean.high - mean.value == pytest.approx((total.high - total.value) / total.samples)
    assert [step(of_means, []) for _ in range(2)][1].value is None


@in_a_loop
@pytest.mark.parametrize("decay", DECAYS)
def test_an_epsilon_beyond_which_floats_hold_no_noise_has_no_error_bars_and_no_end(decay: Decay) -> None:
    sure = of_values(statistic=Sum, decay=decay, grid=GRID, epsilon=Fraction(10**9), max_contributions=5)
    releaser = sure.releaser(KEY, b"")
    for _ in range(200):  # beyond the first ones, whose quantile is that of their very draws
        found = step(releaser, [8, 0])
        assert found.low == pytest.approx(found.value) == found.high
        assert found.noise_sd == pytest.approx(0)


def test_an_epsilon_below_which_floats_hold_no_noise_is_refused() -> None:
    with pytest.raises(ValueError, match="epsilon must be at least 1/10+: below it the noise is beyond all numbers"):
        of_values(statistic=Sum, decay=Window(2), grid=GRID, epsilon=Fraction(1, 10**61))
