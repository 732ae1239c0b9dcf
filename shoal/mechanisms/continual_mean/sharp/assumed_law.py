"""An assumed law of values, and what the private choices of a sharp mean are likely to be under it.

Samples, of one user or of several, are independent and have the law Beta(2, 2) over a body in the middle of the range,
`spread` of it; means of blocks of samples have its variance over their number, and are taken to be normal. With the
expected number of units in each place the choices have exact distributions; what is told is a quantile of theirs.

Privacy      no value and no key comes here, so nothing is charged
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from shoal.mechanisms.continual_mean.sharp.choices import BLOCK_NOISE, choice_target
from shoal.mechanisms.continual_mean.sharp.parameters import Shares, SharpParameters
from shoal.mechanisms.selection import clip_range

SAMPLE_SD = math.sqrt(1 / 20)  # of Beta(2, 2)
RARE = 1e-3  # choices with a smaller probability, next to the likeliest one, are passed over

Below = Callable[[float], float]  # a distribution function, of grid steps


@dataclass(frozen=True)
class Law:
    """The assumed law of a mean's samples."""

    mean: SharpParameters
    spread: Fraction
    quantile: float = 0.5  # of the clip range that is chosen first

    # ---------------------------------------------------------------- the law

    @cached_property
    def _middle(self) -> float:
        return self.mean.grid.steps / 2

    @cached_property
    def _sample_sd(self) -> float:
        return self.mean.grid.steps * float(self.spread) * SAMPLE_SD

    def samples_below(self, step: float) -> float:
        """The distribution function of samples."""
        x = (step - self._middle) / (self.mean.grid.steps * float(self.spread)) + 0.5
        x = min(max(x, 0.0), 1.0)
        return x * x * (3 - 2 * x)

    def _means_below(self, size: int) -> Below:
        """The distribution function of means of `size` samples."""
        sd = self._sample_sd / math.sqrt(size) * math.sqrt(2)
        return lambda step: math.erfc((self._middle - step) / sd) / 2

    # ---------------------------------------------------------------- private choices

    def clip_width(self, units: int, shares: Shares, noise: Fraction) -> int:
        """The width, in grid steps, of the clip range that the units' first samples give."""
        mean, buckets, below = self.mean, self.mean.buckets, self.samples_below
        ends = buckets.boundaries
        target = clip_range.outside(len(mean.half_widths), mean.call_epsilon * shares.scale)
        part = Fraction(target, units)
        widening = [clip_range.widening(part, noise, skewed=skewed) for skewed in (False, True)]

        def outside(centre: int, half: int) -> float:
            low, high = buckets.around(centre, half)
            return below(ends[low]) + 1 - below(ends[high])

        def width(centre: int, half: int) -> int:
            skewed = (centre < 2 * half) != (mean.grid.steps - centre < 2 * half)
            low, high = buckets.around(centre, int(half * widening[skewed]))
            return ends[high] - ends[low]

        choices = self._ranges(below, outside, units, shares, target)
        return _quantile(sorted((width(centre, half), odds) for centre, half, odds in choices), self.quantile)

    def first_half_width(self, units: int, shares: Shares) -> int:
        """The half width, in grid steps, of the means of the units' first blocks."""
        mean, below = self.mean, self._means_below(self.mean.shape.weight(0))
        target = choice_target(units, len(mean.half_widths), mean.call_epsilon * shares.scale)

        def outside(centre: int, half: int) -> float:
            return below(centre - half) + 1 - below(centre + half)

        choices = self._ranges(below, outside, units, shares, target)
        half = _quantile(sorted((half, odds) for _, half, odds in choices), self.quantile)
        return max(int(half * clip_range.widening(Fraction(target, units), BLOCK_NOISE)), mean.least_half_width)

    def half_width(self, size: int, units: int, candidates: Sequence[int], epsilon: Fraction, noise: float) -> int:
        """The half width, in grid steps, of means of `size` samples around a centre with this much noise."""
        target = choice_target(units, len(candidates), epsilon)
        sd = math.hypot(self._sample_sd / math.sqrt(size), noise) * math.sqrt(2)
        odds = _odds([abs(units * math.erfc(half / sd) - target) for half in candidates], float(epsilon) / 2)
        half = _quantile(sorted(zip(candidates, odds, strict=True)), 0.5)
        return int(half * clip_range.widening(Fraction(target, units), BLOCK_NOISE))

    def _ranges(
        self, below: Below, outside: Callable[[int, int], float], units: int, shares: Shares, target: int
    ) -> Iterator[tuple[int, int, float]]:
        """(centre, half width before it is widened, probability) of each choice."""
        ends, halves = self.mean.buckets.boundaries, self.mean.half_widths
        epsilon = float(self.mean.call_epsilon)
        centres = _odds([abs(2 * units * below(end) - units) for end in ends], epsilon * float(shares.centre) / 4)
        for centre, likely in zip(ends, centres, strict=True):
            if likely < RARE * max(centres):
                continue
            costs = [abs(units * outside(centre, half) - target) for half in halves]
            odds = _odds(costs, epsilon * float(shares.scale) / 2)
            yield from ((centre, half, likely * odd) for half, odd in zip(halves, odds, strict=True))


def _odds(costs: Sequence[float], rate: float) -> list[float]:
    """The probabilities with which the exponential mechanism chooses each.

    >>> _odds([4, 4, 1e9], 1)
    [0.5, 0.5, 0.0]
    """
    least = min(costs)
    odds = [math.exp(-rate * (cost - least)) for cost in costs]
    whole = sum(odds)
    return [odd / whole for odd in odds]


def _quantile(weighted: Sequence[tuple[int, float]], part: float) -> int:
    """The number at which `part` of the weight is reached.

    >>> _quantile([(1, 0.2), (3, 0.4), (9, 0.4)], 0.5)
    3
    """
    reached = list(accumulate(odds for _, odds in weighted))
    return next(number for (number, _), upto in zip(weighted, reached, strict=True) if upto >= part * reached[-1])
