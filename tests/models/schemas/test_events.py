"""The schema of a source topic: what it refuses some metric refuses, and what every metric takes it takes."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from shoal.models.config.file import Config, load
from shoal.models.errors import ConfigError
from shoal.models.schemas.events import events_schema
from shoal.stream.file_run import FileRun, Line
from tests.golden.configurations import CASES
from tests.golden.driver import config_of, plan_of
from tests.golden.events import events_of
from tests.support.cover import in_a_loop
from tests.support.metric_keys import limited

ROOT = Path(__file__).parents[3]
METRIC = {
    "name": "m", "topic": "t", "user": "who.id", "time": "at", "value": "x", "range": [0, 1], "epsilon": 1,
    "max_contributions": 2, "statistic": "mean", "slot": "1h",
}  # fmt: skip
# What no form of a field shows, nor JSON itself.
BY_MEANING = {"late", "too-far-ahead", "bad-time", "before-start", "after-end", "not-json"}


def config(*metrics: dict[str, Any]) -> Config:
    said = [limited(METRIC | {"name": f"m{n}"} | one) for n, one in enumerate(metrics)]
    return Config.model_validate({"privacy": {"epsilon": 9}, "metric": said})


@in_a_loop
@pytest.mark.parametrize("name", ["shoal", "visits", "places", "clicks", "places-presence"])
def test_events_of_the_examples_fit(name: str) -> None:
    path = ROOT / "examples" / f"{name}.toml"
    events = {"shoal": "purchases", "visits": "visits", "clicks": "clicks"}.get(name)
    validator = Draft202012Validator(events_schema(load(path)))
    validator.check_schema(validator.schema)
    for line in (ROOT / f"examples/{events}.jsonl").read_text().splitlines() if events else ():
        assert not list(validator.iter_errors(json.loads(line)))


@pytest.mark.slow
def test_the_schema_refuses_what_some_metric_refuses() -> None:
    seen = {"fits": 0, "does not": 0}
    for case in CASES[::3]:
        if case.at_once or not case.kafka.get("dead_letters", True):
            continue
        has_stamps = all(metric.time for metric in config_of(case).metric)  # which files lack
        validator = Draft202012Validator(events_schema(config_of(case)))
        run = FileRun(plan_of(config_of(case), 1, 1))
        values = [event.value or b"" for event in events_of(case.stream) if event.in_files]
        letters = [json.loads(letter) for out in run.outputs(_lines(values)) for letter in out.dead_letters]
        refused: dict[int, set[str]] = {}
        for letter in letters:
            refused.setdefault(letter["offset"], set()).add(letter["reason"])
        for offset, value in enumerate(values):
            try:
                event = json.loads(value.decode().removeprefix("\ufeff"), parse_constant=lambda _: None)
            except ValueError:
                continue
            reasons = refused.get(offset, set())
            if validator.is_valid(event):
                seen["fits"] += 1
                assert reasons <= BY_MEANING or not has_stamps, (case.name, value[:200])
            else:
                seen["does not"] += 1
                assert reasons, (case.name, value[:200])
    assert min(seen.values()) > 30


def _lines(values: list[bytes]) -> Any:
    return (Line(offset, value) for offset, value in enumerate(values))


def test_fields_are_in_their_tables_with_the_types_that_metrics_need() -> None:
    schema = events_schema(config({}, {"group": "who.club", "value": "who.age"}, {"value": 'x > 1 and kind == "a"'}))
    assert schema["required"] == ["who", "at", "x", "kind"]
    who = schema["properties"]["who"]
    assert (who["type"], who["required"]) == ("object", ["id", "club", "age"])
    assert schema["properties"]["x"]["type"] == "number"
    assert schema["properties"]["x"]["description"].startswith("A value, which is protected; of the predicate ")
    valid = Draft202012Validator(schema).is_valid
    event = {"who": {"id": 3, "club": True, "age": 1.5}, "at": "2026-01-01", "x": 1e99, "kind": "b", "more": None}
    assert valid(event)
    for change in ({"who": 3}, {"x": "1"}, {"kind": 1}, {"at": None}, {"who": {"id": 1.5, "club": 1, "age": 1}}):
        assert not valid(event | change)


def test_a_field_of_two_uses_has_both_types() -> None:
    schema = events_schema(config({"group": "g"}, {"group": "g", "user": "who.id", "time": "g"}))
    assert {"type": "boolean"} in schema["properties"]["g"]["allOf"][0]["anyOf"]


def test_the_topic_is_one_that_metrics_read() -> None:
    both = config({}, {"topic": "u"})
    assert events_schema(both, "u")["$id"] == "urn:shoal:schema:events:u"
    with pytest.raises(ConfigError, match="metrics read topics t, u; say which with --topic"):
        events_schema(both)
    with pytest.raises(ConfigError, match="no metric reads topic 'v'; its metrics read t, u"):
        events_schema(both, "v")


@pytest.mark.parametrize("values", [("x", "x.y"), ("x.y", "x")])
def test_a_field_inside_a_number_is_a_slip(values: tuple[str, str]) -> None:
    both = config(*({"value": value} for value in values))
    with pytest.raises(ConfigError, match="metrics read field 'x', and 'x.y' inside it; no event has both"):
        events_schema(both)
