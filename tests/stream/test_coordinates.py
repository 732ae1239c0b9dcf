"""Values of two coordinates through the stages: accepted whole or not at all, packed while summed, sent as lists."""

from fractions import Fraction
from typing import Any

import orjson
import pytest

from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.models.config.file import Config
from shoal.models.records import Message
from shoal.stream.bound import BoundPartition
from shoal.stream.contributions import MESSAGE_BYTES
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic
from tests.stream.simulation import SECRET, STAMP, apply, config, event, names_of, rows_of, run_file
from tests.support.cover import in_a_loop

TWO: dict[str, Any] = {"value": ("x", "y"), "range": ((0, 1), (-5, 5)), "every": "10s"}


def bound(cfg: Config) -> BoundPartition:
    machine = BoundPartition(plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1), 0)
    machine.start(0)
    return machine


def feed(machine: BoundPartition, *events: bytes) -> None:
    offset = machine.next_offset or 0
    machine.process([Line(offset + i, raw, timestamp=STAMP) for i, raw in enumerate(events)], offset + len(events))


def rows(machine: BoundPartition) -> list[list[Any]]:
    """What is sent, as it comes out of the topic."""
    taken = machine.take(wall=1)
    assert taken is not None
    messages = [Message.decode(message.encode()) for _, message in taken.messages]
    return [list(row) for message in messages for _, row in rows_of(message)]


def test_the_mechanism_is_one_mean_for_each_coordinate():
    section = config(TWO | {"algorithm": "naive", "epsilon": "0.5"}).metric[0]
    metric = plan_topic(
        config(TWO | {"algorithm": "naive", "epsilon": "0.5"}),
        "events",
        SECRET,
        source_partitions=1,
        contributions_partitions=1,
    ).metrics[0]
    assert isinstance(metric.parameters, Coordinates)
    first, second = metric.parameters.parts
    assert isinstance(first, Naive)
    assert (first.epsilon, second.epsilon, section.epsilon) == (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
    assert [(part.grid.low, part.grid.high) for part in (first, second)] == list(section.parts.ranges)


def test_blocks_carry_a_sum_for_each_coordinate():
    machine = bound(config(TWO | {"algorithm": "full"}))
    feed(machine, *(event("a", x, 100, y=y) for x, y in ((0, 5), (1, -5), (0.5, 0), (0.25, 2.5))))
    assert [row[3:] for row in rows(machine)] == [[0, 1, [0, 16]], [1, 1, [16, 0]], [2, 2, [12, 20]]]


def test_partials_of_a_tick_are_summed_in_lanes():
    machine = bound(config(TWO | {"algorithm": "naive"}))
    feed(machine, *(event(user, 1, 100, y=-3.75) for user in "abc"))
    ((_, pseudonym, _, _, samples, totals),) = rows(machine)
    assert (pseudonym, samples, totals) == ("", 3, [48, 6])


def test_values_far_outside_stay_in_their_lane():
    machine = bound(config(TWO | {"algorithm": "naive", "every": "contribution", "grid": 2**32}))
    raw = b'{"u":"a","t":100,"x":1e400,"y":-1e400}'
    feed(machine, raw, raw)
    assert [row[5] for row in rows(machine)] == [[2**32, 0]] * 2


@in_a_loop
@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"y": None}, "bad-value"), ({}, "no-value"), ({"y": "1"}, "bad-value"), ({"y": True}, "bad-value")],
)
def test_a_record_without_every_coordinate_counts_for_none(fields, reason):
    machine = bound(config(TWO | {"algorithm": "naive", "every": "contribution", "max_contributions": 1}))
    feed(machine, event("a", 1, 100, **fields), event("a", 1, 101, y=5))
    assert machine.counters == {f"dead_letters.m0.{reason}": 1}
    assert [row[5] for row in rows(machine)] == [[16, 16]]


