"""Accounts without a stream around them: what they send, and a changelog that they are restored from."""

from collections.abc import Callable
from typing import NamedTuple

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.statistic import Block
from shoal.mechanisms.stores.packed import Logged
from tests.support.entries import held_in


class Sent(NamedTuple):
    group: str | None
    effective: int
    user: bytes
    block: Block


class Ledger:
    """Accounts in one partition, their changelog, and what they sent; a crash loses what was not committed."""

    def __init__(self, make: Callable[[Site], Accounts], *, durable: bool = True, away: bytes = b"stranger") -> None:
        self.sent: list[Sent] = []
        self.changelog: dict[bytes, bytes] = {}  # by tag, period and name
        self._log: list[tuple[bytes, int, bytes | None]] = []  # all that changed
        self._make = make
        self._site = Site("m/1", self._send, lambda user: user != away, durable)
        self.accounts = make(self._site)

    def _send(self, group: str | None, effective: int, user: bytes, block: Block) -> None:
        self.sent.append(Sent(group, effective, user, block))

    def commit(self, promise: int | None = None) -> list[bytes]:
        """Write what changed, and forget what is over; the names that changed or are gone."""
        self.accounts.close(promise)
        names: list[bytes] = []
        for logged in self.accounts.logged:
            for period in logged.cleared():
                before = _before(logged, period)
                for name in [name for name in self.changelog if name.startswith(before)]:
                    del self.changelog[name]
                    names.append(name)
                self._log.append((logged.tag, period, None))
            for packed in logged.changed():
                before = _before(logged, packed.period)
                found = {before + name: held for name, held in held_in(packed.entries, logged.width)}
                self.changelog |= found
                names += found
                self._log.append((logged.tag, packed.period, packed.entries))
        return names

    def crash(self) -> None:
        """Make it anew of all that there was, one transaction after the other."""
        self.accounts = self._make(self._site)
        by_tag = {logged.tag: logged for logged in self.accounts.logged}
        for number, (tag, period, entries) in enumerate(self._log, 1):
            if entries is None:
                by_tag[tag].clear(period)
            else:
                by_tag[tag].begin(number)
                by_tag[tag].take(period, entries, in_order=False)
        for logged in self.accounts.logged:
            for period in logged.periods():
                logged.restored(period)


def _before(logged: Logged, period: int) -> bytes:
    return logged.tag + period.to_bytes(8, "big", signed=True)
