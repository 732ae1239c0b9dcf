"""The JSON Schema of the configuration, made of the models that read it: keys, types, bounds, defaults and meanings.

What a model's validators refuse besides is said here a second time, by statistic and relation, so that an editor can
flag a key where it has no use; `tests/models/schemas/` holds the two against each other.
"""

import types
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docs.generate.configuration import DURATIONS, INSTANTS, SECTIONS
from docs.generate.json_schema import DRAFT, Schema
from shoal.mechanisms.continual_mean import WITH_PRIOR
from shoal.mechanisms.parts.by import Algorithm
from shoal.mechanisms.parts.of import Mean, Sum
from shoal.mechanisms.parts.unit import USER_SLOT
from shoal.mechanisms.spec import ADD_REMOVE, FEW_USERS, VALUES
from shoal.models.config import forms
from shoal.models.config.decay import NEEDS, TAKES
from shoal.models.config.durations import format_duration
from shoal.models.config.forms import ALGORITHMS, STATISTICS, Form
from shoal.models.config.per_coordinate import MOST
from shoal.models.exact import exact_text
from shoal.models.predicates import SIGNS, Predicate

SPAN = "[0-9]{1,9}[smhd]"
DURATION: Schema = {"type": "string", "pattern": f"^{SPAN}$"}
INSTANT: Schema = {"type": "string", "pattern": "^[0-9]{4}"}
UNIT: Schema = {"type": "string", "pattern": f"^(event|user(-(slot|hour|day|week|{SPAN}))?)$"}
EXACT_TEXT: Schema = {
    "type": "string",
    "pattern": r"^[+-]?([0-9]+/[0-9]+|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)$",
}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
TITLES = {
    "kafka": "Kafka", "audit": "The audit log", "privacy": "Key and budget", "web": "Health and metrics over HTTP",
    "metric": "A metric", "decay": "How sums forget", "cell": "Where an event was",
    "selection": "How keys are found", "clip": "How a range is chosen",
}  # fmt: skip
# What validators say of single keys.
KNOWN: dict[tuple[str, str], Schema] = {
    ("kafka", "latency"): {"type": "string", "pattern": "^[0-9]{1,9}(ms|[smhd])$"},
    ("metric", "statistic"): {"enum": list(STATISTICS)},
    ("metric", "algorithm"): {"enum": list(ALGORITHMS)},
    ("metric", "relation"): {"enum": [VALUES, ADD_REMOVE]},
    ("metric", "unit"): UNIT,
    ("privacy", "unit"): UNIT,
}
WITHOUT_VALUES = ("count", "users")
DISTRIBUTION = "distribution"


def schema() -> Schema:
    """The whole schema."""
    tables = {name: _section(name, model) for name, model in SECTIONS.items()}
    tables["metric"] |= {"allOf": list(_of_metrics())}
    tables["decay"] |= {"allOf": [_of_decay(kind) for kind in NEEDS]}
    files = ("kafka", "audit", "privacy", "web")
    return {
        "$schema": DRAFT,
        "$id": "urn:shoal:schema:configuration",
        "title": "Configuration of shoal",
        "description": "What a configuration file may say, as TOML; docs/reference/configuration.md says more of it.",
        "type": "object",
        "properties": {name: {"$ref": f"#/$defs/{name}"} for name in files}
        | {
            "metric": {
                "description": "The statistics, each under [[metric]].",
                "type": "array", "items": {"$ref": "#/$defs/metric"}, "minItems": 1,
            }
        },
        "required": ["privacy", "metric"],
        "additionalProperties": False,
        "$defs": tables,
    }  # fmt: skip


