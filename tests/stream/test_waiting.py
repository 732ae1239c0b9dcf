"""Releases of a mean that waits say until when, in every stage and backend alike."""

from typing import Any

import orjson
import pytest

from shoal.agents.lane import lane_named
from shoal.models.times import time_of_text
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic
from tests.stream.simulation import SECRET, Cluster, config, event
from tests.support.backends import BACKENDS, PYTHON

CFG = config(
    {"algorithm": "sharp", "epsilon": 9, "every": "1h", "users": 400, "life": "2d"},
    {"algorithm": "sharp", "epsilon": 9, "every": "1h", "users": 400, "life": "2d", "withheld": True,
     "value": ("x", "y"), "range": ((0, 1), (0, 1))},
    {"algorithm": "sharp", "epsilon": 9, "every": "contribution", "users": 400},
    {"algorithm": "sharp", "epsilon": 9, "every": "1h", "users": 400, "sigma": "0.2", "life": "2d"},
    {"algorithm": "naive", "epsilon": 9, "every": "1h", "users": 400},
)  # fmt: skip
HOURS = (0, 1, 3, 4, 8, 9)  # with an event: in the others there is no release
EVENTS = [event(f"u{hour}", 0.5, 3600 * hour + 5, y=0.25) for hour in HOURS]


def released(name: str) -> list[dict[str, Any]]:
    plan = plan_topic(CFG, "events", SECRET, source_partitions=1, contributions_partitions=1)
    outputs = FileRun(plan).outputs(Line(offset, raw) for offset, raw in enumerate(EVENTS))
    values = [orjson.loads(release.value) for output in outputs for release in output.releases]
    return [value for value in values if value["metric"] == name]


@pytest.mark.parametrize("name", ["m0", "m1"])
def test_until_is_the_time_of_the_first_release_that_counts(name: str) -> None:
    # a sixteenth of two days is three hours; of enough people twice that: the sixth tick is the last to wait for
    found = released(name)
    waiting = [one for one in found if "waiting" in one]
    begun = found[len(waiting) :]
    assert [one["samples"] for one in waiting] == [0] * 4
    assert {one["waiting"]["until"] for one in waiting} == {"1970-01-01T06:00:00Z"}
    assert all(one["samples"] for one in begun)
    assert all((time_of_text(str(one["at"])) or 0) < 6 * 3600 * 10**6 for one in waiting)
    assert str(begun[0]["at"]) == "1970-01-01T09:00:00Z"  # the sixth tick had nothing, and no release


def test_what_has_no_cadence_or_does_not_wait_says_nothing() -> None:
    assert not [one for name in ("m2", "m4") for one in released(name) if "waiting" in one]
    assert any("waiting" in one for one in released("m3"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_say_the_same(backend: str) -> None:
    plan = plan_topic(CFG, "events", SECRET, source_partitions=1, contributions_partitions=1)
    run = FileRun(plan, lane_named("twin" if backend == PYTHON else "kernel").module)
    outputs = list(run.outputs(Line(offset, raw) for offset, raw in enumerate(EVENTS)))
    found = [orjson.loads(release.value) for output in outputs for release in output.releases]
    assert [one for one in found if one["metric"] == "m0"] == released("m0")


def test_a_cluster_says_the_same_whatever_crashes() -> None:
    expected = [value for name in ("m0", "m1", "m3", "m4") for value in released(name)]
    cluster = Cluster(CFG, 2, 3)
    cluster.produce(EVENTS)
    cluster.end(b"1970-01-01T10:00:00Z")
    for where in range(40):
        cluster.act(["bound", "release", "crash_bound", "crash_release"][where % 4], where % 6, 3)
    cluster.drain()
    found = [one for one in map(orjson.loads, cluster.releases()) if one["metric"] != "m2"]
    assert sorted(found, key=lambda one: one["id"]) == sorted(expected, key=lambda one: str(one["id"]))
