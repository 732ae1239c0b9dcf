"""The JSON Schemas of what is published: releases of each kind, and activations.

Every object lists all its fields. Where a field may be missing, that depends on the configuration: `withheld`, `nodes`
and `clip` of releases, and what a mean's `mechanism` says; or on whether a mean has begun: `waiting`.
"""

from collections.abc import Iterable
from typing import Any

from docs.generate.config_schema import UNIT
from docs.generate.json_schema import (
    COUNT,
    INTEGER,
    ISO,
    NAME,
    NULL,
    NUMBER,
    TEXT,
    Schema,
    by_name,
    either,
    file,
    ref,
    rows,
    said,
    table,
)
from shoal.mechanisms.parts.by import TwoSided
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.forms import ALGORITHMS
from shoal.models.records import CLIP, SHOWN

# ---------------------------------------------------------------- releases

AT = said("The end of its tick, step or slot, in UTC; with every = contribution that contribution's time.", ISO)
WHOSE: Schema = {
    "metric": said("Which statistic it is.", NAME),
    "group": said("Its group or cell; null for a metric without groups.", either(TEXT, NULL)),
}
GUARANTEE: Schema = {
    "epsilon": said(
        "The privacy loss of one unit in all releases and groups of the metric.", NUMBER | {"exclusiveMinimum": 0}
    ),
    "delta": said("Its delta; 0 is pure differential privacy.", NUMBER | {"minimum": 0, "exclusiveMaximum": 1}),
    "unit": said("Whom that protects.", UNIT),
}
FREE = GUARANTEE | {name: said("A count is public, and costs nothing.", {"const": 0}) for name in ("epsilon", "delta")}
VERSION = said("The version of the metric's parameters.", {"type": "integer", "minimum": 1})
NUMBERS = ("value", "noise_sd", "low", "high")
MEANINGS = {
    "value": "The statistic, with noise; null where there is no release.",
    "noise_sd": "The standard deviation of the noise.",
    "low": "Lower end of the noise interval, which holds 95 % of the noise.",
    "high": "Upper end of the noise interval.",
}
SAMPLES = said("How many samples the value rests on, exact.", COUNT)
DECAYED = said("How many samples the value rests on, each with its weight.", NUMBER | {"minimum": 0})
MECHANISM = said("Where the noise is added, and of which kind it is.", TEXT)
NODES = said("The published sums, in grid steps, from which any window can be computed.", rows(INTEGER))
WITHHELD = said(
    "What came and does not count, or not yet.",
    table("Withheld", "How many samples, and what share of all that came.",
          {"samples": COUNT, "share": NUMBER | {"minimum": 0, "maximum": 1}}),
)  # fmt: skip
WAITING = said(
    "A sharp mean has not begun: it waits for enough users or samples, and the value is the middle of the range.",
    table("Waiting", "The latest time at which it begins.", {
        "until": said("The first release from then on rests on samples.", ISO),
    }),
)  # fmt: skip
NOISY: Schema = {
    "count": said(
        "How many samples it rests on, with noise; null before a clip range is chosen.", either(NUMBER, NULL)
    ),
    "count_sd": said("The standard deviation of that noise.", either(NUMBER, NULL)),
}
CELL: Schema = {
    "samples": SAMPLES,
}
CELL_DETAILS: Schema = {
    "cell_epsilon": said("The cell's share of epsilon.", NUMBER),
    "users": said("How many users count in the cell, exact.", COUNT),
    "dropped": said("How many samples were left out, as their users are in too many cells.", COUNT),
}
DEGRADATION = said("The worst error in the slot, relative to nobody left out; null with split.", either(NUMBER, NULL))


def _shape(number: Schema) -> dict[str, Schema]:
    """The four numbers, each of the same shape."""
    return {name: number for name in NUMBERS}


