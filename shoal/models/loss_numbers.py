"""Amounts of privacy as text: exact, or rounded up to digits that say something."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from shoal.mechanisms.privacy.accounting import Loss, exp_above
from shoal.models.exact import exact_text

_UP, _SIX_DIGITS = (Context(prec=digits, rounding=ROUND_CEILING) for digits in (3, 6))
_MILLION, _HOPELESS = 10**6, 100  # factors beyond are told by their size; beyond this epsilon, not at all


def amount(epsilon: Fraction, delta: Fraction) -> str:
    """Exactly.

    >>> amount(Fraction(1, 2), Fraction(0)), amount(Fraction(1), Fraction(1, 1000))
    ('epsilon = 0.5', 'epsilon = 1, delta = 0.001')
    """
    return f"epsilon = {exact_text(epsilon)}" + (f", delta = {exact_text(delta)}" if delta else "")


def told(loss: Loss) -> str:
    """Epsilon exactly; delta, which has twenty digits, with three."""
    if loss.delta >= 1:
        return f"epsilon = {exact_text(loss.epsilon)}, with a delta that promises nothing"
    return f"epsilon = {exact_text(loss.epsilon)}" + (f", delta = {rounded_up(loss.delta)}" if loss.delta else "")


def factor(loss: Loss) -> str:
    """By how much epsilon multiplies probabilities at most; rounded up.

    >>> factor(Loss(Fraction(1))), factor(Loss(Fraction(101)))
    ('2.72', 'e^101, which protects nothing')
    """
    if loss.epsilon > _HOPELESS:
        return f"e^{exact_text(loss.epsilon)}, which protects nothing"
    return rounded_up(exp_above(loss.epsilon))


def rounded_up(value: Fraction) -> str:
    """Three digits, rounded up.

    >>> rounded_up(Fraction("2.7182")), rounded_up(Fraction("1096.6")), rounded_up(Fraction(1, 10**6))
    ('2.72', '1100', '0.000001')
    """
    digits = _UP.divide(*map(Decimal, value.as_integer_ratio()))
    return f"{digits:f}" if 1 <= digits < _MILLION else str(digits).lower()


def six_digits(loss: Loss) -> Loss:
    """The loss with an epsilon of six digits, rounded up."""
    return Loss(Fraction(_SIX_DIGITS.divide(*map(Decimal, loss.epsilon.as_integer_ratio()))), loss.delta)
