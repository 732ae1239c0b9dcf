"""Private centre and scale of numbers, one number per unit: where to clip, whatever the data look like.

Guarantee    each call is pure epsilon-DP; a call sees at most one number per unit
Relation     values: two streams differ in the values of one unit; how many units gave a number is public
Sensitivity  one unit moves each count by at most 1, hence each integer cost by at most s: 2 in `centre` and `bucket`,
             1 in `scale`
Mechanism    exponential: P(i) proportional to exp(-epsilon * cost_i / (2 s)), exactly
Accuracy     a rank error above 2 / epsilon * ln(candidates / beta) has a probability of at most beta
Proof        docs/proofs/sharp.md
Source       McSherry and Talwar (2007); Smith (2011) for quantiles
"""

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from shoal.mechanisms.selection import exponential

# Units left outside on purpose: as many as it takes for leaving nobody outside to cost ln(candidates) + slack, so
# that it is not chosen. With few units that is a large part of them, and the chosen width is widened in return.
SLACK = 2
SURE = 4  # where too wide a choice costs more than a choice among few: once in eighty times
# (part of the units left outside, at most) -> what takes that quantile of a normal law to two standard deviations.
TO_TWO_SIGMA = (
    (Fraction(1, 20), Fraction(102, 100)),
    (Fraction(1, 12), Fraction(115, 100)),
    (Fraction(1, 10), Fraction(122, 100)),
    (Fraction(1, 8), Fraction(130, 100)),
    (Fraction(3, 20), Fraction(139, 100)),
    (Fraction(1, 5), Fraction(156, 100)),
    (Fraction(1, 4), Fraction(174, 100)),
    (Fraction(3, 10), Fraction(193, 100)),
    (Fraction(7, 20), Fraction(214, 100)),
    (Fraction(2, 5), Fraction(238, 100)),
    (Fraction(9, 20), Fraction(265, 100)),
)
BALANCE = Fraction(1, 50)
NO_NOISE = Fraction(1, 10**12)  # less than this widens no further
_UP = Context(prec=30, rounding=ROUND_CEILING)


def centre(counts: Sequence[int], epsilon: Fraction, words: Iterator[int]) -> int:
    """The number of a bucket boundary near the median of the values counted per bucket.

    The cost of boundary i is |2 * (values below it) - values|, which one unit moves by at most 2.

    >>> centre([0, 500, 0, 500, 0], Fraction(10), iter([3 << 61, 1 << 63, 1 << 63, 1 << 63]))
    3
    """
    values = sum(counts)
    costs = [abs(2 * below - values) for below in accumulate(counts, initial=0)]
    return exponential.choose(costs, epsilon / 4, words)


def bucket(counts: Sequence[int], epsilon: Fraction, words: Iterator[int]) -> int:
    """The number of a bucket near the median of the values counted per bucket.

    The cost of a bucket is max(0, 2 * (values below it) - values, 2 * (values above it) - values), which one unit moves
    by at most 2; it is 0 for the bucket that holds the median. Of boundaries, where all values share a bucket, each
    would have the same cost.

    >>> bucket([0, 500, 0, 0, 0], Fraction(10), iter([1 << 61] + [1 << 63] * 9))
    1
    """
    values, below = sum(counts), 0
    costs, rate = [], epsilon / 4
    for count in counts:
        costs.append(max(0, 2 * below - values, values - 2 * (below + count)))
        below += count
    return exponential.choose(costs, rate, words)


@lru_cache(maxsize=1024)
def outside(candidates: int, epsilon: Fraction, slack: int = SLACK) -> int:
    """The number of values that should lie outside the clip range.

    >>> outside(24, Fraction(1, 40))
    415
    """
    with localcontext(_UP):
        return int(2 / (Decimal(epsilon.numerator) / epsilon.denominator) * (Decimal(candidates).ln() + slack)) + 1


def values_needed(candidates: int, epsilon: Fraction, slack: int = SLACK) -> int:
    """The fewest values worth widening for; of fewer, those left outside would be too large a share.

    >>> values_needed(24, Fraction(1, 40))
    923
    """
    return math.ceil(outside(candidates, epsilon, slack) / TO_TWO_SIGMA[-1][0])


def widening(part: Fraction, noise: Fraction, *, skewed: bool = False) -> Fraction:
    """The factor by which to widen a half width that leaves a `part` of the values outside.

    `noise` is the standard deviation of the mean's noise at the end, in clip widths. The result reaches two standard
    deviations of a normal law at least, and so far that noise and what is clipped of the tail have the same slope.
    Values that lie at one end of the range are taken to have a long tail, like 1 / x**3, others one like 1 / x**6.

    >>> widening(Fraction(1, 9), Fraction(1, 2)), round(float(widening(Fraction(1, 9), Fraction(1, 10**4))), 2)
    (Fraction(13, 10), 3.14)
    >>> round(float(widening(Fraction(1, 10), Fraction(1, 600), skewed=True)), 2)
    3.11
    """
    noise = max(noise, NO_NOISE)
    normal = next(factor for most, factor in TO_TWO_SIGMA if part <= most)
    with localcontext(_UP):
        ratio = part / (2 * noise) if skewed else BALANCE / noise
        tail = (Decimal(ratio.numerator) / ratio.denominator) ** (Decimal(1) / (3 if skewed else 6))
        factor = Fraction(tail.quantize(Decimal("0.0001")))
    return max(normal, factor) if skewed else normal * max(Fraction(1), factor)


def scale(outside: Sequence[int], target: int, epsilon: Fraction, words: Iterator[int]) -> int:
    """The index of a candidate that leaves about `target` of the values outside; a unit moves each cost by at most 1.

    >>> scale([0, 3, 40, 900], 30, Fraction(10), iter([2 << 62, 1 << 63]))
    2
    """
    return exponential.choose([abs(count - target) for count in outside], epsilon / 2, words)
