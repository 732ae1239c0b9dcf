"""How many samples a release withholds: those that came to its group, less those that its value rests on.

Guarantee    changes no loss: what came is pattern, and the number that the value rests on is in the release already
Relation     values: who contributes when, and in which group, is public
Came         a sample whose effective time is before the release and which was not refused: it counts, or waits in an
             open block, or for a prior, or is over `max_contributions`, `max_groups` or `max_events_per_user`
Releases     none is added and none changed: a tick in which nothing but such samples came has no release, is no tick of
             the mean, and is told by the next release
State        one integer in each group, also in one that all samples were left out of
Proof        docs/proofs/continual-mean.md

Accounts send a lone count, which carries no value, for each sample that sends nothing else; over users and ticks these
add up. Every other sample comes with its own contribution: a block closes with exactly one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

from shoal.mechanisms.accounts import COUNTED, Accounts, Holding, WhyNotCounted
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.groups import Closed, EachAlone, IsHome, everywhere
from shoal.mechanisms.statistic import (
    NO_ESTIMATE,
    Activation,
    Block,
    Bounder,
    Contribution,
    Estimate,
    LevelState,
    Packing,
    Releaser,
    Statistic,
)

LEVEL = 255  # of lone counts; blocks have lower ones, and a cell's number five digits
LONE_COUNT = Block(number=0, level=LEVEL, samples=1, total=0, part=0)


@dataclass(frozen=True, slots=True)
class CountingBounder:
    """Sends a lone count with each sample that closes no block; these alone may merge where blocks do not.

    >>> from shoal.mechanisms.continual_mean.blocks import BlockBounder
    >>> bounder = CountingBounder(BlockBounder(max_contributions=4))
    >>> account, block = bounder.add(2, 30)
    >>> block == LONE_COUNT, bounder.add(account, 12)[1].samples
    (True, 2)
    """

    blocks: Bounder
    merges: bool = True

    @property
    def max_contributions(self) -> int:
        return self.blocks.max_contributions

    @property
    def parts(self) -> int:
        return max(1, self.blocks.parts)

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        after, block = self.blocks.add(account, value)
        return after, LONE_COUNT if block is None else block


class CountingAccounts(Accounts):
    """Sends a lone count for each sample that does not count; what counts, and why not, its accounts say."""

    def __init__(self, accounts: Accounts, send: Callable[[str | None, int, bytes, Block], None]) -> None:
        super().__init__(*accounts._periods)  # whose records are all of the state
        self._accounts, self._send = accounts, send

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        reason = self._accounts.add(user, group, value, time, effective)
        if reason in COUNTED:
            self._send(group, effective, user, LONE_COUNT)
        return reason

    def flush(self, promise: int | None, *, idle: bool) -> None:
        self._accounts.flush(promise, idle=idle)

    def count(self, user: bytes, group: str | None) -> int | None:
        return self._accounts.count(user, group)

    def of_user(self, user: bytes) -> Iterator[Holding]:
        return self._accounts.of_user(user)


class CountingReleaser:
    """Counts what comes, keeps lone counts to itself, and adds to each release what it withholds."""

    __slots__ = ("_came", "_mean")

    def __init__(self, mean: Releaser) -> None:
        self._mean = mean
        self._came = 0

    def add(self, contribution: Contribution) -> Sequence[Activation]:
        # What has a pseudonym is one sample, or the block that one sample closed; the others came before it.
        self._came += 1 if contribution.pseudonym else contribution.samples
        return () if contribution.level == LEVEL else self._mean.add(contribution)

    def close(self, tick: int | None = None) -> Sequence[Activation]:
        return self._mean.close(tick)

    def estimate(self) -> Estimate:
        """The release; where a block closed before the time of one of its samples, that one has come too."""
        made = self._mean.estimate() or NO_ESTIMATE
        came = max(self._came, made.samples)
        withheld = came - made.samples
        return replace(made, details={**made.details, "withheld": {"samples": withheld, "share": withheld / came}})

    @property
    def levels(self) -> list[LevelState]:
        return getattr(self._mean, "levels", [])

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        return self._mean.kept

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        return self._mean.take_changes()

    def head(self) -> list[Any]:
        """[samples that came, head of the mean]."""
        return [self._came, self._mean.head()]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        came, mean = head
        self._came = int(came)
        self._mean.restore(mean, kept)


class CountingGroups(EachAlone[Releaser]):
    """Groups that are each computed alone, and released where more than lone counts came."""

    def _close(self, group: str, contributions: Iterable[Contribution], tick: int) -> Closed:
        came = list(contributions)
        if any(contribution.level != LEVEL for contribution in came):
            return super()._close(group, came, tick)
        releaser = self.releaser(group)
        for contribution in came:
            releaser.add(contribution)
        self._changed[group] = None
        return Closed(group, None, is_published=False)


class Mean(Statistic, Protocol):
    """A mean, of one coordinate or several."""

    @property
    def epsilon(self) -> Fraction: ...
    def bounder(self) -> Bounder: ...
    def releaser(self, key: bytes, group: bytes) -> Releaser: ...


@dataclass(frozen=True)
class CountingMean(Statistic):
    """A mean whose releases say how many samples they withhold."""

    mean: Mean

    @property
    def epsilon(self) -> Fraction:
        return self.mean.epsilon

    @property
    def grids(self) -> tuple[Grid, ...]:
        return self.mean.grids

    @property
    def packing(self) -> Packing | None:
        return self.mean.packing

    @property
    def rho(self) -> Fraction | None:
        return self.mean.rho

    def chosen(self) -> list[str] | None:
        return self.mean.chosen()

    def bounder(self) -> CountingBounder:
        return CountingBounder(self.mean.bounder())

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> CountingGroups:
        return CountingGroups(partial(self.releaser, key))

    def releaser(self, key: bytes, group: bytes) -> CountingReleaser:
        return CountingReleaser(self.mean.releaser(key, group))
