"""Accounting: what losses of privacy add up to, over mechanisms, events of one user, and units.

Guarantee    if the losses that go in are upper bounds, so is the result; every rounding is upwards, and
             downwards where the result is what may be spent
Relation     any; a loss is that of one unit: an event, a person and day, a person
Composition  mechanisms on the same units add up, also if the later ones depend on releases of the earlier ones
Groups       k units, as k events of one user: k epsilon, delta (1 + e**epsilon + ... + e**((k - 1) epsilon)); k**2 rho
Parallel     over disjoint sets of users, never over time: a user comes back
Arithmetic   epsilon and rho are exact fractions; exp, ln and roots are decimals, rounded in the safe direction
Proof        docs/proofs/accounting.md
Source       Dwork and Roth (2014), sections 3.5 and 2.3; Dwork, Rothblum and Vadhan (2010); Bun and Steinke (2016);
             McSherry (2009) for parallel composition
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import Self

from shoal.mechanisms import check
from shoal.mechanisms.privacy import zcdp

# Of 200 digits at least 100 are right, as epsilon is _LEAST or more; e**1000 times any delta that is one is above 1.
_EXACT = Context(prec=200, Emax=10**6, Emin=-(10**6))
_UP, _DOWN = (Context(prec=20, rounding=side, Emax=10**6, Emin=-(10**6)) for side in (ROUND_CEILING, ROUND_FLOOR))
_ABOVE, _BELOW = (Context(prec=60, rounding=side, Emax=10**6, Emin=-(10**6)) for side in (ROUND_CEILING, ROUND_FLOOR))
_SLACK, _FAR = Fraction(1, 10**60), 1000
_NONE, _ONE = Fraction(0), Fraction(1)
_LEAST = Fraction(1, 10**60)  # a smaller epsilon costs as if it were this one

_NOT_PARALLEL = {
    "time": "a user comes back, and the releases of both times tell of the same user: add the losses up, or protect "
    "one period of a user's (unit user-day) and say so",
    "groups": "a user may be in several: bound in how many, and add up the losses of so many",
}


@dataclass(frozen=True, slots=True)
class Loss:
    """(epsilon, delta): the most that one unit loses. Pure if delta is 0; a delta of 1 or more promises nothing.

    Shapes   two Fractions; `+` composes two mechanisms on the same units; `of_group(k)` is the loss of k units, and
             `share(k)` what each of k may lose
    Units    natural logarithms of ratios of probabilities, of one unit: an event, a person and day, a person
    Raises   TypeError: a float; ValueError: a number below 0
    Source   Dwork and Roth (2014), sections 3.5 and 2.3; docs/proofs/accounting.md

    >>> Loss(Fraction(1)) + Loss(Fraction(1, 2), Fraction(1, 8)) == Loss(Fraction(3, 2), Fraction(1, 8))
    True
    """

    epsilon: Fraction
    delta: Fraction = _NONE

    def __post_init__(self) -> None:
        check.not_negative(epsilon=self.epsilon, delta=self.delta)

    def __add__(self, other: Self) -> Self:
        """Basic composition of two mechanisms on the same units, exactly."""
        return type(self)(self.epsilon + other.epsilon, self.delta + other.delta)

    def of_group(self, count: int) -> Self:
        """The loss of `count` units together, or of a user with that many events: epsilon exact, delta rounded up.

        >>> Loss(Fraction(1, 10)).of_group(24) == Loss(Fraction(24, 10))
        True
        >>> float(Loss(Fraction(1), Fraction(1, 10**9)).of_group(2).delta)
        3.7182818284590454e-09
        """
        check.positive(count=count)
        return type(self)(count * self.epsilon, group_delta(count, self.epsilon, self.delta))

    def share(self, count: int) -> Self:
        """The most that each of a user's events, `count` of them at most, may lose for the user to lose this.

        >>> Loss(Fraction(1)).share(24) == Loss(Fraction(1, 24))
        True
        """
        check.positive(count=count)
        epsilon = self.epsilon / count
        if count == 1 or not self.delta:
            return type(self)(epsilon, self.delta)
        if self.epsilon > _FAR:
            return type(self)(epsilon)
        return type(self)(epsilon, _rounded(self.delta / _times(count, epsilon), _DOWN))


NOTHING = Loss(_NONE)


@dataclass(frozen=True, slots=True)
class Concentrated:
    """rho-zCDP: the most that one unit loses in Renyi divergences, by which Gaussian noise composes best.

    Shapes   a Fraction; `+` composes two mechanisms on the same units; `of_group(k)`, `share(k)` as of `Loss`;
             `of_pure(epsilon)` makes one of a pure loss, and `loss(delta)` converts to one
    Units    of one unit; rho grows with the square of a group
    Raises   TypeError: a float; ValueError: a number below 0, a delta that is not between 0 and 1
    Source   Bun and Steinke (2016), Propositions 1.4 and 1.9; Canonne, Kamath and Steinke (2020), Corollary 13;
             docs/proofs/accounting.md

    >>> Concentrated(Fraction(1, 100)).of_group(3) == Concentrated(Fraction(9, 100))
    True
    """

    rho: Fraction

    def __post_init__(self) -> None:
        check.not_negative(rho=self.rho)

    @classmethod
    def of_pure(cls, epsilon: Fraction) -> Self:
        """The rho that a mechanism of pure epsilon satisfies."""
        check.not_negative(epsilon=epsilon)
        return cls(epsilon**2 / 2)

    @classmethod
    def of_exponential(cls, epsilon: Fraction) -> Self:
        """The rho of the exponential mechanism of pure epsilon.

        It is smaller than `of_pure`, for its logarithms of ratios lie within epsilon in all.
        """
        check.not_negative(epsilon=epsilon)
        return cls(epsilon**2 / 8)

    def __add__(self, other: Self) -> Self:
        return type(self)(self.rho + other.rho)

    def of_group(self, count: int) -> Self:
        check.positive(count=count)
        return type(self)(count**2 * self.rho)

    def share(self, count: int) -> Self:
        """The most that each of a user's events, `count` of them at most, may lose for the user to lose this."""
        check.positive(count=count)
        return type(self)(self.rho / count**2)

    def loss(self, delta: Fraction) -> Loss:
        """The smallest epsilon at this delta.

        >>> round(float(Concentrated(Fraction(1747, 10**5)).loss(Fraction(1, 10**6)).epsilon), 3)
        0.837
        """
        return Loss(zcdp.smallest_epsilon(self.rho, delta), delta)

    def simple_loss(self, delta: Fraction) -> Loss:
        """The loss by the textbook's formula, rho + 2 sqrt(rho ln(1 / delta)), which is larger.

        >>> round(float(Concentrated(Fraction(1747, 10**5)).simple_loss(Fraction(1, 10**6)).epsilon), 3)
        1.0
        """
        check.probability(delta=delta)
        return Loss(self.rho + 2 * root_above(self.rho * log_inverse_above(delta)), delta)


