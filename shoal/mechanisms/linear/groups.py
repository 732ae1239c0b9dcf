"""Groups that are released at every step, whatever comes in it: until they rest, or from the step that shows them.

Relation values. A group's first step is the first in which something comes. It is released until it has been silent for
a while; then it rests. Steps in which it rests hold nothing, publicly.

Relation add-remove. Declared keys are released from the start on. A key that nobody declared is a candidate
(candidates.py) until it is shown; then it is as if it had been declared. Its first release is that of the step that
shows it, and holds all that came to it since the start, once: what came is the same whether it is counted at once or
later, and its counters begin with that step, or with the past that they weigh.

Order in a step, by names: what came is added, with it the number of units; the key is shown, or not; it is released.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush, merge
from operator import itemgetter
from typing import Any

from shoal.mechanisms.groups import Closed, EachAlone, Hidden, Rows
from shoal.mechanisms.linear.candidates import Candidates
from shoal.mechanisms.statistic import OF_KEY, Activation, Contribution, Releaser


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


class DeclaredGroups(EachAlone[Releaser]):
    """Keys that are known from the beginning; each is computed alone, step after step."""

    def __init__(self, make: Callable[[bytes], Releaser], names: Iterable[str], first: int, end: int | None) -> None:
        super().__init__(make)
        self._next = dict.fromkeys(names, first)  # the next step of every key
        self._end = end  # the step after the last one
        # By step, in the order of names once it is closed; what differs from `_next` is no longer due.
        self._due = {first: deque(self._next)} if self._next else {}

    def due(self) -> int | None:
        while self._due:
            tick = min(self._due)
            names = self._due[tick]
            while names and self._next[names[0]] != tick:
                names.popleft()
            if names:
                return None if self._end is not None and tick >= self._end else tick
            del self._due[tick]
        return None

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        """Close all keys, those in which nothing came included."""
        following = tick + 1  # one number for all keys
        for group, contributions in merge(rows, self._silent(tick), key=itemgetter(0)):
            if self._next[group] == tick:  # else something came, and it is due as well
                self._expect(group, following)
                yield self._close(group, contributions, tick)

    def _silent(self, tick: int) -> Iterator[tuple[str, Sequence[Contribution]]]:
        names = self._due[tick] = deque(sorted(self._due.get(tick, ())))
        while names:
            yield names.popleft(), ()
        del self._due[tick]

    def _expect(self, group: str, tick: int) -> None:
        self._next[group] = tick
        self._due.setdefault(tick, deque()).append(group)

    def head(self, group: str) -> dict[str, Any]:
        """The releaser's head, and the key's next step."""
        return super().head(group) | {"next": self._next[group]}

    def restore(self, group: str, head: Mapping[str, Any], kept: Iterable[Contribution]) -> None:
        super().restore(group, head, kept)
        self._expect(group, head["next"])


class FoundGroups(DeclaredGroups):
    """Keys that nobody declared."""

    def __init__(
        self, make: Callable[[bytes], Any], candidates: Candidates, epsilon: Fraction, first: int, end: int | None
    ) -> None:
        """`epsilon` is what finding keys costs."""
        super().__init__(make, (), first, end)
        self._candidates, self._epsilon, self._first = candidates, epsilon, first

    def due(self) -> int | None:
        shown, found = super().due(), self._candidates.due()
        if found is None or (self._end is not None and found >= self._end):
            return shown
        return found if shown is None else min(shown, found)

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        """Close all keys that are shown, and show those whose step it is."""
        yield from self._candidates.renew(tick)
        following = tick + 1
        silent = ((name, ()) for name in self._candidates.waking(tick))
        for group, contributions in merge(rows, self._silent(tick), silent, key=itemgetter(0)):
            if group not in self._next:
                yield from self._consider(tick, group, contributions)
            elif self._next[group] == tick:
                self._expect(group, following)
                yield self._close(group, contributions, tick)

    def _consider(self, tick: int, group: str, contributions: Sequence[Contribution]) -> Iterator[Closed]:
        """Show a candidate if its step has come."""
        if contributions:
            self._candidates.add(tick, group, contributions)
        if self._candidates.is_shown(group, tick):
            releaser: Any = self.releaser(group)
            releaser.begin(tick - self._first, self._candidates.show(group, tick))
            self._expect(group, tick + 1)
            shown = Activation(OF_KEY, None, None, self._epsilon, "shown")
            closed = self._close(group, (), tick)
            yield closed._replace(activations=[shown, *closed.activations])  # its clip range may be chosen at once
        elif contributions:
            yield Closed(group, None, is_published=False, is_hidden=True)

    def hidden_changes(self) -> Iterable[Hidden]:
        return self._candidates.changes()

    def restore_hidden(self, group: str, tick: int | None, value: Any) -> None:
        self._candidates.restore(group, tick, value)
