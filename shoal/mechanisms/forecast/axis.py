"""Axes: settings of a metric that a plan changes, the values it tries, and the rules that may refuse them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from shoal.mechanisms.forecast.point import Point
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.rules import Rule, apply


class Trial(NamedTuple):
    """A value of a setting, the metric that has it, and the release that it leads to."""

    value: Any
    metric: Metric
    point: Point


class Axis(NamedTuple):
    """A setting of a metric, the values to try, and how a metric gets one of them."""

    name: str
    values: Sequence[Any]
    change: Callable[[Metric, Any], Metric]
    rules: Sequence[Rule]  # between the parts of such a metric

    def changed(self, metric: Metric, value: Any) -> Metric:
        """The metric with a value of the setting.

        Raises:
            ValueError: a rule between its parts refuses the value.
        """
        other = self.change(metric, value)
        apply(self.rules, other)
        return other

    def tried(self, metric: Metric, release: Callable[[Metric], Point]) -> Iterator[Trial]:
        """Each value with the release that it leads to.

        Raises:
            ValueError: a value is refused.
        """
        for value in self.values:
            other = self.changed(metric, value)
            yield Trial(value, other, release(other))
