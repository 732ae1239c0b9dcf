"""The end of a partition's log: what each transaction adds to it."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from shoal.stream.deltas.record import MOST_BYTES, NO_DIGEST, digest_of, encode, key_of
from shoal.stream.deltas.rolling import Entered, Rolling
from shoal.stream.state_mark import MARK

Entries = list[tuple[bytes, bytes | None]]


class LogEnd:
    """Where the next transaction goes on; in memory it is ahead of what is committed, as the accounts are."""

    def __init__(self, rolling: Rolling, last: int = 0, digest: bytes = NO_DIGEST) -> None:
        self._rolling, self._last, self._digest = rolling, last, digest
        self.needs = last  # of the last transaction: the first record that a successor needs
        self.first = last  # of the last transaction
        self.cost = 0  # of the last transaction, whatever the values: how large a part of the log it counts as

    @property
    def span(self) -> tuple[int, int, int]:
        """Of the last transaction: its first record, the first that a successor needs, and its cost."""
        return self.first, self.needs, self.cost

    def write(self, mark: dict[str, Any]) -> Entries:
        """The records of one transaction, its mark last."""
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
    """Sections by records, of which there is at least one; their number does not depend on values."""
    group: list[bytes] = []
    cost = 0
    for section, its_cost in entered:
        if group and cost + its_cost > MOST_BYTES:
            yield group
            group, cost = [], 0
        group.append(section.encode())
        cost += its_cost
    yield group