def advanced(losses: Iterable[Loss], delta: Fraction) -> Loss:
    """Advanced composition: for a further delta, many small losses add up to about a root of their number.

        sum of epsilon min(1, e**epsilon - 1)  +  sqrt(2 ln(1 / delta) sum of epsilon**2)

    Shapes   losses of mechanisms on the same units, and a Fraction; a Loss
    Units    those of `Loss`
    Raises   TypeError: a float; ValueError: a delta that is not between 0 and 1
    Source   Dwork, Rothblum and Vadhan (2010); docs/proofs/accounting.md

    It need not be below the plain sum; it is where losses are many and small.

    >>> hundred = [Loss(Fraction(1, 20))] * 100
    >>> round(float(advanced(hundred, Fraction(1, 10**6)).epsilon), 3), sum(hundred, NOTHING).epsilon
    (2.885, Fraction(5, 1))
    """
    check.probability(delta=delta)
    all_of_them = list(losses)
    squares = sum((loss.epsilon**2 for loss in all_of_them), _NONE)
    mean = sum((loss.epsilon * min(_ONE, exp_above(min(_ONE, loss.epsilon)) - 1) for loss in all_of_them), _NONE)
    deltas = sum((loss.delta for loss in all_of_them), delta)
    return Loss(mean + root_above(2 * squares * log_inverse_above(delta)), deltas)


def parallel(losses: Iterable[Loss], *, over: str) -> Loss:
    """The largest loss, where each mechanism sees a part of the data and no unit is in two parts.

    >>> parallel([Loss(Fraction(1)), Loss(Fraction(2))], over="users").epsilon
    Fraction(2, 1)

    Raises:
        ValueError: the parts are not sets of users.
    """
    if over != "users":
        reason = _NOT_PARALLEL.get(over, "the parts must be disjoint sets of users, chosen without their values")
        raise ValueError(f"parts by {over} are not parallel: {reason}")
    all_of_them = [NOTHING, *losses]
    return Loss(max(loss.epsilon for loss in all_of_them), max(loss.delta for loss in all_of_them))


def group_delta(count: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """`delta` times the sum of e**(i epsilon) over i below count, rounded up; any result of 1 or more becomes 1.

    It is at most count e**((count - 1) epsilon) delta, the bound that is easier to remember.
    """
    if count == 1 or not delta:
        return delta
    if count * epsilon > _FAR:
        return _ONE
    return min(_ONE, _rounded(delta * _times(count, epsilon), _UP))


def _times(count: int, epsilon: Fraction) -> Fraction:
    """An upper bound on the sum of e**(i epsilon) over i below count."""
    with localcontext(_EXACT):
        least = max(epsilon, _LEAST)
        rate = Decimal(least.numerator) / least.denominator
        times = ((count * rate).exp() - 1) / (rate.exp() - 1)
    return Fraction(times) * (1 + _SLACK)


def exp_above(exponent: Fraction) -> Fraction:
    """A close upper bound on e**exponent."""
    return Fraction(_decimal(exponent, _ABOVE).exp(_ABOVE).next_plus(_ABOVE))  # exp is rounded to the nearest


def log_inverse_above(delta: Fraction) -> Fraction:
    """A close upper bound on ln(1 / delta)."""
    return -Fraction(_decimal(delta, _BELOW).ln(_BELOW).next_minus(_BELOW))


def root_above(square: Fraction) -> Fraction:
    """A close upper bound on the square root; 0 for 0."""
    return Fraction(_decimal(square, _ABOVE).sqrt(_ABOVE).next_plus(_ABOVE)) if square else _NONE


def _rounded(value: Fraction, side: Context) -> Fraction:
    return Fraction(_decimal(value, side))


def _decimal(value: Fraction, side: Context) -> Decimal:
    return side.divide(*map(Decimal, value.as_integer_ratio()))
