"""Private quantile of integers in 0 .. cells - 1, drawn exactly from the exponential mechanism over all cells.

    P(y) proportional to exp(-epsilon / 2 * cost(y))      cost(y): how far q * K is from the ranks of y
    ranks of y: from the number of the K values below y to the number of those up to y

Guarantee    pure epsilon-DP
Relation     values: two inputs differ in one of the K values; K is public
Sensitivity  1, exact, of each cost: one value moves either end of the ranks by at most 1
Exactness    all cells between two values cost the same, so such a run of cells is drawn as one, by inverting the
             distribution at a uniform real: integers enclose cells * exp(-x), and bits are added until one run is
             certain; then uniform among its cells. No float, and no rejection: a run may hold one cell of a billion
Proof        docs/proofs/clipping.md
Source       Smith (2011), Algorithm 2. Decimal.exp is correctly rounded, hence its neighbours enclose the exponential
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, groupby
from operator import mul
from typing import NamedTuple

from shoal.mechanisms import check
from shoal.mechanisms.selection.exponential import uniform

PRECISION = 128  # bits to begin with; a draw that they leave open is rarer than once in 2**60
_GUARD = 12  # decimal digits beyond those of the bits: the few roundings below lose less than one

Enclosure = tuple[list[int], list[int]]  # of numbers times 2**bits: from below, and from above


class Run(NamedTuple):
    """Neighbouring cells with the same ranks."""

    start: int
    cells: int
    below: int  # values below them
    upto: int  # values below or in them


def runs(values: Sequence[int], cells: int) -> list[Run]:
    """All cells 0 .. cells - 1: a run for each cell that holds values, and one for the empty cells between two such.

    >>> [tuple(run) for run in runs([3, 3], 10)]
    [(0, 3, 0, 0), (3, 1, 0, 2), (4, 6, 2, 2)]
    """
    check.below(cells, least_value=min(values), greatest_value=max(values))
    neighbours, end, rank = [], 0, 0
    for value, same in groupby(sorted(values)):
        if value > end:
            neighbours.append(Run(end, value - end, rank, rank))
        below, end, rank = rank, value + 1, rank + sum(1 for _ in same)
        neighbours.append(Run(value, 1, below, rank))
    if end < cells:
        neighbours.append(Run(end, cells - end, rank, rank))
    return neighbours


def nearest(run: Run, wanted: Fraction) -> Fraction | int:
    """The rank of a run that is nearest to the wanted one; their distance is the cost.

    >>> [str(nearest(Run(0, 1, 2, 4), Fraction(wanted))) for wanted in (1, 3, 9)]
    ['2', '3', '4']
    """
    return run.below if run.below > wanted else run.upto if run.upto < wanted else wanted


def choose(values: Sequence[int], cells: int, q: Fraction, epsilon: Fraction, words: Iterator[int]) -> int:
    """The cell that the exponential mechanism chooses for quantile q.

    >>> choose([3, 3, 3], 10, Fraction(1, 2), Fraction(100), iter([1 << 63] * 3))
    3
    """
    check.positive(values=len(values), epsilon=epsilon)
    wanted, candidates = q * len(values), runs(values, cells)
    run = candidates[pick(candidates, wanted, epsilon, words)]
    return run.start + uniform(run.cells, words)


def pick(
    candidates: Sequence[Run], wanted: Fraction, epsilon: Fraction, words: Iterator[int], precision: int = PRECISION
) -> int:
    """The index of the chosen run: i with probability proportional to cells_i * exp(-epsilon / 2 * cost_i).

    It is the first run whose cumulated weight is above u times the sum of all, where u is the uniform real with these
    words as digits: the same run at whatever precision it becomes certain.
    """
    cells, read, bits = [run.cells for run in candidates], 0, 0
    while True:
        while bits < precision:
            read, bits = read << 64 | next(words), bits + 64
        least, most = (
            list(accumulate(map(mul, cells, side))) for side in weights(candidates, wanted, epsilon / 2, bits)
        )
        # u lies between read and read + 1, in 2**-bits
        first = bisect_right(most, read * least[-1] >> bits)
        last = bisect_right(least, -(-(read + 1) * most[-1] >> bits) - 1, hi=len(candidates) - 1)
        if first == last:
            return first
        precision = 2 * bits


def weights(candidates: Sequence[Run], wanted: Fraction, rate: Fraction, bits: int) -> Enclosure:
    """exp(-rate * cost) of each run, enclosed."""
    whole = wanted.numerator // wanted.denominator
    below = powers(rate, wanted - whole, whole + 1, bits)  # of the ranks whole, whole - 1, ...
    above = powers(rate, whole + 1 - wanted, max(candidates[-1].upto - whole, 0), bits)  # of the ranks whole + 1, ...
    sides: Enclosure = ([], [])
    upward = -(-wanted.numerator // wanted.denominator)
    for side, down, up in zip(sides, below, above, strict=True):
        for _, _, rank, upto in candidates:  # as `nearest` has it, without fractions: they take long to compare
            if rank > whole:
                side.append(up[rank - whole - 1])
            elif upto < upward:
                side.append(down[whole - upto])
            else:
                side.append(1 << bits)
    return sides


def powers(rate: Fraction, first: Fraction, count: int, bits: int) -> Enclosure:
    """exp(-rate * (first + k)) for k = 0 .. count - 1, enclosed: a first one, and a constant ratio.

    >>> least, most = powers(Fraction(1), Fraction(1, 2), 3, 64)
    >>> [round(number / 2**64, 4) for number in least], [b - a for a, b in zip(least, most)]
    ([0.6065, 0.2231, 0.0821], [3, 4, 3])
    """
    (least, most), (ratio_least, ratio_most) = exp(rate * first, bits), exp(rate, bits)
    sides: Enclosure = ([], [])
    for _ in range(count):
        sides[0].append(least)
        sides[1].append(most)
        least, most = least * ratio_least >> bits, -(-most * ratio_most >> bits)
    return sides


@lru_cache(maxsize=1 << 12)  # the cells of a slot ask for the same few
def exp(x: Fraction, bits: int) -> tuple[int, int]:
    """Two integers that enclose 2**bits times the exponential of -x; x is 0 or more.

    >>> exp(Fraction(0), 8), exp(Fraction(10**9), 8)
    ((255, 256), (0, 2))
    """
    with localcontext(Context(prec=bits * 31 // 100 + _GUARD)):
        near = int((-Decimal(x.numerator) / x.denominator).exp() * (1 << bits))
    return max(near - 1, 0), min(near + 2, 1 << bits)
