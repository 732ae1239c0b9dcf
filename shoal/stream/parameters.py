"""The canonical text a metric version is registered under: all that can change a byte of its releases, or its epsilon.

Its digest names the version's key, hence its noise: once registered, these names never change.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import orjson

from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.life import life_of, uses_life
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.config.section import Section
from shoal.models.predicates import Predicate

# Raised whenever the same configuration and events would yield other bytes: a new digest, hence a new version. What
# foretells errors of cells, caps them and leaves users out chooses by formulas: to change one of them is to raise this.
REVISION = 1
# Keys that a digest has even where they are None. All other keys are in it where they are not None, so a new key needs
# the default None: with another, the digest of every registered version would change.
ALWAYS = frozenset({
    "topic", "user", "value", "time", "group", "statistic", "range", "epsilon", "delta", "max_contributions", "users",
    "algorithm", "every", "unit", "relation", "failure", "max_groups_per_user", "lateness", "late", "max_ahead",
    "max_gap", "grid",
})  # fmt: skip
NEVER = frozenset({"name", "version"})  # keys that no digest has
# Parameters that are no keys of a configuration: they follow from its keys, or from the version of shoal.
NO_KEYS = frozenset({"mechanism", "revision", "epoch"})


def parameters_of(config: Config, metric: MetricSection) -> str:
    """Everything that can change one byte of a release, or its epsilon, as canonical JSON.

    The topic's and fields' names count; brokers, app, partition counts and the budget do not.
    """
    fields = canonical(metric)
    chosen = statistic_of(metric.parts).chosen()
    if chosen is not None:
        fields["mechanism"] = chosen
    fields |= {
        "partitioner": config.kafka.partitioner,
        "idle_after": config.kafka.idle_after,
        "revision": REVISION,
    }
    if metric.parts.source.epoch:
        fields["epoch"] = metric.parts.source.epoch
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).decode()


def canonical(metric: MetricSection) -> dict[str, Any]:
    """What a metric's keys say, as its digest has them: numbers are exact, as text.

    The life of a metric whose counters are made for it is there also where the file leaves it out.
    """
    values = {key: _plain(getattr(metric, key)) for key in MetricSection.model_fields if key not in NEVER}
    values["max_ahead"] = metric.parts.source.max_ahead
    if uses_life(metric.parts):
        values["life"] = life_of(metric.parts)
    return {key: value for key, value in values.items() if value is not None or key in ALWAYS}


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Predicate):
        return {"predicate": value.text, "fields": list(value.fields)}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Section):
        given = {key: getattr(value, key) for key in type(value).model_fields}
        return {key: _plain(part) for key, part in given.items() if part is not None}
    return value


def person_in(said: Mapping[str, Any]) -> dict[str, str]:
    """Topic and user field of a version, by its parameters; nothing if it protects single events without a limit."""
    is_of_events = said.get("unit") == "event" and said.get("max_events_per_user") is None
    return {} if is_of_events or "user" not in said else {str(said.get("topic")): said["user"]}
