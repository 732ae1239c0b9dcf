"""Users in many cells of a slot: who is left out of which cell, and what part of epsilon each cell has.

Guarantee    all cells of the slot together are slot_epsilon-DP: cell g gets slot_epsilon / d_g, where d_g is the most
             cells that any of its users is (still) in; so the shares of one user's cells never sum to more than 1
Pattern      who is in which cell, with how many samples, is public, and nothing here sees a value; so who is left out,
             and every divisor, may be public too
Exactness    divisors are integers, shares are Fractions; errors are floats that only choose whom to leave out, where
             every choice is private, and are rounded to 30 bits so that what is equal does not differ by rounding
Proof        docs/proofs/many-cells.md
Source       Rameshwar and Tandon (2024), CHOP-USER. Their figures call it CLIP-USER; it is one algorithm: a user is
             suppressed in a cell completely or not at all
"""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TypeVar

from shoal.mechanisms import check
from shoal.mechanisms.slot.chop_users import Chopping, Error
from shoal.mechanisms.slot.worst_error import variance_bias, variance_sensitivity

Cells = Mapping[str, Mapping[str, int]]  # of each cell: pseudonym -> number of samples, at least one
Result = TypeVar("Result")
Steps = Generator[None, None, Result]  # yields every few milliseconds of work

PORTION = 10_000  # memberships that are looked at between two yields


@dataclass(frozen=True, slots=True)
class Allotment:
    """A slot's users by cell: who counts where, with what part of epsilon, and the error that follows."""

    left_out: Mapping[str, frozenset[str]]  # by cell, where there are any
    dropped: Mapping[str, int]  # their samples, likewise
    divisors: Mapping[str, int]  # of the slot's epsilon; of every cell that has users left
    before: int  # cells of one user, at most: at first
    after: int  # and in the end
    stopped: int | None  # the K at which the algorithm ends if no K is declared; None: not before `after` was reached
    threshold: float  # the worst noise of a cell with everybody in it, at epsilon / before
    errors: Mapping[str, float]  # in the end, with each cell's own epsilon; of the cells in divisors

    @property
    def worst(self) -> float:
        """The largest error of any cell after users were left out."""
        return max(self.errors.values())

    @property
    def degradation(self) -> float:
        """The worst error now over the worst error before; below 1 it is better."""
        return self.worst / self.threshold

    def share(self, cell: str, total: Fraction) -> Fraction:
        """The cell's part of the slot's epsilon, or delta.

        >>> Allotment({}, {}, {"a": 3}, 3, 3, None, 1.0, {"a": 1.0}).share("a", Fraction(1, 2))
        Fraction(1, 6)
        """
        return total / self.divisors[cell]


def mean_error(kept: int, largest: int, total: int, epsilon: float) -> float:
    """The worst expected error of a mean: the bias of what is left out, and the expected size of the noise.

    >>> mean_error(8, 2, 10, 0.5)
    0.7
    """
    return 1 - kept / total + largest / (epsilon * kept)


def mean_and_variance_error(kept: int, largest: int, total: int, epsilon: float) -> float:
    """The worst expected error of mean and variance jointly, with half of epsilon each.

    It is the sum of the two, in parts of the range and of its square.

    >>> mean_and_variance_error(8, 2, 8, 2.0)
    0.4375
    """
    bias = variance_bias(kept, total) / total**2
    noise = variance_sensitivity(kept, largest) / kept**2
    return 1 - kept / total + bias + 2 / epsilon * (largest / kept + noise)


def split(cells: Cells, most: int, epsilon: Fraction, error: Error = mean_error) -> Steps[Allotment]:
    """Leave nobody out, and give each cell epsilon / most.

    Raises:
        ValueError: a user is in more than `most` cells.
    """
    before = max((yield from _sizes(cells, most, epsilon)).values())
    if before > most:
        raise ValueError(f"a user is in {before} cells, and each cell has 1/{most} of epsilon")
    errors, at = {}, float(epsilon) / most
    for cell in sorted(cells):
        kinds = yield from _kinds(cells[cell])
        total = sum(samples * users for samples, users in kinds)
        errors[cell] = error(total, kinds[-1][0], total, at)
    return Allotment({}, {}, dict.fromkeys(errors, most), before, before, None, max(errors.values()), errors)


def chop(cells: Cells, most: int, epsilon: Fraction, error: Error = mean_error) -> Steps[Allotment]:
    """Leave users out of cells until everybody is in at most `most`, one cell of one user at a time.

    Next is always a user with the most cells, the least pseudonym first; it leaves the cell whose error is least
    without it, at epsilon / before, or the first such cell if several are equal.
    """
    (allotment,) = yield from sweep(cells, [most], epsilon, error)
    return allotment


