"""Contributions of whole arrays of events: what a bounder makes of them, without a call per event.

When a unit's blocks close is a function of how many samples it has, so one unit's walk through the bounder says it for
all; sums over samples are differences of running sums. A block's part is asked for once per distinct value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.inputs import Input, Ints
from shoal.mechanisms.statistic import Block, Bounder, Contribution

NONE = -1  # no part


class Closing(NamedTuple):
    """A block that every unit with so many samples closes."""

    begin: int  # samples before those that it sums
    end: int  # samples when it closes
    account: int  # before its last sample, if all values were 0
    times: int  # its total is the sum times this, and if that is not 1 the last value again
    block: Block

    def total(self, running: Ints, start: Ints) -> Ints:
        """For units whose samples start there in the running sums."""
        total: Ints = (running[start + self.end] - running[start + self.begin]) * self.times
        return total + (running[start + self.end] - running[start + self.end - 1] if self.times > 1 else 0)


@dataclass(frozen=True)
class Contributions:
    """What all units send, in the order of the events that close it."""

    at: NDArray[np.int32]  # index of that event
    user: NDArray[np.int32]
    number: NDArray[np.int32]
    level: NDArray[np.int32]
    samples: NDArray[np.int32]
    total: Ints
    part: NDArray[np.int32]
    merges: bool

    @property
    def count(self) -> int:
        """How many."""
        return len(self.at)

    def rows(self, chosen: slice, time: Ints, names: Sequence[str]) -> Iterator[Contribution]:
        """As the releaser gets them at `every = "contribution"`."""
        yield from map(
            Contribution,
            time[self.at[chosen]].tolist(),
            map(names.__getitem__, self.user[chosen].tolist()),
            *(column[chosen].tolist() for column in (self.number, self.level, self.samples, self.total)),
        )


def closings(bounder: Bounder) -> list[Closing]:
    """The blocks of a unit that reaches the cap."""
    found: list[Closing] = []
    account = ones = 0
    for end in range(1, bounder.max_contributions + 1):
        before = account
        account, block = bounder.add(before, 0)
        ones, of_ones = bounder.add(ones, 1)
        last = bounder.add(before, 1)[1]
        if block is not None and of_ones is not None and last is not None:
            again = int(last.total > 1)
            times = last.total - again
            found.append(Closing(end - (of_ones.total - again) // times, end, before, times, block))
    return found


def bound(bounder: Bounder, data: Input) -> Contributions:
    """All contributions of an input."""
    order = np.argsort(data.user, kind="stable").astype(np.int32)
    counts = np.bincount(data.user)
    first = np.cumsum(counts) - counts
    running = np.concatenate(([0], np.cumsum(data.value[order], dtype=np.int64)))
    at, user, totals, which = [], [], [], []
    found = closings(bounder)
    for index, closing in enumerate(found):
        reached = np.flatnonzero(counts >= closing.end)
        if not reached.size:
            break
        start = first[reached]
        at.append(order[start + closing.end - 1])
        user.append(reached.astype(np.int32))
        totals.append(closing.total(running, start))
        which.append(np.full(len(reached), index, dtype=np.int32))
    closed = np.concatenate(at)
    arrival = np.argsort(closed)
    place, total = np.concatenate(which)[arrival], np.concatenate(totals)[arrival]
    columns = np.array([[c.block.number, c.block.level, c.block.samples] for c in found], dtype=np.int32)
    level = columns[place, 1]
    return Contributions(
        at=closed[arrival],
        user=np.concatenate(user)[arrival],
        number=columns[place, 0],
        level=level,
        samples=columns[place, 2],
        total=total,
        part=_parts(bounder, found, level, total) if bounder.merges else np.full(len(total), NONE, dtype=np.int32),
        merges=bounder.merges,
    )


def _parts(bounder: Bounder, found: list[Closing], level: NDArray[np.int32], total: Ints) -> NDArray[np.int32]:
    """By level and value; only blocks of one sample have a part."""
    parts = np.full(len(total), NONE, dtype=np.int32)
    for closing in {closing.block.level: closing for closing in found}.values():
        if closing.block.part is None:
            continue
        if closing.block.samples != 1:
            raise ValueError("a block of several samples has a part, which one value does not tell")
        chosen = np.flatnonzero(level == closing.block.level)
        values = total[chosen]
        table = np.zeros(int(values.max(initial=0)) + 1, dtype=np.int32)
        table[values] = 1
        for value in np.flatnonzero(table).tolist():
            block = bounder.add(closing.account, value)[1]
            table[value] = NONE if block is None or block.part is None else block.part
        parts[chosen] = table[values]
    return parts


def ticks(
    found: Contributions, time: Ints, every: int, names: Sequence[str]
) -> Iterator[tuple[int, list[Contribution]]]:
    """(tick, its contributions in canonical order), for each tick that has some.

    Blocks with a part are summed over units, as contributions.py and tick_queue.py do.
    """
    effective = time[found.at]
    alone = found.part == NONE if found.merges else np.ones(found.count, dtype=np.bool_)
    rows = [
        Contribution(*row)
        for row in zip(
            effective[alone].tolist(),
            map(names.__getitem__, found.user[alone].tolist()),
            *(column[alone].tolist() for column in (found.number, found.level, found.samples, found.total)),
            strict=True,
        )
    ]
    if not alone.all():
        rows += _merged(found, effective // every, ~alone, every)
    rows.sort(key=lambda row: row[:4])
    numbers = np.array([row.effective for row in rows], dtype=np.int64) // every
    borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(rows)]
    for begin, end in pairwise(borders):
        yield int(numbers[begin]), rows[begin:end]


def _merged(found: Contributions, tick: Ints, chosen: NDArray[np.bool_], every: int) -> Iterator[Contribution]:
    """One contribution per tick, level and part."""
    part, level = found.part[chosen].astype(np.int64), found.level[chosen].astype(np.int64)
    parts, levels = int(part.max()) + 1, int(level.max()) + 1
    keys, place = np.unique((tick[chosen] * levels + level) * parts + part, return_inverse=True)
    samples = np.bincount(place, weights=found.samples[chosen])
    total = np.bincount(place, weights=found.total[chosen])
    if total.max() >= 2**53:
        raise ValueError("sums are too large to be exact in floats")
    for key, count, amount in zip(
        keys.tolist(), samples.astype(np.int64).tolist(), total.astype(np.int64).tolist(), strict=True
    ):
        rest, number = divmod(key, parts)
        at, height = divmod(rest, levels)
        yield Contribution(at * every, "", number, height, count, amount)
