"""Buckets: clipping counts and sums is clipping samples, and blocks lie where they should."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.buckets import EQUAL, Buckets, outside
from shoal.mechanisms.sharp_bounder import EVENTS, SharpBounder, blocks, weight
from tests.mechanisms.mechanism_cases import Sample, contributions
from tests.mechanisms.sharp_cases import sharp

STEPS = [1, 2, 3, 7, 63, 64, 65, 100, 1 << 10, (1 << 20) - 1, 1 << 20, 1 << 32]


@given(st.sampled_from(STEPS), st.data())
def test_each_grid_index_has_one_bucket(steps: int, data: st.DataObject) -> None:
    buckets = Buckets(steps)
    ends = buckets.boundaries
    assert (ends[0], ends[-1], len(ends)) == (0, steps, buckets.count + 1)
    assert list(ends) == sorted(set(ends))
    value = data.draw(st.integers(0, steps))
    bucket = buckets.of(value)
    assert 0 <= bucket < buckets.count
    assert ends[bucket] <= value
    assert value < ends[bucket + 1] or value == steps
    # no bucket is wide, and those at the ends are as narrow as the grid
    assert max(high - low for low, high in zip(ends, ends[1:], strict=False)) <= -(-steps // EQUAL)
    assert ends[1] == steps - ends[-2] == 1


@given(st.sampled_from(STEPS), st.data())
def test_clipping_sums_is_clipping_samples(steps: int, data: st.DataObject) -> None:
    buckets = Buckets(steps)
    values = data.draw(st.lists(st.integers(0, steps) | st.sampled_from([0, steps]), min_size=1, max_size=20))
    high = data.draw(st.integers(1, buckets.count))
    low = data.draw(st.integers(0, high - 1))
    first, last = buckets.boundaries[low], buckets.boundaries[high]
    counts: Counter[int] = Counter(map(buckets.of, values))
    clipped = sum(
        buckets.clipped(bucket, samples, sum(v for v in values if buckets.of(v) == bucket), low, high)
        for bucket, samples in counts.items()
    )
    assert clipped == sum(min(max(value, first), last) for value in values)
    left = outside([counts[bucket] for bucket in range(buckets.count)], low, high)
    assert left == sum(value < first or value >= last != steps or value > last for value in values)


@given(st.sampled_from(STEPS), st.data())
def test_around_reaches_out_to_boundaries_inside_the_range(steps: int, data: st.DataObject) -> None:
    buckets = Buckets(steps)
    centre, half = data.draw(st.integers(0, steps)), data.draw(st.integers(1, 2 * steps))
    low, high = buckets.around(centre, half)
    assert 0 <= low < high <= buckets.count
    assert buckets.boundaries[low] <= max(0, centre - half) or low == buckets.count - 1
    assert buckets.boundaries[high] >= min(steps, centre + half)


@pytest.mark.parametrize("m", [*range(1, 9), 63, 64, 65, 127, 128, 129, 160, 191, 192, 193, 255, 256, 300, 700, 1024])
def test_blocks_are_in_pairs_and_leave_a_third_open_at_most(m: int) -> None:
    parameters = sharp(1, m, steps=64)
    values = [number * 7 % 65 for number in range(1, m + 1)]
    closed, start = [], 0
    bounder, account = parameters.bounder(), 0
    for number, value in enumerate(values, start=1):
        account, block = bounder.add(account, value)
        if block is None:
            assert 3 * (number - start) <= number
            continue
        closed.append(block)
        assert block.total == sum(values[start:number])
        assert block.samples == number - start == (1 if block.part is not None else weight(block.level))
        start = number
    assert [block.number for block in closed] == list(range(1, len(closed) + 1))
    levels = [block.level for block in closed if block.part is None]
    assert levels == list(range(7, 7 + blocks(m)))
    assert len(closed) == (m if m < 2 * EVENTS else EVENTS + blocks(m))
    assert [b.part for b in closed[:EVENTS]] == [parameters.buckets.of(b.total) for b in closed[:EVENTS]]
    with pytest.raises(ValueError, match="beyond max_contributions"):
        bounder.add(account, 1)


def test_pairs_have_one_weight_and_levels_of_single_samples_double() -> None:
    sent = contributions(sharp(1, 1024, steps=64), [Sample(at, "u", 1) for at in range(1024)])
    singles = Counter(c.level for c in sent if c.level < 7)
    assert singles == {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 6: 32}
    assert [c.samples for c in sent if c.level >= 7] == [32, 32, 64, 64, 128, 128, 256, 256]


def test_who_contributes_decides_what_closes() -> None:
    """Neighbours have the same blocks, but for sums and buckets."""
    one, other = (SharpBounder(300, Buckets(64)) for _ in range(2))
    left = right = 0
    for number in range(300):
        (left, first), (right, second) = one.add(left, 0), other.add(right, number % 65)
        assert (first is None) == (second is None)
        if first and second:
            assert first[:3] == second[:3]
            assert (first.part is None) == (second.part is None)
