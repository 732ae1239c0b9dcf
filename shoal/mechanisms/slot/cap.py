"""How many samples of a user count in a cell: a number, the median count, or what makes the worst error least.

The more samples of a user count, the fewer are left out, and the more noise there must be. All of it is decided by
public counts, in integers.

Between two neighbouring counts the samples kept are an affine function of the cap, hence the worst error of a mean is a
concave one: it is least at a count. The scan over counts is exact and takes O(L log L) for L users.

Proof   docs/proofs/slots.md
Source  Rameshwar, Tandon, Gupta, Singh, Chakraborty and Sharma (2024)
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

from shoal.mechanisms import check
from shoal.mechanisms.slot.cell import CellParameters, Counts
from shoal.mechanisms.slot.worst_error import mean_error

Error = Callable[[int, int, int], Fraction]  # of samples kept, the most of one user, all samples


def contribution_cap(counts: Counts, cell: CellParameters, error: Error | None = None) -> int:
    """The cap in use, at most the largest count; "optimal" makes `error` least, by default the mean's.

    >>> from shoal.mechanisms.grid import Grid
    >>> unit = Grid(Fraction(0), Fraction(1), 100)
    >>> caps = (3, 50, "median", "optimal")
    >>> [contribution_cap([1, 4, 6, 9], CellParameters(grid=unit, epsilon=Fraction(1), cap=cap)) for cap in caps]
    [3, 9, 4, 9]
    """
    if cell.cap == "median":
        return median(counts)
    if cell.cap == "optimal":
        return optimal(counts, cell.dropped, error or partial(mean_error, epsilon=cell.lone_epsilon))
    check.positive(contribution_cap=cell.cap)
    return min(cell.cap, max(counts))


def median(counts: Counts) -> int:
    """The median count; for an even number of users, the lower of the two in the middle.

    At least half of the users have as many samples, so that each fills an array of its own: the noise of averaged
    arrays is at most twice the least that any weights allow.
    """
    return sorted(counts)[(len(counts) - 1) // 2]


def optimal(counts: Counts, dropped: int, error: Error) -> int:
    """The count that, as a cap, makes the worst error least; the smallest of several."""
    samples = sum(counts) + dropped
    best, above, below = 0, 1, 0  # the error so far, as a fraction: infinite. Fractions take long to compare
    for cap, kept in candidates(counts):
        candidate = error(kept, cap, samples)
        if candidate.numerator * below < above * candidate.denominator:
            best, above, below = cap, candidate.numerator, candidate.denominator
    return best


def candidates(counts: Counts) -> Iterator[tuple[int, int]]:
    """Each count that occurs, ascending, with how many samples are kept if it is the cap.

    >>> list(candidates([4, 1, 4, 9]))
    [(1, 4), (4, 13), (9, 18)]
    """
    ordered = sorted(counts)
    below = last = 0
    for index, count in enumerate(ordered):
        if count != last:
            yield count, below + count * (len(ordered) - index)
        below += count
        last = count
