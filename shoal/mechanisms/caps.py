"""How much of the cap pays: with few samples per unit, noise for many is wasted; with a low cap, samples are.

Everything here is a function of the configuration and of the pattern, so it costs nothing and moves nothing private.
The choice tunes the accuracy; the guarantee holds for every cap.

Let S(c) be the samples that count at a cap of c, the sum over units of min(M_u, c). The pattern so far gives S at
powers of two. At the end there are g times the units and each has s times the samples, so

    S_end(c) = g * s * S(c / s)    where g * s is how much longer all lasts than it did, g = users / units so far

    noise of the mean, in clip widths                  K * C(c) / (epsilon * S_end(c)), C(c) the counter's width in them
    bias, by experience with people who differ, too    d**2 / 8, d = 1 - S_end(c) / S_end(m) the part that is left out
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

NOISE = Fraction(9)  # K: standard deviation of a counter's noise at width = epsilon = 1 after about a year of days
BIAS = Fraction(1, 8)
CLOSED = Fraction(5, 6)  # of the samples in blocks, those in closed ones
WORTH = 2  # blocks have to halve the noise: that units are alike is not known yet


@dataclass(frozen=True, slots=True)
class Forecast:
    """The pattern at the end of a stream.

    >>> early = Forecast(pattern=(4, 6, 7, 7, 7), users=8, longer=Fraction(8))
    >>> [int(early.samples(cap)) for cap in (1, 2, 4, 8, 16)]
    [8, 16, 32, 48, 56]
    """

    pattern: Sequence[int]  # S(1), S(2), S(4), ...
    users: int  # expected in all
    longer: Fraction  # the whole stream's length over the part that was seen

    @property
    def growth(self) -> Fraction:
        """g: units in all over units so far."""
        return max(Fraction(1), Fraction(self.users, self.pattern[0]))

    @property
    def stretch(self) -> Fraction:
        """s: samples of a unit in all over its samples so far."""
        return max(Fraction(1), self.longer / self.growth)

    def samples(self, cap: int) -> Fraction:
        """S_end(cap)."""
        return self.growth * self.stretch * self._so_far(cap / self.stretch)

    def _so_far(self, cap: Fraction) -> Fraction:
        """S(cap), linear between powers of two."""
        if cap <= 1:
            return self.pattern[0] * cap
        below = int(cap).bit_length() - 1
        if below + 1 >= len(self.pattern):
            return Fraction(self.pattern[-1])
        low, high = self.pattern[below], self.pattern[below + 1]
        return low + (high - low) * (cap / (1 << below) - 1)


def choose_cap(forecast: Forecast, caps: Sequence[int], most: int, epsilon: Fraction) -> int:
    """Of the caps, that with the least expected squared error of the mean of the first `most` samples of each unit.

    >>> early = Forecast(pattern=(4000, 4200, 4300, 4300, 4300), users=20000, longer=Fraction(30))
    >>> choose_cap(early, (1, 2, 4, 8, 16, 32, 64), 64, Fraction(1))
    8
    """

    def error(cap: int) -> tuple[Fraction, int]:
        samples = forecast.samples(cap)
        left_out = 1 - samples / forecast.samples(most)
        return noise(forecast, cap, Fraction(cap), epsilon) ** 2 + (BIAS * left_out * left_out) ** 2, cap

    return min(caps, key=error)


def blocks_pay(forecast: Forecast, cap: int, most: int, width: Fraction) -> bool:
    """Whether all `most` samples of a unit, in blocks, at a width of `width` clip widths beat the first `cap` alone."""
    return CLOSED * forecast.samples(most) * cap >= WORTH * width * forecast.samples(cap)


def noise(forecast: Forecast, cap: int, width: Fraction, epsilon: Fraction) -> Fraction:
    """The noise of the mean at the end, in clip widths, where a unit can move `width` of them in all."""
    return NOISE * width / (epsilon * forecast.samples(cap))
