"""Accounts under relation add-remove: whose samples count, decided by the unit's own records alone.

A sample counts if its effective time lies between start and end, its key is declared (where keys are declared), the
user belongs to the partition, the event lies in the unit's period, and the unit has samples left: m over all keys
together. What fails one of these uses up nothing. So a unit that is removed takes its own contributions with it, and
changes no other.

Where keys are to be found, a counted sample is also a newcomer if its key is the j-th distinct one of its unit and j is
at most G; it then goes out once more, as part `NEWCOMERS`, with the weight w_j. A unit whose samples go into one more
key is no newcomer there, and a key that it has come to before is not new again.

    user, user-day, ...   the records of one person, for ever or in one period of effective time
    event                 each record is a unit: it counts, and is a newcomer of its key with the first weight

Users are counted once per key, or once per step and key; further samples there are over the cap. Where each slot finds
its cells anew, a key is a cell of one slot: a unit comes to the same cell again in the next one.

Where a key's clip range is to be chosen, a sample goes out with the lowest rung that it is not above, and the unit's
first counted sample once more, as the unit's number: a unit gives one number, to one key.

Changelog: accounts (samples and keys of a unit), the keys that a unit is remembered in, and per step those that it was
counted in. Proof: docs/proofs/first-crossing.md, "Whose samples count"
"""

from collections.abc import Iterator
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
    of_members,
    of_units,
    samples_in_the_newest,
)
from shoal.mechanisms.bins.shares import bin_of
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.selection.upper_end import Ladder
from shoal.mechanisms.statistic import COUNT_MASK, PART_BITS, PART_MASK, Block, new_block
from shoal.mechanisms.two_sided.came import NEWCOMERS, NUMBERS_AT, SAMPLES_AT

MEMBER_BYTES = 1
Once = Literal["key", "step"]


@dataclass(frozen=True, slots=True)
class Rule:
    """The limits by which a sample counts. Times in microseconds."""

    max_contributions: int  # m: of a unit, in all keys together
    start: int
    end: int | None = None
    step: int = 1
    period: int | None = None  # of a unit; None: for ever
    declared: frozenset[str] | None = None  # keys; None: all, or there are none
    weights: tuple[int, ...] = ()  # of newcomers at their unit's first, second, ... key; none: keys are not found
    once: Once | None = None  # a unit counts once per key, or once per step and key; None: with each sample
    ladder: Ladder | None = None  # the clip ranges that a key's is chosen from; None: it is given
    anew: bool = False  # keys are found in each step anew
    bins: tuple[int, Grid] | None = None  # samples are sent by the bin that they are in; None: by their sum

    def blocks(self, number: int, value: int) -> tuple[Block, ...]:
        """What the `number`-th counted sample of a unit sends on."""
        if self.bins is not None:
            place = bin_of(value, *self.bins)
            return (new_block((number, 1 + (place >> PART_BITS), 1, 0, place & PART_MASK)),)
        if self.ladder is None:
            return (sample(number, value),)
        rung = self.ladder.rung_of(value)
        counted = new_block((number, 0, 1, value, SAMPLES_AT + rung))
        if number == 1:
            return counted, new_block((number, 0, 1, 0, NUMBERS_AT + rung))
        return (counted,)

    def refuses(self, group: str | None, effective: int) -> WhyNotCounted | None:
        """What is wrong with a sample of any unit."""
        if effective < self.start:
            return "before-start"
        if self.end is not None and effective >= self.end:
            return "after-end"
        return "undeclared" if self.declared is not None and group not in self.declared else None


class EventAccounts(Accounts):
    """Accounts of unit event, which keep nothing; the partition is not checked, for it does not matter whose it is."""

    def __init__(self, rule: Rule, site: Site) -> None:
        kinds = (RecordKind(site.tag(tag), 1) for tag in (b"a", b"g", b"s"))
        super().__init__(site.periods(None, *kinds))
        self.rule, self._send = rule, site.send

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        why = self.rule.refuses(group, effective)
        if why is not None:
            return why
        for block in self.rule.blocks(1, value):
            self._send(group, effective, user, block)
        if self.rule.weights:
            self._send(group, effective, user, newcomer(1, self.rule.weights[0]))
        return None


class UnitAccounts(Accounts):
    """Accounts of the units user and user-<period>."""

    def __init__(self, rule: Rule, site: Site) -> None:
        kinds = RecordKind(site.tag(b"a"), ACCOUNT_BYTES), RecordKind(site.tag(b"g"), MEMBER_BYTES)
        self._units = site.periods(rule.period, *kinds)
        self._steps = site.periods(rule.step, RecordKind(site.tag(b"s"), MEMBER_BYTES))
        super().__init__(self._units, self._steps)
        self.rule, self._send, self._is_home = rule, site.send, site.is_home
        # In so many keys a unit is remembered: in all that it counts in, or in those in which it is a newcomer.
        self.remembered = rule.max_contributions if rule.once == "key" else len(rule.weights)

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        rule = self.rule
        why = rule.refuses(group, effective)
        if why is not None:
            return why
        accounts, members = self._units.of(effective)
        account = accounts.get(user)
        if account is None:
            if not self._is_home(user):
                return "wrong-partition"
            account = 0
        if rule.period is not None and time // rule.period != effective // rule.period:
            return "late"
        if account & COUNT_MASK >= rule.max_contributions:
            return "over_cap"
        member = len(user).to_bytes(2, "big") + user + (group or "").encode()
        if rule.anew:
            (members,) = self._steps.of(effective)
        is_new = account // ONE_MEMBER < self.remembered and member not in members.held
        if rule.once is not None and not self._is_first(member, effective, is_new=is_new):
            return "over_cap"
        account += 1
        for block in rule.blocks(account & COUNT_MASK, value):
            self._send(group, effective, user, block)
        if is_new:
            before = account // ONE_MEMBER
            members.put(member, 1)
            account += ONE_MEMBER
            if before < len(rule.weights):
                self._send(group, effective, user, newcomer(before + 1, rule.weights[before]))
        accounts.held[user] = accounts.changed[user] = account
        return None

    def _is_first(self, member: bytes, effective: int, *, is_new: bool) -> bool:
        """Whether a unit has not been counted in this key, or in this step of it; from now on it has."""
        if self.rule.once == "key":
            return is_new
        steps: Store = self._steps.of(effective)[0]
        if member in steps.held:
            return False
        steps.put(member, 1)
        return True

    def count(self, user: bytes, group: str | None) -> int | None:
        """The samples of a user in the latest open period, of all groups together: no group has an account."""
        return samples_in_the_newest(self._units, user) if group is None else None

    def of_user(self, user: bytes) -> Iterator[Holding]:
        yield from of_units(self._units, user)
        for start, (steps,) in self._steps.each():
            yield from of_members(start, steps, user)


def sample(number: int, value: int) -> Block:
    """The `number`-th sample of a unit."""
    return new_block((number, 0, 1, value, 0))


def newcomer(number: int, weight: int) -> Block:
    """A unit that comes to the `number`-th of its keys."""
    return new_block((number, 0, 1, weight, NEWCOMERS))