def sweep(cells: Cells, counts: Iterable[int], epsilon: Fraction, error: Error = mean_error) -> Steps[list[Allotment]]:
    """The results of `chop` for several numbers of cells, the largest first, in one pass."""
    wanted = sorted(set(counts), reverse=True)
    sizes = yield from _sizes(cells, wanted[-1], epsilon)
    work = yield from _prepared(cells, sizes, wanted[-1], epsilon, error)
    allotments = []
    for most in wanted:
        yield from work.down_to(most)
        allotments.append((yield from _allotment(cells, sizes, most, epsilon, error, work)))
    return allotments


def recommended(cells: Cells, epsilon: Fraction, error: Error = mean_error) -> Steps[int]:
    """The number of cells at which the algorithm stops: one fewer would make the worst error worse."""
    sizes = yield from _sizes(cells, 1, epsilon)
    work = yield from _prepared(cells, sizes, 1, epsilon, error)
    yield from work.down_to(1, stops=True)
    return work.stopped or 1


def result_of(steps: Steps[Result]) -> Result:
    """The result of all steps at once, where nothing else waits.

    >>> result_of(recommended({"a": {"x": 1}, "b": {"x": 1, "y": 1, "z": 1}}, Fraction(1)))
    1
    """
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: Result = done.value
            return result


# -------------------------------------------------------------------- parts


class _Pace:
    """The time of the next yield, by an estimate of the work done."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen = 0

    def is_due(self, seen: int) -> bool:
        self._seen += seen
        if self._seen < PORTION:
            return False
        self._seen = 0
        return True


def _portions(items: Iterable[Result]) -> Generator[list[Result], None, None]:
    rest = iter(items)
    while portion := list(islice(rest, PORTION)):
        yield portion


def _sizes(cells: Cells, least: int, epsilon: Fraction) -> Steps[Counter[str]]:
    check.positive(cells=len(cells), most=least, epsilon=epsilon)
    sizes: Counter[str] = Counter()
    pace = _Pace()
    for members in cells.values():
        for portion in _portions(members):
            sizes.update(portion)
            if pace.is_due(len(portion)):
                yield
    return sizes


def _kinds(members: Mapping[str, int]) -> Steps[list[tuple[int, int]]]:
    """A cell's pairs of samples and users with that many, the fewest samples first."""
    check.positive(users=len(members))
    counted: Counter[int] = Counter()
    for portion in _portions(members.values()):
        counted.update(portion)
        if len(portion) == PORTION:
            yield
    check.positive(samples=min(counted))
    return sorted(counted.items())


def _prepared(cells: Cells, sizes: Mapping[str, int], least: int, epsilon: Fraction, error: Error) -> Steps[Chopping]:
    """Put everybody into every cell; users with more than the least number of cells may leave some."""
    work = Chopping(error, float(epsilon) / max(sizes.values()))
    many: dict[str, list[int]] = {}
    pace = _Pace()
    for everybody in _portions(sizes.items()):
        many.update((user, []) for user, size in everybody if size > least)
        yield
    for cell in sorted(cells):
        kind_of = work.add((yield from _kinds(cells[cell])))
        for portion in _portions(cells[cell].items() if many else ()):
            for user, samples in portion:
                held = many.get(user)
                if held is not None:
                    held.append(kind_of[samples])
            if pace.is_due(2 * len(portion)):
                yield
        if pace.is_due(len(kind_of)):
            yield
    yield from work.admit(many)
    return work


def _allotment(
    cells: Cells, sizes: Mapping[str, int], most: int, epsilon: Fraction, error: Error, work: Chopping
) -> Steps[Allotment]:
    left_out, dropped, divisors, errors = {}, {}, {}, {}
    before, pace = max(sizes.values()), _Pace()
    for index, cell in enumerate(sorted(cells)):
        out = work.left_out(index)
        if out:
            left_out[cell], dropped[cell] = out, work.dropped(index)
        reached, highest = 0, min(most, before)
        for portion in _portions(cells[cell]):
            reached = max(reached, _most_cells(portion, out, sizes, highest))
            if pace.is_due(2 * len(portion)):
                yield
            if reached == highest:
                break
        if reached:
            divisors[cell] = reached
            errors[cell] = error(*work.state(index), float(epsilon) / reached)
    return Allotment(left_out, dropped, divisors, before, min(most, before), work.stopped, work.threshold, errors)


def _most_cells(users: Iterable[str], out: Collection[str], sizes: Mapping[str, int], highest: int) -> int:
    """The most cells of any user who is not left out.

    Nobody can have more than `highest`; who had more before has exactly that many now.
    """
    reached = 0
    for user in users:
        if user not in out and sizes[user] > reached:
            reached = sizes[user]
            if reached >= highest:
                return highest
    return reached
