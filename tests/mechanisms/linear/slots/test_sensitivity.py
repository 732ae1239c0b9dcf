"""What the presence of one unit moves in all slots and cells, by brute force, and what all releases tell of it."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from tests.mechanisms.account_cases import Ledger
from tests.mechanisms.counters.counter_cases import Injected
from tests.mechanisms.linear.slots.slot_cases import HOUR, KEY, NAMES, came, metric, sided
from tests.support.cover import in_a_loop, some

CAP = 2
START = 2  # slots
Record = tuple[str, str, int, int]  # user, cell, slot, grid index
UNITS = {"user-slot": 1, "user-2h": 2, "user": None}  # slots of each


def section(statistic: str, **more: Any) -> Any:
    return metric(statistic=statistic, group="g", max_contributions=CAP, range=(0, 1), grid=3, **more)


def mechanism(keys: Any) -> Any:
    return LinearSlots.of(keys.parts)


def sent(keys: Any, stream: list[Record]) -> Counter[Any]:
    """The change of each side of each cell and slot, and of its weight: what bound sends through its very accounts."""
    of = mechanism(keys)
    ledger = Ledger(lambda site: kind_of(keys.parts).accounts(keys.parts, of.bounder(), site))
    for user, cell, slot, index in stream:
        value = index if of.packing is None else of.packing.pack([index])
        ledger.accounts.add(user.encode(), cell, value, slot * HOUR, slot * HOUR)
    moved: Counter[Any] = Counter()
    for group, effective, _, block in ledger.sent:
        cell = group or ""
        if block.part == 1:
            moved["weight", cell, effective // HOUR] += block.total
            continue
        total = block.total if of.packing is None else of.packing.unpack(block.total, block.samples)
        for side, part in zip(of.sides.noised, of.sides.parts(block.samples, total), strict=True):
            moved[side.draw[1], cell, effective // HOUR] += part
    return moved


@in_a_loop
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("statistic", NAMES)
def test_a_unit_moves_all_sides_of_all_cells_and_slots_by_its_samples_widths_at_most(statistic: str, unit: str) -> None:
    """Over streams of four records of two users, in two cells and two slots; a unit's records all go.

    All such streams with full effort, else a quarter.
    """
    declared = section(statistic, unit=unit, groups=["g", "h"])
    found = section(statistic, unit=unit, delta="0.01", max_groups=2)
    of, selection = mechanism(declared), mechanism(found).selection
    length, most, heaviest = UNITS[unit], 0, 0
    kinds = [*product("a", "gh", (0, 3)), ("b", "g", 3)]
    for slots in ((2, 2, 2, 3), (2, 3, 3, 3)):
        for chosen in some(list(product(kinds, repeat=4)), 181):
            stream = [(user, cell, slot, index) for (user, cell, index), slot in zip(chosen, slots, strict=True)]
            others = [
                one
                for one in stream
                if one[0] != "a" or (length is not None and one[2] // length != slots[0] // length)
            ]
            there, gone = sent(declared, stream), sent(declared, others)
            most = max(most, sum(abs(there[at] - gone[at]) for at in there | gone))
            there, gone = sent(found, stream), sent(found, others)
            heaviest = max(heaviest, sum(there[at] - gone[at] for at in there if at[0] == "weight"))
            assert all(there[at] >= gone[at] for at in there if at[0] == "weight")
    assert most == CAP * of.sides.width == of.sums.width
    assert {sums.epsilon for sums in of.decayed} == {of.epsilon}
    assert heaviest == sum(selection.weights) <= selection.unit


def law(of: Any, slots: list[list[int]], few: int) -> dict[Any, float]:
    """The law of all that is published of a cell in some slots, by all values of all draws from -few to few."""
    injected = Injected()
    found: dict[Any, float] = {}

    def published() -> Any:
        return tuple(str(of.released(KEY, b"c", slot, came(of, samples))) for slot, samples in enumerate(slots))

    with injected.instead():
        published()
        names = list(injected.asked)
        x = math.exp(-of.sums.epsilon / of.sums.width)
        weight = {z: (1 - x) / (1 + x) * x ** abs(z) for z in range(-few, few + 1)}
        for draws in product(range(-few, few + 1), repeat=len(names)):
            injected.values = dict(zip(names, draws, strict=True))
            text = published()
            found[text] = found.get(text, 0.0) + math.prod(weight[z] for z in draws)
    return found


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "others", "unit"),
    [
        ("mean", [[0]], [[1]]),
        ("mean", [[]], [[1, 0]]),
        ("mean", [[1], []], [[0], [1]]),
        ("variance", [[1]], [[0]]),
    ],
)
def test_no_event_tells_slots_with_a_unit_from_those_without_by_more_than_epsilon(
    statistic: Any, others: list[list[int]], unit: list[list[int]]
) -> None:
    """Of the very numbers in releases; a unit may have samples in several slots, and some event does tell so much."""
    of, few = sided(statistic, epsilon=2, steps=1, m=sum(map(len, unit))), 6
    if len(others) > 1:  # with less noise, so that few draws hold nearly all
        of, few = sided(statistic, epsilon=6, steps=1, m=2), 2
    there = law(of, [a + b for a, b in zip(others, unit, strict=True)], few)
    without, factor = law(of, others, few), math.exp(float(of.epsilon))
    left_out = max(1 - sum(law.values()) for law in (without, there))
    assert left_out < 0.02
    for one, other in ((without, there), (there, without)):
        beyond = sum(max(p - factor * other.get(event, 0.0), 0.0) for event, p in one.items())
        assert beyond <= factor * left_out
    ratios = [abs(math.log(p / there[event])) for event, p in without.items() if p > 1e-4 and event in there]
    assert max(ratios) > 0.9 * of.epsilon


def test_a_longer_unit_has_one_cap_for_all_its_slots() -> None:
    """Three records in three slots, of which two count; a user-slot has its own cap in each."""
    stream = [("a", "g", slot, 3) for slot in (2, 3, 4)]
    for unit, counted in (("user-slot", 3), ("user", 2)):
        keys = section("mean", unit=unit, groups=["g"])
        assert sum(sent(keys, stream).values()) == counted * 3


def test_a_longer_unit_is_found_in_as_many_cells_of_slots_as_it_counts_for() -> None:
    """In the same cell again in the next slot: it is found anew there."""
    keys = section("mean", unit="user", delta="0.01", max_groups=2)
    found = sent(keys, [("a", "g", 2, 3), ("a", "g", 2, 3), ("a", "g", 3, 3), ("a", "h", 3, 3)])
    assert {at: weight for at, weight in found.items() if at[0] == "weight"} == {("weight", "g", 2): 1}
    keys = section("mean", unit="user", delta="0.01", max_groups=2).model_copy(update={"max_contributions": 9})
    found = sent(keys, [("a", "g", 2, 3), ("a", "g", 2, 3), ("a", "g", 3, 3), ("a", "h", 3, 3)])
    weights = {at[1:]: weight for at, weight in found.items() if at[0] == "weight"}
    assert weights == {("g", 2): 1, ("g", 3): 1}
    assert mechanism(keys).selection.unit == 2
    assert Fraction(sum(weights.values()), 2) == 1
