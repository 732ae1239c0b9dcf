"""Which unknown keys are shown, and when: a key is, at the first tick at which its units outnumber a noisy threshold.

Per key, with n the weight of the units that have come to it, of which the whole past counts, at tick t = 1, 2, ...

    rho       geometric on {0, 1, ...} / L, P(rho = j / L) proportional to exp(-epsilon j / L): once per key
    shown     at each tick with n > 0 until it is shown, with probability min(1, exp(-epsilon (threshold_t + rho - n)))

Guarantee    (epsilon, delta)-DP, exactly; a key never falls back, so each neighbour pays for one of the two draws, not
             for both
Relation     add-remove: a unit's records are all there, or none is
Unit         raises n of its j-th key by w_j from one tick on, the sum of all w_j being at most 1
delta        the probability that a key is shown which the unit alone supports: over all ticks and over the unit's keys
             the sum of exp(-epsilon (threshold_t - w_j)) / (1 + exp(-epsilon / L)) is at most delta. Ticks up to the
             horizon have half of delta, and each doubling of it half of what is left: a stream may go on for ever. If
             it ends with the horizon, its ticks have all of delta
Silence      while n and the threshold stand, all ticks have one probability: the wait until one shows the key is one
             geometric draw, under the tick of the change. A later change voids it, and draws anew
Proof        docs/proofs/first-crossing.md
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain

from shoal.mechanisms import check
from shoal.mechanisms.decimals import ceiling, decimal, rounding_up
from shoal.mechanisms.noise.geometric import exactly, geometric, until_success

WORD = 1 << 64
PARTS = 1 << 16  # of the weight of a unit that counts for several keys


@dataclass(frozen=True)
class FirstCrossing:
    """The public parameters. Weights are integers in units of 1 / unit; so are thresholds, rho and n.

    >>> selection = FirstCrossing(Fraction(1), Fraction(1, 10**9), horizon=365)
    >>> selection.threshold(1), selection.threshold(365), selection.threshold(366), selection.threshold(730)
    (29, 29, 29, 29)
    """

    epsilon: Fraction
    delta: Fraction
    horizon: int  # ticks
    weights: tuple[int, ...] = (1,)  # of a unit's first, second, ... key
    unit: int = 1  # L, what all weights add up to at most
    ends: bool = False  # with the horizon, so that its ticks have all of delta

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, horizon=self.horizon, unit=self.unit)
        check.probability(delta=self.delta)
        if not self.weights or min(self.weights) < 1 or sum(self.weights) > self.unit:
            raise ValueError("weights must be positive integers that add up to the unit at most")

    def threshold(self, tick: int) -> int:
        """The number of units, in parts of one, at which a key is likely to be shown at this tick, from 1."""
        check.positive(tick=tick)
        if self.ends and tick > self.horizon:
            raise ValueError("there is no tick after the last one")
        return _threshold(self, self._doubling(tick))

    def next_change(self, tick: int) -> int:
        """The first tick after this one at which the threshold may differ."""
        return (self.horizon << self._doubling(tick)) + 1

    def _doubling(self, tick: int) -> int:
        """0 up to the horizon, 1 up to twice as many ticks, 2 up to four times."""
        return ((tick - 1) // self.horizon).bit_length()

    def rho(self, words: Iterator[int]) -> int:
        """What a key's threshold is raised by, from the key's own words, once and for all."""
        return geometric(exactly(self.epsilon / self.unit), words)

    def crossing(self, tick: int, weight: int, rho: int, words: Iterator[int]) -> int:
        """The tick at which a key is shown that has this weight from `tick` on, unless something changes before.

        Changes are further weight, and `next_change`: at their tick the outcome is void, even if it is that tick.
        `words` belong to this key and tick.
        """
        check.positive(weight=weight)
        missing = self.threshold(tick) + rho - weight
        if missing <= 0:
            return tick
        return tick + geometric(until_success(self.epsilon * missing / self.unit), words)

    def showing(self, tick: int, weight: int, rho: Callable[[], Iterator[int]], words: Iterator[int]) -> int | None:
        """`crossing`, if that is before the threshold changes; else None, mostly after a look at one word.

        `rho` makes the words of the key's own draw, if they are needed.
        """
        word, end = next(words), self.next_change(tick)
        if self._is_later(self.threshold(tick) - weight, end - tick, word):
            return None
        shown = self.crossing(tick, weight, self.rho(rho()), chain((word,), words))
        return shown if shown < end else None

    def _is_later(self, missing: int, ticks: int, word: int) -> bool:
        """Whether a key with so much missing, whatever is added by rho, is surely not shown in so many ticks.

        A wait of at least so many ticks is a uniform number of at most (1 - p)**ticks, which is at least 1 - ticks * p;
        the number is below (word + 1) / 2**64.
        """
        return missing > 0 and word + 1 + ticks * _chance(self.epsilon / self.unit, missing) <= WORD


def falling(keys: int) -> tuple[tuple[int, ...], int]:
    """Weights of a unit's first, second, ... key like 1, 1/2, 1/3, ..., rounded down, and the unit that they keep to.

    >>> falling(1), falling(3)
    (((1,), 1), ((35746, 17873, 11915), 65536))
    """
    check.positive(keys=keys)
    if keys == 1:
        return (1,), 1
    whole = sum(Fraction(1, number) for number in range(1, keys + 1))
    return tuple(int(PARTS / (number * whole)) for number in range(1, keys + 1)), PARTS


@lru_cache(maxsize=1 << 12)
def _chance(rate: Fraction, missing: int) -> int:
    """No less than exp(-rate * missing), in units of 1 / 2**64."""
    with rounding_up():
        return ceiling(decimal(-rate * missing).exp() * WORD)


@lru_cache(maxsize=1024)
def _threshold(selection: FirstCrossing, doubling: int) -> int:
    """The least that keeps the chance of a key without other support, over the ticks of this doubling, in its share."""
    ticks = selection.horizon << max(doubling - 1, 0)
    share = selection.delta if selection.ends else selection.delta / (2 << doubling)
    rate = selection.epsilon / selection.unit
    with rounding_up():
        alone = sum((decimal(rate * weight).exp() for weight in selection.weights), Decimal(0))
        both = 1 + decimal(-rate).exp()
        return ceiling((decimal(ticks / share) * alone / both).ln() / decimal(rate))
