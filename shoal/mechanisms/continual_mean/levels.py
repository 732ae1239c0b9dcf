"""The public constants that the algorithms on blocks share, in exact arithmetic rounded outward.

Spread       how far samples of one unit scatter, in grid steps: `steps`, the whole range, or for sigma-subgaussian data
             2 sigma + 1; a variable in [0, B] is B/2-subgaussian, so one formula serves both. The 1 pays for rounding
Samples      of bounded data are clipped to the range. Of sigma-subgaussian data `range` is where the mean lies: samples
             are clipped to the range and 64 sigma on either side of it, on the same grid points
Sensitivity  computed from the intervals that blocks are projected on, integers and as wide as claimed; never from the
             spread
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), equations (2), (4), (9) and section 4, with log2 for every log
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms import check
from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.decimals import decimal
from shoal.mechanisms.error_bars import Scales
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.statistic import Bounder
from shoal.mechanisms.workload import Pattern

TAIL = 64  # in sigmas: a subgaussian sample is further from its mean once in exp(2048) / 2
LARGEST_SUM = 1 << 63  # sums of a unit's samples stay below it: they travel as integers of 64 bits


@dataclass(frozen=True, slots=True)
class Level:
    """All public parameters of one level."""

    index: int
    weight: int  # w_l
    half_width: int  # D_l: grid steps on either side of the prior; 0 where nothing is clipped
    tree: BinaryTree
    arrays: int = 0  # k_l; 0 where no prior is needed
    bins: int = 0  # that the prior is chosen from

    @property
    def array_size(self) -> int:
        """The number of samples in an array of the level's prior."""
        return 1 << (self.index - 1)


def scales_of(levels: Sequence[Level], counts: Sequence[int]) -> Scales:
    """The scales of the draws that make up the noise of all levels, with this many blocks in each."""
    return tuple(scale for level, count in zip(levels, counts, strict=False) for scale in level.tree.scales(count))


@dataclass(frozen=True, kw_only=True)
class BlockMean(MeanParameters):
    """The public constants of a mean over blocks; an algorithm over blocks is a subclass."""

    sigma: Fraction | None = None  # of subgaussian data, in units of the range; None: samples lie in the range

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma is None:
            return
        check.positive(sigma=self.sigma)
        if self.sample_grid.steps * self.max_contributions >= LARGEST_SUM:
            raise ValueError("sigma is too large for so many grid steps and contributions; choose a smaller grid")

    @property
    def top(self) -> int:
        """L; at least 1, so that the shares are defined for m = 1."""
        return max(1, blocks.top_level(self.max_contributions))

    def bounder(self) -> Bounder:
        return blocks.BlockBounder(self.max_contributions)

    def closed(self, pattern: Pattern, tau: float) -> list[int]:
        """The number of blocks of each level that units have closed."""
        return [pattern.reached(1 << level, tau) for level in range(self.max_contributions.bit_length())]

    @property
    def sigma_steps(self) -> Fraction:
        return (self.sigma or 0) * self.grid.steps / (self.grid.high - self.grid.low)

    @property
    def spread(self) -> Fraction:
        """Twice the subgaussian constant of a sample on the grid: rounding adds at most half a step to it."""
        return Fraction(self.grid.steps) if self.sigma is None else 2 * self.sigma_steps + 1

    @cached_property
    def margin(self) -> int:
        """Grid steps by which a sample may lie outside the range, on either side."""
        return -(-TAIL * self.sigma_steps.numerator // self.sigma_steps.denominator)

    @cached_property
    def sample_grid(self) -> Grid:
        """The range, and `margin` more steps of the same size on either side."""
        if not self.margin:
            return self.grid
        more = self.margin * (self.grid.high - self.grid.low) / self.grid.steps
        return Grid(self.grid.low - more, self.grid.high + more, self.grid.steps + 2 * self.margin)

    @property
    def projections(self) -> int:
        """The number of a unit's blocks that the deviations allow for.

        That is L, as printed in the paper, or all blocks where levels 0 and 1 may clip.
        """
        return self.top if self.sigma is None else self.top + 1

    def deviation(self, weight: int, projections: int, failure: Fraction) -> Decimal:
        """sqrt(w / 2 * ln(2 n p / failure)) in spreads: the most that a block of weight w is off its mean.

        It holds, except with probability `failure`, for p blocks of each of n units. For bounded data it is Hoeffding's
        bound; times 2 sigma it is sigma * sqrt(2 w ln(2 n p / failure)).
        """
        return (decimal(2 * self.users * projections / failure).ln() * weight / 2).sqrt()

    def interval(self, weight: int, position: Fraction, half_width: int) -> tuple[int, int]:
        """The interval of exactly 2 * half_width steps around a block whose mean lies at `position` in the range."""
        middle = weight * (self.margin + self.grid.steps * position) // 1
        return middle - half_width, middle + half_width


@dataclass(frozen=True, slots=True)
class LevelKeys:
    """The subkey of each epoch of one level's counter."""

    key: bytes = field(repr=False)
    group: bytes
    coordinate: int
    level: int

    def __call__(self, epoch: int) -> bytes:
        return derive(self.key, self.group, "tree", "mean", self.coordinate, self.level, epoch)