def test_an_account_of_eight_coordinates_survives_a_restart():
    eight = {"value": tuple("abcdefgh"), "range": ((0, 1),) * 8, "grid": 2**32, "max_contributions": 2**20}
    cfg = config(eight | {"algorithm": "full"})
    raw = orjson.dumps({"u": "ann", "t": 100} | dict.fromkeys("abcdefgh", 1))
    machine, changelog = bound(cfg), dict[bytes, bytes]()
    feed(machine, *[raw] * 7)
    taken = machine.take(wall=1)
    assert taken is not None
    apply(changelog, taken.changelog)
    again = BoundPartition(machine.plan, 0)
    again.restore(changelog)
    assert again.count("m0", "ann") == 7
    assert [len(value) for value in names_of(changelog).values()] == [4 + 8 * 8]
    feed(again, raw)
    assert [row[5] for row in rows(again)] == [[4 << 32] * 8]


def test_an_account_of_32_coordinates_with_a_delta_survives_a_restart():
    names = [f"x{number}" for number in range(32)]
    wide = {"value": tuple(names), "range": ((0, 1),) * 32, "max_contributions": 64, "delta": "1e-6", "every": "1h"}
    cfg = config(wide | {"algorithm": "sharp", "users": None})
    raw = orjson.dumps({"u": "ann", "t": 100} | dict.fromkeys(names, 1))
    machine, changelog = bound(cfg), dict[bytes, bytes]()
    feed(machine, *[raw] * 6)
    taken = machine.take(wall=1)
    assert taken is not None
    apply(changelog, taken.changelog)
    again = BoundPartition(machine.plan, 0)
    again.restore(changelog)
    feed(again, raw, raw)
    # then the block of samples 5 to 8 has all of them in every coordinate
    block, steps = rows(again)[-1][5], machine.plan.metrics[0].parameters.grids[0].steps
    assert len(block) == 32
    assert {total >> steps.bit_length() for total in block} == {4 * steps}


def test_messages_stay_small_however_many_coordinates():
    eight = {"value": tuple("abcdefgh"), "range": ((0, 1),) * 8, "grid": 2**32, "max_contributions": 2**20}
    machine = bound(config(eight | {"algorithm": "naive", "every": "contribution"}))
    raw = orjson.dumps({"u": "ann", "t": 100} | dict.fromkeys("abcdefgh", 1))
    feed(machine, *[raw] * 5000)
    taken = machine.take(wall=1)
    assert taken is not None
    assert len(taken.messages) > 2
    assert all(len(message.encode()) < 2 * MESSAGE_BYTES for _, message in taken.messages)


def test_a_release_has_arrays_and_an_activation_too():
    cfg = config(TWO | {"epsilon": 10**6, "clamp": True})
    plan = plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1)
    events = [event(f"user{n % 5}", 1, 100 + n, y=-5) for n in range(100)]
    outputs = list(FileRun(plan).outputs(Line(offset, raw) for offset, raw in enumerate(events)))
    release = orjson.loads([release for output in outputs for release in output.releases][-1].value)
    assert release["value"] == pytest.approx([1, -5], abs=1e-3)
    assert release["value"][0] <= 1
    assert release["value"][1] >= -5
    assert [len(release[name]) for name in ("noise_sd", "low", "high")] == [2, 2, 2]
    assert release["samples"] == 40
    activated = [orjson.loads(raw) for output in outputs for raw in output.activations]
    assert [one["level"] for one in activated] == [2, 3]
    for one in activated:
        assert one["epsilon"] == 10**6 / 6
        assert [len(one[name]) for name in ("prior", "samples")] == [2, 2]


def test_a_single_value_is_what_it_was():
    """The way of one coordinate has no lists, no packing and accounts of 16 bytes."""
    cfg = config({"algorithm": "full"})
    machine = bound(cfg)
    feed(machine, event("a", 1, 100), event("a", 1, 100), event("a", 0.5, 100))
    taken = machine.take(wall=1)
    assert taken is not None
    assert [row[5] for _, message in taken.messages for found in message.contributions.values() for row in found] == [
        16,
        16,
    ]
    changelog = dict[bytes, bytes]()
    apply(changelog, taken.changelog)
    assert [len(value) for value in names_of(changelog).values()] == [16]
    assert b"[" not in run_file(cfg, [event("a", 1, 100)])[0]
