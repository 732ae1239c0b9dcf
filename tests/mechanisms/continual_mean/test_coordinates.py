"""Values of several coordinates, for every algorithm: each coordinate is a mean of its own, packed or not."""

import dataclasses
import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.coordinates import LIMIT, Coordinates
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.statistic import Activation, Contribution, Estimate
from tests.mechanisms.mechanism_cases import KEY, has, json_able, mean, means, play, subgaussian
from tests.support.cover import in_a_loop

STEPS = 1 << 20
ALL = sorted(means(), key=lambda cls: cls.name)
KINDS = ALL + [subgaussian(cls) for cls in ALL if has(cls, "sigma")]
every_mean = pytest.mark.parametrize("cls", KINDS, ids=[cls.name for cls in KINDS])
RANGES = [(-1, 3), (0, 1), (-5, 5), (100, 101), (0, 10**6), (-3, -2), (7, 8), (0, 2)]


def joint(cls: type[MeanParameters], d: int = 2, *, epsilon: Fraction = Fraction(10**6), **more: Any) -> Coordinates:
    """The algorithm for d coordinates, each with a range of its own and a prior in its middle."""
    parts = []
    for low, high in RANGES[:d]:
        own: dict[str, Any] = {"grid": Grid(Fraction(low), Fraction(high), STEPS)}
        if has(cls, "prior"):
            own["prior"] = Fraction(low + high, 2)
        if "sigma" in more or cls.name.endswith("sigma"):
            own["sigma"] = more.get("sigma", Fraction(1, 8)) * (high - low)
        others = {"max_contributions": 16, "users": 8} | {
            name: value for name, value in more.items() if name != "sigma"
        }
        parts.append(cls(epsilon=epsilon / d, **own, **others))
    return Coordinates(tuple(parts))


