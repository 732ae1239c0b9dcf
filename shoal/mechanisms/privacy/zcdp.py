"""From (epsilon, delta) to zero-concentrated privacy, and back: how large a rho may be spent, and what it costs.

Guarantee    rho-zCDP implies (epsilon, delta)-DP with the rho or epsilon given here; every rounding is on the safe side
Conversion   delta = exp((alpha - 1)(alpha rho - epsilon)) (1 - 1 / alpha)**alpha / (alpha - 1), for any alpha > 1
Arithmetic   decimal, 150 digits, whose logarithms are correctly rounded: the same digits on every machine
Proof        docs/proofs/discrete-gaussian.md
Source       Canonne, Kamath and Steinke (2020), Corollary 13; Bun and Steinke (2016)
"""

from collections.abc import Callable
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
    """The largest rho, to within rounding, whose zCDP implies (epsilon, delta)-DP.

    Shapes   exact numbers in, a Fraction out, rounded down
    Units    of one unit
    Raises   TypeError: a float; ValueError: an epsilon that is not above 0, a delta that is not between 0 and 1
    Source   Canonne, Kamath and Steinke (2020), Corollary 13; docs/proofs/discrete-gaussian.md

    >>> round(float(largest_rho(Fraction(1), Fraction(1, 10**6))), 5)
    0.02436
    """
    check.positive(epsilon=epsilon)
    check.probability(delta=delta)
    target, failure = _rounded_down(epsilon), _rounded_down(delta)
    best = _largest(lambda beta: rho_at(beta, target, failure), _SEARCH.subtract(5, failure.ln(_SEARCH)))
    check.positive(rho=Fraction(best))
    return Fraction(best)


@lru_cache(maxsize=1 << 10)
def smallest_epsilon(rho: Fraction | int, delta: Fraction) -> Fraction:
    """The smallest epsilon, to within rounding, for which rho-zCDP implies (epsilon, delta)-DP.

    Shapes   exact numbers in, a Fraction out, rounded up
    Units    of one unit
    Raises   TypeError: a float; ValueError: a rho below 0, a delta that is not between 0 and 1
    Source   Canonne, Kamath and Steinke (2020), Corollary 13; docs/proofs/discrete-gaussian.md

    >>> round(float(smallest_epsilon(largest_rho(Fraction(1), Fraction(1, 10**6)), Fraction(1, 10**6))), 9)
    1.0
    """
    check.not_negative(rho=rho)
    check.probability(delta=delta)
    if not rho:
        return Fraction(0)
    spent, failure = _CEILING.divide(*map(Decimal, Fraction(rho).as_integer_ratio())), _rounded_down(delta)
    high = _SEARCH.subtract(5, failure.ln(_SEARCH) + min(Decimal(0), spent.ln(_SEARCH)))
    best = _largest(lambda beta: epsilon_at(beta, spent, failure).copy_negate(), high)  # a minus would round
    return max(Fraction(0), -Fraction(best))


def _largest(value: Callable[[Decimal], Decimal], high: Decimal) -> Decimal:
    """The value at the best beta = alpha - 1 whose logarithm is below `high`; any beta is right."""
    with localcontext(_SEARCH):
        low = Decimal(-40)
        for _ in range(_STEPS):
            left, right = high - (high - low) * _GOLDEN, low + (high - low) * _GOLDEN
            if value(left.exp()) < value(right.exp()):
                low = left
            else:
                high = right
        return value(low.exp())


def rho_at(beta: Decimal, epsilon: Decimal, delta: Decimal) -> Decimal:
    """The rho for which the conversion with alpha = 1 + beta gives delta, rounded down where it is above 0.

    rho = (epsilon + (log(delta) + alpha log(alpha) - beta log(beta)) / beta) / alpha
    """
    least, most = _FLOOR.add(1, beta), _CEILING.add(1, beta)
    excess = _excess(beta, least, delta)
    return _FLOOR.divide(_FLOOR.add(epsilon, _FLOOR.divide(excess, beta)), most)


def epsilon_at(beta: Decimal, rho: Decimal, delta: Decimal) -> Decimal:
    """The epsilon for which the conversion with alpha = 1 + beta gives delta, rounded up.

    epsilon = alpha rho - (log(delta) + alpha log(alpha) - beta log(beta)) / beta
    """
    least, most = _FLOOR.add(1, beta), _CEILING.add(1, beta)
    return _CEILING.subtract(_CEILING.multiply(most, rho), _FLOOR.divide(_excess(beta, least, delta), beta))


def _excess(beta: Decimal, least: Decimal, delta: Decimal) -> Decimal:
    """log(delta) + alpha log(alpha) - beta log(beta), rounded down; alpha is `least` or slightly more."""
    gain = _FLOOR.multiply(least, least.ln(_FLOOR).next_minus(_FLOOR))  # logarithms are rounded to the nearest
    loss = _CEILING.multiply(beta, beta.ln(_CEILING).next_plus(_CEILING))
    return _FLOOR.add(_FLOOR.subtract(gain, loss), delta.ln(_FLOOR).next_minus(_FLOOR))


def _rounded_down(value: Fraction | int) -> Decimal:
    return _FLOOR.divide(*map(Decimal, Fraction(value).as_integer_ratio()))
