"""The benchmark of windows and decays looks at what summers release, and its page says plainly what is missed."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from benchmarks.decay import measuring, speed, textbook, variances
from benchmarks.decay.contenders import (
    BLUE,
    EPSILON,
    EXPONENTIAL,
    HATS,
    LENGTHS,
    PATENT,
    SHARP,
    STEPS,
    WIDTH,
    Contender,
    all_windows,
    contenders,
    exponential_trees,
    exponentials,
    window_trees,
    windows,
)
from benchmarks.decay.measuring import Draws, Measured, Ratio, Steps, Window, measure, subkeys
from benchmarks.decay.page import page, tables
from benchmarks.decay.report import Report, Row, from_json, verdicts
from benchmarks.picture import spaced
from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.decays import Exponential
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.patent.all_window_sum import AllWindowSum
from shoal.mechanisms.sums.running import RunningSum
from shoal.mechanisms.sums.window import WindowSum
from tests.support.cover import in_a_loop

pytestmark = pytest.mark.long

FOUND = Measured(mean=100.0, most=120.0, ratio=1.01, error=0.02, keys=50, looks=500)
SPEEDS = [speed.Speed("window", HATS, [speed.State(10, 1.5, 7, 10, 80.0)] * 2)]


def by_mechanism(rows: list[Contender], mechanism: str) -> Contender:
    return next(row for row in rows if row.mechanism == mechanism)


# ---------------------------------------------------------------- what is looked at


@in_a_loop
@pytest.mark.parametrize("mechanism", [STEPS, PATENT, BLUE, HATS, "square-root"])
def test_steps_that_are_skipped_do_not_change_the_noise_of_a_window(mechanism: str) -> None:
    # given the looks of one key, between which steps are skipped
    one = by_mechanism(list(windows(64)), mechanism)
    assert isinstance(one.looking, Steps)
    looking = replace(one.looking, count=5)
    looked = list(looking.looks(one.sums, subkeys(one.name, 3), 3))
    # when a summer of that key takes every step
    summer, taken = one.sums.summer(subkeys(one.name, 3)), []
    for t in range(1, 5 * looking.stride + looking.begin + looking.period + 1):
        taken.append((summer.add(0) / WIDTH, one.sums.variance(t) / WIDTH**2))
    # then these are some of its releases
    first = taken.index(looked[0])
    assert looked == taken[first : first + 5 * looking.stride : looking.stride]


@in_a_loop
@pytest.mark.parametrize("mechanism", [STEPS, PATENT, BLUE, HATS])
def test_looks_at_an_exponential_sum_are_its_releases(mechanism: str) -> None:
    one = by_mechanism(list(exponentials(10)), mechanism)
    looking = Steps(begin=30, period=7, stride=3, count=6, cost=1, skips=mechanism == PATENT)
    summer = one.sums.summer(subkeys(one.name, 0))
    taken = [summer.add(0) / one.sums.denominator / WIDTH for _ in range(50)]
    assert [noise for noise, _ in looking.looks(one.sums, subkeys(one.name, 0), 0)] == taken[30:48:3]


def test_noise_per_step_from_draws_in_blocks_is_what_is_released() -> None:
    one = by_mechanism(list(exponentials(100)), STEPS)
    looking = Draws(begin=20, period=1, stride=4, count=6, cost=1)
    summer = one.sums.summer(subkeys(one.name, 0))
    taken = [summer.add(0) / one.sums.denominator / WIDTH for _ in range(44)]
    looked = list(looking.looks(one.sums, subkeys(one.name, 0), 0))
    assert [noise for noise, _ in looked] == pytest.approx(taken[23::4], rel=1e-9)
    assert [variance for _, variance in looked] == [one.sums.variance(t) / WIDTH**2 for t in range(24, 45, 4)]


@pytest.mark.parametrize("sums", [AllWindowSum(WIDTH, EPSILON), RunningSum(WIDTH, EPSILON)])
def test_a_window_is_answered_without_the_steps_in_which_nothing_is(sums: AllWindowSum | RunningSum) -> None:
    looking = Window(end=60, length=23, cost=1)
    ((noise, variance),) = looking.looks(sums, subkeys("any", 1), 1)
    summer, released = sums.summer(subkeys("any", 1)), {}
    for t in range(1, 61):
        summer.add(0)
        released[t] = summer.released
    parts = sums.parts(60, 23)
    assert noise == sum(part.sign * released[part.step][part.place] for part in parts) / WIDTH
    assert variance == sums.window_variance(60, 23) / WIDTH**2


def test_a_formula_is_a_mean_over_the_whole_period() -> None:
    one = by_mechanism(list(windows(64)), BLUE)
    assert isinstance(one.sums, WindowSum)
    mean, most = one.looking.formula(one.sums)
    assert mean == pytest.approx(one.sums.mean_variance / WIDTH**2, rel=1e-9)
    assert most == max(one.sums.variance(t) for t in range(1000, 1013)) / WIDTH**2


def test_a_formula_over_a_long_period_is_looked_at_in_places_and_at_its_end() -> None:
    sums = Exponential(Fraction(99, 100)).patent(WIDTH, EPSILON)
    mean, most = Steps(1 << 20, 1 << 20, 1, 1, 1, places=2000).formula(sums)
    assert mean == pytest.approx(textbook.exponential_patent(0.99), rel=0.01)
    assert most == pytest.approx(textbook.exponential_patent_most(0.99), rel=1e-4)


# ---------------------------------------------------------------- the ratio and its error


def test_a_ratio_and_its_error_are_those_of_the_textbook() -> None:
    draw = np.random.default_rng(5)
    found = []
    for _ in range(300):
        variances = draw.uniform(1, 3, 60)
        squares = variances * draw.standard_normal(60) ** 2
        ratio = Ratio()
        for square, variance in zip(squares.tolist(), variances.tolist(), strict=True):
            ratio.add(square, variance)
        assert ratio.value == pytest.approx(squares.sum() / variances.sum())
        found.append((ratio.value, ratio.error))
    values, errors = np.array(found).T
    assert values.mean() == pytest.approx(1, abs=0.05)
    assert values.std() == pytest.approx(np.sqrt((errors**2).mean()), rel=0.15)


def test_measuring_ends_when_it_is_exact_enough_or_has_cost_enough() -> None:
    one = by_mechanism(list(windows(64)), PATENT)
    assert measure("a", one.sums, one.looking, seconds=0.001, enough=1e-9).keys == measuring.FEWEST
    assert measure("a", one.sums, one.looking, seconds=10, enough=0.1).keys == measuring.FEWEST
    longer = measure("a", one.sums, one.looking, seconds=70 * one.looking.cost / 1e6, enough=1e-9)
    assert (longer.keys, longer.looks) == (70, 70 * 64)
    assert abs(longer.ratio - 1) < 4 * longer.error < 0.2
    assert longer.measured == longer.mean * longer.ratio


# ---------------------------------------------------------------- the variance of samples


def test_releases_of_a_variance_err_as_each_says_and_less_than_with_halves_of_epsilon() -> None:
    found = variances.spreads(quick=True)
    assert all(one.agrees for one in found)
    # then two halves are better where the mean lies in the middle, and nowhere else, as the proof has it
    assert [round(one.halves, 2) for one in found] == [0.89, 1.41, 1.64] * 2
    assert [one.mechanism for one in found] == [HATS] * 3 + [STEPS] * 3


# ---------------------------------------------------------------- what competes


def test_there_is_one_sharp_mechanism_per_decay_and_every_row_has_keys_of_its_own() -> None:
    rows = list(contenders(quick=True))
    assert len({row.name for row in rows}) == len(rows)
    for decay in {(row.family, row.at) for row in rows}:
        assert [row.sharp for row in rows if (row.family, row.at) == decay].count(SHARP) == 1
    assert all(row.sums.mechanism == row.mechanism for row in rows)


@in_a_loop
@pytest.mark.parametrize("length", LENGTHS)
def test_trees_for_windows_are_the_best(length: int) -> None:
    """Where they are what sharp would take, it takes the same; elsewhere they are no better than what it takes."""
    trees, best = window_trees(length), WindowSum.best(length, width=WIDTH, epsilon=EPSILON)
    assert WindowSum(length, trees).mean_variance >= best.mean_variance * (1 - 1e-6)
    assert WindowSum(length, trees).mean_variance <= 1.05 * textbook.WINDOWS.get(length, math.inf) * WIDTH**2


def test_trees_for_exponential_decay_are_the_best() -> None:
    decay = Exponentials.exponential(Fraction(99, 100))
    assert DecayedSteps(decay, exponential_trees(decay)).mean_variance / WIDTH**2 == pytest.approx(43.0, abs=0.05)


# ---------------------------------------------------------------- the page


def row(mechanism: str, mean: float, target: float | None, sharp: str = "", family: str = EXPONENTIAL) -> Row:
    return Row(family, "0.9999", 10_000, mechanism, "", sharp, None, target, replace(FOUND, mean=mean))


def test_what_is_missed_is_said() -> None:
    rows = [row(STEPS, 10_000, 186), row(BLUE, 246.3, 186), row(HATS, 196.5, 186, SHARP)]
    assert [done for *_, done in verdicts(rows)] == [False]
    report = Report(rows, {64: [(1.0, 2.0, "hats")] * 3}, SPEEDS, SPEEDS, 60.0)
    text = tables(report)
    assert "**0 of 1 met.**" in text
    assert "**Missed**: exponential at 0.9999 comes to 196.50, which is 1.056 times the target; 195.3 are" in text
    assert "**3 of 3 rows agree**" in text
    # and what no longer agrees is said, too
    far = Report([replace(rows[0], found=replace(FOUND, ratio=1.2)), *rows[1:]], report.gaussian, report.speeds,
                      report.long, 60.0)  # fmt: skip
    assert "**2 of 3 rows agree**, 2 of them within 5 %" in tables(far)
    assert "| **no** |" in tables(far)


def test_a_sharp_window_must_not_be_worse_than_the_patents_or_per_step_noise() -> None:
    rows = [row(STEPS, 50, None, family="window"), row(PATENT, 90, None, family="window"),
            row(HATS, 60, None, SHARP, family="window")]  # fmt: skip
    assert [(at, allowed, done) for _, at, _, allowed, _, done in verdicts(rows)] == [("0.9999", 50, False)]


def test_a_run_writes_page_picture_and_figures(tmp_path: Path) -> None:
    rows = [
        Row.of(one, measure(one.name, one.sums, replace(one.looking, fewest=2), 1e-6, 1.0))
        for one in (*windows(64), *exponentials(10), *all_windows(100, 10))
        if isinstance(one.looking, Steps | Window)
    ]
    spread = variances.Spread("window", "end", HATS, 64.0, 0.125, 1.3, 0.01, 0.96, 1.64, 10)
    report = Report(rows, {64: [(20.0, 30.0, "hats")] * 3}, SPEEDS, SPEEDS, 61.0, variances=[spread])
    page(report).publish(tmp_path, keep=False)
    assert (tmp_path / "images/decay.png").stat().st_size > 20_000
    text = (tmp_path / "decay.md").read_text()
    assert "1 minutes of one core" in text
    assert "**0 of 1 rows agree**" in text
    assert "| 1.300 ± 0.010 | 96.0 % | 1.64 | **no** |" in text
    # and from the figures, the same report can be had again
    data = json.loads((tmp_path / "decay.json").read_text())
    assert tables(from_json(data)) == tables(report)
    assert data["rows"][0]["measured"] == rows[0].found.measured


def test_labels_keep_apart_and_in_order() -> None:
    found = spaced([0.5, 0.1, 0.51, 0.52], 0.05)
    assert np.diff(sorted(found)).min() >= 0.05 - 1e-12
    assert np.argsort(found).tolist() == np.argsort([0.5, 0.1, 0.51, 0.52]).tolist()


def test_the_state_is_as_large_as_what_must_survive() -> None:
    one = by_mechanism(list(windows(64)), HATS)
    summer = one.sums.summer(subkeys("state", 0))
    early, late = speed.run(summer, 0, 50), speed.run(summer, 50, 50)
    assert (early.steps, early.kept, late.steps, late.kept) == (50, 50, 100, 64)
    assert late.head == len("[100]")
