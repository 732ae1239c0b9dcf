"""A value of several coordinates: one mean for each, side by side, each with its share of epsilon and its own noise.

Guarantee    pure epsilon-DP for all coordinates of all releases together, by basic composition; with Gaussian noise
             rho-zCDP, hence (epsilon, delta)-DP
Relation     values: two streams differ in the values of one unit, in any or all coordinates
Budget       epsilon / d for each of d coordinates, or rho / d, exactly; each spends it as the algorithm says
Noise        of the algorithm, from subkeys that name the coordinate
Packing      until it is sent, a sum of several coordinates is one integer with a lane of 64 bits for each; lanes add up
             without carries while each stays below 2**63, which is checked
Proof        docs/proofs/coordinates.md
Source       George, Ramesh, Singh and Tyagi (2024), section 4
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.counters.binary import BinaryCounter
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.groups import DrawnTogether, IsHome, NoisedByCounters, everywhere
from shoal.mechanisms.statistic import (
    NO_ESTIMATE,
    Activation,
    Block,
    Bounder,
    Contribution,
    Estimate,
    Statistic,
)

MOST, MOST_WITH_DELTA = 8, 32  # coordinates: each has its share of epsilon, or with a delta of rho
LIMIT = 1 << 63  # a lane's sum stays below it, and an integer on the wire too


@dataclass(frozen=True)
class Coordinates(Statistic):
    """All that is public about the means of several coordinates; they differ in range, prior and sigma alone.

    >>> from shoal.mechanisms.continual_mean.naive import Naive
    >>> from shoal.mechanisms.grid import Grid
    >>> grids = Grid(Fraction(0), Fraction(1), 4), Grid(Fraction(-5), Fraction(5), 4)
    >>> both = Coordinates(tuple(Naive(grid=g, epsilon=Fraction(1, 2), max_contributions=8, users=3) for g in grids))
    >>> both.epsilon, both.unpack(both.pack([3, 4]) + both.pack([1, 2]), samples=2)
    (Fraction(1, 1), [4, 6])
    """

    parts: tuple[MeanParameters, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise ValueError("one coordinate is a mean of its own")
        if len({self._shared(part) for part in self.parts}) > 1:
            raise ValueError("coordinates differ in more than range, prior and sigma")
        if self.largest * self.parts[0].max_contributions >= LIMIT:
            raise ValueError("max_contributions and grid are too large for several coordinates; choose a smaller grid")

    @staticmethod
    def _shared(part: MeanParameters) -> tuple[Any, ...]:
        return (
            type(part),
            part.epsilon,
            part.max_contributions,
            part.users,
            part.groups,
            part.failure,
            part.noise_kind,
            part.rho,
        )

    @property
    def epsilon(self) -> Fraction:
        return sum((Fraction(part.epsilon) for part in self.parts), Fraction(0))

    @property
    def rho(self) -> Fraction | None:
        """The rho of all coordinates together, where their noise is Gaussian."""
        spent = [part.rho for part in self.parts if part.rho is not None]
        return sum(spent, Fraction(0)) if spent else None

    def chosen(self) -> list[str] | None:
        return self.parts[0].chosen()

    @cached_property
    def largest(self) -> int:
        """The largest grid index of a sample in any coordinate."""
        return max(part.sample_grid.steps for part in self.parts)

    @cached_property
    def _lanes(self) -> struct.Struct:
        return struct.Struct(f"<{len(self.parts)}Q")

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        return tuple(part.sample_grid for part in self.parts)

    @property
    def packing(self) -> "Coordinates":
        return self

    def pack(self, values: Sequence[int]) -> int:
        """One integer that holds a grid index of each coordinate; the first in the lowest bits."""
        return int.from_bytes(self._lanes.pack(*values), "little")

    def unpack(self, total: int, samples: int) -> list[int]:
        """The sums over that many samples, each of its coordinate, out of the sum of what was packed.

        Raises:
            ValueError: so many samples may have carried from one lane into the next.
        """
        if samples * self.largest >= LIMIT:
            raise ValueError(f"{samples} samples are too many for one sum of several coordinates")
        return list(self._lanes.unpack(total.to_bytes(self._lanes.size, "little")))

    def bounder(self) -> "JointBounder":
        """The bounder of packed samples: blocks close by the pattern, hence in all coordinates at once.

        They merge over units where there is one part: buckets of values would be others in each coordinate.
        """
        bounder = self.parts[0].bounder()
        return JointBounder(bounder, merges=bounder.merges and bounder.parts == 1)

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> DrawnTogether:
        return DrawnTogether(partial(self.releaser, key))

    def releaser(self, key: bytes, group: bytes) -> "CoordinatesReleaser":
        return CoordinatesReleaser([part.releaser(key, group, index) for index, part in enumerate(self.parts)])


@dataclass(frozen=True, slots=True)
class JointBounder:
    """The bounder of one coordinate on packed values: it sums them, and only their number closes a block.

    >>> from shoal.mechanisms.statistic import OneByOne
    >>> JointBounder(OneByOne(max_contributions=9), merges=True).add(1, 5 << 64 | 7)[1].total == 5 << 64 | 7
    True
    """

    pattern: Bounder
    merges: bool

    @property
    def max_contributions(self) -> int:
        return self.pattern.max_contributions

    @property
    def parts(self) -> int:
        return self.pattern.parts if self.merges else 0

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        after, block = self.pattern.add(account, value)
        # Its part would be that of the packed integer.
        return after, block if block is None or self.merges else block._replace(part=None)


class CoordinatesReleaser:
    """The releasers of all coordinates, fed with the same contributions, each with its own total.

    A level activates by the pattern, in every coordinate at once, unless their sigmas are different parts of their
    ranges. Then it is published when the last one has it, with all priors.
    """

    __slots__ = ("_parts", "_pending")

    def __init__(self, parts: Sequence[NoisedByCounters]) -> None:
        self._parts = parts
        # level -> coordinate -> its activation
        self._pending: dict[int, dict[int, tuple[float | None, int, Fraction]]] = {}

    def add(self, contribution: Contribution) -> list[Activation]:
        """Take one contribution, and return the levels that all coordinates now have."""
        common = contribution[:5]
        totals = zip(self._parts, contribution.total, strict=True)
        return self._joined(part.add(Contribution(*common, total)) for part, total in totals)

    def close(self, tick: int | None = None) -> list[Activation]:
        """Complete the tick, and return the levels that some coordinate now has.

        What a tick activates it does by the pattern and by what was charged: no other coordinate has it later.
        """
        closed = set()
        for coordinate, part in enumerate(self._parts):
            for activation in part.close(tick):
                self._note(coordinate, activation)
                closed.add(activation.level)
        return [self._published(level) for level in sorted(closed)]

    def _joined(self, activated: Iterable[Sequence[Activation]]) -> list[Activation]:
        joined = []
        for coordinate, activations in enumerate(activated):
            for activation in activations:
                self._note(coordinate, activation)
                if len(self._pending[activation.level]) == len(self._parts):
                    joined.append(self._published(activation.level))
        return joined

    def _note(self, coordinate: int, activation: Activation) -> None:
        priors = self._pending.setdefault(activation.level, {})
        priors[coordinate] = activation.prior, activation.samples, activation.epsilon

    def _published(self, level: int) -> Activation:
        by_coordinate = self._pending.pop(level)
        nothing = None, 0, Fraction(0)
        priors = [by_coordinate.get(coordinate, nothing) for coordinate in range(len(self._parts))]
        return Activation(
            level,
            prior=[prior for prior, _, _ in priors],
            samples=[samples for _, samples, _ in priors],
            epsilon=sum((epsilon for _, _, epsilon in priors), Fraction(0)),
        )

    def ahead(self, contributions: Sequence[Contribution]) -> Iterator[tuple[BinaryCounter[Any], int]]:
        for part in self._parts:
            yield from part.ahead(contributions)

    def estimate(self) -> Estimate | None:
        """The release over all contributions so far; None while no coordinate has one.

        Its samples are those that the value of every coordinate rests on at least.
        """
        estimates = [part.estimate() for part in self._parts]
        if not any(estimates):
            return None
        # A coordinate without an estimate yet has none of the four numbers, and no samples.
        each = [NO_ESTIMATE if estimate is None else estimate for estimate in estimates]
        return Estimate(
            [estimate.value for estimate in each],
            [estimate.noise_sd for estimate in each],
            [estimate.low for estimate in each],
            [estimate.high for estimate in each],
            {"samples": min(estimate.samples for estimate in each)},
            next(estimate.details for estimate in estimates if estimate is not None),
            max(estimate.ticks_ahead or 0 for estimate in each) or None,
        )

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """The contributions that each coordinate keeps, under levels of its own: level * d + coordinate."""
        return {
            (self._level(level, coordinate), pseudonym): self._renamed(row, coordinate)
            for coordinate, part in enumerate(self._parts)
            for (level, pseudonym), row in part.kept.items()
        }

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        added: list[Contribution] = []
        dropped: list[tuple[int, str]] = []
        for coordinate, part in enumerate(self._parts):
            written, gone = part.take_changes()
            added += [self._renamed(row, coordinate) for row in written]
            dropped += [(self._level(level, coordinate), pseudonym) for level, pseudonym in gone]
        return added, dropped

    def _level(self, level: int, coordinate: int) -> int:
        return level * len(self._parts) + coordinate

    def _renamed(self, row: Contribution, coordinate: int) -> Contribution:
        return row._replace(level=self._level(row.level, coordinate))

    def head(self) -> list[Any]:
        """[head of each coordinate, activations that are not published yet]."""
        pending = [
            [level, coordinate, repr(prior), samples, str(epsilon)]
            for level, priors in self._pending.items()
            for coordinate, (prior, samples, epsilon) in priors.items()
        ]
        return [[part.head() for part in self._parts], pending]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        heads, pending = head
        by_coordinate: list[list[Contribution]] = [[] for _ in self._parts]
        for row in kept:
            level, coordinate = divmod(row.level, len(self._parts))
            by_coordinate[coordinate].append(row._replace(level=level))
        for part, own, rows in zip(self._parts, heads, by_coordinate, strict=True):
            part.restore(own, rows)
        self._pending = {}
        for level, coordinate, prior, samples, epsilon in pending:
            activation = float(prior), int(samples), Fraction(epsilon)
            self._pending.setdefault(int(level), {})[int(coordinate)] = activation
