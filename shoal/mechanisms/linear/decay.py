"""Decays of the part `at` as the mechanisms of decayed sums take them: with lengths counted in steps."""

import math
from collections.abc import Callable
from fractions import Fraction

from shoal.mechanisms.life import expected_releases, uses_life
from shoal.mechanisms.parts import at
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.sums import decays
from shoal.mechanisms.sums.formula import formula_weights
from shoal.mechanisms.sums.weights import Weights

EVERY = 1 << 60  # steps: all there are
_FORGOTTEN = 20  # binary places: a step whose weight is 0 in them is no part of a key's past


def decay_of(metric: Metric) -> decays.Decay:
    """The decay of a metric, for the releases that are expected of it.

    Raises:
        ValueError: weights that no sum can have.
    """
    steps = expect(metric.at, at.Steps)
    return in_steps(steps.decay, steps.length, expected_releases(metric) if uses_life(metric) else None)


def span_of(decay: at.Decay) -> int:
    """Length of a window, or half-life, in microseconds; 0: the decay has neither."""
    return decay.length if isinstance(decay, at.Window | at.HalfLife) else 0


def in_steps(decay: at.Decay, length: Even, releases: int | None) -> decays.Decay:
    """The decay of sums over steps of this length.

    Args:
        decay: lengths in microseconds, each a multiple of the step.
        length: of a step.
        releases: expected over the metric's life; None: the mechanism's noise does not depend on them.

    Raises:
        ValueError: weights that no sum can have.
    """
    match decay:
        case at.Undecayed():
            return decays.Undecayed(releases)
        case at.Window():
            return decays.Window(length.fits(decay.length))
        case at.Updates():
            return decays.Window(decay.count, of_updates=True)
        case at.AllWindows():
            return decays.AllWindows(releases, decay.zeta or decays.ZETA)
        case at.HalfLife():
            return decays.Exponential.half_life(Fraction(decay.length, length.microseconds))
        case at.Exponential():
            return decays.Exponential(decay.alpha)
        case at.Polynomial():
            horizon = decays.HORIZON if decay.horizon is None else length.fits(decay.horizon)
            return decays.Polynomial(decay.exponent, horizon, decay.error or decays.ERROR)
        case at.Forward():
            return decays.Forward(decay.exponent, releases)
        case at.Table():
            return decays.Listed(_of_decay(lambda: Weights.of(decay.weights)), decay.error or decays.ERROR)
        case _:  # at.Formula
            weights = _of_decay(lambda: formula_weights(decay.weight, length.fits(decay.horizon)))
            return decays.Listed(weights, decay.error or decays.ERROR)


def _of_decay(weights: Callable[[], Weights]) -> Weights:
    try:
        return weights()
    except ValueError as refused:
        raise ValueError(f"decay {refused}") from None


def history_of(decay: decays.Decay) -> int:
    """The steps before a key's first release that are given to its sums one by one; 0: all at once, as one step.

    What is older weighs nothing, or less than a millionth. All of a past may come as one step only where a sum does not
    forget: elsewhere it would get one age.

    Raises:
        ValueError: the decay tells when somebody contributes.
    """
    match decay:
        case decays.Undecayed():
            return 0
        case decays.Window(length=length, of_updates=False):
            return length
        case decays.Listed():
            return decay.length
        case decays.Exponential(alpha=alpha):
            rate = -math.log1p(-float(1 - alpha)) / math.log(2)
            return min(math.ceil(_FORGOTTEN / rate), EVERY)
        case decays.Polynomial(exponent=exponent):
            return min(math.ceil(2 ** (_FORGOTTEN / float(exponent))), EVERY)
        case decays.Forward():
            return EVERY
    raise ValueError("this decay tells when somebody contributes; use a window, or none")
