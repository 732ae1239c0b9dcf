"""Groups that are released at every step, whatever comes in it, until they have been silent for a while and rest.

A group's first step is the first in which something comes. Steps in which it rests hold nothing, publicly.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush, merge
from operator import itemgetter
from typing import Any

from shoal.mechanisms.groups import Closed, EachAlone, Rows
from shoal.mechanisms.statistic import Contribution, Releaser


class StepGroups(EachAlone[Releaser]):
    """Groups that are each computed alone, step after step."""

    def __init__(self, make: Callable[[bytes], Releaser], rest: int) -> None:
        super().__init__(make)
        self._rest = rest  # steps of silence before a group rests
        self._steps: dict[str, tuple[int, int]] = {}  # the last step that was released, and the last with something
        self._due: list[tuple[int, str]] = []  # a heap: the next step of every group that does not rest

    def due(self) -> int | None:
        return self._due[0][0] if self._due else None

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        """Close the groups in which something came, and those that do not rest."""
        for group, contributions in merge(rows, self._silent(tick), key=itemgetter(0)):
            if self._step(group)[0] != tick:  # else something came, and it is due as well
                self._step_to(group, tick, active=bool(contributions))
                yield self._close(group, contributions, tick)

    def _silent(self, tick: int) -> Iterator[tuple[str, list[Contribution]]]:
        while self._due and self._due[0][0] == tick:
            yield heappop(self._due)[1], []

    def _step(self, group: str) -> tuple[int | None, int]:
        return self._steps.get(group, (None, 0))

    def _step_to(self, group: str, tick: int, *, active: bool) -> None:
        last, spoke = self._step(group)
        if last is not None and tick > last + 1:
            releaser: Any = self.releaser(group)
            releaser.skip(tick - last - 1)
        self._steps[group] = tick, tick if active else spoke
        self._expect(group)

    def _expect(self, group: str) -> None:
        tick, spoke = self._steps[group]
        if tick - spoke < self._rest:
            heappush(self._due, (tick + 1, group))

    def head(self, group: str) -> dict[str, Any]:
        """The releaser's head, and the group's last steps."""
        tick, active = self._step(group)
        return super().head(group) | {"tick": tick, "active": active}

    def restore(self, group: str, head: Mapping[str, Any], kept: Iterable[Contribution]) -> None:
        super().restore(group, head, kept)
        if head.get("tick") is not None:
            self._steps[group] = head["tick"], head["active"]
            self._expect(group)
