"""Accounts with one cap over all keys: of what has a step, of all that protects presence, and of unit event.

Each decision reads the unit's own records and public parameters alone. The reasons why a sample does not count come in
one order: start, end and declared keys; lateness; the partition; the unit's keys; its cap. A refused sample uses
nothing up, so a unit that is removed takes its own contributions with it, and changes no other.

    user           one account for ever
    user-day, ...  one in each period of effective time. An event whose own time lies in another period is late, even
                   where late events are folded: values of one day go through the account of that day, and no other
    event          none, and the partition is not checked, since it does not matter whose event it is. With a limit one
                   for each user, for ever, in which that number of events count, each of them a unit of its own

An account is a unit's number of samples and of keys. Beside it stand the keys in which the unit is remembered: [length
of user, user, key]. There a unit is not new again; it is new in its first `keys` keys. Samples in further keys either
do not count, or count where the unit is not new. Where each step finds its keys anew, a key is one of one step: a unit
is new in it once more in the next one.

Users are counted once per key, or once per step and key; further samples there are over the cap.

Changelog: accounts, remembered keys, and under relation add-remove what is remembered by step.
Proof: docs/proofs/units.md; docs/proofs/first-crossing.md, "Whose samples count"
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from shoal.mechanisms.accounts import (
    ACCOUNT_BYTES,
    ONE_MEMBER,
    Accounts,
    Holding,
    RecordKind,
    Site,
    Store,
    WhyNotCounted,
)
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import Events, Overall
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.per import Keys
from shoal.mechanisms.statistic import COUNT_MASK, Block, Bounder

MEMBER_BYTES = 1
Once = Literal["key", "step"]
Blocks = Callable[[int, int], tuple[Block, ...]]  # blocks of a unit's sample, by its number from 1 and its grid index


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits by which the samples of a unit count. Times in microseconds."""

    samples: int | None  # of a unit, in all keys together; None: each sample is a unit, which has no account
    keys: int = 0  # in which a unit is remembered
    leaves_out: bool = False  # whether samples in further keys do not count
    alone: bool = False  # whether each sample is a unit of its own, and the account is its user's
    period: Even | None = None  # of a unit; None: for ever
    start: int | None = None  # None: samples count at any time
    end: int | None = None
    declared: frozenset[str] | None = None  # keys; None: all, or there are none
    newcomers: tuple[Block, ...] = ()  # sent for a unit that is new in its first, second, ... key
    step: Even | None = None  # of what is remembered by step; None: nothing is
    once: Once | None = None  # a unit counts once per key, or once per step and key; None: with each sample
    anew: bool = False  # whether keys are found in each step anew

    def refuses(self, group: str | None, time: int, effective: int) -> WhyNotCounted | None:
        """Why a sample counts for no unit; None if it may count."""
        if self.start is not None and effective < self.start:
            return "before-start"
        if self.end is not None and effective >= self.end:
            return "after-end"
        if self.declared is not None and group not in self.declared:
            return "undeclared"
        if self.period is not None and self.period.index(time) != self.period.index(effective):
            return "late"
        return None


class OverallAccounts(Accounts):
    """Accounts by unit, whatever keys and steps its samples are in."""

    def __init__(self, limit: Limit, blocks: Blocks, site: Site) -> None:
        kinds = RecordKind(site.tag(b"a"), ACCOUNT_BYTES), RecordKind(site.tag(b"g"), MEMBER_BYTES)
        self._units = site.periods(limit.period, *kinds)
        self._steps = site.periods(limit.step, RecordKind(site.tag(b"s"), MEMBER_BYTES))
        super().__init__(self._units, *(() if limit.step is None else (self._steps,)))
        self.limit, self._blocks, self._send, self._is_home = limit, blocks, site.send, site.is_home
        self._remembers = limit.keys > 0 or limit.once is not None

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        limit = self.limit
        why = limit.refuses(group, time, effective)
        if why is not None:
            return why
        if limit.samples is None:
            self._send_all(user, group, value, effective, number=1, key=0)
            return None
        accounts, members = self._units.forever or self._units.of(effective)
        account = accounts.get(user)
        if account is None:
            if not self._is_home(user):
                return "wrong-partition"
            account = 0
        keys = account // ONE_MEMBER
        member = len(user).to_bytes(2, "big") + user + (group or "").encode() if self._remembers else b""
        if limit.leaves_out and keys >= limit.keys and member not in members.held:
            return "groups_left_out"
        if account & COUNT_MASK >= limit.samples:
            return "over_cap"
        if limit.anew:
            (members,) = self._steps.of(effective)
        is_new = keys < limit.keys and member not in members.held
        if limit.once is not None and not self._is_first(member, effective, is_new=is_new):
            return "over_cap"
        account += 1
        number = 1 if limit.alone else account & COUNT_MASK
        self._send_all(user, group, value, effective, number=number, key=keys if is_new else None)
        if is_new:
            members.put(member, 1)
            account += ONE_MEMBER
        accounts.put(user, account)
        return None

    def _is_first(self, member: bytes, effective: int, *, is_new: bool) -> bool:
        """Whether a unit has not been counted in this key, or in this step of it; from now on it has."""
        if self.limit.once == "key":
            return is_new
        (steps,) = self._steps.of(effective)
        if member in steps.held:
            return False
        steps.put(member, 1)
        return True

    def _send_all(
        self, user: bytes, group: str | None, value: int, effective: int, *, number: int, key: int | None
    ) -> None:
        """Send what the `number`-th sample of a unit is, and what its new key with this number from 0 is."""
        for block in self._blocks(number, value):
            self._send(group, effective, user, block)
        if key is not None and key < len(self.limit.newcomers):
            self._send(group, effective, user, self.limit.newcomers[key])

    def count(self, user: bytes, group: str | None) -> int | None:
        """The samples of a user in the latest open period, of all groups together: no group has an account."""
        account = self._units.newest(user) if group is None else None
        return None if account is None else account & COUNT_MASK

    def of_user(self, user: bytes) -> Iterator[Holding]:
        for start, (accounts, members) in self._units.each():
            account = accounts.get(user)
            if account is not None:
                yield Holding(start, None, account & COUNT_MASK)
                yield from _keys_of(user, start, members)
        for start, (steps,) in self._steps.each():
            yield from _keys_of(user, start, steps)


def _keys_of(user: bytes, start: int | None, members: Store) -> Iterator[Holding]:
    """The keys in which a user is remembered."""
    before = len(user).to_bytes(2, "big") + user
    for name in sorted(name for name in members.held if name.startswith(before)):
        yield Holding(start, name[len(before) :].decode(), None)


def blocks_of(bounder: Bounder) -> Blocks:
    """Blocks that a bounder closes with one sample of a unit: one, or none."""

    def blocks(number: int, value: int) -> tuple[Block, ...]:
        _, block = bounder.add(number - 1, value)
        return () if block is None else (block,)

    return blocks


def accounts_of_values(metric: Metric, bounder: Bounder, site: Site) -> OverallAccounts:
    """Accounts of a metric whose relation is values."""
    limits, has_keys = expect(metric.hides.limits, Overall, Events), isinstance(metric.per, Keys)
    if isinstance(limits, Events):
        most = limits.of_a_user  # a user in more keys than that is over the cap
        limit = Limit(most, most if most and has_keys else 0, alone=True)
    else:
        keys = limits.keys if has_keys else 0
        limit = Limit(limits.samples, keys, leaves_out=has_keys, period=metric.unit.length)
    return OverallAccounts(limit, blocks_of(bounder), site)
