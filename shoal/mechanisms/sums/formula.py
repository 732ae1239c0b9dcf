"""Weights by a formula of the age: `1 / (1 + i)^1.5` is what a step of age i weighs.

Grammar      that of expressions.py: numbers, i, + - * / ^, exp(), ln(), sqrt() and parentheses
Rounding     60 decimal digits; each of + - * / exp ln sqrt rounds correctly, and x^y is exp(y ln x): the same digits on
             every machine. A weight is then rounded down to steps of 2**-40, and these weights are exact and public
Coverage     ages below a horizon, where the last weight is at most 1 / 1000 of the first: a decay that is slower, whose
             inverse grows exponentially or that does not fall at all, is not near any sum of windows that are so short
"""

from collections.abc import Callable, Mapping
from decimal import Context, Decimal, DecimalException, localcontext
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms.expressions import Call, Expression, Name, Number, parse
from shoal.mechanisms.sums.sums import UNIT
from shoal.mechanisms.sums.weights import MOST, Weights

FADED = 1000
_CONTEXT = Context(prec=60)
_SLACK = Decimal("1e-30")  # of a step of 2**-40, so that a weight that is exact is not rounded to the one below
_BINARY: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "^": lambda x, y: (x.ln() * y).exp(),
}
_UNARY: Mapping[str, Callable[[Decimal], Decimal]] = {
    "-": lambda x: -x,
    "exp": Decimal.exp,
    "ln": Decimal.ln,
    "sqrt": Decimal.sqrt,
}


@lru_cache(maxsize=64)
def formula_weights(text: str, ages: int) -> Weights:
    """The weights of the ages 0 .. ages - 1.

    >>> weights = formula_weights("1 / (1 + i)^1.5", 1000)
    >>> weights.weight(0), round(weights.weight(3), 9), weights.length
    (1.0, 0.125, 1000)

    Raises:
        ValueError: it is no formula, has no such values, rises, or hardly falls.
    """
    if ages > MOST:
        raise ValueError(f"horizon is {ages} steps; weights by a formula reach at most {MOST}; make step longer")
    tree = parse(text)
    _check(tree)
    weights: list[Fraction] = []
    with localcontext(_CONTEXT):
        for age in range(ages):
            try:
                value = _value(tree, Decimal(age))
            except DecimalException:
                raise ValueError(f"weight has no value at an age of {age} steps") from None
            if not 0 <= value <= 1 + _SLACK:
                raise ValueError(f"weight does not lie in [0, 1] at an age of {age} steps")
            weights.append(Fraction(min(int(value * UNIT + _SLACK), UNIT), UNIT))
    if weights[-1] * FADED > weights[0]:
        raise ValueError(
            f"weight at the horizon is still {float(weights[-1]):.3g}, and older steps weigh nothing: it must be at "
            f"most 1 / {FADED} of the first; make horizon longer, or list weights that end so (kind table)"
        )
    return Weights.of(weights)


def _check(tree: Expression) -> None:
    """Refuse what is no formula of the age."""
    match tree:
        case Number() | Name("i"):
            return
        case Call(of, (x, y)) if of in _BINARY:
            _check(x)
            _check(y)
        case Call(of, (x,)) if of in _UNARY:
            _check(x)
        case _:
            raise ValueError(f"weight: {tree} is not for formulas; they have numbers, i, + - * / ^, exp, ln and sqrt")


def _value(tree: Expression, age: Decimal) -> Decimal:
    match tree:
        case Number(written):
            return +Decimal(written)
        case Call(of, (x, y)):
            return _BINARY[of](_value(x, age), _value(y, age))
        case Call(of, (x,)):
            return _UNARY[of](_value(x, age))
    return age
