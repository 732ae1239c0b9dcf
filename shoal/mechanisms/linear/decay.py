"""Decays of the part `at` as the mechanisms of decayed sums take them: with lengths counted in steps."""

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


def decay_of(metric: Metric) -> decays.Decay:
    """The decay of a metric, for the releases that are expected of it.

    Raises:
        ValueError: weights that no sum can have.
    """
    steps = expect(metric.at, at.Steps)
    return in_steps(steps.decay, steps.length, expected_releases(metric) if uses_life(metric) else None)


def rest_of(metric: Metric) -> int:
    """Silent steps after which a group of a metric under relation values rests."""
    return expect(expect(metric.at, at.Steps).rest, int)


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
