"""Decayed sums of one key, step by step: one for each side of its statistic, and what of them survives a restart.

A contribution's total is one integer, or a list with one for each of several sums. Where only updates are taken a step
without samples, which is public, is as if it had not been, and the last numbers are released again.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import add
from typing import Any

from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.sides import Sides
from shoal.mechanisms.statistic import Activation, Contribution
from shoal.mechanisms.sums.sums import Summer, text


class LinearSums:
    """Decayed sum of each side of one key: `add` within a step, `close` at its end, `skip` over steps that release
    nothing.
    """

    __slots__ = ("_history", "_of_updates", "_open", "_sides", "released", "summers")

    def __init__(self, sides: Sides, summers: Sequence[Summer], history: int = 0, *, of_updates: bool = False) -> None:
        """`summers`: one for each side, in their order."""
        self._sides, self._history, self._of_updates = sides, history, of_updates
        self.summers = tuple(summers)
        self.released: Sequence[int] = [0] * len(self.summers)  # of each side, with the last step
        self._open: list[int] | None = None  # of the open step, once something came

    @property
    def t(self) -> int:
        """Complete steps: from the first that was ever to be released, or that is fed to the sums as the key's past.

        Silent steps are included unless only updates are taken.
        """
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
        if contribution.number != NEWCOMERS or self._sides.public:  # else it is who finds a key, and no sample
            parts = self._sides.parts(contribution.samples, contribution.total)
            self._open = [*map(add, self._open, parts)] if self._open else list(parts)
        return ()

    def close(self, tick: int | None = None) -> tuple[Activation, ...]:
        if self._open or not self._of_updates:
            came = self._open or repeat(0)
            self.released = [summer.add(total) for summer, total in zip(self.summers, came, strict=False)]
            self._open = None
        return ()

    def skip(self, steps: int) -> None:
        """Pass `steps` steps that publicly hold nothing, and release nothing."""
        for summer in () if self._of_updates else self.summers:
            summer.skip(steps)

    # ---------------------------------------------------------------- state

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """The steps of a window in which anything came, with the number and total of their samples."""
        rows = self._rows([summer.kept for summer in self.summers])
        return {(row.level, row.pseudonym): row for row in rows}

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """The steps added to `kept` and those dropped, since the last call or restore."""
        changes = [summer.take_changes() for summer in self.summers]
        dropped = self._steps([steps for _, steps in changes])
        return self._rows([added for added, _ in changes]), [(0, str(step)) for step in dropped]

    def _rows(self, sums: Sequence[Mapping[int, int]]) -> list[Contribution]:
        """Steps as contributions that are kept; the effective time of each is its number."""
        steps = self._steps(sums)
        wholes = [self._sides.whole(tuple(kept.get(step, 0) for kept in sums)) for step in steps]
        return [Contribution(step, str(step), 0, 0, *whole) for step, whole in zip(steps, wholes, strict=True)]

    def _steps(self, sums: Sequence[Iterable[int]]) -> list[int]:
        """Steps that any side has; the public side's alone if there is one, as a sum of 0 would tell of values."""
        return sorted(sums[0] if self._sides.public else set().union(*sums))

    def head(self) -> list[Any]:
        """Head of each side; of updates also the last numbers."""
        heads: list[Any] = [summer.head() for summer in self.summers]
        return [*heads, list(map(text, self.released))] if self._of_updates else heads

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        if self._of_updates:
            self.released = [int(number, 16) for number in head[-1]]
        parts = {row.effective: self._sides.parts(row.samples, row.total) for row in kept}
        for index, (summer, state) in enumerate(zip(self.summers, head, strict=False)):
            summer.restore(state, {step: held[index] for step, held in parts.items() if held[index]})


def node_text(node: int) -> int | str:
    """A noised sum as JSON has it: an integer, or where that has no 64 bits its decimal text.

    >>> node_text(-5), node_text(1 << 63)
    (-5, '9223372036854775808')
    """
    return node if -(1 << 63) <= node < 1 << 63 else str(node)
