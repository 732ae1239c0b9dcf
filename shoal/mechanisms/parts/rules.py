"""Rules between parts of a metric: functions that refuse a combination, with the parts they read as parameters."""

from collections.abc import Callable, Iterable
from functools import cache
from inspect import signature

from shoal.mechanisms.parts.at import EachContribution, Slots, Steps, Ticks
from shoal.mechanisms.parts.by import Algorithm, Sharp
from shoal.mechanisms.parts.hides import AddRemove
from shoal.mechanisms.parts.metric import Metric

Rule = Callable[..., None]


class NotAMultiple(ValueError):
    """A time between two multiples of a step or slot; `nearest` are these two, in microseconds since the epoch."""

    def __init__(self, key: str, span_key: str, nearest: tuple[int, int]) -> None:
        super().__init__(f"{key} is not a multiple of {span_key}, counted from 1970-01-01")
        self.nearest = nearest


def apply(rules: Iterable[Rule], metric: Metric) -> None:
    """Call each rule with the parts that its parameters name.

    Raises:
        ValueError: a rule refuses the combination; the key, what is wrong, and the remedy.
    """
    for rule in rules:
        rule(*(getattr(metric, part) for part in _parts_of(rule)))


@cache
def _parts_of(rule: Rule) -> tuple[str, ...]:
    return tuple(signature(rule).parameters)


def names_of(algorithms: Iterable[type[Algorithm]]) -> str:
    """Names of algorithms in a sentence."""
    return ", ".join(algorithm.name for algorithm in algorithms)


def life(at: Ticks | Steps | EachContribution, by: Algorithm) -> None:
    """Refuse `life` for any algorithm but sharp, the only one whose counters are made for it."""
    if not isinstance(at, EachContribution) and at.life is not None and not isinstance(by, Sharp):
        raise ValueError(f"life tunes sharp; {by.name} does not use it; remove it")


def start_and_end(at: Steps | Slots, hides: AddRemove) -> None:
    """Refuse a start or end between two steps or slots, and an end that is not after the start."""
    what, length = "slot" if isinstance(at, Slots) else "every", at.length
    for key, time in (("start", hides.start), ("end", hides.end or 0)):
        number = length.index(time)
        if length.start(number) != time:
            raise NotAMultiple(key, what, (length.start(number), length.end(number)))
    if hides.end is not None and hides.end <= hides.start:
        raise ValueError("end is not after start; choose a later one")
