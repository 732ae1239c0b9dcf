"""The interface of every statistic: a bounder per (metric, unit, group) and a releaser per (metric, group), both pure.

The agents, the file runner and the auditor's replay drive the same objects. A bounder turns a unit's samples into
contributions and enforces its cap; a releaser turns contributions, in canonical order, into estimates. Neither knows a
clock, a topic or a database, and neither decides anything by a value that has not been charged for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

from shoal.mechanisms.grid import Grid

COUNT_BITS = 32
COUNT_MASK = (1 << COUNT_BITS) - 1  # account = open sum << COUNT_BITS | samples so far; 0 is a new one
PART_BITS = 8
PART_MASK = (1 << PART_BITS) - 1  # cell = level << PART_BITS | part: what is summed over units has one number
LEAST_EPSILON = Fraction(1, 10**60)


class Block(NamedTuple):
    """A closed block of one unit's samples."""

    number: int  # of the unit's contributions, from 1
    level: int
    samples: int
    total: Any  # grid steps: an int; of samples that wait for their slot's end an object with a list for each cell
    part: int | None = None  # below 256; in a tick, blocks of one level and part are summed over units; None: alone


# A block from its five fields, in a quarter of the time: one is made for every sample.
new_block: Callable[[tuple[int, int, int, Any, int | None]], Block] = partial(tuple.__new__, Block)


class Contribution(NamedTuple):
    """What bound sends on. Its tuple order is the canonical order: the first four fields decide, no value does."""

    effective: int  # microseconds since the Unix epoch
    pseudonym: str  # of the unit; "" for a partial merged over units
    number: int  # of the unit's contributions, from 1; of a merged partial, its part
    level: int
    samples: int
    total: Any  # grid steps: an int; of several coordinates a list with one for each; of a slot's samples as in a block


class Bounder(Protocol):
    """Turns one unit's samples into blocks, up to a cap."""

    @property
    def max_contributions(self) -> int:
        """The cap; the caller stops before it."""
        ...

    @property
    def merges(self) -> bool:
        """Whether blocks that have a part are summed over units within a tick, and sent without pseudonym."""
        ...

    @property
    def parts(self) -> int:
        """The number of parts that blocks of a level can have; 0 where none has one."""
        ...

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        """The account after one more sample (a grid index), and the block that it closed, if any."""
        ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """The published estimate of one group or cell, in units of the range.

    Each of the first four fields is a number; of several coordinates it is a list with a number or None for each, of a
    statistic of several parts an object with the same keys in all four.

    Shapes   `value`, `noise_sd`, and the interval `low`, `high`; `counts`: what the value rests on, by name, such as
             samples, or a count that has noise, with its count_sd; `details`: further fields, such as mechanism
    Units    those of the range; of counts samples or users
    Raises   KeyError, by `samples`: it rests on a count that has noise, and the number of samples is secret
    Source   docs/reference/releases.md, whose fields have the same names

    >>> Estimate(2.5, 0.5, 1.5, 3.5, {"samples": 40}).samples
    40
    """

    value: Any  # clamped, if the metric says so; None: there is none to publish
    noise_sd: Any
    low: Any  # value - the 95 % quantile of the noise's size, before clamping; at most the value
    high: Any
    counts: Mapping[str, Any]  # what the value rests on, by name
    details: Mapping[str, Any] = field(default_factory=dict)  # further fields of the release, in its order
    ticks_ahead: int | None = None  # of a mean that waits: ticks until it begins, at the latest; None: it does not wait

    @property
    def samples(self) -> Any:
        """The number of samples that the value rests on; a decayed number where they decay."""
        return self.counts["samples"]


def holding(value: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """An interval widened to hold the value, which may have been clamped out of it; of values of any shape.

    >>> holding(0.0, -3.5, -1.5), holding([1.0, None], [0.5, None], [0.75, None])
    ((-3.5, 0.0), ([0.5, None], [1.0, None]))
    """
    if value is None or low is None or high is None:
        return low, high
    if isinstance(value, dict):
        pairs = {name: holding(value[name], low[name], high[name]) for name in value}
        return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}
    if isinstance(value, list | tuple):
        ends = [holding(*each) for each in zip(value, low, high, strict=True)]
        return [pair[0] for pair in ends], [pair[1] for pair in ends]
    return min(low, value), max(high, value)


NO_ESTIMATE = Estimate(None, None, None, None, {"samples": 0})


OF_KEY = -1  # stands for the level of an activation that shows a key
OF_CLIP = -2  # and of one that says where a key's values are clipped


