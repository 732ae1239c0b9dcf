"""The schema of the configuration takes every configuration that loads, and flags what an editor can flag."""

import json
import re
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from docs.generate import schemas as generated
from shoal.models import schemas
from shoal.models.config.file import Config
from shoal.models.exact import exact_text
from tests.golden.case import USUAL
from tests.golden.configurations import CASES
from tests.privacy.auditor.families import FAMILIES, case_of
from tests.support.cover import in_a_loop
from tests.support.effort import examples, tries
from tests.support.metric_keys import with_usual

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads(schemas.text("configuration"))
VALIDATOR = Draft202012Validator(SCHEMA)
PAGES = sorted((ROOT / "docs").glob("**/*.md")) + [ROOT / "README.md"]
BLOCKS = [
    (f"{page.relative_to(ROOT)}-{number}", block)
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```toml\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S))
]
FILES = [
    (str(file.relative_to(ROOT)), file.read_text("utf-8"))
    for file in sorted(ROOT.glob("*/*.toml"))
    if file.parent.name != "kernel"
]


def as_json(said: Any) -> Any:
    """What TOML, or a test, says, as an editor shows it to a schema."""
    if isinstance(said, dict):
        return {key: as_json(value) for key, value in said.items() if value is not None}
    if isinstance(said, list | tuple):
        return [as_json(value) for value in said]
    if isinstance(said, Fraction):
        exact = exact_text(said)
        return exact if "/" in exact else float(exact)
    if isinstance(said, Decimal):
        return float(said)
    return said.isoformat() if isinstance(said, date) else said


def errors(tree: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(as_json(tree))]


def loads(tree: dict[str, Any]) -> str | None:
    """What the models refuse; None if they take it."""
    try:
        Config.model_validate(json.loads(json.dumps(tree), parse_float=Decimal))
    except ValidationError as error:
        return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    return None


def test_the_files_are_what_the_models_say() -> None:
    assert generated.files() == {name: schemas.text(name) for name in schemas.names()}, "run: make reference"


@in_a_loop
@pytest.mark.parametrize("name", schemas.names())
def test_every_schema_is_one(name: str) -> None:
    schema = json.loads(schemas.text(name))
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:shoal:schema:{name}"
    assert schema["title"]
    assert schema["description"]


# ---------------------------------------------------------------- what it takes


@in_a_loop
@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in [*FILES, *BLOCKS]])
def test_every_example_fits(text: str) -> None:
    tree = tomllib.loads(text)
    whole = {"privacy": {"epsilon": 1}} | tree
    whole.setdefault("metric", [METRICS["mean"]])
    assert errors(whole) == []


@in_a_loop
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_golden_configuration_fits(case: Any) -> None:
    metrics = [{**USUAL, **metric} for metric in case.metrics]
    assert errors({"privacy": {"epsilon": 1}, "kafka": case.kafka, "metric": metrics}) == []


@in_a_loop
@pytest.mark.parametrize("family", FAMILIES)
def test_random_configurations_of_the_auditor_fit(family: str) -> None:
    usual = {"name": "m", "topic": "events", "user": "u", "time": "t", "value": "x", "range": (0, 8)}
    for seed in range(tries(40)):
        case = case_of(family, seed)
        said = with_usual(case.metric | ({"delta": case.delta} if case.delta else {}), usual)
        assert errors({"privacy": {"epsilon": 1}, "metric": [said]}) == [], seed


# ---------------------------------------------------------------- what it flags

METRIC = {
    "name": "m", "topic": "t", "user": "u", "value": "x", "range": [0, 1], "epsilon": 1, "max_contributions": 2,
}  # fmt: skip
EACH = {"max_contributions": None, "max_per_group": 2}
SIDED = {"relation": "add-remove", "start": "2026-01-01"}
# Of every statistic, under each relation, one that is valid.
METRICS: dict[str, dict[str, Any]] = {
    "mean": {"statistic": "mean", "every": "1h"},
    "grouped mean": EACH | {"statistic": "mean", "every": "1h", "group": "g"},
    "undecayed mean": {"statistic": "mean", "every": "1h", "decay": {"kind": "none"}},
    "grouped sum": {"statistic": "sum", "every": "1h", "group": "g"},
    "stepped": {"statistic": "mean", "every": "1h", "decay": {"kind": "window", "length": "1d"}},
    "sum": {"statistic": "sum", "every": "1h"},
    "count": {"statistic": "count", "every": "1h", "range": None},
    "variance": {"statistic": "variance", "every": "1h"},
    "event": {"statistic": "mean", "every": "1h", "unit": "event", "max_contributions": None, "users": 9},
    "slot mean": {"statistic": "mean", "slot": "1h"},
    "cells": EACH | {"statistic": "mean", "slot": "1h", "cell": {"h3": 8, "lat": "a", "lon": "b"}},
    "slot variance": EACH | {"statistic": "variance", "slot": "1h", "group": "g"},
    "slot distribution": {"statistic": "distribution", "slot": "1h"},
    "sided mean": SIDED | {"statistic": "mean", "every": "1h"},
    "sided sum": SIDED | {"statistic": "sum", "every": "1h", "group": "g", "groups": ["a", "b"]},
    "sided count": SIDED | {"statistic": "count", "every": "1h", "value": None, "range": None},
    "sided users": SIDED | {"statistic": "users", "every": "1h", "value": None, "range": None},
    "sided variance": SIDED | {"statistic": "variance", "every": "1h"},
    "sided distribution": SIDED | {"statistic": "distribution", "every": "1h"},
    "sided slot mean": SIDED | {"statistic": "mean", "slot": "1h"},
    "sided slot variance": SIDED | {"statistic": "variance", "slot": "1h"},
    "sided slot distribution": SIDED | {"statistic": "distribution", "slot": "1h"},
}
METRICS = {
    name: {key: said for key, said in (METRIC | more).items() if said is not None} for name, more in METRICS.items()
}
# Of every key a value that some statistic takes.
SAID: dict[str, Any] = {
    "name": "other", "topic": "other", "user": "other", "value": "y", "time": "at", "group": "g", "statistic": "mean",
    "relation": "values", "range": [-1, 1], "epsilon": 2, "delta": 0, "max_contributions": 3, "users": 100,
    "algorithm": "sharp", "every": "1h", "max_per_group": 3, "decay": {"kind": "window", "length": "1d"}, "version": 2,
    "unit": "user", "prior": 0.5, "sigma": 0.1, "life": "9d", "failure": 0.01, "max_groups": 2,
    "max_events_per_user": 2, "simultaneous": 3, "lateness": "1m", "late": "drop", "max_ahead": "1d", "max_gap": 3,
    "grid": 1024, "clamp": True, "withheld": True, "slot": "1h", "cell": {"h3": 8, "lat": "a", "lon": "b"},
    "max_slots": 2, "across_cells": "split", "contribution_cap": 2, "spread_share": 0.1, "min_users": 2,
    "bins": 8, "quantiles": [0.5], "groups": ["a"], "start": "2026-01-01", "end": "2027-01-01",
    "selection": {"epsilon": 0.1}, "clip": "auto",
}  # fmt: skip
# What is refused because of another key's value, or of several: an editor cannot say so.
BY_VALUE = re.compile(
    r"delta must|is not built|is missing|has none; remove it|decay of users|end is|unit user|begins at 0|whole number"
    r"|units longer than"
)


@in_a_loop
@pytest.mark.parametrize("name", METRICS)
def test_a_key_that_a_statistic_has_no_use_for_is_flagged(name: str) -> None:
    base: dict[str, Any] = {"privacy": {"epsilon": 9, "delta": 0.1}, "metric": [METRICS[name]]}
    assert loads(base) is None
    assert errors(base) == []
    assert set(SAID) == set(SCHEMA["$defs"]["metric"]["properties"])
    for key, value in SAID.items():
        tree = deepcopy(base)
        tree["metric"][0][key] = value
        refused, flagged = loads(tree), errors(tree)
        if refused is None:
            assert flagged == [], key
        elif not BY_VALUE.search(refused):
            assert flagged, f"{key}: {refused}"


@in_a_loop
@pytest.mark.parametrize("name", METRICS)
def test_what_is_missing_is_flagged(name: str) -> None:
    for key in METRICS[name]:
        tree = {"privacy": {"epsilon": 9}, "metric": [{k: v for k, v in METRICS[name].items() if k != key}]}
        assert (loads(tree) is None) == (errors(tree) == []), (key, loads(tree))


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of a tree of tables: where each key is."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield (*at, key)
        yield from places(value, (*at, key))


FULL: dict[str, Any] = {
    "kafka": {
        "brokers": "a:1", "app": "shoal", "partitioner": "crc32", "partitions": 4, "replication": 3, "idle_after": "5s",
        "dead_letters": False, "security_protocol": "SSL", "sasl_mechanism": "PLAIN", "ssl_cafile": "ca.pem",
    },
    "audit": {"url": "sqlite:///a.db"},
    "privacy": {"key_file": "k", "epsilon": 4, "delta": 0.5, "unit": "user", "relation": "values"},
    "web": {"port": 8080, "host": "127.0.0.1", "counters": True},
    "metric": [METRICS["stepped"], METRICS["cells"] | {"quantiles": [0.5], "statistic": "distribution"}],
}  # fmt: skip


@given(st.sampled_from(sorted(places(FULL), key=repr)), st.sampled_from(["misspelt", "retyped", "inside"]))
@examples(400)
def test_wrong_forms_are_flagged(place: tuple[Any, ...], how: str) -> None:
    # given a configuration that is valid
    assert errors(FULL) == []
    tree = deepcopy(FULL)
    *outer, key = place
    table: Any = tree
    for step in outer:
        table = table[step]
    # when one of its keys is misspelt, has another type, or has a table that it must not have
    if how == "misspelt":
        if not isinstance(table, dict):
            return
        table[f"{key}x"] = table.pop(key)
    elif how == "retyped":
        old = table[key]
        table[key] = True if not isinstance(old, bool) else "true"
    else:
        table[key] = {"unknown": 1}
    # then it is flagged
    assert errors(tree)


@in_a_loop
@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"statistic": "median"}, "statistic"), ({"algorithm": "sharpest"}, "algorithm"), ({"late": "keep"}, "late"),
        ({"relation": "none"}, "relation"), ({"unit": "person"}, "unit"), ({"every": "1 hour"}, "every"),
        ({"every": 60}, "every"), ({"epsilon": "much"}, "epsilon"), ({"range": [0]}, "range"),
        ({"name": "A b"}, "name"),
        ({"range": [0, 1, 2]}, "range"), ({"version": 0}, "version"), ({"grid": 1}, "grid"), ({"delta": 1}, "delta"),
        ({"decay": {"kind": "window"}, "every": "1h"}, "decay"), ({"decay": {"kind": "gentle"}}, "decay"),
        ({"decay": {"kind": "window", "length": "1d", "alpha": 0.5}}, "decay"), ({"value": ["x"]}, "value"),
    ],
)  # fmt: skip
def test_wrong_values_are_flagged_in_their_place(change: dict[str, Any], where: str) -> None:
    found = errors({"privacy": {"epsilon": 9}, "metric": [METRICS["mean"] | change]})
    assert any(f"$.metric[0].{where}" in error for error in found), found
