"""The unit's side of the sharp mean: single samples with a bucket each, then blocks of half an octave.

    samples 1 .. 64      one by one; level 0 is sample 1, level l samples 2**(l-1) + 1 .. 2**l
    samples 65 .. m      where m >= 128: blocks that end at 96, 128, 192, 256, 384, 512, ...; level 7, 8, 9, ...
                         below that: one by one too

Octave o has the two blocks of weight 32 * 2**o. At most a third of a unit's samples are in its open block.
"""

from dataclasses import dataclass

from shoal.mechanisms.buckets import Buckets
from shoal.mechanisms.statistic import COUNT_BITS, COUNT_MASK, Block, over_cap

EVENTS = 64
EVENT_LEVELS = 7  # levels 0 .. 6 hold the first 64 samples


def blocks(max_contributions: int) -> int:
    """How many blocks a cap has room for.

    >>> [blocks(m) for m in (1, 64, 127, 128, 191, 192, 256, 1024)]
    [0, 0, 0, 2, 2, 3, 4, 8]
    """
    if max_contributions < 2 * EVENTS:
        return 0
    size = max_contributions.bit_length()
    return 2 * (size - EVENT_LEVELS) + (max_contributions >> size - 2 & 1)


def weight(level: int) -> int:
    """Samples in a block of a level.

    >>> [weight(level) for level in (0, 6, 7, 8, 9)]
    [1, 1, 32, 32, 64]
    """
    return 1 if level < EVENT_LEVELS else EVENTS // 2 << (level - EVENT_LEVELS) // 2


@dataclass(frozen=True, slots=True)
class SharpBounder:
    """The account is the open block's sum, 0 while samples are single, and the number of samples.

    >>> bounder = SharpBounder(128, Buckets(64))
    >>> bounder.add(63, 12)
    (64, Block(number=64, level=6, samples=1, total=12, part=12))
    >>> bounder.add(95 | 100 << 32, 12)
    (96, Block(number=65, level=7, samples=32, total=112, part=None))
    """

    max_contributions: int
    buckets: Buckets
    merges: bool = True

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        """One more sample."""
        count = (account & COUNT_MASK) + 1
        if count > self.max_contributions:
            raise over_cap()
        if count <= EVENTS or self.max_contributions < 2 * EVENTS:
            return count, Block(count, (count - 1).bit_length(), 1, value, self.buckets.of(value))
        total = (account >> COUNT_BITS) + value
        size = count.bit_length()
        half = 1 << size - 2
        if count & (half - 1):
            return total << COUNT_BITS | count, None
        # The count is 11000..., the end of the first block of its octave, or 10000..., of the second of the one before.
        block = 2 * (size - EVENT_LEVELS) - (0 if count & half else 1)
        level = EVENT_LEVELS + block
        return count, Block(EVENTS + 1 + block, level, weight(level), total)