@dataclass(frozen=True, slots=True)
class Activation:
    """A level that counts from now on, and its private prior: for several coordinates a list with one for each.

    Or a key that nobody declared and that is shown from now on: it has no level and no prior. Or the range that a key's
    values are clipped to from now on: it has no level, and its upper end for a prior.
    """

    level: int
    prior: Any  # in units of the range, per sample; None: nothing is clipped, or, in a list, the level does not count
    samples: Any  # that the prior was chosen from; None: how many is secret
    epsilon: Fraction  # charged for it, in all coordinates together
    kind: Literal["level", "shown", "clip"] = "level"


class LevelState(NamedTuple):
    """The state of a level of blocks."""

    elements: int  # that its counter has taken
    total: int  # their clipped sum, in grid steps, without noise
    waiting: int  # blocks that wait for its prior, or are kept for those of higher levels


class Releaser(Protocol):
    """One metric's statistic in one group."""

    def add(self, contribution: Contribution) -> Sequence[Activation]:
        """Take one contribution, in canonical order within its tick; return the levels it activated."""
        ...

    def close(self, tick: int | None = None) -> Sequence[Activation]:
        """Complete the tick; return what that activated. Each release comes after one call, and counts as one tick.

        tick: its number; None: it follows upon the one before.
        """
        ...

    def estimate(self) -> Estimate | None:
        """The release over all contributions so far; None while none of them counts. It changes nothing."""
        ...

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """The contributions, by (level, pseudonym), that must survive a restart besides the head."""
        ...

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """The contributions added to `kept`, and the keys dropped from it, since the last call or restore."""
        ...

    def head(self) -> list[Any]:
        """The rest of the state: a bounded list of ints, strings and lists."""
        ...

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        """Become the releaser that had this head and these kept contributions."""
        ...


def clamped(value: float, ends: tuple[float, float] | None) -> float:
    """The value, or the end that it lies beyond.

    >>> clamped(1.5, (0.0, 1.0)), clamped(1.5, None)
    (1.0, 1.5)
    """
    return value if ends is None else min(max(value, ends[0]), ends[1])


def clamped_within(
    value: float, low: float, high: float, ends: tuple[float, float] | None
) -> tuple[float, float, float]:
    """The value clamped to `ends`, in an interval that holds it; without ends all three as they are."""
    inside = clamped(value, ends)
    return (inside, low, high) if inside is value else (inside, min(low, inside), max(high, inside))


def over_cap() -> ValueError:
    """A sample beyond the cap reached a bounder. Its caller counts, so it is a bug; going on would cost privacy."""
    return ValueError("a unit's sample beyond max_contributions reached its bounder")


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Passes on each sample up to the cap; the account is the number of samples.

    >>> OneByOne(max_contributions=2).add(1, 30)
    (2, Block(number=2, level=0, samples=1, total=30, part=0))
    """

    max_contributions: int
    merges: bool = True
    parts: int = 1

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        count = (account & COUNT_MASK) + 1
        if count > self.max_contributions:
            raise over_cap()
        return count, new_block((count, 0, 1, value, 0))


class Packing(Protocol):
    """The way in which several coordinates travel as one integer."""

    def pack(self, values: Sequence[int]) -> int: ...  # a grid index of each coordinate
    def unpack(self, total: int, samples: int) -> list[int]: ...  # the sum of so many packed samples, by coordinate


class Statistic(Protocol):
    """All public parameters of a statistic; most read one value, and are chosen by keys alone."""

    @property
    def grids(self) -> tuple[Grid, ...]: ...  # that the coordinates of a sample are clipped to

    @property
    def packing(self) -> Packing | None:
        """The packing of several coordinates; None for one coordinate, or none."""
        return None

    def quantize(self, values: Sequence[int | float]) -> int:
        """The integer that accounts sum: the grid index of a value, 0 without one, of several coordinates packed."""
        steps = [grid.clip(value) for grid, value in zip(self.grids, values, strict=False)]
        return self.packing.pack(steps) if self.packing is not None else sum(steps)

    @property
    def rho(self) -> Fraction | None:
        """The rho of the zCDP that its noise gives one unit, where that is Gaussian; None elsewhere."""
        return None

    def chosen(self) -> list[str] | None:
        """The choices made by floats, which the digest of the parameters covers besides the metric's keys."""
        return None


class OnGrid(Statistic):
    """A statistic of one value, or of none."""

    grid: Grid

    @property
    def sample_grid(self) -> Grid:
        """The grid that samples are clipped to; wider than the range where the range bounds the mean alone."""
        return self.grid

    @property
    def grids(self) -> tuple[Grid, ...]:
        return (self.sample_grid,)
