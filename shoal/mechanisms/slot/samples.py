"""Samples of several coordinates on their way to the end of their slot: each is one integer until it is kept.

Packing      of d grid indices, which are at most 2**32: 33 bits for each. Nothing is summed, so no lane overflows
Kept         as a list with one index for each coordinate, in state and in contributions alike
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_BITS = 33
_MASK = (1 << _BITS) - 1


@dataclass(frozen=True, slots=True)
class Samples:
    """The packing of samples of so many coordinates.

    >>> Samples(3).listed(Samples(3).pack([5, 0, 1 << 32]))
    [5, 0, 4294967296]
    """

    coordinates: int

    def pack(self, values: Sequence[int]) -> int:
        """The sample as one integer."""
        return sum(value << _BITS * axis for axis, value in enumerate(values))

    def listed(self, packed: int) -> list[int]:
        """The sample that was packed."""
        return [packed >> _BITS * axis & _MASK for axis in range(self.coordinates)]

    def unpack(self, total: Any, samples: int) -> Any:
        """The samples of all cells, as they are: accounts unpacked each one."""
        return total
