"""From (epsilon, delta) to zero-concentrated privacy: how large a rho may be spent.

Guarantee    rho-zCDP with the rho given here implies (epsilon, delta)-DP; every rounding is on the safe side
Conversion   delta = exp((alpha - 1)(alpha rho - epsilon)) (1 - 1 / alpha)**alpha / (alpha - 1), for any alpha > 1
Arithmetic   decimal, 150 digits, whose logarithms are correctly rounded: the same digits on every machine
Proof        docs/proofs/discrete-gaussian.md
Source       Canonne, Kamath and Steinke (2020), Corollary 13; Bun and Steinke (2016)
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms import check

_FLOOR, _CEILING = (Context(prec=150, rounding=rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
_SEARCH = Context(prec=20)
_GOLDEN = Decimal("0.6180339887498949")
_STEPS = 60  # of the search, each to 0.618 of the range; rho is flat where it is largest


def gaussian_sigma2(squared_sensitivity: Fraction | int, rho: Fraction) -> Fraction:
    """The sigma2 with which discrete Gaussian noise on integers of this squared L2 sensitivity is rho-zCDP.

    >>> gaussian_sigma2(9, Fraction(1, 8))
    Fraction(36, 1)
    """
    check.positive(squared_sensitivity=squared_sensitivity, rho=rho)
    return squared_sensitivity / (2 * Fraction(rho))


@lru_cache(maxsize=1 << 10)
def largest_rho(epsilon: Fraction | int, delta: Fraction) -> Fraction:
    """The largest rho, but for the last digits, whose zCDP implies (epsilon, delta)-DP.

    >>> round(float(largest_rho(Fraction(1), Fraction(1, 10**6))), 5)
    0.02436
    """
    check.positive(epsilon=epsilon)
    check.probability(delta=delta)
    target, failure = _rounded_down(epsilon), _rounded_down(delta)
    with localcontext(_SEARCH):
        low, high = Decimal(-40), 5 - failure.ln()  # of the logarithm of alpha - 1
        for _ in range(_STEPS):
            left, right = high - (high - low) * _GOLDEN, low + (high - low) * _GOLDEN
            if rho_at(left.exp(), target, failure) < rho_at(right.exp(), target, failure):
                low = left
            else:
                high = right
        best = rho_at(low.exp(), target, failure)
    check.positive(rho=Fraction(best))
    return Fraction(best)


def rho_at(beta: Decimal, epsilon: Decimal, delta: Decimal) -> Decimal:
    """The rho for which the conversion with alpha = 1 + beta gives delta, rounded down where it is above 0.

    rho = (epsilon + (log(delta) + alpha log(alpha) - beta log(beta)) / beta) / alpha
    """
    least, most = _FLOOR.add(1, beta), _CEILING.add(1, beta)
    gain = _FLOOR.multiply(least, least.ln(_FLOOR).next_minus(_FLOOR))  # logarithms are rounded to the nearest
    loss = _CEILING.multiply(beta, beta.ln(_CEILING).next_plus(_CEILING))
    excess = _FLOOR.add(_FLOOR.subtract(gain, loss), delta.ln(_FLOOR).next_minus(_FLOOR))
    return _FLOOR.divide(_FLOOR.add(epsilon, _FLOOR.divide(excess, beta)), most)


def _rounded_down(value: Fraction | int) -> Decimal:
    return _FLOOR.divide(*map(Decimal, Fraction(value).as_integer_ratio()))
