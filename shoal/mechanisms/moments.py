"""Sums of grid indices i and of i (steps - i), which travel as one integer: with the number of samples, both moments.

Capacity     sums over fewer than 2**32 samples on a grid of at most `GRID` steps
"""

from collections.abc import Sequence
from dataclasses import dataclass

GRID = 1 << 16  # steps at most: products of indices are summed, and sums stay below 2**63 for all samples of a step
_LANE = 64  # bits of the sum of i; more than 32 bits of samples and 16 of the grid need


def check_grid(steps: int, statistic: str) -> None:
    """Refuse a grid whose products of indices may be too large.

    Raises:
        ValueError: it is finer than that.
    """
    if steps > GRID:
        raise ValueError(f"grid of a {statistic} is at most {GRID}: its values are squared; leave it out")


@dataclass(frozen=True, slots=True)
class Moments:
    """The packing of one coordinate.

    >>> moments = Moments(8)
    >>> moments.unpack(moments.pack([3]) + moments.pack([8]), samples=2)
    [11, 15]
    """

    steps: int

    def pack(self, values: Sequence[int]) -> int:
        """One integer that holds i and i (steps - i)."""
        (i,) = values
        return int(i * (self.steps - i) << _LANE | i)

    def unpack(self, total: int, samples: int) -> list[int]:
        """The sums of i and of i (steps - i), out of the sum of what was packed."""
        return [total & (1 << _LANE) - 1, total >> _LANE]
