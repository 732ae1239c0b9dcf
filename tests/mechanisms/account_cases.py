"""Accounts without a stream around them: what they send, and a changelog that they are restored from."""

from collections.abc import Callable
from typing import NamedTuple

from shoal.mechanisms.accounts import Accounts, Changes, Site
from shoal.mechanisms.statistic import Block

ALL = 1 << 60  # more tombstones than there are


class Sent(NamedTuple):
    group: str | None
    effective: int
    user: bytes
    block: Block


class Ledger:
    """Accounts in one partition, their changelog, and what they sent; a crash loses what was not committed."""

    def __init__(self, make: Callable[[Site], Accounts], *, durable: bool = True, away: bytes = b"stranger") -> None:
        self.sent: list[Sent] = []
        self.changelog: dict[bytes, bytes] = {}
        self._make = make
        self._site = Site("m/1", self._send, lambda user: user != away, durable)
        self.accounts = make(self._site)

    def _send(self, group: str | None, effective: int, user: bytes, block: Block) -> None:
        self.sent.append(Sent(group, effective, user, block))

    def commit(self, promise: int | None = None, most: int = ALL) -> Changes:
        changes = [*self.accounts.changes(), *self.accounts.close(promise, most)]
        for name, value in changes:
            if value is None:
                assert name in self.changelog, "a tombstone for what was never written"
                del self.changelog[name]
            else:
                self.changelog[name] = value
        return changes

    def crash(self) -> None:
        self.accounts = self._make(self._site)
        for tag, take in self.accounts.takers().items():
            for name, value in self.changelog.items():
                if name.startswith(tag):
                    take(name[len(tag) :], value)
        self.accounts.restored()
