"""The loop that leaves users out of cells, quick enough for a million users' places in cells.

Guarantee    none of its own: it sees numbers of samples, which are pattern (allotment.py)
Exactness    integers, but for errors; these are compared after rounding
Speed        the error of a cell without some user depends on that user's number of samples in it alone, so it is kept
             for each such number ("kind"); as long as the most of one user stays the same, it only grows when others
             leave; so an old one is a lower bound, and is made anew only where it is the least of a user's
Proof        docs/proofs/many-cells.md
Source       Rameshwar and Tandon (2024), CHOP-USER
"""

import heapq
import math
from collections.abc import Callable, Generator, Mapping, Sequence

# The worst expected error of a cell in units of the range: (kept samples, largest of a user, all samples, epsilon).
# What is kept is at least one sample. It never falls where less is kept and the largest is the same (if it did, a cell
# might be chosen that is not the best); it is above 0, and made of + - * / alone, which are the same on every machine.
Error = Callable[[int, int, int, float], float]

WORK = 8_000  # comparisons between two yields
USERS = 4_000  # that are sorted between two yields
SPLITTER = 8_388_609.0  # 2**23 + 1
UNKNOWN = 0.0  # errors are more


def rounded(number: float) -> float:
    """The number rounded to 30 bits, which is 9 digits, by + - * alone.

    >>> rounded(0.1 + 0.2) == rounded(0.3), rounded(1 / 3) == rounded(1 / 3 + 1e-8)
    (True, False)
    """
    big = number * SPLITTER
    return big - (big - number)


class Chopping:
    """The users of all cells, some of whom are made to leave.

    A kind is a cell and a number of samples; the kinds of a cell are neighbours, the fewest samples first.
    """

    __slots__ = (
        "_active", "_after", "_alive", "_cell", "_changes", "_epsilon", "_error", "_first", "_held", "_kept", "_left",
        "_level", "_made", "_samples", "_sized", "_top", "_total", "_users", "stopped", "threshold",
    )  # fmt: skip

    def __init__(self, error: Error, epsilon: float) -> None:
        self._error, self._epsilon = error, epsilon
        self._cell: list[int] = []  # of each kind
        self._samples: list[int] = []
        self._alive: list[int] = []  # users who have not left
        self._after: list[float] = []  # the error if one of them leaves, or less if the cell has changed since
        self._made: list[int] = []  # at which of the cell's changes that was
        self._first = [0]  # of each cell the first kind, and where the next cell begins
        self._top: list[int] = []  # the kind with the most samples that is alive
        self._total: list[int] = []
        self._kept: list[int] = []
        self._changes: list[int] = []
        self._left: list[list[int]] = []
        self._users: list[str] = []
        self._held: list[list[int]] = []  # of each user, in the order of pseudonyms: kinds, in the order of cells
        self._sized: dict[int, list[int]] = {}  # users by number of cells
        self._active: list[int] = []  # who has as many cells as anybody
        self._level = 0
        self.threshold = 0.0
        self.stopped: int | None = None

    def add(self, kinds: Sequence[tuple[int, int]]) -> dict[int, int]:
        """Add a cell with these (samples, users with that many), the fewest samples first; returns samples -> kind."""
        cell, first = len(self._total), self._first[-1]
        for samples, users in kinds:
            self._cell.append(cell)
            self._samples.append(samples)
            self._alive.append(users)
        self._after += [UNKNOWN] * len(kinds)
        self._made += [-1] * len(kinds)
        self._first.append(first + len(kinds))
        self._top.append(first + len(kinds) - 1)
        total = sum(samples * users for samples, users in kinds)
        self._total.append(total)
        self._kept.append(total)
        self._changes.append(0)
        self._left.append([])
        self.threshold = max(self.threshold, self._error(total, kinds[-1][0], total, self._epsilon))
        return {samples: first + offset for offset, (samples, _) in enumerate(kinds)}

    def admit(self, users: Mapping[str, list[int]]) -> Generator[None, None, None]:
        """Add the users who may leave cells, with their kinds in the order of cells."""
        names, runs = list(users), []
        for begin in range(0, len(names), USERS):
            runs.append(sorted(names[begin : begin + USERS]))
            yield
        for number, user in enumerate(heapq.merge(*runs)):
            self._users.append(user)
            self._held.append(users[user])
            self._sized.setdefault(len(users[user]), []).append(number)
            if not number % USERS:
                yield
        self._level = max(self._sized, default=0)

    def down_to(self, most: int, stops: bool = False) -> Generator[None, None, None]:
        """Let users leave until nobody is in more than `most` cells.

        With `stops`, end before that if leaving would cost more than the threshold.
        """
        while self._level > most and not (stops and self.stopped):
            self._active = sorted(self._active + self._sized.pop(self._level, []))
            yield from self._round(stops)
            self._level -= 1

    def left_out(self, cell: int) -> frozenset[str]:
        """The users who have left a cell."""
        return frozenset([self._users[user] for user in self._left[cell]])

    def dropped(self, cell: int) -> int:
        return self._total[cell] - self._kept[cell]

    def state(self, cell: int) -> tuple[int, int, int]:
        """A cell's samples kept, the most of one user among them, and all its samples."""
        return self._kept[cell], self._samples[self._top[cell]], self._total[cell]

    def _round(self, stops: bool) -> Generator[None, None, None]:
        """Let each user with the most cells leave one. It is one function, since calls would cost half of the time."""
        after, made, changes, alive, kept = self._after, self._made, self._changes, self._alive, self._kept
        known, cell_of, samples, top, total = after.__getitem__, self._cell, self._samples, self._top, self._total
        error, epsilon, threshold, below = self._error, self._epsilon, rounded(self.threshold), self._below
        work = 0
        for user in self._active:
            kinds = self._held[user]
            errors = list(map(known, kinds))
            while True:
                least = min(errors)
                index = errors.index(least)
                kind = kinds[index]
                cell = cell_of[kind]
                if made[kind] == changes[cell]:
                    break
                made[kind] = changes[cell]
                if rest := kept[cell] - samples[kind]:
                    largest = top[cell]
                    if kind == largest and alive[kind] == 1:
                        largest = below(kind)
                    least = error(rest, samples[largest], total[cell], epsilon)
                    big = least * SPLITTER  # `rounded`
                    errors[index] = after[kind] = big - (big - least)
                else:
                    errors[index] = after[kind] = math.inf  # no release is worse than any
            if least > threshold and self.stopped is None:
                self.stopped = self._level
                if stops:
                    return
            del kinds[index]
            self._left[cell].append(user)
            changes[cell] += 1
            kept[cell] -= samples[kind]
            alive[kind] -= 1
            if alive[top[cell]] <= 1:
                self._forget(cell)
            work += len(errors) + 8
            if work > WORK:
                work = 0
                yield

    def _forget(self, cell: int) -> None:
        """Forget errors that may fall when somebody leaves: nobody has the most samples any more, or one user alone."""
        top = self._top[cell]
        if self._alive[top]:
            self._after[top] = UNKNOWN  # without that one the largest is the next one, which may have fallen
            return
        first, end = self._first[cell], self._first[cell + 1]
        self._after[first:end] = [UNKNOWN] * (end - first)
        if self._kept[cell]:
            self._top[cell] = self._below(top)

    def _below(self, kind: int) -> int:
        """The next smaller kind that is alive; there always is one."""
        kind -= 1
        while not self._alive[kind]:
            kind -= 1
        return kind
