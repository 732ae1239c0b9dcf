"""How much of the cap pays: with few samples per unit, noise for many is wasted; with a low cap, samples are.

Everything here is a function of the configuration and of the pattern, so it costs nothing and moves nothing private.
The choice tunes the accuracy; the guarantee holds for every cap.

At the end there are n units with mu samples on average, if all expected ones come and samples come as before. How much
people differ cannot be seen early, when most have one sample; so a law with a long tail is assumed, under which a cap
of c keeps

    S(c) = n * c * mu / (c + mu)    samples
    noise of the mean, in clip widths                  K * C(c) / (epsilon * S(c)), C(c) the counter's width in them
    bias, by experience with people who differ, too    d**2 / 30, d = 1 - S(c) / S(m) the part that is left out

with K = 1.05 bits(T) for T releases: about the growing BLUE counter's standard deviation at width = epsilon = 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from shoal.mechanisms.workload import BIAS

NOISE = Fraction(21, 20)
EVEN = Fraction(3, 2)  # times as many units with a first block as under the law with the long tail
ALMOST_ALL = Fraction(9, 10)  # is enough, however many samples they have
CLOSED = Fraction(5, 6)  # of the samples in blocks, those in closed ones
MANY_SAMPLES, EARLY = 256, Fraction(1, 3)
LEAST_PATIENCE = 64  # ticks, at any cadence
WORTH = Fraction(3, 2)  # blocks have to take a third off the noise: that units are alike is not known yet


class Beginning(NamedTuple):
    """The way in which a group begins: the pattern at that time, and what was charged."""

    cap: int  # samples of a unit that count
    firsts: int  # units whose first samples a clip range is chosen from
    longs: int  # units whose first blocks it is chosen from; at most one of the two is not 0
    alike: bool  # blocks are clipped by octave; else all like single samples


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected pattern at the end of a stream.

    >>> early = Forecast(units=50, samples=100, users=400, longer=Fraction(8))
    >>> early.mean, [int(early.kept(cap)) for cap in (1, 2, 4, 1000)]
    (Fraction(2, 1), [266, 400, 533, 798])
    """

    units: int  # so far
    samples: int  # of theirs, so far
    users: int  # expected in all
    longer: Fraction  # the whole stream's length over the part that was seen
    releases: int = 365  # in all

    @property
    def mean(self) -> Fraction:
        """mu, the mean number of samples per unit."""
        return max(Fraction(1), self.samples * self.longer / max(self.users, self.units))

    def kept(self, cap: int) -> Fraction:
        """S(cap), the number of samples within the cap."""
        return max(self.users, self.units) * cap * self.mean / (cap + self.mean)

    def noise_sd(self, cap: int, width: Fraction, epsilon: Fraction) -> Fraction:
        """Standard deviation of the mean's noise, in clip widths, if a unit can move `width` of them in all."""
        return NOISE * self.releases.bit_length() * width / (epsilon * self.kept(cap))


def choose_cap(
    forecast: Forecast, caps: Sequence[int], most: int, epsilon: Fraction, widths: Sequence[Fraction] = ()
) -> int:
    """The cap with the least expected squared error of the mean of each unit's first `most` samples.

    `widths` are those that a unit moves by within each cap, in clip widths; without them it is a width per sample.

    >>> early = Forecast(units=4000, samples=4900, users=25000, longer=Fraction(20))
    >>> [choose_cap(early, (1, 2, 4, 8, 16, 32, 64), 64, epsilon) for epsilon in (Fraction(1), Fraction(1, 10))]
    [16, 4]
    """
    # In integers, for plans ask some ten thousand times: with mu = p / q and x = c q + p, the noise is a x / b, and
    # d = p (m - c) / (m x). Of the sum of both squares, what is the same for all caps is left out of the denominator.
    p, q = forecast.mean.as_integer_ratio()
    a, b = (forecast.noise_sd(1, Fraction(1), epsilon) / (p + q)).as_integer_ratio()
    e, f = BIAS.as_integer_ratio()

    def error(cap: int, width: Fraction) -> tuple[Fraction, int]:
        x, (all_, part) = cap * q + p, (width / cap).as_integer_ratio()
        noise, bias = a * all_ * x * f * (most * x) ** 2, e * b * part * (p * (most - cap)) ** 2
        return Fraction(noise * noise + bias * bias, x**4 * part * part), cap

    return min(error(cap, width) for cap, width in zip(caps, widths or map(Fraction, caps), strict=True))[1]


def patience(releases: int, most: int, *, each: bool) -> int:
    """Number of ticks to wait for enough units; twice as many for units or blocks at all.

    A release per contribution (`each`) does not tell the time. Then it is until units have a quarter or half of a
    sample each, or, if they may have many, until even ones would have their first blocks.
    """
    part = Fraction(1)
    if each:
        part = min(part, Fraction(4, most)) if most < MANY_SAMPLES else EARLY
    return math.ceil(releases * part / 16)


def brief(patience: int, day: int | None) -> int:
    """Number of ticks to wait where blocks do not decide: `patience`, but at most a day's, or 64 if a day has fewer.

    A forecast from less than a day takes the rate of some hours for that of all. `day` is the number of ticks of a day;
    None: the length of a tick is not known, and the wait is `patience`.

    >>> brief(548, 24), brief(32850, 1440), brief(23, 1), brief(23, None)
    (64, 1440, 23, 23)
    """
    return patience if day is None else min(patience, max(LEAST_PATIENCE, day))


def blocks_pay(forecast: Forecast, cap: int, most: int, width: Fraction) -> bool:
    """Whether all `most` samples of a unit, in blocks, at a width of `width` clip widths beat the first `cap` alone."""
    return CLOSED * forecast.kept(most) * cap >= WORTH * width * forecast.kept(cap)


def is_even(mean: Fraction, count: int, units: int, reached: int) -> bool:
    """Whether clearly more units have `count` samples, at this mean, than under the long-tailed law.

    Only then will many have all the blocks there are.

    >>> is_even(Fraction(8), 8, 1000, 600), is_even(Fraction(8), 8, 1000, 300)
    (True, False)
    """
    return reached >= units * min(EVEN * (mean / (mean + count)) ** 2, ALMOST_ALL)
