"""A release partition that is fed by hand, message by message."""

import orjson

from shoal.models.records import Message
from shoal.stream.group import Released
from shoal.stream.release import ReleasePartition
from shoal.stream.topic import plan_topic
from tests.stream.simulation import SECRET, apply, config

SECOND = 1_000_000
IDLE = 8 * SECOND  # in steps of two seconds
CLOCK = "t|0|fold|300000000"


def release(cfg=None, *, sources=1, **options) -> ReleasePartition:
    plan = plan_topic(
        cfg or config({"algorithm": "naive"}), "events", SECRET, source_partitions=sources, contributions_partitions=1
    )
    machine = ReleasePartition([plan], 0, idle_after=IDLE, **options)
    machine.start(0)
    return machine


def message(
    number, *, partition=0, clock=None, wall=0, idle=False, at=None, key="m0/1|", samples=1, offset=0
) -> Message:
    rows = {} if at is None else {key: [(at * SECOND, "", 0, 0, samples, samples)]}
    watermarks = None if clock is None and not idle else {CLOCK: None if clock is None else clock * SECOND}
    return Message("events", partition, number, offset, wall, watermarks, idle, rows)


def closed(machine: ReleasePartition, *messages: Message) -> list[tuple[str, int]]:
    """Feed messages; (at, samples) of what they release."""
    for each in messages:
        machine.receive(each)
    while machine.pending():
        machine.work()
    found = machine.take()
    releases = [orjson.loads(one.value) for one in found.releases] if found else []
    return [(one["at"][14:19], one["samples"]) for one in releases]


def taken(machine: ReleasePartition) -> Released:
    found = machine.take()
    assert found is not None
    return found


def committed(cfg=None, **options) -> tuple[dict[bytes, bytes], ReleasePartition]:
    machine = release(cfg, **options)
    for each in (message(1, at=100, clock=100), message(2, clock=110), message(3, at=112)):
        machine.receive(each)
    while machine.pending():
        machine.work()
    changelog: dict[bytes, bytes] = {}
    apply(changelog, taken(machine).changelog)
    return changelog, machine


def restore(changelog: dict[bytes, bytes], cfg=None, *, sources=1, retired=frozenset(), **options) -> ReleasePartition:
    plan = plan_topic(
        cfg or config({"algorithm": "naive"}), "events", SECRET, source_partitions=sources,
        contributions_partitions=1, retired=retired,
    )  # fmt: skip
    machine = ReleasePartition([plan], 0, idle_after=IDLE, **options)
    machine.restore(changelog)
    return machine
