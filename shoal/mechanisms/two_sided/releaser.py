"""One key's two decayed sums, step by step, and what of them must survive a restart."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shoal.mechanisms.statistic import Activation, Contribution
from shoal.mechanisms.sums.sums import Summer


class TwoSums:
    """The sum of what samples are, and of what they leave of the grid; each with noise of its own."""

    __slots__ = ("_open", "_steps", "noisy", "summers")

    def __init__(self, summers: Sequence[Summer], steps: int) -> None:
        self.summers = tuple(summers)
        self.noisy = [0] * len(self.summers)
        self._steps = steps
        self._open = [0] * len(self.summers)

    @property
    def t(self) -> int:
        return self.summers[0].t

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        self._open[0] += contribution.total
        self._open[1] += self._steps * contribution.samples - contribution.total
        return ()

    def close(self) -> tuple[Activation, ...]:
        self.noisy = [summer.add(total) for summer, total in zip(self.summers, self._open, strict=True)]
        self._open = [0] * len(self.summers)
        return ()

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        rows = _rows([summer.kept for summer in self.summers])
        return {(row.level, row.pseudonym): row for row in rows}

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        changes = [summer.take_changes() for summer in self.summers]
        dropped = sorted({step for _, steps in changes for step in steps})
        return _rows([added for added, _ in changes]), [(0, str(step)) for step in dropped]

    def head(self) -> list[Any]:
        return [summer.head() for summer in self.summers]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        rows = list(kept)
        for index, (summer, state) in enumerate(zip(self.summers, head, strict=True)):
            totals = {row.effective: row.total[index] for row in rows}
            summer.restore(state, {step: total for step, total in totals.items() if total})


def _rows(totals: Sequence[Mapping[int, int]]) -> list[Contribution]:
    """Steps as contributions that are kept; the effective time of each is its number."""
    steps = sorted(set().union(*totals))
    return [Contribution(step, str(step), 0, 0, 0, [kept.get(step, 0) for kept in totals]) for step in steps]
