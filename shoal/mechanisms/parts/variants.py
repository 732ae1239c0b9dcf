"""Variants of a metric: copies with another setting, which plans compare; rules between parts are not applied."""

from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from shoal.mechanisms.parts.at import Decay, Steps, Ticks
from shoal.mechanisms.parts.by import Algorithm
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import Events
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Distribution, Mean, Variance


def with_samples(metric: Metric, samples: int) -> Metric:
    """Copy in which `samples` samples of a unit count; of unit event the metric itself, as a unit is one sample."""
    limits = metric.hides.limits
    if isinstance(limits, Events):
        return metric
    return replace(metric, hides=replace(metric.hides, limits=replace(limits, samples=samples)))


def with_epsilon(metric: Metric, epsilon: Fraction) -> Metric:
    """Copy with another epsilon; the epsilon that finds keys or chooses ranges stays as it is."""
    return replace(metric, budget=replace(metric.budget, epsilon=epsilon))


def with_life(metric: Metric, life: int | None) -> Metric:
    """Copy with another life, in microseconds; None: not stated."""
    return replace(metric, at=replace(expect(metric.at, Ticks, Steps), life=life))


def with_users(metric: Metric, users: int | None) -> Metric:
    """Copy with another number of expected users; None: not stated."""
    return replace(metric, by=replace(metric.by, users=users))


def with_decay(metric: Metric, decay: Decay) -> Metric:
    """Copy of a metric of every step with another decay."""
    return replace(metric, at=replace(expect(metric.at, Steps), decay=decay))


def with_algorithm(metric: Metric, cls: type[Algorithm], **given: Any) -> Metric:
    """Copy with an algorithm of class `cls`: it keeps the fields that both algorithms have, and `given` replaces some.

    A clamp that is the default of the old algorithm becomes the default of the new one.
    """
    of, by = metric.of, metric.by
    both = {field.name for field in fields(cls)} & {field.name for field in fields(by)}
    if isinstance(of, Mean | Variance | Distribution) and of.clamp == by.clamps:
        of = replace(of, clamp=cls.clamps)
    return replace(metric, of=of, by=cls(**({name: getattr(by, name) for name in both} | given)))