def _section(name: str, model: type[BaseModel]) -> Schema:
    fields = model.model_fields
    # A count costs nothing, and has a default that its statistic gives.
    required = [key for key, field in fields.items() if field.is_required() and (name, key) != ("metric", "epsilon")]
    made: Schema = {
        "title": TITLES[name],
        "description": " ".join((model.__doc__ or "").replace("`", "").split()),
        "type": "object",
        "properties": {key: _key(name, key, field) for key, field in fields.items()},
        "additionalProperties": False,
    }
    return made | ({"required": required} if required else {})


def _key(section: str, key: str, field: FieldInfo) -> Schema:
    kind = KNOWN.get((section, key)) or _limited(_type(field.annotation, key), field.metadata)
    made: Schema = {"description": field.description or ""} | kind
    default = None if field.is_required() else field.default
    if default is not None:
        made["default"] = _default(key, default)
    return made


def _type(annotation: Any, key: str) -> Schema:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = [part for one in arguments[1:] for part in getattr(one, "metadata", ())]
        return _limited(_type(arguments[0], key), inner)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return _any(_type(part, key) for part in arguments if part is not type(None))
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _type(arguments[0], key)} | _lengths(key)
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0], key), "minItems": 2, "maxItems": 2}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        name = next(name for name, model in SECTIONS.items() if model is annotation)
        table: Schema = {"$ref": f"#/$defs/{name}"}
        return {"anyOf": [{"const": "auto"}, table]} if name == "clip" else table
    if annotation is Fraction:
        return {"anyOf": [{"type": "number"}, EXACT_TEXT]}
    if annotation is int and key in DURATIONS:
        return DURATION
    if annotation is int and key in INSTANTS:
        return INSTANT
    plain: dict[Any, Schema] = {
        int: {"type": "integer"}, bool: {"type": "boolean"}, str: {"type": "string", "minLength": 1},
        Path: {"type": "string"}, Predicate: {"type": "string", "minLength": 1},
    }  # fmt: skip
    return plain[annotation]


def _lengths(key: str) -> Schema:
    """Of lists: those of coordinates have an entry for each."""
    if key == "groups":
        return {"uniqueItems": True, "minItems": 1}
    return {"minItems": 2, "maxItems": MOST} if key == "value" else {}


