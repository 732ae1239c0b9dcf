"""A prior that few users choose, for a mean of which no useful range is known: one attempt, and blocks wait for it.

Guarantee    (epsilon, delta)-DP, delta > 0, of the choice; with the counters for all releases of all groups together
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user: the mean of its first s samples is one number, which moves anywhere
Budget       per group e = epsilon / G: e / 4 and delta / G for the choice, 3 e / 4 for the counters
Attempt      one in a group, at the end of the tick by which N users have given s samples. N and s are functions of the
             parameters, and who is among the first N is pattern. Until then nothing is released
Choice       a grid point near the means of most of those N users, or none (selection/few_users_point.py)
None         nothing is clipped then: a block moves by what its samples may, and the counters' noise is made for that
State        every block that came before the attempt, with its pseudonym: at most one of each level for each user
Accuracy     with probability 1 - failure all N users' means lie within r0 of the true one, no block is cut off, and
             there is a point, within 3 r0 of the true mean; 51 % of the N users are enough for there to be one
Proof        docs/proofs/continual-mean.md
Source       Esfandiari, Mirrokni and Narayanan (2021); George, Ramesh, Singh and Tyagi (2024), remark in appendix B
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

from shoal.mechanisms.continual_mean.blocks import Changes
from shoal.mechanisms.counters.binary import BinaryCounter
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.groups import NoisedByCounters
from shoal.mechanisms.noise.keyed import Bits
from shoal.mechanisms.selection.few_users_point import PointChoice, reach_steps, users_needed
from shoal.mechanisms.statistic import Activation, Contribution, Estimate, LevelState

SHARE = Fraction(1, 4)  # of a group's epsilon that the choice may use
AGREEING = Fraction(51, 100)  # of the users: so many are enough for a point
NONE = "none"


@dataclass(frozen=True)
class FewUsers:
    """The public constants of one group's attempt.

    >>> few = FewUsers(4, 16, Fraction(100), Fraction(1, 4), Fraction(1, 10**6), Fraction(1, 3000), (0, 10**6))
    >>> few.users, few.reach
    (357, 136)
    """

    level: int  # of the block with which a user has given enough samples
    samples: int  # s: what is enough; all blocks up to that level
    sigma: Fraction  # in grid steps: of which samples are subgaussian
    epsilon: Fraction
    delta: Fraction
    failure: Fraction  # of each of the two bounds
    ends: tuple[int, int]  # where the true mean lies, in grid steps

    @cached_property
    def users(self) -> int:
        """N: so many that 51 % of them are as many as a point needs."""
        return ceil(users_needed(self.epsilon, self.delta, self.failure) / AGREEING)

    @cached_property
    def reach(self) -> int:
        """How far off the true mean a user's may be, in grid steps: r0 of the proof."""
        return reach_steps(self.users, self.samples, self.failure, self.sigma)

    @property
    def off(self) -> int:
        """What the point may be off the true mean, in grid steps: R + r0, where R = 2 r0."""
        return 3 * self.reach

    @cached_property
    def choice(self) -> PointChoice:
        return PointChoice(numbers=self.users, radius=2 * self.reach, epsilon=self.epsilon, delta=self.delta)

    def choose(self, totals: Sequence[int], words: Iterator[int]) -> int | None:
        """The chosen point, or none, from the sums of the users' first samples; beyond an end it is that end."""
        means = [(2 * total + self.samples) // (2 * self.samples) for total in totals]
        point = self.choice.choose(means, words)
        return None if point is None else min(max(point, self.ends[0]), self.ends[1])


class FewUsersReleaser:
    """Keeps every block until enough users have come; then chooses the prior, and hands all blocks on."""

    __slots__ = (
        "_bits", "_changes", "_few", "_grid", "_inner", "_kept", "_levels", "_open", "_point", "_ready",
    )  # fmt: skip

    def __init__(
        self, few: FewUsers, grid: Grid, levels: int, open_at: Callable[[int | None], NoisedByCounters], subkey: bytes
    ) -> None:
        self._few, self._grid, self._levels = few, grid, levels
        self._open = open_at  # the releaser that clips around a point; None: that clips nothing
        self._bits = Bits(subkey)
        self._clear()

    def _clear(self) -> None:
        self._inner: NoisedByCounters | None = None  # None until the attempt
        self._point: int | None = None
        self._kept: dict[tuple[int, str], Contribution] = {}
        self._ready = 0  # users who have given enough samples
        self._changes = Changes()

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        """Keep the block, or count it if the prior is there; nothing activates before the tick is complete."""
        if self._inner is not None:
            self._inner.add(contribution)
        else:
            self._keep(contribution)
            self._changes.write(contribution)
        return ()

    def _keep(self, contribution: Contribution) -> None:
        level, pseudonym = contribution.level, contribution.pseudonym
        if (level, pseudonym) in self._kept:
            raise ValueError(f"a unit's block of level {level} arrived twice")
        self._kept[level, pseudonym] = contribution
        if level <= self._few.level and self._has_enough(pseudonym):
            self._ready += 1

    def _has_enough(self, pseudonym: str) -> bool:
        return all((level, pseudonym) in self._kept for level in range(self._few.level + 1))

    def close(self, tick: int | None = None) -> tuple[Activation, ...]:
        """Make the attempt, at the end of the first tick with enough users."""
        few = self._few
        if self._inner is not None or self._ready < few.users:
            return ()
        point = few.choose(self._first_totals(), self._bits.draw(0))
        inner = self._begin(point)
        for contribution in self._kept.values():
            inner.add(contribution)
        self._changes.drop(self._kept)
        self._kept = {}
        prior = None if self._point is None else self._grid.mean_value(self._point, 1)
        return (Activation(self._levels - 1, prior, few.users * few.samples, few.epsilon),)

    def _first_totals(self) -> list[int]:
        """The sums of the first samples of those who had enough first, by the times of their blocks."""
        few, kept = self._few, self._kept
        enough = ((level, name) for level, name in kept if level == few.level and self._has_enough(name))
        first = sorted((kept[key].effective, key[1]) for key in enough)[: few.users]
        return [sum(kept[level, name].total for level in range(few.level + 1)) for _, name in first]

    def _begin(self, point: int | None) -> NoisedByCounters:
        self._point = point
        self._inner = self._open(point)
        return self._inner

    def ahead(self, contributions: Sequence[Contribution]) -> Iterable[tuple[BinaryCounter[Any], int]]:
        return () if self._inner is None else self._inner.ahead(contributions)

    def estimate(self) -> Estimate | None:
        return None if self._inner is None else self._inner.estimate()

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """All blocks until the attempt, then none."""
        return self._kept

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        return self._changes.take()

    @property
    def levels(self) -> list[LevelState]:
        """Until the attempt the blocks that wait, by level; then what the counters hold."""
        if self._inner is not None:
            return getattr(self._inner, "levels", [])
        waiting = [0] * self._levels
        for level, _ in self._kept:
            waiting[level] += 1
        return [LevelState(0, 0, count) for count in waiting]

    def head(self) -> list[Any]:
        """That of the releaser with the prior, and the point as a list of one, or of "none"; before it all is empty."""
        if self._inner is None:
            return [0, [], [], []]
        return [*self._inner.head(), [NONE if self._point is None else self._point]]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        """Become the releaser that had this head; blocks that the head no longer needs are ignored."""
        *inner, chosen = head
        self._clear()
        if chosen:
            self._begin(None if chosen[0] == NONE else int(chosen[0])).restore(inner, ())
            return
        for contribution in kept:
            self._keep(contribution)
