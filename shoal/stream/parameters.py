"""The canonical text a metric version is registered under: all that can change a byte of its releases, or its epsilon.

Its digest names the version's key, hence its noise: once registered, these names never change. The text holds the parts
of the metric, so metrics whose parts differ have different texts: {"source": ..., "of": ..., "per": ..., "at": ...,
"hides": ..., "by": ..., "budget": ...}, and beside them what follows from the configuration's other tables.
`shoal.models.parameters` reads it.
"""

from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

import orjson

from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.life import life_of, uses_life
from shoal.mechanisms.parts.at import EachContribution, Slots
from shoal.mechanisms.parts.metric import Metric
from shoal.models.config.file import Config
from shoal.models.predicates import Predicate

# Raised whenever the same configuration and events would yield other bytes: a new digest, hence a new version. What
# foretells errors of cells, caps them and leaves users out chooses by formulas: to change one of them is to raise this.
REVISION = 1
PARTS = ("source", "of", "per", "at", "hides", "by", "budget")
NAMES = ("name", "kind", "relation")  # class variables with the name of a class in configurations


def parameters_of(config: Config, metric: Metric) -> str:
    """Everything that can change one byte of a release, or its epsilon, as canonical JSON.

    The topic's and fields' names count; brokers, app, partition counts and the budget do not.
    """
    said = canonical(metric)
    chosen = statistic_of(metric).chosen()
    if chosen is not None:
        said["mechanism"] = chosen
    said |= {"partitioner": config.kafka.partitioner, "idle_after": config.kafka.idle_after, "revision": REVISION}
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()


def canonical(metric: Metric) -> dict[str, Any]:
    """The parts of a metric as its digest has them, without name and version: numbers are exact, as text.

    Fields that are None are left out, so that a new field with this default changes no digest of registered metrics.
    The life of a metric whose counters are made for it is there also where the file leaves it out.
    """
    if uses_life(metric) and not isinstance(metric.at, EachContribution | Slots):
        metric = replace(metric, at=replace(metric.at, life=life_of(metric)))
    return {name: _plain(getattr(metric, name)) for name in PARTS}


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Predicate):
        return {"text": value.text, "fields": list(value.fields)}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        said = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {"kind": _kind(type(value))} | {name: _plain(part) for name, part in said if part is not None}
    return value


def _kind(cls: type) -> str:
    return next((name for key in NAMES if isinstance(name := getattr(cls, key, None), str)), cls.__name__)
