"""Readers of the parameters of a registered metric version: of the JSON that `stream.parameters` writes.

`said` is that JSON, parsed: an object for each part of the metric, without what is None.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

# The key of the configuration that says a parameter, by the longest path that the parameter's begins with.
KEYS = {
    "of.kind": "statistic", "of.values.fields": "value", "of.fields": "value", "of.values.ranges": "range",
    "of.clip": "clip", "per.kind": "group", "per.place": "group", "per.known": "groups", "per.min_units": "min_users",
    "at.kind": "every", "at.length": "every", "at.decay": "decay", "at.rest": "max_gap", "hides.kind": "relation",
    "hides.unit": "unit", "hides.limits.kind": "unit", "hides.limits.samples": "max_contributions",
    "hides.limits.keys": "max_groups", "hides.limits.cells": "max_groups", "hides.limits.slots": "max_slots",
    "hides.limits.across": "across_cells", "hides.limits.of_a_user": "max_events_per_user", "by.kind": "algorithm",
    "by.cap": "contribution_cap", "by.prior": "prior", "by.priors": "prior", "by.sigmas": "sigma",
    "budget.select": "selection", "budget.clip": "clip", "budget.crossing": "clip",
}  # fmt: skip
PER_GROUP = ("PerKey", "PerCell")  # limits of each group, where there are groups
FOLLOWS = ("mechanism", "revision", "source.epoch")  # parameters that follow from keys, or from the version of shoal


def topic_in(said: Mapping[str, Any]) -> str:
    """The Kafka topic whose events a registered metric version reads."""
    topic: str = said["source"]["topic"]
    return topic


def clock_in(said: Mapping[str, Any]) -> tuple[str, int]:
    """Topic of a registered metric version, and restarts of the topic's clocks before it was registered."""
    return topic_in(said), said["source"]["epoch"]


def person_in(said: Mapping[str, Any]) -> dict[str, str]:
    """Topic and user field of a version; nothing if it protects single events without a limit."""
    hides = said["hides"]
    is_of_events = hides["unit"]["is_event"] and "of_a_user" not in hides["limits"]
    return {} if is_of_events else {topic_in(said): said["source"]["user"]}


def is_by_period(said: Mapping[str, Any]) -> bool:
    """Whether the units of a version are periods of time; False for a public count, to which no unit loses anything."""
    hides = said["hides"]
    return "period" in hides["unit"] and (said["of"]["kind"], hides["kind"]) != ("count", "values")


def time_in(said: Mapping[str, Any]) -> str | None:
    """Field with the event time of a version; None: the record's timestamp."""
    time: str | None = said["source"].get("time")
    return time


def values_in(said: Mapping[str, Any]) -> list[str]:
    """Paths of the event fields that hold a version's values."""
    fields = said["of"].get("values", said["of"]).get("fields", {"names": []})
    paths: list[str] = fields["predicate"]["fields"] if "predicate" in fields else fields["names"]
    return paths


def pattern_in(said: Mapping[str, Any]) -> list[str]:
    """Paths of the event fields that are public under relation values."""
    source, place = said["source"], said["per"].get("place", {})
    roles = (source, "user"), (source, "time"), (place, "name"), (place, "latitude"), (place, "longitude")
    return [holder[role] for holder, role in roles if role in holder]


def length_in(said: Mapping[str, Any]) -> int | None:
    """Length of a slot, or of a window that ends with a release, in microseconds; None if a release is of all time."""
    at = said["at"]
    if at["kind"] == "Slots":
        length: int = at["length"]["microseconds"]
        return length
    decay = at.get("decay", {})
    return decay.get("length") if decay.get("kind") == "window" else None


def differing(old: str, new: str) -> list[str]:
    """Keys whose parameters differ between two texts; where none does, the parameters that follow from the keys and do.

    >>> differing('{"at": {"life": 1}, "mechanism": "a"}', '{"at": {"life": 2}, "mechanism": "b"}')
    ['life']
    >>> differing('{"of": {"kind": "sum"}, "mechanism": "a"}', '{"of": {"kind": "sum"}, "mechanism": "b"}')
    ['mechanism']
    """
    parsed = orjson.loads(new)
    before, after = dict(_leaves(orjson.loads(old), "")), dict(_leaves(parsed, ""))
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    if "budget.epsilon" in paths:  # its shares follow
        paths = [path for path in paths if not path.startswith("budget.") or path in ("budget.epsilon", "budget.delta")]
    said = [path for path in paths if path not in FOLLOWS] or paths
    return sorted({_key(path, parsed) for path in said})


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{path}.{key}" if path else key)
    else:
        yield path, value


def _key(path: str, said: Mapping[str, Any]) -> str:
    """The key that says a parameter, in the configuration of `said`."""
    if (
        path == "hides.limits.samples"
        and said["per"]["kind"] == "Keys"
        and said["hides"]["limits"]["kind"] in PER_GROUP
    ):
        return "max_per_group"
    found = [start for start in KEYS if f"{path}.".startswith(f"{start}.")]
    return KEYS[max(found, key=len)] if found else path.rpartition(".")[2]
