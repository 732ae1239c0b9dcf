"""All cells of a slot: shares, order, pieces, and noise that nothing else has."""

from fractions import Fraction
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import Bits
from shoal.mechanisms.slot import statistic
from shoal.mechanisms.slot.algorithms import MEANS, MEANS_OF_VALUES, WITH_PRIOR
from shoal.mechanisms.slot.allotment import result_of
from shoal.mechanisms.slot.cell import Draws
from shoal.mechanisms.slot.statistic import CellResult, Slotted, gather
from shoal.mechanisms.statistic import Contribution
from shoal.models.config import forms
from tests.support.effort import examples

GRID = Grid(Fraction(0), Fraction(65), 1 << 12)
KEY = bytes(range(32))
SEVERAL = [name for name in MEANS_OF_VALUES if name != "few-users"]
KINDS = [
    *({"statistic": "mean", "algorithm": name} for name in MEANS if name not in ("few-users", WITH_PRIOR)),
    {"statistic": "mean", "algorithm": "few-users", "delta": Fraction(1, 1000), "sigma": Fraction(5)},
    {
        "statistic": "mean",
        "algorithm": "few-users",
        "delta": Fraction(1, 1000),
        "epsilon": Fraction(40),
        "axes": ((GRID, Fraction(5)), (GRID, None)),
    },
    *({"statistic": "mean", "algorithm": name, "axes": ((GRID, None),) * 2} for name in SEVERAL),
    {"statistic": "mean", "spread_share": Fraction(1, 2), "axes": ((GRID, None),) * 3, "epsilon": Fraction(200)},
    {"statistic": "mean", "prior": True, "delta": Fraction(1, 1000), "sigma": Fraction(5)},
    {"statistic": "variance"},
    {"statistic": "variance", "algorithm": "baseline"},
    {"statistic": "distribution", "bins": 8, "quantiles": (Fraction(1, 2),)},
    {"statistic": "distribution", "algorithm": "baseline", "bins": 5, "cap": "median"},
]
kinds = st.sampled_from(KINDS)
values = st.integers(0, GRID.steps)
slots = st.dictionaries(
    st.sampled_from([f"user{n}" for n in range(8)]),
    st.dictionaries(st.sampled_from("wxyz"), st.lists(values, min_size=1, max_size=5), min_size=1),
    min_size=1,
)


def slotted(kind, **more):
    kind = kind | {"statistic": forms.CELLS.statistics[kind["statistic"]]}
    return Slotted(**({"grid": GRID, "epsilon": Fraction(3), "max_groups": 2} | kind | more))


def contributions(users):
    """One for each user, in canonical order."""
    rows = [Contribution(0, user, 1, 0, sum(map(len, cells.values())), cells) for user, cells in users.items()]
    return sorted(rows, key=lambda row: row[:4])


def released(of: Slotted, users, slot=7, key=KEY, after=None) -> list[CellResult]:
    return [found for found in of.cells(key, slot, samples_of(of, users), after) if found is not None]


def samples_of(of: Slotted, users):
    """The contributions; of several coordinates the second is what the first lacks of the range."""
    rows = contributions(users)
    if not of.axes:
        return rows
    return [
        row._replace(
            total={cell: [[x, GRID.steps - x, x][: len(of.axes)] for x in xs] for cell, xs in row.total.items()}
        )
        for row in rows
    ]


@examples(100)
@given(kinds, slots)
def test_each_cell_is_released_once_in_the_order_of_names(kind, users):
    found = released(slotted(kind), users)
    assert [one.cell for one in found] == sorted({cell for cells in users.values() for cell in cells})
    for one in found:
        assert one.estimate.samples <= sum(len(cells.get(one.cell, ())) for cells in users.values()) - one.dropped
        assert one.users or one.estimate.value is None


@examples(75)
@given(kinds, slots, st.integers(1, 4), st.integers(1, 5))
def test_a_users_shares_are_no_more_than_a_slot_has(kind, users, most, count):
    of = slotted(kind, max_groups=most, max_slots=count)
    epsilons = {one.cell: one.epsilon for one in released(of, users)}
    seen: list[Any] = []
    with patch.object(Slotted, "_cell", lambda self, key, slot, cell, members, allotment: seen.append(allotment)):
        released(of, users)
    allotment = seen[0]
    for user, cells in users.items():
        kept = [cell for cell in cells if user not in allotment.left_out.get(cell, ())]
        assert len(kept) <= most
        assert sum(epsilons[cell] for cell in kept) <= of.epsilon / count


@examples(50)
@given(kinds, slots, st.data())
def test_a_closing_goes_on_behind_any_cell(kind, users, data):
    of = slotted(kind)
    found = released(of, users)
    count = data.draw(st.integers(1, len(found)))
    assert released(of, users, after=found[count - 1].cell) == found[count:]


@examples(50)
@given(slots, st.lists(st.integers(1, 4), min_size=1, max_size=60))
def test_pieces_of_a_users_samples_make_the_same_slot(users, sizes):
    whole, rows, cut = contributions(users), [], iter(sizes * 200)
    for row in whole:
        number = 1
        for cell, samples in row.total.items():
            while samples:
                size = next(cut)
                piece, samples = samples[:size], samples[size:]
                rows.append(row._replace(number=number, samples=len(piece), total={cell: piece}))
                number += len(piece)
    assert result_of(gather(rows)) == result_of(gather(whole))


