"""The unit's side: blocks that double, and one for what is left below the cap.

Sample 1 is block 0, sample 2 block 1, then come samples 3 .. 4, 5 .. 8, ...; the last block ends with sample m, where m
is no power of two. A unit closes each block once, and half of its samples at least are in closed ones.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from shoal.mechanisms.statistic import COUNT_BITS, COUNT_MASK, Block, new_block, over_cap


@dataclass(frozen=True)
class Doubling:
    """The blocks that a cap has room for.

    >>> Doubling(12).ends, Doubling(12).weights, Doubling(16).weights
    ((1, 2, 4, 8, 12), (1, 1, 2, 4, 4), (1, 1, 2, 4, 8))
    """

    max_contributions: int

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The number of the sample that closes each block."""
        m = self.max_contributions
        powers = tuple(1 << level for level in range(m.bit_length()))
        return powers if powers[-1] == m else (*powers, m)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The number of samples in each block."""
        return tuple(end - before for before, end in pairwise((0, *self.ends)))

    @cached_property
    def gains(self) -> tuple[int, ...]:
        """What each block adds to the root of the number of a unit's samples, in 1 / 256."""
        roots = [math.isqrt(end << 16) for end in self.ends]
        return tuple(root - before for before, root in pairwise((0, *roots)))


@dataclass(frozen=True)
class DoublingBounder:
    """Sums a unit's samples into blocks; the account is the open block's sum and the number of samples.

    >>> bounder = DoublingBounder(Doubling(3))
    >>> bounder.add(2, 30)
    (3, Block(number=3, level=2, samples=1, total=30, part=None))
    >>> bounder.add(1 << COUNT_BITS, 30)
    (1, Block(number=1, level=0, samples=1, total=31, part=None))
    """

    doubling: Doubling
    merges: bool = False
    parts: int = 0

    @property
    def max_contributions(self) -> int:
        return self.doubling.max_contributions

    @cached_property
    def _closing(self) -> dict[int, tuple[int, int]]:
        blocks = enumerate(zip(self.doubling.ends, self.doubling.weights, strict=True))
        return {end: (level, weight) for level, (end, weight) in blocks}

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        count = (account & COUNT_MASK) + 1
        if count > self.doubling.max_contributions:
            raise over_cap()
        total = (account >> COUNT_BITS) + value
        closed = self._closing.get(count)
        if closed is None:
            return total << COUNT_BITS | count, None
        level, weight = closed
        return count, new_block((level + 1, level, weight, total, None))
