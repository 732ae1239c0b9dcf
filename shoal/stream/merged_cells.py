"""How many cells of a tick to reckon with: a function of pattern, whatever the values.

Samples that are summed over users fall into cells: their level, which is pattern, and a part of it, which may be the
bucket of a value. How many cells are filled thus depends on values, and nothing that leaves a worker may be decided by
it: neither how many messages there are nor how far a source may run ahead. Both reckon with the most that so many
samples can fill.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.mechanisms.statistic import PART_BITS


def most_cells(samples: Mapping[int, int], parts: int) -> int:
    """The most cells that samples by level can fill, where a level has so many parts.

    >>> most_cells({0: 3, 5: 1000}, parts=64)
    67
    """
    return sum(min(count, parts) for count in samples.values())


def add_samples(samples: dict[int, int], flat: Sequence[Any]) -> None:
    """Count those of [cell, samples, total, ...] by level.

    >>> samples = {0: 1}
    >>> add_samples(samples, [3, 2, 70, 259, 1, 5])
    >>> samples
    {0: 3, 1: 1}
    """
    for cell, count in zip(flat[::3], flat[1::3], strict=True):
        level = cell >> PART_BITS
        samples[level] = samples.get(level, 0) + count
