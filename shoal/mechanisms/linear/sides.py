"""What the counters of a key add up: every sample gives something to each side, and to all sides `width` at most.

Sensitivity  the parts of a sample, taken absolutely, add up to `width` at most, whatever the sample is; where there are
             several, to exactly `width`, so that their sum counts samples. All parts are integers
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from shoal.mechanisms.grid import Grid


class Sides(Protocol):
    """The sides of one statistic: linear functions of the number of samples and of their total."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sides, of which each has noise of its own."""
        ...

    @property
    def width(self) -> int:
        """The most that one sample moves all sides by, together."""
        ...

    def parts(self, samples: int, total: Any) -> tuple[int, ...]:
        """The sums of the parts of so many samples, given their total."""
        ...

    def whole(self, parts: tuple[int, ...]) -> tuple[int, Any]:
        """Samples and a total that have these parts; what is kept of a step."""
        ...


@dataclass(frozen=True, slots=True)
class TwoSides:
    """A grid index i in 0 .. steps, and what it leaves of the grid: steps - i.

    >>> sides = TwoSides(8)
    >>> sides.parts(2, 3), sides.whole((3, 13))
    ((3, 13), (2, 3))
    """

    names: ClassVar[tuple[str, ...]] = ("p", "q")
    places: ClassVar[tuple[Fraction, ...]] = (Fraction(1), Fraction(0))  # in the range, of what adds to one side alone

    steps: int

    @property
    def width(self) -> int:
        return self.steps

    def parts(self, samples: int, total: int) -> tuple[int, int]:
        return total, self.steps * samples - total

    def whole(self, parts: tuple[int, ...]) -> tuple[int, int]:
        return sum(parts) // self.steps, parts[0]


@dataclass(frozen=True, slots=True)
class ThreeSides:
    """Bernstein's polynomials of degree two: (steps - i)**2, 2 i (steps - i) and i**2, which add up to steps**2.

    The total of samples is [sum of i, sum of i (steps - i)].

    >>> sides = ThreeSides(8)
    >>> sides.parts(2, [11, 15]), (8 - 3)**2 + 0, 3**2 + 8**2, sides.whole((25, 30, 73))
    ((25, 30, 73), 25, 73, (2, [11, 15]))
    """

    names: ClassVar[tuple[str, ...]] = ("b0", "b1", "b2")
    places: ClassVar[tuple[Fraction, ...]] = (Fraction(0), Fraction(1, 2), Fraction(1))

    steps: int

    @property
    def width(self) -> int:
        return self.steps**2

    def parts(self, samples: int, total: list[int]) -> tuple[int, int, int]:
        first, product = total
        middle, upper = 2 * product, self.steps * first - product  # as i**2 is steps i - i (steps - i)
        return self.width * samples - middle - upper, middle, upper

    def whole(self, parts: tuple[int, ...]) -> tuple[int, list[int]]:
        product = parts[1] // 2
        return sum(parts) // self.width, [(parts[2] + product) // self.steps, product]


@dataclass(frozen=True, slots=True)
class Samples:
    """One for each sample: a count.

    >>> Samples().parts(3, 0), Samples().whole((3,))
    ((3,), (3, 0))
    """

    names: ClassVar[tuple[str, ...]] = ("n",)

    width: ClassVar[int] = 1

    def parts(self, samples: int, total: Any) -> tuple[int]:
        return (samples,)

    def whole(self, parts: tuple[int, ...]) -> tuple[int, int]:
        return parts[0], 0


@dataclass(frozen=True, slots=True)
class Signed:
    """A value in steps of 1 / width of the range's larger end, from -width to width: index i stands for first + i.

    >>> Signed(first=-3, width=8).parts(2, 11), Signed(first=-3, width=8).whole((5,))
    ((5,), (0, 5))
    """

    names: ClassVar[tuple[str, ...]] = ("s",)

    first: int
    width: int

    def parts(self, samples: int, total: int) -> tuple[int]:
        return (self.first * samples + total,)

    def whole(self, parts: tuple[int, ...]) -> tuple[int, int]:
        return 0, parts[0]


def signed_grid(low: Fraction, high: Fraction, steps: int) -> tuple[Grid, Signed]:
    """The grid of a sum whose range does not end at 0, and its one side.

    A step is the larger end over `steps`, so that 0 and that end are grid points, and a sample moves the sum by `steps`
    steps at most. The other end is moved inwards, to the next grid point.

    >>> grid, side = signed_grid(Fraction(-30), Fraction(120), 8)
    >>> grid, side
    (Grid(low=Fraction(-30, 1), high=Fraction(120, 1), steps=10), Signed(first=-2, width=8))
    >>> signed_grid(Fraction(-10), Fraction(-4), 4)[0].high
    Fraction(-5, 1)
    """
    step = max(abs(low), abs(high)) / steps
    first, last = math.ceil(low / step), math.floor(high / step)
    if first >= last:
        raise ValueError("range is narrower than a step of the grid, which is its larger end over grid; raise grid")
    return Grid(first * step, last * step, last - first), Signed(first, steps)
