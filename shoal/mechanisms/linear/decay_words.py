"""Decays in words, and as the keys that configurations have for them."""

from dataclasses import fields
from fractions import Fraction
from typing import Any

from shoal.mechanisms.linear.decay import span_of
from shoal.mechanisms.parts import at
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.words import duration, exact_duration


def as_keys(decay: at.Decay) -> dict[str, Any]:
    """Keys of `decay` as a configuration has them, but for None; durations as text, numbers as floats.

    >>> as_keys(at.HalfLife(3_600_000_000)), as_keys(at.Updates(7))
    ({'kind': 'exponential', 'half_life': '1h'}, {'kind': 'window', 'updates': 7})
    """
    stated = {field.name: getattr(decay, field.name) for field in fields(decay)}
    if isinstance(decay, at.HalfLife):
        stated = {"half_life": decay.length}
    if isinstance(decay, at.Updates):
        stated = {"updates": decay.count}
    keys = {name: _plain(name, value) for name, value in stated.items() if value is not None}
    return {"kind": decay.kind, **keys}


def _plain(name: str, value: Any) -> Any:
    if name in ("length", "half_life", "horizon"):
        return exact_duration(value)
    if name == "weights":
        return list(map(float, value))
    return float(value) if isinstance(value, Fraction) else value


def length_of(metric: Metric) -> str:
    """Length of a window, or the half-life or alpha that stands for one."""
    return _length(expect(metric.at, at.Steps).decay)


def _length(decay: at.Decay) -> str:
    return f"alpha {float(decay.alpha):.4g}" if isinstance(decay, at.Exponential) else duration(span_of(decay))


def forgetting(decay: at.Decay) -> str:
    """Span or weights of a sum with this decay, in words.

    >>> forgetting(at.Updates(3)), forgetting(at.Forward(Fraction(2)))
    ('over the last 3 updates', 'with weights (step / newest step)^2')
    """
    match decay:
        case at.Undecayed():
            return "since the beginning"
        case at.Updates():
            return f"over the last {decay.count} updates"
        case at.Window():
            return f"over the last {duration(decay.length)}"
        case at.AllWindows():
            return "over any last steps"
        case at.HalfLife():
            return f"with a half-life of {_length(decay)}"
        case at.Exponential():
            return f"with {_length(decay)}"
        case at.Polynomial():
            return f"with weights (age + 1)^-{float(decay.exponent):g}"
        case at.Forward():
            return f"with weights (step / newest step)^{float(decay.exponent):g}"
        case at.Table():
            return f"with {len(decay.weights)} weights"
        case _:  # at.Formula
            return f"with weights {decay.weight}, i being the age"
