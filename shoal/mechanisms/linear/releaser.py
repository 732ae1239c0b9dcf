"""One key's counters, step by step, and what of them must survive a restart."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import add
from typing import Any

from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.sides import Sides
from shoal.mechanisms.statistic import Activation, Contribution
from shoal.mechanisms.sums.sums import Summer


class SideSums:
    """The decayed sum of each side, with noise of its own."""

    __slots__ = ("_history", "_open", "_sides", "noisy", "summers")

    def __init__(self, sides: Sides, summers: Sequence[Summer], history: int) -> None:
        self.summers = tuple(summers)
        self.noisy: tuple[int, ...] = ()  # each side's release
        self._sides, self._history = sides, history
        self._open: list[int] | None = None  # of the open step, once something came

    @property
    def t(self) -> int:
        """Complete steps: from the first that was ever to be released, or that is fed to it as its past."""
        return self.summers[0].t

    def begin(self, steps: int, past: Iterable[Contribution]) -> None:
        """Take what came in the `steps` steps before the first that is released; call it before all others, or never.

        The effective time of a contribution of the past is its age: 1 in the last step before. How many steps are taken
        one by one depends on `steps` alone, which is public; contributions older than `history` do not count. With a
        history of 0 all count as if they came in the first step.
        """
        ages: dict[int, list[Contribution]] = {}
        for contribution in past:
            ages.setdefault(contribution.effective if self._history else 0, []).append(contribution)
        for age in range(min(steps, self._history), -1, -1):
            for contribution in ages.get(age, ()):
                self.add(contribution)
            if age:
                self.close()

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        if contribution.number != NEWCOMERS:  # who finds a key, and is no sample
            parts = self._sides.parts(contribution.samples, contribution.total)
            self._open = [*map(add, self._open, parts)] if self._open else list(parts)
        return ()

    def close(self, tick: int | None = None) -> tuple[Activation, ...]:
        came = self._open or repeat(0)
        self.noisy = tuple(summer.add(total) for summer, total in zip(self.summers, came, strict=False))
        self._open = None
        return ()

    # ---------------------------------------------------------------- state

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """The steps of a window in which anything came."""
        rows = self._rows([summer.kept for summer in self.summers])
        return {(row.level, row.pseudonym): row for row in rows}

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """The steps added to `kept` and those dropped, since the last call or restore."""
        changes = [summer.take_changes() for summer in self.summers]
        dropped = sorted({step for _, steps in changes for step in steps})
        return self._rows([added for added, _ in changes]), [(0, str(step)) for step in dropped]

    def _rows(self, sums: Sequence[Mapping[int, int]]) -> list[Contribution]:
        """Steps as contributions that are kept; the effective time of each is its number."""
        steps = sorted(set().union(*sums))
        wholes = [self._sides.whole(tuple(kept.get(step, 0) for kept in sums)) for step in steps]
        return [Contribution(step, str(step), 0, 0, *whole) for step, whole in zip(steps, wholes, strict=True)]

    def head(self) -> list[Any]:
        """The head of each side."""
        return [summer.head() for summer in self.summers]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        parts = {row.effective: self._sides.parts(row.samples, row.total) for row in kept}
        for index, (summer, state) in enumerate(zip(self.summers, head, strict=True)):
            summer.restore(state, {step: held[index] for step, held in parts.items() if held[index]})
