"""The laws of a cell's release, for every statistic per slot that protects presence."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.groups import Closed
from shoal.mechanisms.linear.estimates import LEAST_COUNT
from shoal.mechanisms.linear.groups import StepGroups
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from tests.mechanisms.linear.slots.slot_cases import KEY, NAMES, STEPS, SURE, came, sided
from tests.support.effort import examples, tries

every = pytest.mark.parametrize("statistic", NAMES)
samples_of = st.lists(st.integers(0, STEPS), max_size=6)
Seen = dict[tuple[str, str], int]  # cell and side -> exact sum


class Noisy:
    """The noisy sides of a cell in a slot."""

    def __init__(self, of: LinearSlots) -> None:
        self.of = of

    def __call__(self, samples: list[int], slot: int = 7, cell: bytes = b"c", key: bytes = KEY) -> list[int]:
        return self.of.noisy_sides(key, cell, slot, came(self.of, samples, newcomers=3))


@every
@examples(60)
@given(samples_of)
def test_without_noise_the_release_is_the_exact_statistic(statistic: str, samples: list[int]) -> None:
    of = sided(statistic, epsilon=SURE)
    released = of.released(KEY, b"c", 7, came(of, samples, newcomers=2))
    values = [-1 + 4 * i / STEPS for i in samples]
    assert released.counts == {"count": pytest.approx(len(samples), abs=1e-6), "count_sd": pytest.approx(0, abs=1e-6)}
    if not samples:
        return
    mean = sum(values) / len(values)
    variance = sum((x - mean) ** 2 for x in values) / len(values)
    exact = mean if statistic == "mean" else {"mean": mean, "variance": variance}
    assert released.value == pytest.approx(exact, abs=1e-6)
    assert released.details == {"mechanism": f"{len(of.sides.noised)} sides"}


@every
@examples(60)
@given(samples_of, samples_of)
def test_neighbours_meet_the_same_noise(statistic: str, one: list[int], other: list[int]) -> None:
    of, sure = Noisy(sided(statistic)), Noisy(sided(statistic, epsilon=SURE))
    for a, b, c, d in zip(of(one), of(other), sure(one), sure(other), strict=True):
        assert a - b == c - d


@every
def test_sides_cells_slots_and_keys_have_noise_of_their_own(statistic: str) -> None:
    of = Noisy(sided(statistic, epsilon=Fraction(1, 10**6)))
    seen = [of([]), of([], slot=8), of([], slot=-7), of([], cell=b"d"), of([], key=b"K" * 32)]
    assert len({side for sides in seen for side in sides}) == 5 * len(of.of.sides.noised)
    assert of([]) == seen[0]


@pytest.mark.parametrize("statistic", [*NAMES, "distribution"])
def test_all_draws_of_a_metric_have_names_of_their_own(statistic: str) -> None:
    """Over cells, slots and sides; the nodes of one level of a tree draw one after another under one name."""
    of = sided(statistic, steps=64)
    names = {side.draw[:2]: side for side in of.sides.noised}
    places = list(product((KEY, b"K" * 32), (b"", b"c", b"d"), (7, 8, -7)))
    subkeys = {of.draws(key, cell, side)(slot) for (key, cell, slot) in places for side in names.values()}
    assert len(subkeys) == len(places) * len(names)
    assert len(set(of.sides.noised)) == len(of.sides.noised)


@every
def test_noise_has_the_scale_of_all_samples_of_a_unit(statistic: str) -> None:
    of: Any = sided(statistic, epsilon=Fraction(1, 2), m=3)
    scale = 3 * of.sides.width * 2
    count = tries(400)
    draws = [draw for slot in range(count) for draw in Noisy(of)([], slot=slot)]
    size = sum(abs(draw) for draw in draws) / len(draws)  # the scale, about
    assert size == pytest.approx(scale, rel=5 / math.sqrt(len(draws)))


@every
def test_too_few_samples_have_no_value_and_the_rule_goes_by_what_is_released(statistic: str) -> None:
    of = sided(statistic, epsilon=1, m=1)
    for slot in range(tries(60)):
        released = of.released(KEY, b"c", slot, came(of, [STEPS] * 8))
        value = released.value if statistic == "mean" else released.value["mean"]
        counts = released.counts
        assert (value is None) == (counts["count"] < LEAST_COUNT * counts["count_sd"])


@pytest.mark.slow
@pytest.mark.parametrize(("users", "place"), [(12, 0.5), (40, 0.05), (200, 0.3)])
def test_the_interval_holds_the_exact_mean_in_95_of_100_releases(users: int, place: float) -> None:
    """The quantile of one draw is no less than that of any mixture of two; where N is told at all."""
    of = sided("mean", m=1, steps=1 << 20)
    samples = [round(place * of.grid.steps)] * users
    contributions, count = came(of, samples), max(300, tries(2000))
    exact, held = -1 + 4 * samples[0] / of.grid.steps, 0
    for slot in range(count):
        released = of.released(KEY, b"c", slot, contributions)
        held += released.low <= exact <= released.high
    assert held / count > 0.95 - 3 * math.sqrt(0.05 * 0.95 / count)


# ---------------------------------------------------------------- declared cells


def closed(groups: Any, tick: int, rows: Any) -> list[Closed]:
    return [one for one in groups.close(tick, sorted(rows)) if one is not None]


def test_a_declared_cell_is_released_in_every_slot_whatever_comes() -> None:
    of = sided("mean", groups=("a", "b"), first=5, end=8)
    groups = of.in_groups(KEY)
    assert isinstance(groups, StepGroups)
    released = {}
    for tick in range(5, 8):
        assert groups.due() == tick
        rows = [("b", came(of, [3, 4]))] if tick == 6 else []
        for one in closed(groups, tick, rows):
            released[tick, one.group] = one.estimate
            assert one.estimate == of.released(
                KEY, one.group.encode(), tick, rows[0][1] if one.group == "b" and rows else []
            )
    assert groups.due() is None
    assert list(released) == [(tick, group) for tick in (5, 6, 7) for group in "ab"]


def test_a_partition_has_the_cells_that_are_its_own() -> None:
    of = sided("mean", groups=("b", "a", "c"))
    groups = of.in_groups(KEY, lambda cell: cell != "b")
    assert [one.group for one in closed(groups, 0, [])] == ["a", "c"]


@every
def test_a_restart_between_two_slots_changes_nothing(statistic: str) -> None:
    of = sided(statistic, groups=("a", "b"), first=3)
    whole = of.in_groups(KEY)
    part: Any = of.in_groups(KEY)
    for tick in range(3, 7):
        rows = [("a", came(of, [tick]))]
        assert part.due() == tick
        expected = closed(whole, tick, rows)
        assert closed(part, tick, rows) == expected
        heads = {name: part.head(name) for name in "ab"}
        assert all(not change.written and not change.dropped for change in part.changes())
        part = of.in_groups(KEY)
        for name, head in heads.items():
            part.restore(name, head, ())
            assert part.releaser(name).kept == {}
