"""How a sharp mean spends a rho: a small part of it on private calls, all the rest on its counter.

Guarantee    rho-zCDP for calls and counter together, in any order and whatever they react to (docs/proofs/sharp.md). A
             call of pure epsilon is an exponential mechanism, hence (epsilon**2 / 8)-zCDP
Budget       calls have shares of an epsilon that grows like the root of rho; so what they take is the same part of rho
             for every rho, and with d coordinates they are sqrt(d) times less exact, as the counter is
"""

import math
from fractions import Fraction

CALLS = 7  # with it a centre and a scale of first samples take 9 % of rho
_DIGITS = 24  # binary, of a root
# Standard deviation of the counter's release T, in widths, times sqrt(2 rho): about 0.85 + ln(T) / pi.
_START, _SLOPE = Fraction(17, 20), Fraction(11, 50)
_LAPLACE = Fraction(21, 20)  # that of the growing BLUE counter, times epsilon and over the bits of T (cap.py)


def call_epsilon(rho: Fraction) -> Fraction:
    """The epsilon of whose shares calls are made.

    >>> round(float(call_epsilon(Fraction(1, 40))), 4)
    1.1068
    """
    return CALLS * root_below(rho)


def noise_epsilon(rho: Fraction, releases: int) -> Fraction:
    """The epsilon with which a growing BLUE counter would have about the noise that this rho has; it tunes alone.

    >>> round(float(noise_epsilon(Fraction(1, 40), 365)), 2)
    0.75
    """
    bits = releases.bit_length()
    return root_below(2 * rho * (_LAPLACE * bits / (_START + _SLOPE * bits)) ** 2)


def part_of_noise(part: Fraction) -> Fraction:
    """What noise with that part of a rho is like: that part of an epsilon."""
    return root_below(part)


def root_below(square: Fraction) -> Fraction:
    """The square root, rounded down to some 24 binary digits, with which fractions stay small.

    >>> root_below(Fraction(9, 4)), 1 - root_below(Fraction(1, 10**100)) * 10**50 < Fraction(1, 10**6)
    (Fraction(3, 2), True)
    """
    size = square.numerator.bit_length() - square.denominator.bit_length()
    shift = _DIGITS - (size >> 1)
    scaled = square * Fraction(4) ** shift
    return Fraction(math.isqrt(math.floor(scaled))) / Fraction(2) ** shift
