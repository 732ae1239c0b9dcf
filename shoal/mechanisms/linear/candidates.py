"""Keys that nobody declared and that are not shown yet: how many units have come to each, and when it is shown.

A candidate's n is the weight of its newcomers, and never falls. When n changes, and when the threshold does, one draw
says at which tick the key is shown if nothing changes before. So a silent candidate needs no work: no tick looks at it
before it is due, but for the ticks at which the threshold doubles its horizon, which look at all.

Draws        rho under the name (key of the metric, key, "rho"), a wait under (..., "cross", tick of the change)
State        a record is written when something comes, never at a silent tick: weight, tick of its last change, tick at
             which it is shown if that is known, and what came: in all, or tick by tick for sums that forget; how often
             it was written, so that an older one is known where the last one was lost. That of a tick is written once
Order        what came in a tick is one change, however it was cut into messages: the draw before it is void
Memory       candidates stay for ever: to drop one by what others did, or by age, would make n fall
Proof        docs/proofs/first-crossing.md
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

from shoal.mechanisms.groups import Hidden
from shoal.mechanisms.linear.came import NEWCOMERS, NOTHING, Came, Form, Whole
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.statistic import Contribution

AT_ONCE = 1000  # candidates that are looked at before the loop is given back
WORDS = 4  # of a draw, which reads on where it needs more
Words = Callable[..., Iterator[int]]  # group, and the name of one of its draws -> the draw's words


def keyed_words(key: bytes) -> Words:
    """The words of each draw of a metric with this key."""
    return lambda group, *name: Bits(derive(key, group.encode(), *name), WORDS).draw(0)


class Candidate:
    """One key; what came to it stands elsewhere where ticks are kept apart."""

    __slots__ = ("changed", "samples", "total", "weight", "writings")

    def __init__(self) -> None:
        self.weight = 0  # n, in parts of a unit's
        self.changed = 0  # the tick of the last newcomer
        self.samples = 0  # in all
        self.total: Any = None
        self.writings = 0  # how often its record was written


class Candidates:
    """All candidates of one metric in one contributions partition."""

    def __init__(
        self, selection: FirstCrossing, words: Words, first: int, history: int, form: Form | None = None
    ) -> None:
        """`first`: the number of the first tick; `history`: ticks that are kept apart, 0 if all may be one; `form`: how
        what comes is kept.
        """
        self._selection, self._words, self._first, self._history = selection, words, first, history
        self._form: Form = form or Whole()
        self._held: dict[str, Candidate] = {}
        self._ticks: dict[str, dict[int, Came]] = {}  # what came, by tick, where ticks are kept apart
        self._waking: dict[str, int] = {}  # the ticks at which they are shown, as far as that is known
        self._due: list[tuple[int, str]] = []  # a heap; what differs from `_waking` is void
        self._renewal = 0  # the next tick at which the threshold changes, while there are candidates
        self._changed: dict[str, dict[int | None, bool]] = {}  # names of records, and whether there were none
        self._dropped: list[Hidden] = []

    def due(self) -> int | None:
        """The next tick at which one is shown, or at which all are drawn anew."""
        self._forget_void()
        ticks = [tick for tick, _ in self._due[:1]]
        return min([self._renewal, *ticks]) if self._held else None

    def _forget_void(self) -> None:
        while self._due and self._waking.get(self._due[0][1]) != self._due[0][0]:
            heappop(self._due)

    def renew(self, tick: int) -> Iterator[None]:
        """Draw anew for all that had no newcomer since, if the threshold changes at this tick."""
        if not self._held or tick != self._renewal:
            return
        for number, (group, candidate) in enumerate(self._held.items()):
            if candidate.changed < tick:
                self._draw(group, candidate, tick)
            if number % AT_ONCE == AT_ONCE - 1:
                yield
        self._renewal = self._next_change(tick)

    def waking(self, tick: int) -> Iterator[str]:
        """The names of those that are shown at this tick, in their order, if nothing comes to them."""
        while self._due and self._due[0][0] == tick:
            yield heappop(self._due)[1]
            self._forget_void()

    def is_shown(self, group: str, tick: int) -> bool:
        return self._waking.get(group) == tick

    def add(self, tick: int, group: str, contributions: Iterable[Contribution]) -> None:
        """Take what came to a candidate in a tick, all of it."""
        if not self._held:
            self._renewal = self._next_change(tick)
        candidate = self._held.get(group)
        if candidate is None:
            candidate = self._held[group] = Candidate()
        weight = 0
        for contribution in contributions:
            if contribution.number == NEWCOMERS:
                weight += weight_of(contribution.total)
            else:
                self._came(group, candidate, tick, contribution)
        if weight:
            candidate.weight += weight
            candidate.changed = tick
            self._draw(group, candidate, tick)
        self._note(group, None, is_new=not candidate.writings)

    def _came(self, group: str, candidate: Candidate, tick: int, contribution: Contribution) -> None:
        plus, came = self._form.plus, self._form.of(contribution)
        if not self._history or self._form.is_ageless(contribution):
            candidate.samples, candidate.total = plus((candidate.samples, candidate.total), came)
            return
        ticks = self._ticks.setdefault(group, {})
        for old in [old for old in ticks if old < tick - self._history]:
            del ticks[old]
            self._drop(group, old)
        self._note(group, tick, is_new=tick not in ticks)
        ticks[tick] = plus(ticks.get(tick, NOTHING), came)

    def _draw(self, group: str, candidate: Candidate, tick: int) -> None:
        """Draw anew when the key is shown; what was drawn before is void, even if it is this tick."""
        self._waking.pop(group, None)
        if not candidate.weight:
            return
        number = tick - self._first + 1
        shown = self._selection.showing(
            number, candidate.weight, lambda: self._words(group, "rho"), self._words(group, "cross", number)
        )
        if shown is not None:
            self._wake(group, shown + self._first - 1)

    def _wake(self, group: str, tick: int) -> None:
        self._waking[group] = tick
        heappush(self._due, (tick, group))

    def _next_change(self, tick: int) -> int:
        return self._selection.next_change(tick - self._first + 1) + self._first - 1

    def show(self, group: str, tick: int) -> list[Contribution]:
        """What came to a key, which is a candidate no more; the effective times are ages in ticks."""
        candidate = self._held.pop(group)
        self._waking.pop(group, None)
        self._drop(group, None, candidate.writings)
        shown = list(self._form.contributions(0, (candidate.samples, candidate.total)))
        for then, held in self._ticks.pop(group, {}).items():
            self._drop(group, then)
            shown += self._form.contributions(tick - then, held)
        return shown

    # ---------------------------------------------------------------- state

    def _note(self, group: str, tick: int | None, *, is_new: bool) -> None:
        self._changed.setdefault(group, {}).setdefault(tick, is_new)

    def _drop(self, group: str, tick: int | None, writings: int = 1) -> None:
        """The record of a tick, or of a candidate, is to be dropped, if it was ever written."""
        noted = self._changed.get(group, {})
        if not noted.pop(tick, False):
            self._dropped.append(Hidden(group, tick, None, writings))

    def changes(self) -> Iterator[Hidden]:
        """The records that changed since the last call."""
        dropped, self._dropped = self._dropped, []
        changed, self._changed = self._changed, {}
        yield from dropped
        for group, records in changed.items():
            for tick in records:
                yield self._record(group) if tick is None else Hidden(group, tick, list(self._ticks[group][tick]))

    def _record(self, group: str) -> Hidden:
        """The record of a candidate, which is being written."""
        held = self._held[group]
        before, held.writings = held.writings, held.writings + 1
        value = [held.weight, held.changed, self._waking.get(group, 0), held.samples, held.total, held.writings]
        return Hidden(group, None, value, before)

    def restore(self, group: str, tick: int | None, value: Any) -> None:
        """Take over a record."""
        if tick is not None:
            self._ticks.setdefault(group, {})[tick] = (value[0], value[1])
            return
        candidate = self._held[group] = Candidate()
        candidate.weight, candidate.changed, waking, candidate.samples, candidate.total, candidate.writings = value
        change = self._next_change(max(candidate.changed, self._first))
        self._renewal = min(self._renewal or change, change)
        if waking:
            self._wake(group, waking)


def weight_of(total: Any) -> int:
    """The weight of newcomers; where samples are packed it was unpacked like them, and is the first number."""
    return int(total[0] if isinstance(total, list) else total)
