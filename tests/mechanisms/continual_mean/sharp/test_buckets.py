"""Buckets: clipping counts and sums is clipping samples."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp.buckets import EQUAL, Buckets, outside

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
    # and a value fits below a sum that is shifted by so many bits
    assert value >> buckets.bits == 0


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
