"""Public buckets of the range: with a count and a sum per bucket, samples can be clipped later, exactly.

Boundaries are 64 equal steps of the range and, towards both of its ends, ever smaller ones, because the body of a
heavy-tailed value may lie within a thousandth of its range. Clipping to two boundaries needs no single sample: a bucket
lies between them, or its samples all go to one of them.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

EQUAL = 64


@dataclass(frozen=True)
class Buckets:
    """The buckets of a grid of `steps` steps.

    >>> Buckets(1 << 20).boundaries[:4], len(Buckets(1 << 20).boundaries)
    ((0, 1, 2, 3), 119)
    """

    steps: int

    @cached_property
    def boundaries(self) -> tuple[int, ...]:
        """Grid indices from 0 to `steps`, ascending: bucket j holds boundaries[j] <= value < boundaries[j + 1]."""
        indices = {self.steps * j // EQUAL for j in range(EQUAL + 1)}
        near = self.steps // EQUAL
        while near:
            indices |= {near, near * 3 // 4, self.steps - near, self.steps - near * 3 // 4}
            near //= 2
        return tuple(sorted(indices))

    @cached_property
    def inner(self) -> tuple[int, ...]:
        return self.boundaries[1:-1]

    @cached_property
    def bits(self) -> int:
        return self.steps.bit_length()

    @property
    def count(self) -> int:
        return len(self.boundaries) - 1

    def of(self, value: int) -> int:
        """The bucket of a grid index; the last one holds its upper end too.

        >>> Buckets(64).of(0), Buckets(64).of(63), Buckets(64).of(64)
        (0, 63, 63)
        """
        return bisect_right(self.inner, value)

    def clipped(self, bucket: int, samples: int, total: int, low: int, high: int) -> int:
        """The sum of a bucket's samples after clipping to the boundaries number `low` and `high`.

        >>> Buckets(64).clipped(3, 2, 7, low=5, high=9)
        10
        """
        if bucket < low:
            return samples * self.boundaries[low]
        if bucket >= high:
            return samples * self.boundaries[high]
        return total

    def around(self, centre: int, half_width: int) -> tuple[int, int]:
        """The numbers of the boundaries of centre -/+ half_width, rounded outward and cut at the range."""
        ends = self.boundaries
        low = bisect_right(ends, max(0, centre - half_width)) - 1
        high = bisect_right(ends, min(self.steps, centre + half_width) - 1)
        return min(low, self.count - 1), max(high, low + 1, 1)


def outside(counts: Sequence[int], low: int, high: int) -> int:
    """The number of values, counted per bucket, below the boundary number `low`, or not below number `high`.

    >>> outside([1, 2, 4, 8], 1, 3)
    9
    """
    return sum(counts[:low]) + sum(counts[high:])
