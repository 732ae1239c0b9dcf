"""Private median of array means: a first estimate of the mean, as the centre of clipping.

Guarantee    pure epsilon-DP (epsilon / 2 already: the paper allows for a unit in two arrays, here it lies in one)
Relation     values: which units fill which array is a function of the pattern, hence public
Unit         all blocks of a unit lie in one array, so it moves one array mean and each cost by at most 1
Sensitivity  1, of each cost
Choice       exponential mechanism, P(bin) proportional to exp(-epsilon * cost / 4), sampled exactly
Accuracy     given the array count k of George et al.: within 2 sqrt(ln(2k / beta) / 2**l) of the mean of independent
             samples in [0, 1] with probability 1 - 2 beta
Proof        docs/proofs/private-median.md
Source       George, Ramesh, Singh and Tyagi (2024), Algorithm 7 and Claim E.1
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from math import isqrt
from typing import NamedTuple

from shoal.mechanisms.selection.exponential import choose


class UnitSamples(NamedTuple):
    """The samples that one privacy unit offers to the arrays."""

    samples: int  # a power of two, at most an array's size
    effective: int  # of its first block
    pseudonym: str
    total: int  # grid steps


def pack(units: Iterable[UnitSamples], size: int, arrays: int) -> list[list[UnitSamples]]:
    """The first `arrays` arrays of `size` samples, filled by units with many samples first.

    Decreasing powers of two fill an array whose size is a power of two without splitting a unit. Ties go by the time of
    the first block, then by pseudonym; the values have no say.

    >>> offered = (1, 0, "a", 5), (1, 1, "b", 5), (2, 9, "c", 9), (1, 2, "d", 5)
    >>> units = [UnitSamples(*offer) for offer in offered]
    >>> [[unit.pseudonym for unit in array] for array in pack(units, size=2, arrays=2)]
    [['c'], ['a', 'b']]
    """
    packed: list[list[UnitSamples]] = []
    room = 0
    for unit in sorted(units, key=lambda unit: (-unit.samples, unit.effective, unit.pseudonym)):
        if not room:
            if len(packed) == arrays:
                break
            packed.append([])
            room = size
        if unit.samples > room:
            raise ValueError("a unit would lie in two arrays: its samples are not a power of two up to the array size")
        packed[-1].append(unit)
        room -= unit.samples
    if room or len(packed) < arrays:
        raise ValueError("the units do not fill the arrays")
    return packed


def bins(level: int, scatter: Fraction = Fraction(1)) -> int:
    """|T| = ceil(2**(l / 2) / (2 * scatter)) equal bins over the range: the ceiling of a root, in integers.

    The scatter is 1 for samples anywhere in the range, and twice their sigma, as a part of the range, else.

    >>> [bins(level) for level in range(2, 11)]
    [1, 2, 2, 3, 4, 6, 8, 12, 16]
    """
    square = Fraction(1 << level) / (2 * scatter) ** 2
    return 1 + isqrt(-(-square.numerator // square.denominator) - 1)


def costs(totals: Sequence[int], full: int, count: int) -> list[int]:
    """The cost of each of `count` bins: max(means in lower bins, means in higher bins).

    `full` is the total of an array of ones. A mean outside the range, which subgaussian samples may have, counts for
    the bin at that end.

    >>> costs([0, 3, 4, 10], full=10, count=3)  # bins 0, 0, 1, 2
    [2, 2, 3]
    """
    histogram = [0] * count
    for total in totals:
        histogram[min(max(total * count // full, 0), count - 1)] += 1
    upto = list(accumulate(histogram))
    return [max(upto[i] - histogram[i], upto[-1] - upto[i]) for i in range(count)]


def midpoint(index: int, count: int) -> Fraction:
    """The middle of a bin, as a fraction of the range."""
    return Fraction(2 * index + 1, 2 * count)


def median_bin(totals: Sequence[int], full: int, count: int, epsilon: Fraction, words: Iterator[int]) -> int:
    """The index, of `count`, of the bin that the exponential mechanism picks for the median."""
    return choose(costs(totals, full, count), epsilon / 4, words)
