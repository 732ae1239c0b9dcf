"""Bound without a broker, in both lanes: processor time of an event, from its record to the bytes of messages.

python -m benchmarks.kernel [--quick]

Each algorithm reads the same events in both lanes, in turn, three times; the fastest of each counts.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shoal.agents.process_settings import KERNEL, ON, kernel_asked_for
from shoal.models.config.file import load
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import Line
from shoal.stream.topic import TopicPlan, plan_topic

METRIC = """
[privacy]
epsilon = 4.0

[[metric]]
name = "amount"
topic = "events"
user = "user"
value = "value"
time = "at"
range = [0, 100]
epsilon = 1.0
max_contributions = 64
"""
MEAN = 'statistic = "mean"\nusers = {users}\nevery = "1h"\nalgorithm = "{name}"\n'
STATISTICS = {
    **{name: MEAN.format(name=name, users="{users}") for name in ("naive", "sharp", "full")},
    "groups": MEAN.format(name="full", users="{users}") + 'group = "group"\nmax_groups_per_user = 4\n',
    "sum": 'statistic = "sum"\nstep = "1h"\ndecay = {{ kind = "window", length = "7d" }}\n',
    "add-remove": 'statistic = "mean"\nrelation = "add-remove"\nstep = "1h"\nstart = "2023-01-01"\nhorizon = "365d"\n',
}
SLICE, TRANSACTION = 2_000, 20_000  # records
ROUNDS = 3
GROUPS = 5_000  # of the metric that has groups


def main(arguments: list[str]) -> None:
    """Print a table."""
    events, users = (100_000, 20_000) if "--quick" in arguments else (1_000_000, 200_000)
    records = list(_records(events, users))
    print(f"{events:,} events of {users:,} users; processor time of bound alone, microseconds an event")
    print(f"{'':12}{'twin':>8}{'kernel':>8}{'ratio':>8}")
    for name, metric in STATISTICS.items():
        plan = plan_of(METRIC + metric.format(users=users))
        times = [[_time(plan, records, kernel=kernel) for kernel in (False, True)] for _ in range(ROUNDS)]
        twin, kernel = (min(one[lane] for one in times) * 1e6 / events for lane in (0, 1))
        print(f"{name:12}{twin:8.2f}{kernel:8.2f}{twin / kernel:8.1f}")


def _records(events: int, users: int) -> Iterator[Line]:
    """Users with a skew: a few have many events."""
    random = np.random.default_rng(1)
    who = (users * random.random(events) ** 2).astype(int)
    values = random.gamma(2.0, 10.0, events).round(2)
    for number in range(events):
        at = 1_700_000_000_000 + number * 864
        fields = who[number], str(values[number]).encode(), number * 7919 % GROUPS, at
        raw = b'{"user":"user-%d","value":%s,"group":"group-%d","at":%d}' % fields
        yield Line(number, raw, timestamp=at)


def plan_of(text: str) -> TopicPlan:
    """The plan of a configuration's topic."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shoal.toml"
        file.write_text(text)
        return plan_topic(load(file), "events", bytes(32), source_partitions=1, contributions_partitions=4)


def new_bound(plan: TopicPlan, *, kernel: bool) -> BoundPartition:
    """A partition that begins, in one lane."""
    os.environ[KERNEL] = ON
    bound = BoundPartition(plan, 0, kernel=kernel_asked_for() if kernel else None)
    bound.start(0)
    if kernel and bound.read_by_kernel is None:
        raise SystemExit("the kernel is not used: make kernel")
    return bound


def _time(plan: TopicPlan, records: list[Line], *, kernel: bool) -> float:
    """Seconds of processor time for all records, transactions included."""
    bound = new_bound(plan, kernel=kernel)
    began = time.process_time()
    for first in range(0, len(records), TRANSACTION):
        for at in range(first, min(first + TRANSACTION, len(records)), SLICE):
            part = records[at : at + SLICE]
            bound.process(part, part[-1].offset + 1)
        taken = bound.take(0)
        for _, message in taken.messages if taken else ():
            message.encode()
    return time.process_time() - began


if __name__ == "__main__":
    main(sys.argv[1:])