@given(kinds)
def test_no_two_cells_slots_or_purposes_share_a_draw(kind):
    """Each release has noise of its own: who subtracts two learns nothing exact."""
    users = {f"user{n}": {cell: [100 * n % 4000] * 3 for cell in ("x", "y")} for n in range(30)}
    seen: list[tuple[bytes, int]] = []
    take = Bits.block

    def record(bits: Bits, start: int, count: int) -> bytes:
        seen.extend((bits._subkey, index) for index in range(start, start + count))
        return take(bits, start, count)

    with patch.object(Bits, "block", record):
        for slot in (-1, 0, 1):
            released(slotted(kind), users, slot)
    assert len(seen) == len(set(seen)) >= 6


def test_an_odd_name_is_no_other_cell_slot_or_part():
    names = [
        Draws(KEY, cell, slot).subkey(purpose, part)
        for cell in (b"", b"a", b"slot", b"a\x00")
        for slot in (-1, 0, 1)
        for purpose in ("sum", "slot")
        for part in (0, 1)
    ]
    assert len(set(names)) == len(names)
    draws = Draws(KEY, b"a", 0)
    assert draws.laplace("sum", Fraction(99)) == draws.laplace("sum", Fraction(99))
    assert next(draws.words("sum")) == next(draws.words("sum"))


@given(st.integers(1, 9))
def test_too_few_users_are_no_release_and_have_no_share(least):
    users = {f"user{n}": {"x": [5]} | ({"y": [6]} if n < 3 else {}) for n in range(6)}
    found = {one.cell: one for one in released(slotted(KINDS[0], min_users=least), users)}
    assert (found["x"].estimate.value is None) == (least > 6)
    assert (found["y"].estimate.value is None) == (least > 3)
    if 3 < least <= 6:
        assert found["x"].epsilon == 3
        assert (found["x"].users, found["y"].users) == (6, 3)
    if least > 6:
        assert found["x"].degradation is None


def test_a_slot_without_contributions_has_no_releases():
    assert released(slotted(KINDS[0]), {}) == []


def test_a_caller_is_given_back_now_and_then():
    users = {f"user{n:04}": {"x": [n]} for n in range(2000)}
    with patch.object(statistic, "ROWS", 100):
        found = list(slotted(KINDS[0]).cells(KEY, 0, contributions(users)))
    assert found[:15] == [None] * 15


@examples(30)
@given(st.sampled_from(KINDS), slots, st.data())
def test_a_neighbour_sees_the_same_pattern(kind, users, data):
    """Of what follows from a clip range that was charged, its width may differ; and few users may be no release."""
    user = data.draw(st.sampled_from(sorted(users)))
    changed = {cell: [data.draw(values) for _ in samples] for cell, samples in users[user].items()}
    first, second = (released(slotted(kind), one) for one in (users, users | {user: changed}))
    for one, other in zip(first, second, strict=True):
        assert (one.cell, one.users, one.dropped, one.epsilon, one.degradation) == (
            other.cell, other.users, other.dropped, other.epsilon, other.degradation,
        )  # fmt: skip
        assert one.estimate.samples == other.estimate.samples
        assert one.estimate.details == other.estimate.details


def test_with_split_each_cell_has_the_same_share():
    users = {"a": {"x": [5], "y": [6]}, "b": {"x": [7]}}
    found = released(slotted(KINDS[0], splits=True, max_groups=3), users)
    assert {one.epsilon for one in found} == {Fraction(1)}
    assert [(one.dropped, one.degradation) for one in found] == [(0, None)] * 2


@pytest.mark.parametrize("given_", [{"epsilon": Fraction(0)}, {"max_slots": 0}, {"epsilon": Fraction(1, 10**61)}])
def test_what_makes_no_sense_is_refused(given_):
    with pytest.raises(ValueError, match="must be"):
        slotted(KINDS[0], **given_)


def test_a_range_whose_square_no_number_holds_is_refused_before_anything_is_released():
    wide = Grid(Fraction(-(10**200)), Fraction(10**200), 2**20)
    assert slotted({"statistic": "mean", "algorithm": "baseline"}, grid=wide)
    with pytest.raises(ValueError, match="too far apart"):
        slotted({"statistic": "variance", "algorithm": "baseline"}, grid=wide)


def test_cells_keep_nothing():
    groups = slotted(KINDS[0]).in_groups(KEY)
    groups.restore("x", groups.head("x"), [])
    rows = [("", contributions({"a": {"x": [1], "y": [2]}, "b": {"z": [3]}}))]
    closed = [one for one in groups.close(3, rows) if one is not None]
    assert ([one.group for one in closed], {one.is_part for one in closed}) == (["x", "y", "z"], {True})
    assert [one.group for one in groups.close(3, rows, after="y") if one is not None] == ["z"]
    assert (list(groups.changes()), groups.due(), groups.level("x", 0)) == ([], None, None)
    assert groups.head("x") == {"releaser": []}
    assert slotted(KINDS[0]).bounder().max_contributions == 1
    assert slotted(KINDS[0]).sample_grid == GRID


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 3))
def test_a_baseline_takes_all_unless_its_cap_is_a_number(counts, cap):
    users = {f"user{n}": {"x": [7] * count} for n, count in enumerate(counts)}
    for name in forms.CELLS.statistics:
        kind = {"statistic": name, "algorithm": "baseline", "bins": 4, "max_contributions": 9}
        (every,) = released(slotted(kind), users)
        assert every.estimate.samples == sum(counts)
        (some,) = released(slotted(kind | {"cap": cap}), users)
        assert some.estimate.samples == sum(min(count, cap) for count in counts)


def test_cells_of_two_slots_have_other_noise():
    users = {f"user{n}": {"x": [2000]} for n in range(5)}
    found = [released(slotted(KINDS[1]), users, slot)[0].estimate.value for slot in range(20)]
    assert all(one != other for one, other in pairwise(found))
