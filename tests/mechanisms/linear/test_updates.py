"""Windows of updates: the last steps in which anything came, whatever silence lies between them.

The oracle is the window over the same steps without the silent ones: which these are is public.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.forecast.step_prospect import Counted
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.statistic import Contribution, Estimate
from shoal.mechanisms.sums.decays import Window
from shoal.models.config import forms
from shoal.models.config.metric import MetricSection
from tests.mechanisms.linear.value_cases import of_values
from tests.support.cover import in_a_loop
from tests.support.effort import examples

KEY = bytes(range(32))
GRID = Grid(Fraction(0), Fraction(10), 100)
Statistic = LinearStatistic
Steps = Sequence[Sequence[int]]  # of each step the grid indices of its samples


def made(kind: str, decay: Window, epsilon: int = 1) -> Statistic:
    usual: dict[str, Any] = {"grid": GRID, "epsilon": Fraction(epsilon), "max_contributions": 3}
    cls: Any = {**forms.SUMS.statistics, **forms.VARIANCE.statistics}[kind]
    return of_values(statistic=cls, decay=decay, **usual)


def released(statistic: Statistic, steps: Steps, restarts: bool = False) -> Iterator[Estimate | None]:
    """The release of each step; with restarts, from what was written after each."""
    releaser: Any = statistic.releaser(KEY, b"")
    for indices in steps:
        for index in indices:
            total: Any = index
            if statistic.packing is not None:
                total = statistic.packing.unpack(statistic.packing.pack([index]), 1)
            releaser.add(Contribution(0, "", 0, 0, 1, total))
        releaser.close()
        yield releaser.estimate()
        if restarts:
            head, kept = orjson.loads(orjson.dumps(releaser.head())), list(releaser.kept.values())
            releaser = statistic.releaser(KEY, b"")
            releaser.restore(head, kept)


STEPS = st.lists(st.lists(st.integers(0, 100), max_size=2), max_size=12).map(lambda steps: [[50], *steps])
KINDS = pytest.mark.parametrize("kind", ["sum", "mean", "count", "variance"])


@in_a_loop
@KINDS
@examples(15)
@given(steps=STEPS, length=st.integers(1, 5))
def test_each_release_is_that_of_the_stream_without_silence(kind: str, steps: Steps, length: int) -> None:
    """With the same noise: a silent step repeats the release before, and draws nothing."""
    spoken = [indices for indices in steps if indices]
    window = list(released(made(kind, Window(length)), spoken))
    updates = list(released(made(kind, Window(length, of_updates=True)), steps))
    so_far = 0
    for indices, release in zip(steps, updates, strict=True):
        so_far += bool(indices)
        assert release == window[so_far - 1]


@examples(15)
@given(steps=STEPS, length=st.integers(1, 5))
def test_without_noise_it_is_the_sum_of_the_last_steps_in_which_anything_came(steps: Steps, length: int) -> None:
    releases = list(released(made("sum", Window(length, of_updates=True), 10**12), steps))
    for t, release in enumerate(releases, start=1):
        last = [indices for indices in steps[:t] if indices][-length:]
        assert release is not None
        assert release.value == pytest.approx(sum(map(sum, last)) / 10, abs=1e-6)
        assert release.samples == sum(map(len, last))


@in_a_loop
@KINDS
@examples(10)
@given(steps=STEPS)
def test_a_restart_after_any_step_changes_no_release(kind: str, steps: Steps) -> None:
    statistic = made(kind, Window(2, of_updates=True))
    assert list(released(statistic, steps, restarts=True)) == list(released(statistic, steps))


@examples(15)
@given(steps=STEPS, data=st.data())
def test_values_move_no_more_than_a_window_does_and_never_decide_what_an_update_is(steps: Steps, data: Any) -> None:
    """Under one key neighbours' releases differ by what their windows do: a step of zeros is an update, too."""
    others = [[data.draw(st.integers(0, 100)) * (index % 2) for index in indices] for indices in steps]
    statistic = made("sum", Window(3, of_updates=True))
    both = zip(released(statistic, steps), released(statistic, others), strict=True)
    for t, (one, other) in enumerate(both, start=1):
        windows = [sum(map(sum, [step for step in of[:t] if step][-3:])) for of in (steps, others)]
        assert one is not None
        assert other is not None
        assert (one.value - other.value, one.samples) == (pytest.approx((windows[0] - windows[1]) / 10), other.samples)


def test_a_group_of_updates_rests_after_its_gap_and_goes_on_where_it_was() -> None:
    statistic = replace(made("count", Window(2, of_updates=True)), max_gap=4)
    assert statistic.rest == 4
    assert replace(statistic, decay=Window(9)).rest == 9
    releaser = statistic.releaser(KEY, b"")
    for samples in (3, 2):
        releaser.add(Contribution(0, "", 0, 0, samples, 0))
        releaser.close()
    releaser.skip(1000)
    releaser.add(Contribution(0, "", 0, 0, 1, 0))
    releaser.close()
    assert releaser.estimate() == Estimate(3, 0.0, 3, 3, {"samples": 3}, {"mechanism": "exact"})


def test_a_plan_counts_updates_where_a_file_tells_them() -> None:
    decay = Window(2, of_updates=True)
    sums = decay.sharp(1, Fraction(1))
    counted = Counted([3, 0, 1, 0, 5], [3, 0, 1, 0, 5])
    assert [counted.samples(sums, decay, t)[0] for t in range(1, 6)] == [3, 3, 4, 4, 6]


def test_a_window_is_of_time_or_of_updates() -> None:
    def metric(**decay: Any) -> MetricSection:
        given = {"name": "m", "topic": "t", "user": "u", "value": "x", "range": (0, 10), "epsilon": 1}
        more = {"statistic": "sum", "every": "1h", "max_contributions": 2, "decay": {"kind": "window"} | decay}
        return MetricSection.model_validate(given | more)

    statistic = statistic_of(metric(updates=7).parts)
    assert isinstance(statistic, LinearStatistic)
    assert statistic.decay == Window(7, of_updates=True)
    for wrong in ({}, {"updates": 7, "length": "7h"}):
        with pytest.raises(ValueError, match="of kind window needs length or updates"):
            metric(**wrong)