def stream(d: int, units: int = 12, each: int = 16) -> list[tuple[int, str, list[int]]]:
    """(when, whose, grid index of each coordinate), of units with unequal numbers of samples."""
    rows: list[tuple[int, str, list[int]]] = []
    for j in range(each):
        for i in range(units):
            if i % 3 == 0 or j < 2 + i:
                values = [(i * 7919 + j * 104729 + c * 7) * (5 + c) % STEPS for c in range(d)]
                rows.append((len(rows) // 3, f"{i:032x}", values))
    return rows


def sent(parameters: Coordinates, rows: Sequence[tuple[int, str, list[int]]]) -> list[Contribution]:
    """What bound sends: it counts and adds packed values, and unpacks sums."""
    bounder, accounts = parameters.bounder(), dict[str, int]()
    found = []
    for at, unit, values in rows:
        starts = [(part.sample_grid.steps - STEPS) // 2 for part in parameters.parts]
        value = parameters.pack([start + own for start, own in zip(starts, values, strict=True)])
        accounts[unit], block = bounder.add(accounts.get(unit, 0), value)
        if block:
            totals = parameters.unpack(block.total, block.samples)
            found.append(Contribution(at, unit, block.number, block.level, block.samples, totals))
    return sorted(found, key=lambda one: one[:4])


def alone(parameters: Coordinates, rows: Sequence[tuple[int, str, list[int]]], coordinate: int) -> list[Contribution]:
    """What bound sends where there is only this coordinate."""
    part = parameters.parts[coordinate]
    bounder, accounts, found = part.bounder(), dict[str, int](), []
    for at, unit, values in rows:
        value = (part.sample_grid.steps - STEPS) // 2 + values[coordinate]
        accounts[unit], block = bounder.add(accounts.get(unit, 0), value)
        if block:
            found.append(Contribution(at, unit, *block[:4]))
    return sorted(found)


@in_a_loop
@every_mean
@pytest.mark.parametrize("d", [2, 8])
@pytest.mark.parametrize("epsilon", [Fraction(3), Fraction(10**6)])
def test_each_coordinate_is_the_mean_that_it_would_be_alone(
    cls: type[MeanParameters], d: int, epsilon: Fraction
) -> None:
    parameters = joint(cls, d, epsilon=epsilon)
    rows = stream(d)
    # given each coordinate alone, with its share of epsilon, its own noise, and its own packing: none
    singles: list[list[Estimate | None]] = []
    activations: list[list[tuple[int, Activation]]] = []
    for index, part in enumerate(parameters.parts):
        estimates, activated = play(part.releaser(KEY, b"g", index), alone(parameters, rows, index))
        singles.append(estimates)
        activations.append(activated)
    # then all together are no less and no more
    releaser, found = parameters.releaser(KEY, b"g"), []
    for at, contribution in enumerate(sent(parameters, rows)):
        found += [(at, one) for one in (*releaser.add(contribution), *releaser.close())]
        estimate, each = releaser.estimate(), [single[at] for single in singles]
        if estimate is None:
            assert each == [None] * d
            continue
        for name in ("value", "noise_sd", "low", "high"):
            assert getattr(estimate, name) == [None if one is None else getattr(one, name) for one in each]
        assert estimate.samples == min(0 if one is None else one.samples for one in each)
    assert [(at, one.level, one.prior, one.samples) for at, one in found] == [
        (same[0][0], same[0][1].level, [one.prior for _, one in same], [one.samples for _, one in same])
        for same in zip(*activations, strict=True)
    ]
    for _, one in found:
        assert one.epsilon == sum(activated[0][1].epsilon for activated in activations)


def test_blocks_of_sharp_are_summed_packed_beside_values_on_the_widest_grid() -> None:
    parts = [
        Sharp(grid=Grid(Fraction(low), Fraction(high), 2**29 - 1), epsilon=Fraction(1), max_contributions=100, users=8)
        for low, high in RANGES[:3]
    ]
    parameters = Coordinates(tuple(parts))
    # given a unit with nothing but the ends of the ranges
    start = (2**29 - 1 - STEPS) // 2  # which `sent` adds
    ends = [-start, 2**29 - 1 - start]
    rows = [(at, "a", [ends[0], ends[1], ends[at % 2]]) for at in range(100)]
    packed = sent(parameters, rows)
    # then each coordinate has what it would have alone, values and sums of blocks
    assert len(packed) == 65
    for index in range(3):
        own = [one._replace(total=one.total[index]) for one in packed]
        assert own == alone(parameters, rows, index)
    # and a wider grid, where a lane would carry into the next, is refused
    with pytest.raises(ValueError, match="grid must be below"):
        dataclasses.replace(parts[0], grid=Grid(Fraction(0), Fraction(1), 2**29))
    assert dataclasses.replace(parts[0], grid=Grid(Fraction(0), Fraction(1), 2**32), max_contributions=63).epsilon


@every_mean
def test_the_budget_is_split_exactly_and_each_coordinate_has_noise_of_its_own(cls: type[MeanParameters]) -> None:
    parameters = joint(cls, 7, epsilon=Fraction("0.7"), groups=3)
    assert parameters.bounder().max_contributions == 16
    assert parameters.epsilon == Fraction("0.7")
    assert {part.group_epsilon for part in parameters.parts} == {Fraction("0.1") / 3}
    # given coordinates with the same range and the same values
    part = joint(cls).parts[0]
    twins = Coordinates((part, part))
    rows = [(at, unit, [value[0]] * 2) for at, unit, value in stream(2)]
    releaser = twins.releaser(KEY, b"")
    for contribution in sent(twins, rows):
        releaser.add(contribution)
        releaser.close()
    estimate = releaser.estimate()
    assert estimate is not None
    assert estimate.noise_sd[0] == estimate.noise_sd[1]
    assert estimate.value[0] != estimate.value[1]


def unequal() -> Coordinates:
    """Coordinates whose sigmas are different parts of their ranges: their priors take different numbers of arrays."""
    one, other = (
        joint(Full, sigma=Fraction(1), epsilon=Fraction(600)),
        joint(Full, sigma=Fraction(1, 10**4), epsilon=Fraction(600)),
    )
    parameters = Coordinates((one.parts[0], other.parts[1]))
    arrays = [[level.arrays for level in part.levels] for part in parameters.parts if isinstance(part, Full)]
    assert arrays[0] < arrays[1]
    return parameters


RESTARTED = [(joint(cls, 3), flush) for cls in KINDS for flush in (1, 7)]
RESTARTED.append((unequal(), 3))  # priors wait for each other


@in_a_loop
@pytest.mark.parametrize(("parameters", "flush"), RESTARTED)
def test_the_state_survives_a_restart_anywhere(parameters: Coordinates, flush: int) -> None:
    """A run, and the same run that starts anew from its changelog now and then."""
    contributions = sent(parameters, stream(len(parameters.parts)))
    whole, expected = parameters.releaser(KEY, b""), []
    log: dict[tuple[int, str], Contribution] = {}
    releaser = parameters.releaser(KEY, b"")
    for at, contribution in enumerate(contributions):
        expected = [*whole.add(contribution), *whole.close(), whole.estimate()]
        assert [*releaser.add(contribution), *releaser.close(), releaser.estimate()] == expected
        if at % flush == 0:
            written, dropped = releaser.take_changes()
            for key in dropped:
                del log[key]
            log.update({(one.level, one.pseudonym): one for one in written})
            assert log == releaser.kept
            assert json_able(releaser.head())
            head = json.loads(json.dumps(releaser.head()))
            releaser = parameters.releaser(KEY, b"")
            releaser.restore(head, log.values())
            assert releaser.take_changes() == ([], [])


def test_a_level_is_published_when_the_last_coordinate_has_it() -> None:
    parameters = unequal()
    releaser, rows = parameters.releaser(KEY, b""), stream(2)
    when: list[dict[int, int]] = []
    for index, part in enumerate(parameters.parts):
        _, activated = play(part.releaser(KEY, b"", index), alone(parameters, rows, index))
        when.append({one.level: at for at, one in activated})
    assert when[0][1] < when[1][1]
    found: list[tuple[int, Activation]] = []
    halves = 0
    for at, contribution in enumerate(sent(parameters, rows)):
        found += [(at, one) for one in releaser.add(contribution)]
        estimate = releaser.estimate()
        if when[0][1] <= at < when[1][1]:  # one coordinate has an estimate, the other waits
            halves += 1
            assert estimate is not None
            assert (estimate.value[0] is None, estimate.value[1], estimate.samples) == (False, None, 0)
    assert halves
    assert [(at, one.level) for at, one in found] == [(when[1][level], level) for level in sorted(when[1])]
    assert all(len(one.prior) == len(one.samples) == 2 for _, one in found)


@given(st.lists(st.lists(st.integers(0, STEPS), min_size=8, max_size=8), min_size=1, max_size=16))
def test_lanes_add_up_by_themselves(values: list[list[int]]) -> None:
    parameters = joint(Naive, 8)
    packed = sum(map(parameters.pack, values))
    assert parameters.unpack(packed, len(values)) == [sum(lane) for lane in zip(*values, strict=True)]


def test_lanes_do_not_carry_up_to_the_largest_sum_and_more_is_refused() -> None:
    grid = Grid(Fraction(0), Fraction(1), 1 << 32)
    part = Naive(grid=grid, epsilon=Fraction(1), max_contributions=2**31 - 1, users=1)
    parameters = Coordinates((part, part, part))
    most = 2**31 - 1
    full = parameters.pack([1 << 32] * 3) * most
    assert parameters.unpack(full, most) == [most << 32] * 3
    assert most << 32 < LIMIT
    with pytest.raises(ValueError, match="too many for one sum"):
        parameters.unpack(full, most + 1)


def test_coordinates_are_several_and_alike() -> None:
    naive = mean(Naive)
    with pytest.raises(ValueError, match="a mean of its own"):
        Coordinates((naive,))
    for other in (mean(Full), mean(Naive, m=5), mean(Naive, epsilon=Fraction(2)), mean(Naive, users=9)):
        with pytest.raises(ValueError, match="differ in more than range"):
            Coordinates((naive, other))
    with pytest.raises(ValueError, match="choose a smaller grid"):
        Coordinates((mean(Naive, m=2**31, steps=2**32),) * 2)


def test_a_contribution_has_a_total_for_each_coordinate() -> None:
    with pytest.raises(ValueError, match="shorter"):
        joint(Naive).releaser(KEY, b"").add(Contribution(0, "a", 1, 0, 1, [1]))
