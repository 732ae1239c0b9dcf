"""One group's sums, step by step, and what of them must survive a restart."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shoal.mechanisms.statistic import Activation, Contribution
from shoal.mechanisms.sums.sums import Summer, text


class StepSums:
    """The number of samples and some sums of them: `add` within a step, `close` at its end, `skip` over steps that
    release nothing.

    A contribution's total is the integer that is summed, or a list with one for each of several sums. Of updates only
    steps with samples are taken, which is public: one without is as if it had not been, and repeats the last numbers.
    """

    __slots__ = ("_of_updates", "_samples", "_totals", "noisy", "public", "summers")

    def __init__(self, counts: Summer, sums: Sequence[Summer], *, of_updates: bool = False) -> None:
        self._of_updates = of_updates
        self.summers = (counts, *sums)
        self.public = 0  # the decayed number of samples, with the last step
        self.noisy = [0] * len(sums)  # each sum's release
        self._samples, self._totals = 0, [0] * len(sums)  # of the open step

    @property
    def t(self) -> int:
        """Complete steps since the group began, silent ones included unless only updates are taken."""
        return self.summers[0].t

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        self._samples += contribution.samples
        for index, total in enumerate(self._split(contribution.total)):
            self._totals[index] += total
        return ()

    def _split(self, total: Any) -> list[int]:
        """The total for each sum; a count has none."""
        totals = total if isinstance(total, list) else [total]
        return totals[: len(self._totals)]

    def close(self, tick: int | None = None) -> tuple[Activation, ...]:
        if self._of_updates and not self._samples:
            return ()
        counts, *sums = self.summers
        self.public = counts.add(self._samples)
        self.noisy = [summer.add(total) for summer, total in zip(sums, self._totals, strict=True)]
        self._samples, self._totals = 0, [0] * len(sums)
        return ()

    def skip(self, steps: int) -> None:
        """Pass `steps` steps that publicly hold nothing, and release nothing."""
        for summer in () if self._of_updates else self.summers:
            summer.skip(steps)

    # ---------------------------------------------------------------- state

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """The steps of a window in which anything came, with the number and sums of their samples."""
        counts, *sums = (summer.kept for summer in self.summers)
        rows = (_row(step, n, [kept.get(step, 0) for kept in sums]) for step, n in counts.items())
        return {(row.level, row.pseudonym): row for row in rows}

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """The steps added to `kept` and those dropped, since the last call or restore.

        Which steps there are goes by their samples: whether a sum is 0 would tell of values.
        """
        (counts, dropped), *sums = (summer.take_changes() for summer in self.summers)
        rows = [_row(step, n, [added.get(step, 0) for added, _ in sums]) for step, n in counts.items()]
        return rows, [(0, str(step)) for step in dropped]

    def head(self) -> list[Any]:
        """[counts, a sum's, ...]; None for the sum of what has none. Of updates also the last numbers."""
        heads: list[Any] = [summer.head() for summer in self.summers]
        if not self.noisy:
            heads.append(None)
        return [*heads, list(map(text, (self.public, *self.noisy)))] if self._of_updates else heads

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        rows = list(kept)
        if self._of_updates:
            self.public, *self.noisy = (int(number, 16) for number in head[-1])
        counts, *sums = self.summers
        counts.restore(head[0], {row.effective: row.samples for row in rows})
        for index, (summer, state) in enumerate(zip(sums, head[1:], strict=False)):
            totals = {row.effective: self._split(row.total)[index] for row in rows}
            summer.restore(state, {step: total for step, total in totals.items() if total})


def _row(step: int, samples: int, totals: list[int]) -> Contribution:
    """A step as a contribution that is kept; its effective time is its number."""
    return Contribution(step, str(step), 0, 0, samples, totals if len(totals) > 1 else sum(totals))
