"""Sides of a statistic: the numbers that a sample adds up, which of them are public, and how much noise each needs.

    statistic                relation     public   noised                                         width, share
    count                    values       n        none
    sum, mean                values       n        i                                              W, 1
    variance                 values       n        i and i (W - i)                                W, W**2 / D
                                                                                                  Q, 2 Q / D
    count, users             add-remove   none     n                                              1, 1
    mean, sum                add-remove   none     i and W - i; a signed sum: its one value       W, 1
    variance                 add-remove   none     (W - i)**2, 2 i (W - i) and i**2               W**2, 1
    distribution             add-remove   none     1 to a node of each of h levels of a tree      h, 1

i is a grid index in 0 .. W; Q = floor(W**2 / 4), and D is `joint_sensitivity(W)`. A side with width w and share q is
noised with the noise of a decayed sum of width m w and epsilon q epsilon, for a unit of m samples.

Guarantee    epsilon-DP for the releases of all sides of all keys together
Relation     values: a sample is replaced by another; add-remove: a sample is there or not
Sensitivity  exact: the sum over noised sides of |change| q / w is at most 1 for each sample, and 1 for some sample.
             All parts are integers
Proof        docs/proofs/decay.md, "Sides"
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from shoal.mechanisms.bins.shares import BINS, bin_of, check_bins
from shoal.mechanisms.bins.tree import EvenTree, even_tree
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.moments import Moments
from shoal.mechanisms.parts.of import Count, Distribution, Of, PublicCount, Sum, Users, Variance
from shoal.mechanisms.statistic import Packing

_LANE = 64  # bits of the number of samples in a bin


class Side(NamedTuple):
    """A side that has noise of its own."""

    draw: tuple[str, ...]  # names its draws: the purpose first
    width: int  # w
    share: Fraction = Fraction(1)  # q, a part of epsilon


class Sides(Protocol):
    """Sides of one statistic: linear functions of the number of samples and of their total, public ones first."""

    @property
    def public(self) -> int:
        """Number of sides that are known exactly: 1, the number of samples, or 0."""
        ...

    @property
    def noised(self) -> tuple[Side, ...]:
        """The other sides."""
        ...

    @property
    def packing(self) -> Packing | None:
        """Packing of a total that has several numbers; None for a total of one number, or none."""
        ...

    def parts(self, samples: int, total: Any) -> tuple[int, ...]:
        """Sums of the parts of `samples` samples with this total."""
        ...

    def whole(self, parts: tuple[int, ...]) -> tuple[int, Any]:
        """Number of samples and total that have these parts: what is kept of a step."""
        ...


class HiddenSides(Sides, Protocol):
    """Sides under relation add-remove, of which no sample moves all together by more than one width."""

    @property
    def width(self) -> int:
        """The most that a sample moves all sides by, together."""
        ...


def alike(names: Sequence[str], width: int) -> tuple[Side, ...]:
    """Noised sides under relation add-remove."""
    return tuple(Side(("step", name), width) for name in names)


# -------------------------------------------------------------------- relation values


@dataclass(frozen=True, slots=True)
class Indices:
    """Number of samples, and sum of their grid indices.

    >>> Indices(8).parts(2, 13), Indices(8).whole((2, 13))
    ((2, 13), (2, 13))
    """

    public: ClassVar[int] = 1
    packing: ClassVar[None] = None

    steps: int

    @property
    def noised(self) -> tuple[Side, ...]:
        return (Side(("step",), self.steps),)

    def parts(self, samples: int, total: int) -> tuple[int, int]:
        return samples, total

    def whole(self, parts: tuple[int, ...]) -> tuple[int, int]:
        samples, total = parts
        return samples, total


@dataclass(frozen=True, slots=True)
class Products:
    """Number of samples, and sums of i and of i (steps - i); the total is [sum of i, sum of i (steps - i)].

    A sample that moves i by j moves i (W - i) by j (W - j) at most, and W i + 2 i (W - i) by j (3 W - 2 j), their parts
    taken absolutely.

    >>> sides = Products(8)
    >>> sides.parts(2, [11, 15]), sides.whole((2, 11, 15)), [(side.width, side.share) for side in sides.noised]
    ((2, 11, 15), (2, [11, 15]), [(8, Fraction(8, 9)), (16, Fraction(4, 9))])
    """

    public: ClassVar[int] = 1

    steps: int

    @property
    def noised(self) -> tuple[Side, ...]:
        steps, most = self.steps, joint_sensitivity(self.steps)
        largest = steps * steps // 4
        return (
            Side(("step",), steps, Fraction(steps * steps, most)),
            Side(("product",), largest, Fraction(2 * largest, most)),
        )

    @property
    def packing(self) -> Moments:
        return Moments(self.steps)

    def parts(self, samples: int, total: list[int]) -> tuple[int, ...]:
        return (samples, *total)

    def whole(self, parts: tuple[int, ...]) -> tuple[int, list[int]]:
        samples, *total = parts
        return samples, total


def joint_sensitivity(steps: int) -> int:
    """D, the most that one sample can move W |di| + 2 |d(i (W - i))| by.

    >>> joint_sensitivity(8), 6 * (3 * 8 - 2 * 6)
    (72, 72)
    """
    j = (3 * steps + 2) // 4  # the integer next to 3 W / 4
    return j * (3 * steps - 2 * j)


# -------------------------------------------------------------------- both relations


@dataclass(frozen=True, slots=True)
class Samples:
    """One for each sample: a count, which is public under relation values and noised under add-remove.

    >>> Samples().parts(3, 0), Samples().whole((3,)), Samples(public=1).noised
    ((3,), (3, 0), ())
    """

    width: ClassVar[int] = 1
    packing: ClassVar[None] = None

    public: int = 0

    @property
    def noised(self) -> tuple[Side, ...]:
        return () if self.public else alike("n", self.width)

    def parts(self, samples: int, total: Any) -> tuple[int]:
        return (samples,)

    def whole(self, parts: tuple[int, ...]) -> tuple[int, int]:
        return parts[0], 0


# -------------------------------------------------------------------- relation add-remove


@dataclass(frozen=True, slots=True)
class TwoSides:
    """A grid index i in 0 .. steps, and what it leaves of the grid: steps - i.

    >>> sides = TwoSides(8)
    >>> sides.parts(2, 3), sides.whole((3, 13))
    ((3, 13), (2, 3))
    """

    public: ClassVar[int] = 0
    packing: ClassVar[None] = None
    places: ClassVar[tuple[Fraction, ...]] = (Fraction(1), Fraction(0))  # in the range, of what adds to one side alone

    steps: int

    @property
    def width(self) -> int:
        return self.steps

    @property
    def noised(self) -> tuple[Side, ...]:
        return alike("pq", self.width)

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

    public: ClassVar[int] = 0
    places: ClassVar[tuple[Fraction, ...]] = (Fraction(0), Fraction(1, 2), Fraction(1))

    steps: int

    @property
    def width(self) -> int:
        return self.steps**2

    @property
    def noised(self) -> tuple[Side, ...]:
        return alike(("b0", "b1", "b2"), self.width)

    @property
    def packing(self) -> Moments:
        return Moments(self.steps)

    def parts(self, samples: int, total: list[int]) -> tuple[int, int, int]:
        first, product = total
        middle, upper = 2 * product, self.steps * first - product  # as i**2 is steps i - i (steps - i)
        return self.width * samples - middle - upper, middle, upper

    def whole(self, parts: tuple[int, ...]) -> tuple[int, list[int]]:
        product = parts[1] // 2
        return sum(parts) // self.width, [(parts[2] + product) // self.steps, product]


@dataclass(frozen=True, slots=True)
class Signed:
    """A value in steps of 1 / width of the range's larger end, from -width to width: index i stands for first + i.

    >>> Signed(first=-3, width=8).parts(2, 11), Signed(first=-3, width=8).whole((5,))
    ((5,), (0, 5))
    """

    public: ClassVar[int] = 0
    packing: ClassVar[None] = None

    first: int
    width: int

    @property
    def noised(self) -> tuple[Side, ...]:
        return alike("s", self.width)

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


@dataclass(frozen=True, slots=True)
class InBins:
    """The packing of a grid index: a one in the lane of its bin.

    >>> bins = InBins(Grid(Fraction(0), Fraction(1), 8), 4)
    >>> bins.unpack(bins.pack([0]) + bins.pack([7]) + bins.pack([8]), samples=3)
    [1, 0, 0, 2]
    """

    grid: Grid
    bins: int

    def pack(self, values: Sequence[int]) -> int:
        """One integer that holds the bin."""
        (index,) = values
        return 1 << _LANE * bin_of(index, self.bins, self.grid)

    def unpack(self, total: int, samples: int) -> list[int]:
        """The number of samples in each bin, out of the sum of what was packed."""
        lanes = np.frombuffer(total.to_bytes(self.bins * _LANE // 8, "little"), dtype="<i8")
        found: list[int] = lanes.tolist()
        return found


@dataclass(frozen=True, slots=True)
class Nodes:
    """A side for each node of a tree over bins, level by level; the total of samples is their number in each bin.

    >>> from shoal.mechanisms.bins.tree import even_tree
    >>> sides = Nodes(EvenTree(4, (2, 2)), InBins(Grid(Fraction(0), Fraction(1), 8), 4))
    >>> [side.draw[1] for side in sides.noised], sides.width
    (['0.0', '0.1', '1.0', '1.1', '1.2', '1.3'], 2)
    >>> sides.parts(6, [1, 0, 2, 3]), sides.whole((1, 5, 1, 0, 2, 3))
    ((1, 5, 1, 0, 2, 3), (6, [1, 0, 2, 3]))
    """

    public: ClassVar[int] = 0

    tree: EvenTree
    packing: InBins = field(repr=False)

    @property
    def width(self) -> int:
        return len(self.tree.shape)  # a sample is in a node of each level

    @property
    def noised(self) -> tuple[Side, ...]:
        nodes = [f"{level}.{node}" for level, count in enumerate(self.tree.nodes) for node in range(count)]
        return alike(nodes, self.width)

    def parts(self, samples: int, total: list[int]) -> tuple[int, ...]:
        return tuple(chain.from_iterable(self.tree.sums(total)))

    def whole(self, parts: tuple[int, ...]) -> tuple[int, list[int]]:
        bins = list(parts[-self.tree.bins :])
        return sum(bins), bins


# -------------------------------------------------------------------- of a statistic


def sides_of_values(statistic: type[Of], grid: Grid) -> Sides:
    """Sides of a statistic under relation values."""
    if statistic is PublicCount:
        return Samples(public=1)
    return Products(grid.steps) if statistic is Variance else Indices(grid.steps)


def hidden_sides(statistic: type[Of], grid: Grid, bins: int = BINS) -> tuple[Grid, HiddenSides]:
    """Sides of a statistic under relation add-remove, and the grid that its samples are clipped to."""
    if statistic in (Count, Users):
        return grid, Samples()
    if statistic is Distribution:
        check_bins(bins, (), grid)
        return grid, Nodes(even_tree(bins), InBins(grid, bins))
    if statistic is Sum and grid.low * grid.high:
        return signed_grid(grid.low, grid.high, grid.steps)
    return grid, (ThreeSides if statistic is Variance else TwoSides)(grid.steps)