def _any(kinds: Iterable[Schema]) -> Schema:
    """One of several; of alternatives in alternatives, all."""
    flat = [part for kind in kinds for part in (kind["anyOf"] if set(kind) == {"anyOf"} else [kind])]
    distinct = [kind for index, kind in enumerate(flat) if kind not in flat[:index]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _limited(kind: Schema, metadata: Iterable[Any]) -> Schema:
    """A type with a field's bounds: numbers in text go without, and so do durations."""
    bounds: Schema = {}
    lengths: Schema = {}
    for limit in metadata:
        bounds |= {BOUNDS[name]: _number(getattr(limit, name)) for name in BOUNDS if hasattr(limit, name)}
        lengths |= {
            name: getattr(limit, f"{name}_length") for name in ("min", "max") if hasattr(limit, f"{name}_length")
        }
        if (pattern := getattr(limit, "pattern", None)) is not None:
            kind = kind | {"pattern": pattern}

    def narrowed(one: Schema) -> Schema:
        if one.get("type") in ("integer", "number"):
            return one | bounds
        unit = {"array": "Items", "string": "Length"}.get(str(one.get("type")))
        return one | ({f"{name}{unit}": length for name, length in lengths.items()} if unit else {})

    return {"anyOf": [narrowed(one) for one in kind["anyOf"]]} if "anyOf" in kind else narrowed(kind)


def _number(bound: Any) -> int | float:
    return bound if isinstance(bound, int) else float(bound)


def _default(key: str, value: Any) -> Any:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return format_duration(value) if key in DURATIONS else value
    if isinstance(value, Fraction):
        exact = exact_text(value)
        return exact if "/" in exact else float(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value)


# ---------------------------------------------------------------- what keys may not say together


def _when(condition: Schema, *, without: Iterable[str] = (), needs: Iterable[str] = (), **keys: Schema) -> Schema:
    """Under a condition some keys have no use, some are needed, and others say less."""
    then: Schema = {}
    if properties := {key: False for key in without} | keys:
        then["properties"] = properties
    if needs := list(needs):
        then["required"] = needs
    return {"if": condition, "then": then}


def _is(relation: str | None, *statistics: str, **more: Any) -> Schema:
    """The condition that a metric has a relation and one of some statistics."""
    said: Schema = {}
    required = []
    if relation is not None:
        said["relation"] = {"const": relation}
        required += [] if relation == VALUES else ["relation"]  # the other is the default
    if statistics:
        said["statistic"] = {"enum": list(statistics)}
        required.append("statistic")
    return {"properties": said, "required": required} | more


def _names(algorithms: Iterable[type[Algorithm]]) -> list[str]:
    return [algorithm.name for algorithm in algorithms]


NEVER = {"const": False}
SLOT: Schema = {"required": ["slot"]}
EITHER: Schema = {"anyOf": [SLOT, {"required": ["decay"]}]}  # either makes a mean another than one of all so far
PLACED: Schema = {"anyOf": [{"required": ["group"]}, {"required": ["cell"]}]}
EVENTS: Schema = {"properties": {"unit": {"const": "event"}}, "required": ["unit"]}


def _has(form: Form) -> Schema:
    """JSON Schema that holds for the metrics of a form."""
    relation, means = ADD_REMOVE if form.is_hidden else VALUES, [*forms.MEAN.statistics]
    if form is forms.MEAN:
        return _is(relation, *means, **{"not": EITHER})
    if form is forms.SUMS:
        others = [name for name in form.statistics if name not in means]
        decayed = _is(None, *means)
        decayed["required"].append("decay")
        return _is(relation, anyOf=[_is(None, *others), decayed], **{"not": SLOT})
    return _is(relation, *form.statistics, **({"allOf": [SLOT]} if form.is_slotted else {"not": SLOT}))


def _of_form(form: Form) -> Schema:
    """Conditional schema of a form: keys refused, keys needed, algorithms, unit."""
    lacked = [key for block in form.lacks for key in block.keys]
    keys: dict[str, Schema] = {} if form.is_hidden else {"algorithm": {"enum": _names(form.algorithms)}}
    if "withheld" in lacked:
        keys["withheld"] = NEVER
    if not form.is_slotted:
        keys["unit"] = {"not": {"const": USER_SLOT}}
    needs = [*(["start"] if form.is_hidden else []), *([] if form.is_slotted else ["every"])]
    return _when(_has(form), without=[key for key in lacked if key != "withheld"], needs=needs, **keys)


def _of_metrics() -> Iterable[Schema]:
    slotted = [*forms.CELLS.statistics]
    for relation, of_relation in forms.FORMS.items():
        names = [name for name in STATISTICS if any(name in form.statistics for form in of_relation)]
        allowed = [name for name in names if name != DISTRIBUTION or relation == ADD_REMOVE]
        yield _when(_is(relation, **{"not": SLOT}), statistic={"enum": allowed})
    yield _when(SLOT, statistic={"enum": slotted})
    yield from map(_of_form, forms.ALL)
    yield _when(_is(ADD_REMOVE), value={"type": "string"})
    yield _when(_is(None, *(name for name in STATISTICS if name != DISTRIBUTION)), without=forms.BINS.keys)
    yield from _of_slots(slotted)
    yield _when(_is(VALUES, "count"), without=("simultaneous",))
    around = {"enum": _names(WITH_PRIOR)}
    has_prior = _is(VALUES, "mean", **{"not": EITHER})
    has_prior["required"].append("prior")
    yield _when(has_prior, needs=["algorithm"], algorithm=around)
    yield _when({"properties": {"algorithm": around}, "required": ["algorithm"]}, needs=["prior"])
    # Where presence is protected.
    yield _when(_is(ADD_REMOVE, **{"not": {"required": ["clip"]}}), without=("users",))
    unclipped = [name for name, cls in forms.HIDDEN.statistics.items() if cls not in (Mean, Sum)]
    yield _when(_is(ADD_REMOVE, *unclipped), without=("clip",))
    yield from _of_values()
    yield from _of_limits(slotted)
    yield {"not": {"required": ["cell", "group"]}}
    yield _when({"not": PLACED}, without=("groups", "selection", "max_groups", "across_cells"))
    yield _when({"required": ["groups"]}, without=("selection",))
    yield _when(_is(ADD_REMOVE, **PLACED, **{"not": {"required": ["groups"]}}), needs=["delta"])


def _of_slots(slotted: list[str]) -> Iterable[Schema]:
    """What algorithms of slots take under relation values."""
    others = [name for name in slotted if name != "mean"]
    algorithms = {"enum": _names(forms.FOR_CELLS)}
    yield _when(_is(VALUES, *others, allOf=[SLOT]), without=("spread_share",), algorithm=algorithms)
    yield _when({"required": ["spread_share"]}, without=("prior",), algorithm={"const": "best"})
    yield _when(_is(VALUES, allOf=[SLOT]), prior={"const": FEW_USERS})
    few = {"properties": {"algorithm": {"const": FEW_USERS}}, "required": ["algorithm"]}
    scattered = _is(VALUES, allOf=[SLOT, {"required": ["sigma"]}])
    yield {"if": scattered, "then": {"anyOf": [few, {"required": ["prior"]}]}}


def _of_values() -> Iterable[Schema]:
    """Values, their range, and the clamp of estimates."""
    yield _when(_is(None, *WITHOUT_VALUES), without=forms.WITHOUT_VALUES.keys)
    yield _when(_is(None, "sum"), without=("clamp",))
    yield _when(_is(ADD_REMOVE, DISTRIBUTION), without=("clamp",))
    with_values = [name for name in STATISTICS if name not in WITHOUT_VALUES]
    yield _when(_is(None, *with_values), needs=["value"])
    no_predicate = {"anyOf": [{"type": "array"}, {"pattern": f"^[^{''.join(sorted(SIGNS))}]*$"}]}
    said = _is(None, *with_values)
    said = {"properties": said["properties"] | {"value": no_predicate}, "required": [*said["required"], "value"]}
    yield _when(said, needs=["range"])
    yield _when(_is(VALUES, *(name for name in STATISTICS if name != "count")), needs=["epsilon"])
    yield _when(_is(ADD_REMOVE), needs=["epsilon"])


def _of_limits(slotted: list[str]) -> Iterable[Schema]:
    """Limits of a unit's samples: in each group of a mean of all so far, or of a slot under relation values; in all."""
    each = {"anyOf": [_is(VALUES, *slotted, allOf=[SLOT]), _is(VALUES, "mean", **{"not": EITHER})]}
    in_groups: Schema = {"allOf": [PLACED, each, {"not": EVENTS}]}
    yield _when(EVENTS, without=("max_contributions", "max_per_group", "max_groups", "sigma"))
    yield _when({"not": EVENTS}, without=("max_events_per_user",))
    yield _when(in_groups, without=("max_contributions",), needs=["max_per_group"])
    yield _when({"not": {"anyOf": [in_groups, EVENTS]}}, without=("max_per_group",), needs=["max_contributions"])


def _of_decay(kind: str) -> Schema:
    is_kind = {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
    taken = {*NEEDS[kind], *TAKES.get(kind, ())}
    needs = [{"required": [key]} for key in NEEDS[kind]]
    made = _when(is_kind, without=[key for key in SECTIONS["decay"].model_fields if key not in {"kind", *taken}])
    if needs:  # a window has one of two, and so has an exponential decay; a formula needs both
        made["then"] |= {"allOf": needs} if kind == "formula" else {"oneOf": needs}
    return made
