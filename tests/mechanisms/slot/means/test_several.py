"""Means of several coordinates: what a user moves of them together, what each is, and that one would be the same."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.error_bars import OfCube, noise_quantile, noise_sd
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.cube import CubeNoise
from shoal.mechanisms.selection import clip_range
from shoal.mechanisms.slot.algorithms import MEANS, MEANS_OF_VALUES
from shoal.mechanisms.slot.cell import Cap, CellParameters, Draws, OneOfSeveral
from shoal.mechanisms.slot.means import best, clipping, deviations, levy, quantile
from shoal.mechanisms.slot.means.clipping import FINE
from shoal.mechanisms.slot.means.linear import ARRAY_AVERAGING, BASELINE
from shoal.mechanisms.slot.means.packing import best_fit
from tests.mechanisms.slot.cell_cases import COUNTS, EPSILONS, KEY, PATTERNS, all_cells, draws, farthest_neighbours
from tests.support.cover import covered, in_a_loop
from tests.support.effort import examples, tries

NAMES = [name for name in MEANS_OF_VALUES if name != "few-users"]
every = pytest.mark.parametrize("name", NAMES)
CAPS: list[Cap] = [1, 2, "median", "optimal"]
STEPS = 1 << 20
RANGES = [(Fraction(0), Fraction(65)), (Fraction(-300), Fraction(300)), (Fraction(1, 3), Fraction(2))]
few = examples(10)


def cell(d: int = 2, steps: int = STEPS, **more: Any) -> CellParameters:
    """A cell of so many coordinates, each with a range of its own."""
    grids = [Grid(*RANGES[axis % 3], steps) for axis in range(d)]
    return CellParameters(
        grid=grids[0], epsilon=more.pop("epsilon", Fraction(1)), axes=tuple((g, None) for g in grids), **more
    )


class Asked:
    """What coordinates asked for: the scale of each purpose, and for how much private choices are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.noise: dict[str, list[tuple[int, Fraction]]] = {}
        self.choices: list[Fraction] = []
        self.subkeys: list[bytes] = []
        words, subkey = OneOfSeveral.words, OneOfSeveral.subkey

        def quiet(one: OneOfSeveral, purpose: str, scale: Fraction) -> int:
            self.noise.setdefault(purpose, []).append((one._axis, scale))
            return 0

        def median(means: Any, full: int, count: int, epsilon: Fraction, words: Iterator[int]) -> int:
            self.choices.append(epsilon / 2)  # each weight moves by half of a half
            return count // 2

        def chosen(cells: Any, steps: int, q: Fraction, epsilon: Fraction, words: Iterator[int]) -> int:
            self.choices.append(epsilon)
            return math.floor(q * (steps - 1))

        def spread(outside: list[int], target: int, epsilon: Fraction, words: Iterator[int]) -> int:
            self.choices.append(epsilon)
            return 5

        def named(one: OneOfSeveral, purpose: str, part: int = 0) -> Iterator[int]:
            self.subkeys.append(subkey(one, purpose, part))
            return words(one, purpose, part)

        monkeypatch.setattr(OneOfSeveral, "noise_for", quiet)
        monkeypatch.setattr(OneOfSeveral, "words", named)
        monkeypatch.setattr(levy, "median_bin", median)
        monkeypatch.setattr(quantile, "choose", chosen)
        monkeypatch.setattr(clip_range, "scale", spread)


SHAPES = [(1,), (3, 1), (2, 2, 1), (1, 4, 1), (1,) * 6, (5,) * 300]


