"""The unit's side of the sharp mean: single samples with a bucket each, and blocks of half an octave.

    samples 1 .. S       one by one; level 0 is sample 1, level l samples 2**(l-1) + 1 .. 2**l
    samples E + 1 .. m   where m >= 64: blocks too, that end at 2 E, 3 E, 4 E, 6 E, 8 E, 12 E, ..., a level each

S is m below 64, else 64. Whether the samples E + 1 .. S count one by one or in blocks is decided later, from the
pattern, so both are sent: the sample that closes a block brings the block's sum with it, above its own value in one
integer.

Blocks that are clipped alike are an octave: the first three, of weight E, then two of 2 E, two of 4 E, ... E is 4, 8
or 16: a sixty-fourth of the cap, where that is one of them, so that units have their first block early. At most half
of a unit's samples are in its open block.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from shoal.mechanisms.continual_mean.sharp.buckets import Buckets
from shoal.mechanisms.statistic import COUNT_BITS, COUNT_MASK, Block, new_block, over_cap

SINGLES = 64  # a unit's samples beyond these come in blocks alone
LEAST, MOST = 4, 16


@dataclass(frozen=True)
class Shape:
    """The cut of a unit's samples into singles and blocks, for a cap.

    >>> [(Shape(m).singles, Shape(m).alone, Shape(m).blocks) for m in (1, 63, 64, 96, 512, 1024)]
    [(1, 1, 0), (63, 63, 0), (64, 4, 7), (64, 4, 8), (64, 8, 11), (64, 16, 11)]
    >>> [(Shape(64).end(block), Shape(64).weight(block)) for block in range(7)]
    [(8, 4), (12, 4), (16, 4), (24, 8), (32, 8), (48, 16), (64, 16)]
    >>> [list(Shape(64).octave(o)) for o in range(Shape(64).octaves)]
    [[0, 1, 2], [3, 4], [5, 6]]
    """

    max_contributions: int

    @cached_property
    def singles(self) -> int:
        """S, the number of a unit's samples that come one by one."""
        return min(self.max_contributions, SINGLES)

    @cached_property
    def alone(self) -> int:
        """E, the number of those that are in no block."""
        m = self.max_contributions
        return m if m < SINGLES else min(MOST, max(LEAST, 1 << m.bit_length() - 7))

    @cached_property
    def levels(self) -> int:
        """The first level that belongs to a block; levels below it are of single samples."""
        return (self.singles - 1).bit_length() + 1

    @cached_property
    def blocks(self) -> int:
        """The number of blocks that the cap has room for."""
        m = self.max_contributions
        doublings = m.bit_length() - self.alone.bit_length()
        return 2 * doublings - 1 + (m >> m.bit_length() - 2 & 1) if doublings else 0

    @property
    def octaves(self) -> int:
        """The number of octaves, of which the last may have fewer blocks than the others."""
        return min(self.blocks, max(1, self.blocks // 2))

    def octave(self, number: int) -> range:
        return range(2 * number + 1 if number else 0, min(2 * number + 3, self.blocks))

    def end(self, block: int) -> int:
        """The number of the sample that closes a block."""
        return (3 if block % 2 else 2) * self.alone << block // 2

    def weight(self, block: int) -> int:
        return self.alone << max(0, block - 1) // 2

    @cached_property
    def weights(self) -> tuple[int, ...]:
        return tuple(map(self.weight, range(self.blocks)))

    @cached_property
    def closing_levels(self) -> tuple[int, ...]:
        """The level of the single sample that closes a block, of all blocks that one closes: they come first."""
        ends = map(self.end, range(self.blocks))
        return tuple((end - 1).bit_length() for end in ends if end <= self.singles)

    @cached_property
    def ends(self) -> dict[int, int]:
        return {self.end(block): block for block in range(self.blocks)}

    def number(self, block: int) -> int:
        """The number of the contribution that brings a block."""
        end = self.end(block)
        return end if end <= self.singles else self.singles + 1 + block


class SharpBounder:
    """The account is the open block's sum, 0 while samples are in none, and the number of samples.

    >>> bounder = SharpBounder(Shape(64), Buckets(64))
    >>> bounder.add(3, 12)
    (4, Block(number=4, level=2, samples=1, total=12, part=12))
    >>> bounder.add(11 | 100 << 32, 12) == (12, Block(number=12, level=8, samples=1, total=112 << 7 | 12))
    True
    """

    __slots__ = (
        "_alone", "_bits", "_ends", "_inner", "_levels", "_shape", "_singles", "max_contributions", "merges", "parts",
    )  # fmt: skip

    def __init__(self, shape: Shape, buckets: Buckets) -> None:
        self.max_contributions = shape.max_contributions
        self.merges = True
        self.parts = buckets.count
        self._shape = shape
        # Called for every sample, so looked up once.
        self._singles, self._alone, self._ends = shape.singles, shape.alone, shape.ends
        self._inner, self._bits = buckets.inner, buckets.bits
        self._levels = [(count - 1).bit_length() for count in range(shape.singles + 1)]

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        count = (account & COUNT_MASK) + 1
        if count <= self._alone:
            return count, new_block((count, self._levels[count], 1, value, bisect_right(self._inner, value)))
        if count > self.max_contributions:
            raise over_cap()
        if count in self._ends:
            return count, self._closed(self._ends[count], count, (account >> COUNT_BITS) + value, value)
        after = account + (value << COUNT_BITS) + 1
        if count > self._singles:
            return after, None
        return after, new_block((count, self._levels[count], 1, value, bisect_right(self._inner, value)))

    @property
    def table(self) -> tuple[int, int, int, list[int], list[tuple[int, int, int]], int]:
        """S, E, bits of a value, inner boundaries of buckets, (end, number, weight) of blocks, their first level."""
        shape = self._shape
        ends = [(end, block, shape.weight(block)) for end, block in self._ends.items()]
        return self._singles, self._alone, self._bits, list(self._inner), ends, shape.levels

    def _closed(self, block: int, count: int, total: int, value: int) -> Block:
        shape = self._shape
        if count > shape.singles:
            return Block(shape.number(block), shape.levels + block, shape.weight(block), total)
        return Block(count, shape.levels + block, 1, total << self._bits | value)
