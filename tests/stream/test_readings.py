"""A registered version is read as on its first day, beside new versions of the same topic."""

from collections.abc import Iterable

import orjson

from shoal.models.config.file import Config
from shoal.models.config.reading import FIRST, NEWEST
from shoal.models.config.terms import Terms
from shoal.models.version import VersionId
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import FileRun, Line
from shoal.stream.parameters import parameters_of
from shoal.stream.topic import plan_topic
from tests.stream.simulation import SECRET, config, event

OLD: dict[str, object] = {"name": "old", "algorithm": "naive", "lateness": "5s"}
NEW: dict[str, object] = {"name": "new", "algorithm": "naive", "lateness": "5s"}
EVENTS = [
    event("anna", 0.5, 1_700_000_000),
    b'{"u": 12.0, "x": 1, "t": 1700000001}',
    b'{"u": 12, "x": 1, "t": 1700000002}',
    b'{"u": "bert", "x": NaN, "t": 1700000030}',  # to the second reading it has a time, and moves the clock
    b'\xef\xbb\xbf{"u": "carl", "x": 0.25, "t": 1700000031, "y": NaN}',
    b'{"u": "dora", "x": 0.25, "t": "1700000032000"}',
    event("emil", 0.5, 1_700_000_004),  # late to the second reading alone
    b"[1]",
    b"nonsense",
    event("emil", 0.5, 1_700_000_060),
]


def read_as(reading: int, *metrics: dict[str, object]) -> Config:
    cfg = config(*metrics)
    return cfg.under({cfg.id_of(metric): Terms(reading) for metric in cfg.metric})


def releases(cfg: Config, events: Iterable[bytes] = EVENTS) -> tuple[list[bytes], dict[str, int]]:
    run = FileRun(plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1))
    lines = (Line(offset, raw) for offset, raw in enumerate(events))
    return [one.value for output in run.outputs(lines) for one in output.releases], dict(run.counters)


def test_both_readings_of_one_topic_go_their_own_ways():
    # given an old and a new version, each alone
    old, refused_by_old = releases(read_as(FIRST, OLD))
    new, refused_by_new = releases(read_as(NEWEST, NEW))
    assert sum(refused_by_old.values()) > sum(refused_by_new.values())
    # when both read the same topic, in either order
    for metrics in ((OLD, NEW), (NEW, OLD)):
        both = config(*metrics).under({VersionId("shoal", "old", 1): Terms(FIRST)})
        found, refused = releases(both)
        # then each makes the bytes that it makes alone, and refuses the same records for the same reasons
        assert [one for one in found if b'"old"' in one] == old
        assert [one for one in found if b'"new"' in one] == new
        assert refused == refused_by_old | refused_by_new


def test_the_first_reading_is_not_named_and_the_second_is():
    cfg = config(OLD)
    assert orjson.loads(parameters_of(cfg, cfg.metric[0]))["reading"] == NEWEST
    first = cfg.under({VersionId("shoal", "old", 1): Terms(FIRST)})
    said = orjson.loads(parameters_of(first, first.metric[0]))
    assert "reading" not in said
    assert said | {"reading": NEWEST} == orjson.loads(parameters_of(cfg, cfg.metric[0]))


def test_the_clock_of_the_first_reading_keeps_its_name_in_the_state():
    plan = plan_topic(read_as(FIRST, OLD), "events", SECRET, source_partitions=1, contributions_partitions=1)
    machine = BoundPartition(plan, 0)
    machine.start(0)
    machine.process([Line(0, EVENTS[0])], 1)
    bound = machine.take(wall=0)
    assert bound is not None
    (_, mark), *_ = bound.changelog[::-1]
    assert list(orjson.loads(mark or b"")["watermarks"]) == ["t|5000000|fold|300000000"]
