"""How the sharp mean cuts a unit's samples: laws of shapes, and a bounder against a plain one."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp.bounder import LEAST, MOST, SINGLES, Shape, SharpBounder
from shoal.mechanisms.continual_mean.sharp.buckets import Buckets
from shoal.mechanisms.statistic import Block
from tests.mechanisms.continual_mean.sharp.sharp_cases import sharp
from tests.mechanisms.mechanism_cases import Sample, contributions
from tests.support.cover import in_a_loop
from tests.support.effort import examples

CAPS = [
    *range(1, 10),
    31,
    32,
    33,
    63,
    64,
    65,
    95,
    96,
    97,
    127,
    128,
    191,
    192,
    255,
    256,
    300,
    511,
    512,
    1023,
    1024,
    1536,
]


def test_shapes_of_all_caps_to_five_thousand() -> None:
    for m in range(1, 5001):
        shape = Shape(m)
        ends = [shape.end(block) for block in range(shape.blocks)]
        assert (shape.blocks == 0) == (m < SINGLES) == (shape.alone == m)
        if not ends:
            assert (shape.octaves, shape.singles) == (0, m)
            continue
        assert shape.alone in (4, 8, 16)
        assert LEAST * SINGLES <= max(m, LEAST * SINGLES) < 2 * SINGLES * shape.alone or shape.alone == MOST
        # blocks follow each other without a gap, as many as there is room for
        starts = [shape.alone, *ends]
        assert [shape.weight(block) for block in range(shape.blocks)] == [end - at for at, end in pairwise(starts)]
        assert ends[-1] <= m < shape.end(shape.blocks)
        # half a unit's samples are in its open block at most
        assert all(2 * at >= end for at, end in pairwise(starts))
        # a block is told by the sample that closes it, and by nothing else
        closing = {
            count: shape.ends.get(count) for count in (*ends, *(end + 1 for end in ends), *(end - 1 for end in ends))
        }
        assert {count: block for count, block in closing.items() if block is not None} == {
            end: block for block, end in enumerate(ends)
        }


def test_octaves_partition_the_blocks() -> None:
    for m in range(1, 5001):
        shape = Shape(m)
        octaves = [shape.octave(number) for number in range(shape.octaves)]
        assert [block for octave in octaves for block in octave] == list(range(shape.blocks))
        for number, octave in enumerate(octaves):
            assert {shape.weight(block) for block in octave} == {shape.alone << number}
            assert len(octave) == (2 if number else 3) or (number == len(octaves) - 1 and len(octave) == 1)


@in_a_loop
@pytest.mark.parametrize("m", CAPS)
def test_every_sample_of_a_unit_is_told_apart(m: int) -> None:
    """Which sample closes which block, for all counts; numbers and levels are never used twice."""
    shape = Shape(m)
    closes = [shape.ends.get(count) for count in range(2 * shape.alone, m + 1)] if shape.blocks else []
    assert [block for block in closes if block is not None] == list(range(shape.blocks))
    # those one by one have their own numbers, blocks beyond them the next
    beyond = [block for block in range(shape.blocks) if shape.end(block) > shape.singles]
    assert [shape.number(block) for block in range(shape.blocks) if block not in beyond] == [
        shape.end(block) for block in range(shape.blocks) if block not in beyond
    ]
    numbers = [*range(1, shape.singles + 1), *map(shape.number, beyond)]
    assert numbers == sorted(set(numbers))
    assert max(((count - 1).bit_length() for count in range(1, shape.singles + 1)), default=0) == shape.levels - 1


def plain(shape: Shape, buckets: Buckets, values: list[int]) -> list[Block]:
    """By definition."""
    ends = {shape.end(block): block for block in range(shape.blocks)}
    found = []
    for count, value in enumerate(values, start=1):
        block, level = ends.get(count), (count - 1).bit_length()
        if block is None:
            if count <= shape.singles:
                found.append(Block(count, level, 1, value, buckets.of(value)))
            continue
        weight, total = shape.weight(block), sum(values[count - shape.weight(block) : count])
        if count <= shape.singles:
            found.append(Block(count, shape.levels + block, 1, (total << buckets.bits) + value))
        else:
            found.append(Block(shape.singles + 1 + block, shape.levels + block, weight, total))
    return found


@examples(75)
@given(
    st.sampled_from(CAPS) | st.integers(1, 1100),
    st.sampled_from([1, 3, 64, 1 << 20, 1 << 32]),
    st.lists(st.fractions(0, 1), min_size=1, max_size=7),
)
def test_a_bounder_sends_what_a_plain_one_does(m: int, steps: int, parts: list[object]) -> None:
    shape, buckets = Shape(m), Buckets(steps)
    values = [int(parts[count * (count + 1) % len(parts)] * steps) for count in range(m)]  # type: ignore[operator]
    bounder, account, sent = SharpBounder(shape, buckets), 0, []
    for count, value in enumerate(values, start=1):
        account, block = bounder.add(account, value)
        assert account >= 0
        assert account & 0xFFFFFFFF == count
        sent += [block] if block else []
    assert sent == plain(shape, buckets, values)
    assert len({block.number for block in sent}) == len(sent)
    # a unit has one contribution of a level of blocks, and of single samples so many that all are told by number
    assert max(Counter(b.level for b in sent if b.part is None).values(), default=1) == 1
    assert bounder.max_contributions == m
    with pytest.raises(ValueError, match="beyond max_contributions"):
        bounder.add(account, 1)


def test_levels_of_single_samples_double() -> None:
    sent = contributions(sharp(1, 1024, steps=64), [Sample(at, "u", 1) for at in range(1024)])
    singles = Counter(c.level for c in sent if c.level < 7)
    # of 64 three close a block, too: the 32nd, the 48th and the 64th
    assert singles == {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 15, 6: 30}
    assert [(c.level, c.samples) for c in sent if c.level >= 7] == [
        (7, 1), (8, 1), (9, 1), *zip(range(10, 18), (32, 32, 64, 64, 128, 128, 256, 256), strict=True),
    ]  # fmt: skip


@given(st.sampled_from([8, 63, 64, 300]), st.lists(st.integers(0, 64), min_size=1, max_size=9))
def test_who_contributes_decides_what_closes(m: int, values: list[int]) -> None:
    """Neighbours have the same blocks, but for sums and buckets."""
    one, other = (SharpBounder(Shape(m), Buckets(64)) for _ in range(2))
    left = right = 0
    for number in range(m):
        (left, first), (right, second) = one.add(left, 0), other.add(right, values[number % len(values)])
        assert (first is None) == (second is None)
        if first and second:
            assert first[:3] == second[:3]
            assert (first.part is None) == (second.part is None)