NOTHING = {name: NULL for name in NUMBERS}
ONE = _shape(NUMBER)
WHOLE = ONE | {"value": INTEGER}
UNKNOWN = {"value": NULL, "noise_sd": NULL, "low": NUMBER, "high": NUMBER}  # within known ends
SEVERAL = _shape({"type": "array", "items": NUMBER, "minItems": 2})


def _pair(number: Schema) -> Schema:
    return table(
        "Mean and variance", "A number of the mean and one of the variance.", {"mean": number, "variance": number}
    )


TWO = _shape(_pair(NUMBER))
UNKNOWN_TWO = {"value": _pair(NULL), "noise_sd": _pair(NULL), "low": _pair(NUMBER), "high": _pair(NUMBER)}
SHARES: Schema = {"type": "array", "items": NUMBER, "minItems": 2}
QUANTILES = by_name({"pattern": r"^0?\.[0-9]+$|^[0-9.]+[eE]-?[0-9]+$"}, NUMBER) | {"minProperties": 0}
_BINS = {
    "cdf": said("The share of values up to the end of each bin.", SHARES),
    "histogram": said("The share of values in each bin.", SHARES),
}
_ALL = table("Distribution", "Shares by bin, and quantiles by name.", _BINS | {"quantiles": QUANTILES})
DISTRIBUTION = _shape(_ALL) | {
    "noise_sd": table("Noise of a distribution", "Of each share; quantiles have ends.", _BINS)
}
UNKNOWN_DISTRIBUTION = {"value": NULL, "noise_sd": NULL, "low": _ALL, "high": _ALL}


def release(
    title: str, relation: str, shapes: list[dict[str, Schema]], counts: Schema, details: Schema,
    optional: Iterable[str] = (), **more: Any,
) -> Schema:  # fmt: skip
    """A kind of release: its numbers have one of several shapes."""
    fields: Schema = (
        WHOSE
        | {
            "seq": said("Counts the releases of this version and group, from 1.", {"type": "integer", "minimum": 1}),
            "id": said("Names the release for ever: metric, version, group, seq.", TEXT),
            "at": AT,
        }
        | {name: {"description": MEANINGS[name]} for name in NUMBERS}
        | counts
        | (FREE if "mechanism" in details and "const" in details["mechanism"] else GUARANTEE)
        | {
            "relation": said("What of the unit is hidden.", {"const": relation}),
            "algorithm": said("How it was made.", {"enum": [*ALGORITHMS, TwoSided.name]}),
            "version": VERSION,
        }
        | details
    )
    made = table(f"Release: {title}", f"A release of {title}.", fields, optional)
    return made | {"anyOf": [{"properties": shape} for shape in shapes]} | more


