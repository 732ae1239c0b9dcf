"""Where to clip one key's values from above, chosen in private once enough units have come to the key.

Values are grid indices 0 .. W. The ends to choose from are the rungs W_j = max(1, ceil(W * 2**(-j / 4))), public; with
n units so far, each with one number, and above_j of these numbers above rung j:

    rho      geometric on {0, 1, ...}, P(rho = r) proportional to exp(-crossing * r): once per key
    when     at each tick from the key's first release on, with probability min(1, exp(-crossing (needed + rho - n)))
    chosen   once, then: rung j with probability proportional to exp(-epsilon |above_j - share * n| / (2 (1 - share)))

Guarantee    pure (crossing + epsilon)-DP, in all keys together; there is no gate, and so no delta: the key is public
Relation     add-remove: all records of a unit are there, or none is
Unit         gives one number, to one key: it raises the n of that key by 1 from one tick on
Sensitivity  of above_j - share * n: 1 - share where the number is above the rung, share where it is not; exactly
             1 - share at most, as share is at most 1/2. Share, needed and epsilon are of the configuration: they must
             not follow n
Accuracy     the rank of the choice is off by 2 (1 - share) / epsilon * ln(rungs / beta) at most, but with probability
             beta; `needed` units make that as little as the rank that is aimed at
Proof        docs/proofs/clip-range.md
Source       McSherry and Talwar (2007) for the choice; first_crossing.py for when
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from shoal.mechanisms import check
from shoal.mechanisms.noise.geometric import exactly, geometric
from shoal.mechanisms.noise.laplace import bernoulli_exp
from shoal.mechanisms.selection import exponential

RUNGS = 40  # at most: from the whole range down to a 860th of it
EACH = 4  # rungs that halve it
ENOUGH = 20  # a rank error of so many 1 / epsilon is one in 500 choices


@dataclass(frozen=True)
class Ladder:
    """The ends to choose from, of a range of so many grid steps.

    >>> Ladder(16).rungs, Ladder(2**20).rungs[:5]
    ((16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1), (1048576, 881744, 741456, 623488, 524288))
    >>> Ladder(16).rung_of(12), Ladder(16).rung_of(13), Ladder(16).rung_of(0)
    (2, 1, 11)
    """

    steps: int

    def __post_init__(self) -> None:
        check.positive(steps=self.steps)

    @cached_property
    def rungs(self) -> tuple[int, ...]:
        """From the top down, each once."""
        return tuple(dict.fromkeys(_rung(self.steps, number) for number in range(RUNGS)))

    @cached_property
    def _upwards(self) -> tuple[int, ...]:
        return self.rungs[::-1]

    def rung_of(self, value: int) -> int:
        """The lowest rung that a value is not above."""
        return len(self.rungs) - 1 - bisect_left(self._upwards, value)


def _rung(steps: int, number: int) -> int:
    """The least k of which k**4 * 2**number is at least steps**4.

    >>> [_rung(1000, number) for number in (0, 1, 4, 39)]
    [1000, 841, 500, 2]
    """
    least = -(-(steps**EACH) >> number)  # of k**4
    return math.isqrt(math.isqrt(least - 1)) + 1


@dataclass(frozen=True)
class UpperEnd:
    """The public parameters.

    >>> end = UpperEnd(Ladder(16), Fraction(1, 5), Fraction(1, 50), Fraction(1, 100))
    >>> end.needed, end.cost
    (10000, Fraction(11, 50))
    """

    ladder: Ladder
    epsilon: Fraction  # of the choice
    crossing: Fraction  # epsilon of when it is made
    share: Fraction  # of the units' numbers that may lie above

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, crossing=self.crossing, share=self.share)
        if self.share > Fraction(1, 2):
            raise ValueError("share must be 1/2 at most: beyond it a unit below moves a rank by more than one above")

    @property
    def needed(self) -> int:
        """About so many units come to a key before its end is chosen."""
        return math.ceil(ENOUGH / (self.share * self.epsilon))

    @property
    def cost(self) -> Fraction:
        """The epsilon of all keys together."""
        return self.epsilon + self.crossing

    def rho(self, words: Iterator[int]) -> int:
        """What a key's number of units must exceed `needed` by, from the key's own words, once and for all."""
        return geometric(exactly(self.crossing), words)

    def is_due(self, units: int, rho: int, words: Iterator[int]) -> bool:
        """Whether the end is chosen at this tick; `words` belong to this key and tick."""
        missing = self.crossing * max(0, self.needed + rho - units)
        return bernoulli_exp(missing.numerator, missing.denominator, words)

    def choose(self, numbers: Sequence[int], words: Iterator[int]) -> int:
        """The chosen rung, of how many units' numbers there are at each; `words` are for this once.

        A number is at the lowest rung that it is not above.

        >>> sure = UpperEnd(Ladder(16), Fraction(10**9), Fraction(1), Fraction(1, 10))
        >>> sure.choose([0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0], iter([3 << 60]))
        3
        """
        rate = self.epsilon / (2 * (1 - self.share) * self.share.denominator)
        return exponential.choose(self.costs(numbers), rate, words)

    def costs(self, numbers: Sequence[int]) -> list[int]:
        """Of each rung |above - share * units|, in units of the share's denominator."""
        wanted = self.share.numerator * sum(numbers)
        above = accumulate(numbers[:-1], initial=0)
        return [abs(self.share.denominator * count - wanted) for count in above]

    def shape(self) -> str:
        """All parameters, as the digest of a metric's parameters has them."""
        return (
            f"UpperEnd(rungs={self.ladder.rungs}, epsilon={self.epsilon}, crossing={self.crossing}, "
            f"share={self.share}, needed={self.needed})"
        )
