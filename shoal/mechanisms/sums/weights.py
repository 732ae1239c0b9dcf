"""Weights in a list: whatever a step of each age weighs, up to an age beyond which it weighs nothing.

Exact        weights are integers over one denominator, so that sums with them are exact, too
Decay        they lie in [0, 1] and never rise with age, as the reduction of Bolot et al. to windows needs
Cost         a step of a sum costs a product per weight, hence at most `MOST` of them
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

MOST = 4096
LARGEST_DENOMINATOR = 10**24
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Weights:
    """A step of age a weighs parts[a] / denominator.

    >>> weights = Weights.of([Fraction(1), Fraction(1, 2), Fraction(1, 3)])
    >>> weights, weights.weight(1), weights.weight(3)
    (Weights(parts=(6, 3, 2), denominator=6), 0.5, 0.0)
    """

    parts: tuple[int, ...]
    denominator: int

    @classmethod
    def of(cls, weights: Sequence[Fraction]) -> "Weights":
        """The exact weights.

        Raises:
            ValueError: there are too many, or none, or they rise, or do not lie in [0, 1].
        """
        if not 0 < len(weights) <= MOST:
            raise ValueError(f"weights must be a list of 1 to {MOST}, one for each age in steps")
        for age, (weight, before) in enumerate(zip(weights, (Fraction(1), *weights), strict=False)):
            if not 0 <= weight <= before:
                why = "rises" if 0 <= weight <= 1 else "does not lie in [0, 1]"
                raise ValueError(f"weight of age {age} {why}; weights lie in [0, 1] and never rise")
        if not weights[0]:
            raise ValueError("weights are all 0; the first is that of the step itself")
        denominator = math.lcm(*(weight.denominator for weight in weights))
        if denominator > LARGEST_DENOMINATOR:
            raise ValueError(
                f"weights need a common denominator above {LARGEST_DENOMINATOR:.0e}; write them with fewer digits"
            )
        parts = [int(weight * denominator) for weight in weights]
        while not parts[-1]:
            parts.pop()
        return cls(tuple(parts), denominator)

    @property
    def length(self) -> int:
        """The number of steps that weigh anything."""
        return len(self.parts)

    def shape(self) -> str:
        return f"Weights(parts={self.parts}, denominator={self.denominator})"

    @cached_property
    def _floats(self) -> Floats:
        return np.array([part / self.denominator for part in self.parts])

    @cached_property
    def _pairs(self) -> Floats:
        """The sum over pairs of steps at each distance 0, 1, ... of the products of their weights."""
        pairs: Floats = np.correlate(self._floats, self._floats, "full")[self.length - 1 :]
        return pairs

    def weight(self, age: int) -> float:
        return float(self._floats[age]) if age < self.length else 0.0

    def total(self, ages: int) -> float:
        """The weight of the youngest `ages` steps together."""
        return float(np.sum(self._floats[:ages]))

    def squares(self, t: int) -> float:
        """The sum of the squared weights of the ages 0 .. t - 1."""
        return float(np.sum(self._floats[:t] ** 2))

    def recent(self, ages: int) -> Floats:
        return np.pad(self._floats[:ages], (0, max(ages - self.length, 0)))

    def block_squares(self, size: int, t: int) -> float:
        """The sum over blocks of `size` steps of (their weights' sum at step t)**2; the last may be unfinished."""
        begins = np.arange(t % size, min(t, self.length), size)
        weights = self._floats[:t]
        if not len(begins) or begins[0]:
            begins = np.concatenate(([0], begins))
        return float(np.sum(np.add.reduceat(weights, begins) ** 2))

    def mean_block_squares(self, size: int) -> float:
        """The mean of `block_squares` over `size` consecutive t long after the beginning.

        Two steps at a distance of d share a block in 1 - d / size of all cases.
        """
        near = self._pairs[:size]
        shared = 1 - np.arange(len(near)) / size
        return float(2 * np.sum(near * shared) - near[0])