@covered(keep=["counts1-2-levy"])
@every
@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("counts", SHAPES)
def test_all_coordinates_together_spend_what_one_would(
    name: str, d: int, counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each noise is asked for once by each coordinate, at one scale; the draw is the cube's, of that scale over d."""
    for share in [None, Fraction(3, 10)] if name == "best" else [None]:
        asked, of = Asked(monkeypatch), cell(d, epsilon=Fraction(4), spread_share=share)
        users = [[[7 * n % STEPS, *[n] * (d - 1)] for n in range(count)] for count in counts]
        found = MEANS_OF_VALUES[name].release(users, of, draws())
        spent = sum(asked.choices, Fraction(0))
        for purpose, scales in asked.noise.items():
            assert [axis for axis, _ in scales] == list(range(d))
            ((scale,),) = (set(scale for _, scale in scales),)
            moved = {"mean": None, "clipped mean": FINE, "deviations": FINE, "centre": STEPS << clipping.BITS}[purpose]
            if moved is None:
                way = BASELINE if "baseline" in found.details["mechanism"] else ARRAY_AVERAGING
                cap = best.chosen(counts, replace(of, epsilon=of.epsilon / d, axes=(), coordinates=d)).cap
                part = replace(
                    of, epsilon=of.epsilon / d, axes=(), coordinates=d, cap=cap if name == "best" else of.cap
                )
                moved = way.weighting(counts, part).heaviest * STEPS
            spent += moved / (scale / d)
        assert spent == of.epsilon
        assert len(asked.subkeys) == len(set(asked.subkeys))
        monkeypatch.undo()


@in_a_loop
@pytest.mark.parametrize("name", ["baseline", "array-averaging"])
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("counts", [(1,), (2, 1), (1, 1, 1)])
def test_a_user_moves_each_coordinate_by_what_the_noise_is_for(
    name: str, cap: Cap, counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All values of both coordinates of small cells, and all their neighbours: the largest coordinate says it all."""
    way = {"baseline": BASELINE, "array-averaging": ARRAY_AVERAGING}[name]
    of = cell(2, steps=1, cap=cap)
    weighting = way.weighting(counts, replace(of, epsilon=of.epsilon / 2, axes=(), coordinates=2))
    asked = Asked(monkeypatch)
    MEANS_OF_VALUES[name].release([[[0, 0]] * count for count in counts], of, draws())
    joint = asked.noise["mean"][0][1] / 2
    sums = {users: weighting.total(users) for users in all_cells(counts, 1)}
    worst = max(
        max(abs(sums[a] - sums[b]), abs(sums[c] - sums[e]))
        for a, b in itertools.product(sums, repeat=2)
        for c, e in itertools.product(sums, repeat=2)
        if len({user for pair in ((a, b), (c, e)) for user in range(len(counts)) if pair[0][user] != pair[1][user]})
        <= 1
    )
    assert worst / joint == of.epsilon == farthest_neighbours(sums) / joint


@in_a_loop
@pytest.mark.parametrize("counts", PATTERNS)
def test_a_user_moves_a_clipped_sum_by_its_parts(counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """What coordinates clip is in parts of their intervals, however wide these are."""
    of, drawn = replace(cell(), coordinates=2), Draws(KEY, b"", 0).each(2)
    asked = Asked(monkeypatch)
    arrays = clipping.Arrays(2, best_fit(counts, 2))
    for low, high in ((0, 1), (-7, 3), (100, 1 << 18), (0, 5 << 16)):
        found = {}
        for users in all_cells(counts, 1):
            sum_ = clipping.noised_clip(arrays.means(users), low, high, Fraction(high - low, 3), of, drawn[0], "sum")
            parts = Fraction(sum_ - low * len(arrays.arrays)) * FINE / (high - low)
            assert parts.denominator == 1
            found[users] = int(parts)
        assert farthest_neighbours(found) <= FINE
        assert {scale for _, scale in asked.noise["sum"]} == {Fraction(FINE, 3)}


@few
@given(COUNTS, EPSILONS, st.integers(2, 5), st.sampled_from(CAPS), st.sampled_from(NAMES), st.data())
def test_each_coordinate_is_what_it_would_be_alone_but_for_the_noise(
    counts: list[int], epsilon: Fraction, d: int, cap: Cap, name: str, data: st.DataObject
) -> None:
    of = cell(d, epsilon=epsilon * d, cap=cap, clamps=False)
    rng = data.draw(st.randoms(use_true_random=False))
    users = [[[rng.randrange(STEPS + 1) for _ in range(d)] for _ in range(count)] for count in counts]
    with pytest.MonkeyPatch.context() as patch:
        Asked(patch)
        together = MEANS_OF_VALUES[name].release(users, of, draws())
        for axis, (grid, _) in enumerate(of.axes):
            one = replace(of, grid=grid, epsilon=epsilon, axes=(), coordinates=d)
            numbers = [[sample[axis] for sample in samples] for samples in users]
            alone = MEANS[name].release(numbers, one, draws().each(d)[axis])
            assert together.value[axis] == alone.value
            assert (together.low[axis], together.high[axis]) == (alone.low, alone.high)
            assert together.noise_sd[axis] == alone.noise_sd
            assert together.counts == alone.counts
            assert together.details["mechanism"] == alone.details["mechanism"]
            error = together.details["error"]
            assert (None if error is None else error[axis]) == alone.details["error"]


@in_a_loop
@every
def test_nothing_but_the_values_depends_on_values(name: str) -> None:
    of, counts = cell(3, clamps=False), [3, 1, 4, 1, 5, 9]
    zeros, ends = ([[[at] * 3] * count for count in counts] for at in (0, STEPS))
    one, other = (MEANS_OF_VALUES[name].release(users, of, draws()) for users in (zeros, ends))
    assert (one.counts, one.details) == (other.counts, other.details)
    assert all(first != second for first, second in zip(one.value, other.value, strict=True))
    assert MEANS_OF_VALUES[name].release(zeros, of, draws()) == one


@in_a_loop
@every
def test_with_epsilon_enough_every_mean_is_exact(name: str) -> None:
    of = cell(3, epsilon=Fraction(10**12))
    users = [[[STEPS // 4, STEPS // 2, STEPS]] * count for count in (4, 2, 4)]
    found = MEANS_OF_VALUES[name].release(users, of, draws())
    truth = [grid.mean_value(at, 1) for (grid, _), at in zip(of.axes, users[0][0], strict=True)]
    for value, at, (grid, _) in zip(found.value, truth, of.axes, strict=True):
        assert value == pytest.approx(at, abs=2e-6 * float(grid.high - grid.low))


def test_the_draw_is_one_for_all_and_has_the_error_bars_of_its_law() -> None:
    of, counts = cell(2, clamps=False), [2] * 30
    users = [[[5, 9]] * 2 for _ in counts]
    found = BASELINE.release(
        [[5, 5]] * 30, replace(of, epsilon=Fraction(1, 2), axes=(), coordinates=2), draws().each(2)[0]
    )
    assert MEANS_OF_VALUES["baseline"].release(users, of, draws()).value[0] == found.value
    scale = Fraction(2 * STEPS) / of.epsilon
    cube = CubeNoise(2, scale, draws().subkey("mean"))
    for axis, (grid, _) in enumerate(of.axes):
        together = MEANS_OF_VALUES["baseline"].release(users, of, draws())
        total = 60 * users[0][0][axis] + cube.draw(axis)
        assert together.value[axis] == grid.mean_value(total, 60)
        assert together.noise_sd[axis] == grid.width_value(noise_sd(OfCube(2, scale))) / 60
        half = grid.width_value(noise_quantile(OfCube(2, scale))) / 60
        assert together.high[axis] == together.value[axis] + half


def test_coordinates_have_noise_of_their_own() -> None:
    vectors = [[one.noise_for("sum", Fraction(10**9)) for one in draws(slot=slot).each(3)] for slot in range(20)]
    assert len({number for vector in vectors for number in vector}) == 60


def test_coordinates_with_other_scales_have_no_draw_in_common() -> None:
    first, second = draws().each(2)
    first.noise_for("sum", Fraction(10))
    with pytest.raises(ValueError, match="noise of different scales: 5 and 6"):
        second.noise_for("sum", Fraction(12))


def test_subkeys_of_coordinates_are_those_of_nothing_else() -> None:
    whole, each = draws(), draws().each(3)
    names = [one.subkey(purpose, part) for one in (whole, *each) for purpose in ("a", "b") for part in (0, 1)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["baseline", "fixed-quantile", "best"])
def test_together_errors_are_less_than_apart(name: str) -> None:
    """Two coordinates against two metrics with half of epsilon each; as foretold."""
    of, counts = cell(2, epsilon=Fraction(2), spread_share=Fraction(3, 10) if name == "best" else None), [4] * 150
    half = replace(of, epsilon=Fraction(1), axes=())
    users = [[[STEPS // 3 + 900 * user, STEPS // 2] for _ in range(4)] for user in range(150)]
    numbers = [[sample[0] for sample in samples] for samples in users]
    truth = of.grid.mean_value(sum(map(sum, numbers)), 600)

    def error(values: list[float]) -> float:
        return math.fsum(abs(value - truth) for value in values) / len(values)

    slots = range(tries(300))
    together = error([MEANS_OF_VALUES[name].release(users, of, draws(slot=slot)).value[0] for slot in slots])
    apart = error([MEANS[name].release(numbers, half, draws(slot=slot)).value for slot in slots])
    assert together < apart
    assert MEANS_OF_VALUES[name].predicted_error(counts, of) < MEANS[name].predicted_error(counts, half)
    if name == "baseline":
        assert together == pytest.approx(
            MEANS_OF_VALUES[name].predicted_error(counts, of), rel=5 / math.sqrt(len(slots))
        )


def test_deviations_have_a_share_of_centre_and_spread() -> None:
    of = cell(2, epsilon=Fraction(8), spread_share=Fraction(1, 2))
    found = MEANS_OF_VALUES["best"].release([[[9, 9]] * 5 for _ in range(300)], of, draws())
    assert found.details["mechanism"] == "best: deviations, 300 users"
    assert found.details["error"] is None
    alone = replace(of, epsilon=Fraction(4), axes=(), coordinates=2)
    assert (
        deviations.divided([5] * 300, alone)[1].error
        < deviations.divided([5] * 300, replace(alone, coordinates=1))[1].error
    )
