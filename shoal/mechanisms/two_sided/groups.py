"""Keys that are released at every step from the start on, whatever comes in it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, merge
from operator import itemgetter
from typing import Any

from shoal.mechanisms.groups import Closed, EachAlone, Rows
from shoal.mechanisms.statistic import Contribution, Releaser


class DeclaredGroups(EachAlone):
    """Keys that are known from the beginning; each is computed alone, step after step."""

    def __init__(self, make: Callable[[bytes], Releaser], names: Iterable[str], first: int, end: int | None) -> None:
        super().__init__(make)
        self._next = dict.fromkeys(names, first)  # the next step of every key
        self._end = end  # the step after the last one
        self._due = [(first, name) for name in self._next]  # a heap; what differs from `_next` is no longer due
        heapify(self._due)

    def due(self) -> int | None:
        while self._due and self._next[self._due[0][1]] != self._due[0][0]:
            heappop(self._due)
        if not self._due or (self._end is not None and self._due[0][0] >= self._end):
            return None
        return self._due[0][0]

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        """Close all keys, those in which nothing came included."""
        for group, contributions in merge(rows, self._silent(tick), key=itemgetter(0)):
            if self._next[group] == tick:  # else something came, and it is due as well
                self._expect(group, tick + 1)
                yield self._close(group, contributions)

    def _silent(self, tick: int) -> Iterator[tuple[str, list[Contribution]]]:
        while self._due and self._due[0][0] == tick:
            yield heappop(self._due)[1], []

    def _expect(self, group: str, tick: int) -> None:
        self._next[group] = tick
        heappush(self._due, (tick, group))

    def head(self, group: str) -> dict[str, Any]:
        """The releaser's head, and the key's next step."""
        return super().head(group) | {"next": self._next[group]}

    def restore(self, group: str, head: Mapping[str, Any], kept: Iterable[Contribution]) -> None:
        super().restore(group, head, kept)
        self._expect(group, head["next"])
