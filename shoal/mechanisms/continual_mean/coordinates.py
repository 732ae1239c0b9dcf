"""A value of several coordinates: one mean for each, side by side, each with its share of epsilon and its own noise.

Guarantee    pure epsilon-DP for all coordinates of all releases together, by basic composition
Relation     values: two streams differ in the values of one unit, in any or all coordinates
Budget       epsilon / d for each of d coordinates, exactly; within it each is spent as the algorithm says
Noise        of the algorithm, from subkeys that name the coordinate
Packing      until it is sent, a sum of several coordinates is one integer with a lane of 64 bits for each; lanes add up
             without carries while each stays below 2**63, which is checked
Proof        docs/proofs/coordinates.md
Source       George, Ramesh, Singh and Tyagi (2024), section 4
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.statistic import (
    Activation,
    Block,
    Bounder,
    Contribution,
    Estimate,
    Releaser,
    Statistic,
)

LANE_BITS = 64
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
        return type(part), part.epsilon, part.max_contributions, part.users, part.groups, part.failure

    @property
    def epsilon(self) -> Fraction:
        """For all coordinates together."""
        return sum((Fraction(part.epsilon) for part in self.parts), Fraction(0))

    @cached_property
    def largest(self) -> int:
        """The most that a sample is in any lane."""
        return max(part.sample_grid.steps for part in self.parts)

    @cached_property
    def _lanes(self) -> struct.Struct:
        return struct.Struct(f"<{len(self.parts)}Q")

    @property
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
        """The unit's side: blocks close by the pattern, hence in all coordinates at once.

        They merge over units where there is one part: buckets of values would be others in each coordinate.
        """
        bounder = self.parts[0].bounder()
        return JointBounder(bounder, merges=bounder.merges and bounder.parts == 1)

    def releaser(self, key: bytes, group: bytes) -> "CoordinatesReleaser":
        """The means of one group."""
        return CoordinatesReleaser([part.releaser(key, group, index) for index, part in enumerate(self.parts)])


@dataclass(frozen=True, slots=True)
class JointBounder:
    """The bounder of one coordinate on packed values: it sums them, and what closes is a matter of numbers alone.

    >>> from shoal.mechanisms.statistic import OneByOne
    >>> JointBounder(OneByOne(max_contributions=9), merges=True).add(1, 5 << 64 | 7)[1].total == 5 << 64 | 7
    True
    """

    pattern: Bounder
    merges: bool

    @property
    def max_contributions(self) -> int:
        """The cap; the caller stops before it."""
        return self.pattern.max_contributions

    @property
    def parts(self) -> int:
        """As of one coordinate, where the mean merges."""
        return self.pattern.parts if self.merges else 0

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        """One more sample: packed grid indices."""
        after, block = self.pattern.add(account, value)
        # Its part would be that of the packed integer.
        return after, block if block is None or self.merges else block._replace(part=None)


class CoordinatesReleaser:
    """The releasers of all coordinates, fed with the same contributions, each with its own total.

    A level activates by the pattern, in every coordinate at once, unless their sigmas are different parts of their
    ranges. Then it is published when the last one has it, with all priors.
    """

    __slots__ = ("_parts", "_pending")

    def __init__(self, parts: Sequence[Releaser]) -> None:
        self._parts = parts
        self._pending: dict[int, dict[int, tuple[float, int, Fraction]]] = {}  # level -> coordinate -> its activation

    def add(self, contribution: Contribution) -> list[Activation]:
        """Take one contribution; the levels that all coordinates now have."""
        place = contribution[:5]
        totals = zip(self._parts, contribution.total, strict=True)
        return self._joined(part.add(Contribution(*place, total)) for part, total in totals)

    def close(self) -> list[Activation]:
        """The tick is complete; the levels that some coordinate now has.

        What a tick activates it does by the pattern and by what was charged: no other coordinate has it later.
        """
        closed = set()
        for coordinate, part in enumerate(self._parts):
            for one in part.close():
                self._pending.setdefault(one.level, {})[coordinate] = one.prior, one.samples, one.epsilon
                closed.add(one.level)
        return [self._published(level) for level in sorted(closed)]

    def _joined(self, activated: Iterable[Sequence[Activation]]) -> list[Activation]:
        found = []
        for coordinate, activations in enumerate(activated):
            for one in activations:
                priors = self._pending.setdefault(one.level, {})
                priors[coordinate] = one.prior, one.samples, one.epsilon
                if len(priors) == len(self._parts):
                    found.append(self._published(one.level))
        return found

    def _published(self, level: int) -> Activation:
        found = self._pending.pop(level)
        nothing = None, 0, Fraction(0)
        priors = [found.get(coordinate, nothing) for coordinate in range(len(self._parts))]
        return Activation(
            level,
            prior=[prior for prior, _, _ in priors],
            samples=[samples for _, samples, _ in priors],
            epsilon=sum((epsilon for _, _, epsilon in priors), Fraction(0)),
        )

    def estimate(self) -> Estimate | None:
        """The release over all contributions so far; None while no coordinate has one.

        Its samples are those that the value of every coordinate rests on at least.
        """
        estimates = [part.estimate() for part in self._parts]
        if all(one is None for one in estimates):
            return None
        return Estimate(
            value=[None if one is None else one.value for one in estimates],
            noise_sd=[None if one is None else one.noise_sd for one in estimates],
            low=[None if one is None else one.low for one in estimates],
            high=[None if one is None else one.high for one in estimates],
            counts={"samples": min(0 if one is None else one.samples for one in estimates)},
        )

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """What each coordinate keeps, under levels of its own: level * d + coordinate."""
        return {
            (self._level(level, coordinate), pseudonym): self._renamed(one, coordinate)
            for coordinate, part in enumerate(self._parts)
            for (level, pseudonym), one in part.kept.items()
        }

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """What was added to `kept`, and which of its keys were dropped, since the last call or restore."""
        added: list[Contribution] = []
        dropped: list[tuple[int, str]] = []
        for coordinate, part in enumerate(self._parts):
            written, gone = part.take_changes()
            added += [self._renamed(one, coordinate) for one in written]
            dropped += [(self._level(level, coordinate), pseudonym) for level, pseudonym in gone]
        return added, dropped

    def _level(self, level: int, coordinate: int) -> int:
        return level * len(self._parts) + coordinate

    def _renamed(self, one: Contribution, coordinate: int) -> Contribution:
        return one._replace(level=self._level(one.level, coordinate))

    def head(self) -> list[Any]:
        """[head of each coordinate, activations that are not published yet]."""
        pending = [
            [level, coordinate, repr(prior), samples, str(epsilon)]
            for level, priors in self._pending.items()
            for coordinate, (prior, samples, epsilon) in priors.items()
        ]
        return [[part.head() for part in self._parts], pending]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        """Become the releaser that had this head and these kept contributions."""
        heads, pending = head
        by_coordinate: list[list[Contribution]] = [[] for _ in self._parts]
        for one in kept:
            level, coordinate = divmod(one.level, len(self._parts))
            by_coordinate[coordinate].append(one._replace(level=level))
        for part, own, rows in zip(self._parts, heads, by_coordinate, strict=True):
            part.restore(own, rows)
        self._pending = {}
        for level, coordinate, prior, samples, epsilon in pending:
            found = float(prior), int(samples), Fraction(epsilon)
            self._pending.setdefault(int(level), {})[int(coordinate)] = found
