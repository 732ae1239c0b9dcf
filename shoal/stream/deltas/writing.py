"""Writes the end of a partition's log: the records that each transaction adds to it."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from shoal.stream.deltas.record import MOST_BYTES, NO_DIGEST, digest_of, encode, key_of
from shoal.stream.deltas.rolling import Entered, Rolling
from shoal.stream.state_mark import MARK

Entries = list[tuple[bytes, bytes | None]]


class LogEnd:
    """Where the next transaction continues the log. Like the accounts it is ahead of what is committed."""

    def __init__(self, rolling: Rolling, last: int = 0, digest: bytes = NO_DIGEST) -> None:
        self._rolling, self._last, self._digest = rolling, last, digest
        # Of the last transaction:
        self.first = last  # its first record
        self.needs = last  # the first record that a successor needs
        self.cost = 0  # the most bytes that it could have, whatever the values

    @property
    def span(self) -> tuple[int, int, int]:
        """The last transaction's first record, the first record that a successor needs after it, and its cost."""
        return self.first, self.needs, self.cost

    def write(self, mark: dict[str, Any]) -> Entries:
        """The records of one transaction, with its mark as the last."""
        self.first = self._last + 1
        entered = self._rolling.take(self.first)
        self.cost = sum(one.cost for one in entered)
        grouped = list(_grouped(entered))
        self.needs = self._rolling.needed(self.first)
        last = self._last + len(grouped)
        raw_mark = orjson.dumps(mark | {"record": last, "needs": self.needs, "cost": self.cost})
        entries: Entries = []
        for sections in grouped:
            self._last += 1
            of_mark = digest_of(raw_mark) if self._last == last else NO_DIGEST
            self._digest, value = encode(self._last, self._digest, of_mark, sections)
            entries.append((key_of(self._last), value))
        return [*entries, (MARK, raw_mark)]


def _grouped(entered: Iterable[Entered]) -> Iterator[list[bytes]]:
    """The sections of each record; at least one record, and how many does not depend on values."""
    group: list[bytes] = []
    cost = 0
    for section, its_cost in entered:
        if group and cost + its_cost > MOST_BYTES:
            yield group
            group, cost = [], 0
        group.append(section.encode())
        cost += its_cost
    yield group
