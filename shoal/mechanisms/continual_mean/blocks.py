"""Blocks of one unit's samples: sample 1 is level 0, samples 2**(l-1) + 1 .. 2**l are level l.

A block closes with the sample that fills it; a unit with M samples has closed floor(log2 M) + 1 blocks that hold at
least half of its samples. The tail after the last closed block is withheld.

Source       George, Ramesh, Singh and Tyagi (2024), section 3
"""

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.mechanisms.statistic import COUNT_BITS, COUNT_MASK, Block, Contribution, new_block, over_cap


def weight(level: int) -> int:
    """w_l, the number of samples in a block of the level.

    >>> [weight(level) for level in range(5)]
    [1, 1, 2, 4, 8]
    """
    return 1 << max(0, level - 1)


def top_level(max_contributions: int) -> int:
    """L = ceil(log2 m), the paper's number of levels beyond level 0.

    >>> [top_level(m) for m in (1, 2, 3, 4, 5, 1024)]
    [0, 1, 2, 2, 3, 10]
    """
    return (max_contributions - 1).bit_length()


_WEIGHTS = tuple(map(weight, range(COUNT_BITS)))


def samples_in(counts: Iterable[int]) -> int:
    """The samples in this many blocks of each level.

    >>> samples_in([3, 2, 1])
    7
    """
    return sum(weight(level) * count for level, count in enumerate(counts))


@dataclass(frozen=True, slots=True)
class BlockBounder:
    """Sums a unit's samples into blocks; the account is the open block's sum and the number of samples.

    >>> bounder = BlockBounder(max_contributions=4)
    >>> account, block = bounder.add(2, 30)
    >>> block, bounder.add(account, 12)
    (None, (4, Block(number=3, level=2, samples=2, total=42, part=None)))
    """

    max_contributions: int
    merges: bool = False
    parts: int = 0

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        count = (account & COUNT_MASK) + 1
        if count > self.max_contributions:
            raise over_cap()
        total = (account >> COUNT_BITS) + value
        if count & (count - 1):
            return total << COUNT_BITS | count, None
        level = count.bit_length() - 1
        return count, new_block((level + 1, level, _WEIGHTS[level], total, None))


class Changes:
    """What a releaser's changelog lacks: blocks that it keeps, and those that it keeps no longer."""

    __slots__ = ("_dropped", "_written")

    def __init__(self) -> None:
        # Nothing changed of most groups, most of the time: a list is made where something does.
        self._written: list[Contribution] | None = None  # since the last transaction
        self._dropped: list[tuple[int, str]] | None = None  # (level, pseudonym)

    def write(self, contribution: Contribution) -> None:
        """Note that this block is kept from now on."""
        if self._written is None:
            self._written = [contribution]
        else:
            self._written.append(contribution)

    def drop(self, blocks: Iterable[tuple[int, str]]) -> None:
        """Take these blocks out; those that no transaction has written yet leave no trace."""
        dropped, written = dict.fromkeys(blocks), []
        for contribution in self._written or ():
            key = contribution.level, contribution.pseudonym
            if key in dropped:
                del dropped[key]
            else:
                written.append(contribution)
        self._written, self._dropped = written or None, [*(self._dropped or ()), *dropped] or None

    def take(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """Both, for the next transaction."""
        changes = self._written or [], self._dropped or []
        self._written = self._dropped = None
        return changes
