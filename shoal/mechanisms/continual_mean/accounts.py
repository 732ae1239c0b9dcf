"""Accounts of means without decay: a user's samples in each group up to the cap, and the user's groups.

An account holds, per user and group, the number of samples so far and the open block's sum. Accounts never close.
Proof: docs/proofs/continual-mean.md
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shoal.mechanisms.accounts import Accounts, Holding, RecordKind, Site, WhyNotCounted
from shoal.mechanisms.statistic import COUNT_BITS, COUNT_MASK, Block

GROUPS_BYTES = 4


@dataclass(frozen=True, slots=True)
class Rule:
    """The limits by which a sample of a mean counts."""

    max_contributions: int  # of a user in a group
    groups: int  # of a user
    coordinates: int = 1

    @property
    def account_bytes(self) -> int:
        """The size of an account: 16, or of several coordinates 8 for each and 4 for the number of samples."""
        return 16 if self.coordinates < 2 else 4 + 8 * self.coordinates


class MeanAccounts(Accounts):
    """Accounts by user, and by group where there are groups."""

    def __init__(self, rule: Rule, add: Callable[[int, int], tuple[int, Block | None]], site: Site) -> None:
        kinds = RecordKind(site.tag(b"a"), rule.account_bytes), RecordKind(site.tag(b"g"), GROUPS_BYTES)
        periods = site.periods(None, *kinds)
        super().__init__(periods)
        accounts, self._groups = periods.of(0)
        self.rule, self._is_home = rule, site.is_home
        # Called for every event, so looked up once.
        self._get, self._held, self._changed = accounts.get, accounts.held, accounts.changed
        self._cap = rule.max_contributions
        self._sum, self._send = add, site.send

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        key = user if group is None else len(user).to_bytes(2, "big") + user + group.encode()
        account = self._get(key)
        if account is None:
            out = self._open(user, group)
            if out is not None:
                return out
            account = 0
        elif account & COUNT_MASK >= self._cap:
            return "over_cap"
        account, block = self._sum(account, value)
        self._held[key] = self._changed[key] = account
        if block is not None:
            self._send(group, effective, user, block)
        return None

    def _open(self, user: bytes, group: str | None) -> WhyNotCounted | None:
        """The reason why no account may be opened; None if one was."""
        if not self._is_home(user):
            return "wrong-partition"
        if group is None:
            return None
        count = self._groups.get(user, 0)
        if count >= self.rule.groups:
            return "groups_left_out"
        self._groups.put(user, count + 1)
        return None

    def count(self, user: bytes, group: str | None) -> int | None:
        prefix = b"" if group is None else len(user).to_bytes(2, "big")
        account = self._get(prefix + user + (group or "").encode())
        return None if account is None else account & COUNT_MASK

    def of_user(self, user: bytes) -> Iterator[Holding]:
        has_groups = self._groups.get(user) is not None
        before = len(user).to_bytes(2, "big") + user
        names = sorted(name for name in self._held if name.startswith(before)) if has_groups else [user]
        for name in names:
            account = self._get(name)
            if account is not None:
                place = name[len(before) :].decode() if has_groups else None
                yield Holding(None, place, account & COUNT_MASK, open_sum=account >> COUNT_BITS)
