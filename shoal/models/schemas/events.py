"""The schema of a source topic, as a configuration expects its events: which fields metrics read, and of what types.

A record that does not fit is a dead letter of at least one metric. One that fits may still be refused for what no
schema of JSON says: a time that no calendar has, a latitude in text that is no number. Other fields are let through.
"""

from collections.abc import Iterator
from typing import Any

from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.per import Field, Hexagons
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError
from shoal.models.events import MAX_NAME_BYTES

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES}  # bytes, which are at least characters
USER: Schema = {"anyOf": [NAME, {"type": "integer"}]}
GROUP: Schema = {"anyOf": [NAME, {"type": "integer"}, {"type": "boolean"}]}
TIME: Schema = {"anyOf": [NUMBER, {"type": "string", "minLength": 1}]}
KINDS: dict[str, Schema] = {"number": NUMBER, "text": {"type": "string"}, "boolean": {"type": "boolean"}}


def events_schema(config: Config, topic: str | None = None) -> Schema:
    """What an event of a source topic must hold for every metric to take it; without a topic, of the only one.

    Raises:
        ConfigError: no metric reads the topic, there are several to choose from, or no event fits all metrics.
    """
    topics = config.topics
    if topic is None and len(topics) > 1:
        raise ConfigError(f"metrics read topics {', '.join(topics)}; say which with --topic")
    chosen = topics[0] if topic is None else topic
    if chosen not in topics:
        raise ConfigError(f"no metric reads topic {chosen!r}; its metrics read {', '.join(topics)}")
    fields: dict[str, list[tuple[Schema, str]]] = {}
    for metric in config.metrics_of(chosen):
        for path, kind, role in _fields(metric):
            fields.setdefault(path, []).append((kind, role))
    for outer, inner in ((outer, inner) for outer in fields for inner in fields if inner.startswith(f"{outer}.")):
        raise ConfigError(
            f"topic {chosen!r}: metrics read field {outer!r}, and {inner!r} inside it; no event has both: correct the "
            "name of one"
        )
    root = _table()
    for path, uses in fields.items():
        _put(root, path.split("."), uses)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:shoal:schema:events:{chosen}",
        "title": f"Events of topic {chosen}",
        "description": "What a record must hold for every metric of the configuration to take it: one JSON object.",
    } | root


def _fields(metric: Metric) -> Iterator[tuple[str, Schema, str]]:
    """The fields that a metric reads: path, type, and what it is for."""
    yield metric.source.user, USER, "the user"
    if metric.source.time is not None:
        yield metric.source.time, TIME, "the time: ISO 8601 text, or a number since 1970"
    if isinstance(metric.place, Field):
        yield metric.place.name, GROUP, "the group"
    if isinstance(metric.place, Hexagons):
        for path, most in ((metric.place.latitude, 90), (metric.place.longitude, 180)):
            within = NUMBER | {"minimum": -most, "maximum": most}
            yield path, {"anyOf": [within, {"type": "string", "minLength": 1}]}, "where it was, in degrees"
    predicate = None if metric.fields is None else metric.fields.predicate
    if predicate is not None:
        for path, kind in predicate.kinds:
            yield path, KINDS[kind], f"of the predicate {predicate.text}"
    else:
        for path in metric.names:
            yield path, NUMBER, "a value, which is protected"


def _table() -> Schema:
    return {"type": "object", "properties": {}, "required": []}


def _put(table: Schema, path: list[str], uses: list[tuple[Schema, str]]) -> None:
    """A field in its table, with all that it is used for."""
    name, *rest = path
    if name not in table["required"]:
        table["required"].append(name)
    if rest:
        _put(table["properties"].setdefault(name, _table()), rest, uses)
        return
    kinds = [kind for index, (kind, _) in enumerate(uses) if kind not in [other for other, _ in uses[:index]]]
    said = "; ".join(dict.fromkeys(role for _, role in uses))
    table["properties"][name] = {"description": said[0].upper() + said[1:] + "."} | (
        kinds[0] if len(kinds) == 1 else {"allOf": kinds}
    )
