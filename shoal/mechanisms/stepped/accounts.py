"""Accounts of what has a step: sums, counts and means that may forget, for every unit; of all means, for events.

A decayed sum is linear: a unit's samples move the sums of all groups together by a bounded number of grid steps,
whatever groups and steps they are in. So there is one cap over all groups, and one account for each unit:

    user           for ever
    user-day, ...  in each period of effective time. An event whose own time lies in another period is late, even where
                   late events are folded: values of one day move sums through the account of that day, and no other
    event          none: every event is a contribution of its own. With a limit one for each user, for ever, in which
                   so many events count, each of them a unit of its own

An account is a user's number of samples and of groups in a period, over all groups; beside it stand the groups that the
user is in: [length of user, user, group].

Proof: docs/proofs/units.md
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shoal.mechanisms.accounts import (
    ACCOUNT_BYTES,
    ONE_MEMBER,
    Accounts,
    Holding,
    RecordKind,
    Site,
    WhyNotCounted,
    of_units,
    samples_in_the_newest,
)
from shoal.mechanisms.statistic import COUNT_MASK, Block

MEMBER_BYTES = 1
Add = Callable[[int, int], tuple[int, Block | None]]


@dataclass(frozen=True, slots=True)
class Rule:
    """The limits by which a sample of a decayed sum counts."""

    max_contributions: int  # of a unit, in all groups together
    groups: int  # of a unit
    period: int | None  # of a unit, in microseconds; None: for ever
    alone: bool = False  # whether each sample is a unit of its own


class EventAccounts(Accounts):
    """Accounts of unit event, which keep nothing.

    Nor is the partition checked: whose event it is does not matter to the guarantee, and there is no account that would
    say that the user was seen before.
    """

    def __init__(self, add: Add, site: Site) -> None:
        # Nothing stands in its stores, which the mark counts all the same.
        super().__init__(site.periods(None, RecordKind(site.tag(b"a"), 1), RecordKind(site.tag(b"g"), 1)))
        self._sum, self._send = add, site.send

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> None:
        _, block = self._sum(0, value)
        if block is not None:
            self._send(group, effective, user, block)


class UnitAccounts(Accounts):
    """Accounts of the units user and user-<period>."""

    def __init__(self, rule: Rule, add: Add, site: Site) -> None:
        kinds = RecordKind(site.tag(b"a"), ACCOUNT_BYTES), RecordKind(site.tag(b"g"), MEMBER_BYTES)
        self._units = site.periods(rule.period, *kinds)
        self._forever = self._units.forever
        super().__init__(self._units)
        self.rule = rule
        self._period, self._groups, self._cap, self._alone = (
            rule.period, rule.groups, rule.max_contributions, rule.alone,
        )  # fmt: skip
        self._sum, self._send, self._is_home = add, site.send, site.is_home

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        period = self._period
        if period is not None and time // period != effective // period:
            return "late"
        accounts, members = self._forever or self._units.of(effective)
        member = None if group is None else len(user).to_bytes(2, "big") + user + group.encode()
        account = accounts.get(user)
        if account is None:
            if not self._is_home(user):
                return "wrong-partition"
            account = 0
        if member is not None and member not in members.held:
            if account // ONE_MEMBER >= self._groups:
                return "groups_left_out"
            account += ONE_MEMBER
        else:
            member = None
        if account & COUNT_MASK >= self._cap:
            return "over_cap"
        _, block = self._sum(0 if self._alone else account & COUNT_MASK, value)
        accounts.held[user] = accounts.changed[user] = account + 1
        if member is not None:
            members.put(member, 1)
        if block is not None:
            self._send(group, effective, user, block)
        return None

    def count(self, user: bytes, group: str | None) -> int | None:
        """The samples of a user in the latest open period, of all groups together: no group has an account."""
        return samples_in_the_newest(self._units, user) if group is None else None

    def of_user(self, user: bytes) -> Iterator[Holding]:
        return of_units(self._units, user)


def event_accounts(most: int | None, add: Add, site: Site) -> EventAccounts | UnitAccounts:
    """The accounts of unit event: none, or with a limit those of users, of whose events each is a unit of its own."""
    if most is None:
        return EventAccounts(add, site)
    # More groups than events: who has reached the limit is over it, in whatever group.
    return UnitAccounts(Rule(most, most + 1, None, alone=True), add, site)
