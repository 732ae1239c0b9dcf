"""One key's releases where its clip range is chosen in private: nothing of its values before, then its counters.

Until the range is chosen what came is kept, as a candidate keeps it, and each release says that there is no value and
no count yet. At the tick of the choice the key's counters begin, once and for ever, with all that came as their past:
no counter has been released before, so that a unit's samples enter counters of one width in one step each.

Draws        rho under the name (key of the metric, key, "clip-rho"), a tick's under (..., "clip-cross", number of the
             release), the choice under (..., "clip")
State        until the choice the head, and for sums that forget a record for each tick; then the counters'
Proof        docs/proofs/clip-range.md
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

from shoal.mechanisms.linear.came import NEWCOMERS, NOTHING, NUMBERS_AT, SAMPLES_AT, ByPart, Came
from shoal.mechanisms.selection.upper_end import UpperEnd
from shoal.mechanisms.statistic import OF_CLIP, Activation, Contribution, Estimate

NOT_YET = -1  # in the head, for a rung
WAITS = 1  # the level of what is kept until the choice; what counters keep has level 0
FORM = ByPart()


class Clipping(Protocol):
    """The statistic, as far as a key that chooses its range needs it."""

    @property
    def history(self) -> int: ...  # ticks that are kept apart; 0: all may be one
    def upper_end(self, rung: int) -> Fraction: ...  # of the range under a rung
    def counters(self, rung: int, key: bytes, group: bytes) -> Any: ...  # LinearSums that tell an estimate
    def without_counters(self) -> Estimate: ...  # what is released before the choice


class ClippedReleaser:
    """One key's releases."""

    __slots__ = (
        "_before", "_came", "_changed", "_clip", "_group", "_key", "_numbers", "_rho", "_rung", "_statistic", "_t",
        "_words", "_written", "counters",
    )  # fmt: skip

    def __init__(
        self, statistic: Clipping, clip: UpperEnd, words: Callable[..., Iterator[int]], key: bytes, group: bytes
    ) -> None:
        """`words`: the words of this key's draws, by their names."""
        self._statistic, self._clip, self._words, self._key, self._group = statistic, clip, words, key, group
        self._before = 0  # ticks before the first release
        self._t = 0  # releases without counters
        self._numbers = [0] * len(clip.ladder.rungs)  # units at each rung
        self._came: dict[int, Came] = {}  # by tick, which is the number of its release: 0 and below before the first
        self._changed: set[int] = set()  # ticks that the changelog lacks
        self._written: set[int] = set()  # those that it has
        self._rho: int | None = None  # drawn when it is needed
        self._rung = NOT_YET
        self.counters: Any = None  # those of its one rung, once it is chosen

    def begin(self, steps: int, past: Iterable[Contribution]) -> None:
        """Take what came in the `steps` ticks before the first release; effective times are ages in ticks."""
        self._before = steps
        for contribution in past:
            self._keep(1 - contribution.effective, contribution)

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        if self.counters is None:
            self._keep(self._t + 1, contribution)
        elif SAMPLES_AT <= contribution.number < NUMBERS_AT:
            self.counters.add(self._under_rung(0, contribution))
        return ()

    def _keep(self, tick: int, contribution: Contribution) -> None:
        if contribution.number >= NUMBERS_AT:
            self._numbers[contribution.number - NUMBERS_AT] += contribution.samples
        elif contribution.number != NEWCOMERS:
            tick = tick if self._statistic.history else 0
            self._came[tick] = FORM.plus(self._came.get(tick, NOTHING), FORM.of(contribution))
            self._changed.add(tick)

    def close(self, tick: int | None = None) -> tuple[Activation, ...]:
        if self.counters is not None:
            return tuple(self.counters.close())
        self._t += 1
        if self._rho is None:
            self._rho = self._clip.rho(self._words("clip-rho"))
        if not self._clip.is_due(sum(self._numbers), self._rho, self._words("clip-cross", self._t)):
            self._forget()
            return ()
        self._rung = self._clip.choose(self._numbers, self._words("clip"))
        self.counters = self._new_counters()
        self.counters.begin(self._before + self._t - 1, list(self._past()))
        self.counters.close()
        self._came, self._changed = {}, set()
        return (Activation(OF_CLIP, float(self._statistic.upper_end(self._rung)), None, self._clip.cost, "clip"),)

    def _forget(self) -> None:
        """Drop ticks that weigh nothing any more, if their sums forget."""
        history = self._statistic.history
        for tick in [tick for tick in self._came if history and tick <= self._t - history]:
            del self._came[tick]
            self._changed.discard(tick)

    def _new_counters(self) -> Any:
        return self._statistic.counters(self._rung, self._key, self._group)

    def _past(self) -> Iterator[Contribution]:
        for tick, came in self._came.items():
            for contribution in FORM.contributions(self._t - tick, came):
                yield self._under_rung(contribution.effective, contribution)

    def _under_rung(self, age: int, contribution: Contribution) -> Contribution:
        """Samples of one rung as those of the chosen one: what lies above it counts with it."""
        samples, total = contribution.samples, contribution.total
        if contribution.number - SAMPLES_AT < self._rung:
            total = samples * self._clip.ladder.rungs[self._rung]
        return Contribution(age, "", 0, 0, samples, total)

    def estimate(self) -> Estimate:
        """The release of the last complete tick."""
        if self.counters is None:
            return self._statistic.without_counters()
        made: Estimate = self.counters.estimate()
        return replace(made, details={**made.details, "clip": float(self._statistic.upper_end(self._rung))})

    # ---------------------------------------------------------------- state

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """The ticks in which anything came, as far as they count, or what the counters keep."""
        if self.counters is not None:
            kept: Mapping[tuple[int, str], Contribution] = self.counters.kept
            return kept
        return {(row.level, row.pseudonym): row for row in map(self._row, self._ticks())}

    def _ticks(self) -> list[int]:
        """Those that have records of their own."""
        return list(self._came) if self._statistic.history else []

    def _row(self, tick: int) -> Contribution:
        samples, total = self._came[tick]
        return Contribution(tick, str(tick), 0, WAITS, samples, total)

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """The rows added to `kept` and those dropped, since the last call or restore."""
        ticks = self._ticks()
        dropped = [(WAITS, str(tick)) for tick in sorted(self._written.difference(ticks))]
        added = [self._row(tick) for tick in ticks if tick in self._changed]
        self._written, self._changed = set(ticks), set()
        if self.counters is None:
            return added, dropped
        of_counters, gone = self.counters.take_changes()
        return of_counters, dropped + gone

    def head(self) -> list[Any]:
        """The rung and the counters' head; before the choice what it is to be made from, and what has no tick."""
        if self.counters is not None:
            return [self._rung, self.counters.head()]
        came = [] if self._statistic.history else list(self._came.get(0, NOTHING))
        return [NOT_YET, self._before, self._t, self._numbers, came]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        self._rung = head[0]
        if self._rung != NOT_YET:
            self.counters = self._new_counters()
            self.counters.restore(head[1], kept)
            return
        _, self._before, self._t, self._numbers, came = head
        self._came = {row.effective: (row.samples, row.total) for row in kept}
        self._written = set(self._came)
        if came:
            self._came[0] = (came[0], came[1])
