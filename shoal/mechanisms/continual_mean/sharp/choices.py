"""The private choices of a sharp mean: where to clip, from one number of each unit.

Guarantee    each method is one or two calls of clip_range.py at the epsilons that it is given, and a function of what
             these return and of the pattern; words come from a subkey per call
Proof        docs/proofs/sharp.md
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction

from shoal.mechanisms.continual_mean.sharp.buckets import outside
from shoal.mechanisms.continual_mean.sharp.parameters import Shares, SharpParameters
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection import clip_range

# Where fewer than one in this many may lie outside, the candidates beyond the tail are too many and alike.
MANY_OUTSIDE = 12
BLOCK_NOISE = Fraction(1, 180)  # takes block means to two and a half standard deviations


def choice_target(blocks: int, candidates: int, epsilon: Fraction) -> int:
    """The number of `blocks` units' blocks that a half width should leave outside."""
    return max(clip_range.outside(candidates, epsilon, clip_range.SURE), blocks // MANY_OUTSIDE)


class Choices:
    """The private choices of one group and coordinate."""

    __slots__ = ("_coordinate", "_group", "_key", "_mean")

    def __init__(self, mean: SharpParameters, key: bytes, group: bytes, coordinate: int) -> None:
        self._mean, self._key, self._group, self._coordinate = mean, key, group, coordinate

    def range(self, first: Sequence[int], shares: Shares, noise: Fraction) -> tuple[int, int, int]:
        """The centre in grid steps, and the numbers of two boundaries, from units' first samples per bucket.

        `noise` is the expected noise of the mean, in clip widths; it tunes how far the range is widened.
        """
        mean, buckets = self._mean, self._mean.buckets
        centre = self._centre(first, shares)
        candidates, epsilon = mean.half_widths, mean.call_epsilon * shares.scale
        target = clip_range.outside(len(candidates), epsilon)
        left = [outside(first, *buckets.around(centre, half)) for half in candidates]
        chosen = candidates[clip_range.scale(left, target, epsilon, self._words("scale", 0))]
        skewed = (centre < 2 * chosen) != (mean.grid.steps - centre < 2 * chosen)
        widening = clip_range.widening(Fraction(target, sum(first)), noise, skewed=skewed)
        return centre, *buckets.around(centre, int(chosen * widening))

    def first_blocks(self, totals: Sequence[int], shares: Shares) -> tuple[int, int]:
        """The centre and half width of the means of units' first blocks, in grid steps."""
        mean, size = self._mean, self._mean.shape.weight(0)
        counts = [0] * mean.buckets.count
        for total in totals:
            counts[mean.buckets.of(total // size)] += 1
        centre = self._centre(counts, shares)
        epsilon = mean.call_epsilon * shares.scale
        half = self.half_width(0, totals, Fraction(centre), mean.half_widths, epsilon)
        return centre, max(half, mean.least_half_width)

    def half_width(
        self, block: int, totals: Sequence[int], centre: Fraction, candidates: Sequence[int], epsilon: Fraction
    ) -> int:
        """The half width of the means of one block of each unit, around the centre."""
        shape = self._mean.shape
        size = shape.weight(block)
        target = choice_target(len(totals), len(candidates), epsilon)
        # In units of a grid step over the centre's denominator, where all are integers.
        far = sorted(abs(total * centre.denominator - size * centre.numerator) for total in totals)
        left = [len(far) - bisect_right(far, size * half * centre.denominator) for half in candidates]
        chosen = candidates[clip_range.scale(left, target, epsilon, self._words("scale", shape.levels + block))]
        return int(chosen * clip_range.widening(Fraction(target, len(far)), BLOCK_NOISE))

    def _centre(self, counts: Sequence[int], shares: Shares) -> int:
        epsilon = self._mean.call_epsilon * shares.centre
        return self._mean.buckets.boundaries[clip_range.centre(counts, epsilon, self._words("centre", 0))]

    def _words(self, purpose: str, level: int) -> Iterator[int]:
        return Bits(derive(self._key, self._group, purpose, "mean", self._coordinate, level, 0)).draw(0)
