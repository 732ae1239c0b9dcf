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
from heapq import merge
from operator import itemgetter
from typing import Any

from shoal.mechanisms.groups import Closed, EachAlone, Hidden, Rows
from shoal.mechanisms.linear.candidates import Candidates
from shoal.mechanisms.statistic import OF_KEY, Activation, Contribution, Releaser


class StepGroups(EachAlone[Releaser]):
    """Keys that are each computed alone, step after step: known from the beginning, or from their first sample on."""

    def __init__(
        self,
        make: Callable[[bytes], Releaser],
        names: Iterable[str] = (),
        first: int = 0,
        end: int | None = None,
        rest: int | None = None,
    ) -> None:
        """Keys `names` are released from step `first` to the step before `end`; None: for ever.

        A key without samples in `rest` steps is not released until its next sample; None: every key is always released.
        """
        super().__init__(make)
        self._next = dict.fromkeys(names, first)  # the next step of every key
        self._active: dict[str, int] = {}  # the last step of a key in which something came, if keys rest
        self._end, self._rest = end, rest
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
        """Close the keys in which something came, and those that do not rest."""
        following = tick + 1  # one number for all keys
        for group, contributions in merge(rows, self._silent(tick), key=itemgetter(0)):
            behind = self._next.get(group, tick)
            if behind > tick:  # something came, and it is due as well
                continue
            if behind < tick:
                releaser: Any = self.releaser(group)
                releaser.skip(tick - behind)
            if self._rest is not None and contributions:
                self._active[group] = tick
            self._expect(group, following)
            yield self._close(group, contributions, tick)

    def _silent(self, tick: int) -> Iterator[tuple[str, Sequence[Contribution]]]:
        names = self._due[tick] = deque(sorted(self._due.get(tick, ())))
        while names:
            yield names.popleft(), ()
        del self._due[tick]

    def _expect(self, group: str, tick: int) -> None:
        self._next[group] = tick
        if self._rest is None or tick - self._active[group] <= self._rest:
            self._due.setdefault(tick, deque()).append(group)

    def head(self, group: str) -> dict[str, Any]:
        """The releaser's head, the key's next step, and if keys rest the last step in which something came."""
        schedule = {"next": self._next[group]}
        if self._rest is not None:
            schedule["active"] = self._active[group]
        return super().head(group) | schedule

    def restore(self, group: str, head: Mapping[str, Any], kept: Iterable[Contribution]) -> None:
        super().restore(group, head, kept)
        if self._rest is not None:
            self._active[group] = head["active"]
        self._expect(group, head["next"])


class FoundGroups(StepGroups):
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