def _releases() -> Schema:
    gaussian = {  # a choice of noise is said wherever there is one
        "if": {"properties": {"delta": {"exclusiveMinimum": 0}, "algorithm": {"enum": ["sharp", "naive"]}}},
        "then": {"required": ["mechanism"], "properties": {"mechanism": {"enum": ["gaussian", "laplace"]}}},
        "else": {"properties": {"mechanism": False}},
    }
    of_mean = {"mechanism": MECHANISM, "waiting": WAITING, "withheld": WITHHELD}
    step = {"mechanism": MECHANISM}
    cell = step | CELL_DETAILS
    error = said("The worst expected error over all values; null where there is no bound.", either(NUMBER, NULL))
    errors = error | {"anyOf": [SHARES, NULL]}
    error_of_two = error | {"anyOf": [_pair(NUMBER), NULL]}
    clip = {"clip": said("Where the key's range ends, once that is chosen; null before.", either(NUMBER, NULL))}
    kinds = {
        "mean": release("a mean without a decay", VALUES, [ONE, NOTHING], {"samples": SAMPLES}, of_mean,
                        ("mechanism", "waiting", "withheld"), **gaussian),
        "mean-of-several": release("a mean of several coordinates", VALUES, [SEVERAL, NOTHING], {"samples": SAMPLES},
                                   of_mean, ("mechanism", "waiting", "withheld"), **gaussian),
        "stepped": release("a sum or mean of steps", VALUES, [ONE, NOTHING], {"samples": DECAYED},
                           step | {"nodes": NODES}, ("nodes",)),
        "variance": release("mean and variance of steps", VALUES, [TWO, NOTHING], {"samples": DECAYED}, step),
        "count": release("a count, which is exact", VALUES, [ONE], {"samples": DECAYED},
                         {"mechanism": said("No noise is added.", {"const": "exact"}), "nodes": NODES}, ("nodes",)),
        "mean-per-slot": release("a mean per slot", VALUES, [ONE, NOTHING], CELL,
                             cell | {"error": error, "degradation": DEGRADATION}),
        "mean-of-several-per-slot": release("a mean of several coordinates per slot", VALUES, [SEVERAL, NOTHING], CELL,
                                        cell | {"error": errors, "degradation": DEGRADATION}),
        "variance-per-slot": release("mean and variance per slot", VALUES, [TWO, NOTHING], CELL,
                                      cell | {"error": error_of_two, "degradation": DEGRADATION}),
        "distribution-per-slot": release("a distribution per slot", VALUES, [DISTRIBUTION, NOTHING], CELL,
                                     cell | {"error": error, "degradation": DEGRADATION}),
        "noisy-count": release("a count of samples or users, or a sum, where presence is protected", ADD_REMOVE,
                               [ONE], {}, step),
        "noisy": release("a mean or sum where presence is protected", ADD_REMOVE, [ONE, UNKNOWN, NOTHING], NOISY,
                         step | clip, ("clip",)),
        "noisy-variance": release("mean and variance where presence is protected", ADD_REMOVE, [TWO, UNKNOWN_TWO],
                                       NOISY, step),
        "noisy-distribution": release("a distribution where presence is protected", ADD_REMOVE,
                                      [DISTRIBUTION, UNKNOWN_DISTRIBUTION, NOTHING], NOISY, step),
    }  # fmt: skip
    return file("releases", {
        "title": "Releases",
        "description": "The value of a record of APP.releases: what was published of a metric, or one of its groups.",
        "anyOf": [ref(name) for name in kinds],
        "$defs": kinds,
    })  # fmt: skip


def _kind(kind: str) -> Schema:
    return said("What kind of activation it is.", {"const": kind})


def _activations() -> Schema:
    epsilon = {"epsilon": said("What this choice alone loses; it is a part of the metric's.", NUMBER | {"minimum": 0})}
    level = {
        "level": said("The size of blocks that count from now on; 0 is single samples.", COUNT),
        "at": AT,
        "prior": said("The centre around which they are clipped; null: nothing is clipped.",
                      either(NUMBER, NULL, rows(either(NUMBER, NULL)))),
    } | epsilon | {
        "samples": said("What the prior was chosen from.", either(COUNT, rows(COUNT))),
    }  # fmt: skip
    shared = {"metric": WHOSE["metric"], "group": WHOSE["group"], "version": VERSION}
    found = shared | {"group": said("The key that is shown.", TEXT)}
    kinds = {
        "level": table("Activation of a level", "Blocks of a level count from this tick on.", shared | level),
        "shown": table("Notice that a key is shown", "A key that nobody declared is released from this tick on.",
                       found | {"kind": _kind(SHOWN), "at": AT} | epsilon),
        "clip": table("Notice of a clip range", "A key's values are clipped to this range from this tick on.",
                      shared | {"kind": _kind(CLIP), "at": AT, "high": said("Where it ends.", NUMBER)} | epsilon),
    }  # fmt: skip
    return file("activations", {
        "title": "Activations",
        "description": "The value of a record of APP.activations: what was chosen in private, and charged.",
        "anyOf": [ref(name) for name in kinds],
        "$defs": kinds,
    })  # fmt: skip


def schemas() -> dict[str, Schema]:
    """Each of them, by name."""
    return {"releases": _releases(), "activations": _activations()}
