"""Release without a broker: processor time of a row and of a release, and memory of a group.

python -m benchmarks.release [--quick]

Bound makes the messages, untimed; a release partition reads them, closes the ticks and hands out transactions. Rows: a
million events of 200,000 users in one group. Groups: each has an event of each of so many users in every tick. Each
case has a process of its own, so that memory is its own.

`bytes` is by how much the process grew, with all that passes; `objects` what Python's objects take of a group that has
three ticks behind it, each time the same (`tracemalloc`). Ciphers that OpenSSL keeps, 0.65 KB each, are not in them:
`naive` has one, `full` one for each level that counts, `sharp` none.
"""

import gc
import multiprocessing
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from operator import add
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks import figures
from benchmarks.workload import MEAN, plan_alone
from shoal.agents.process_settings import tune_garbage_collector
from shoal.models.records import Message
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import Line
from shoal.stream.release import ReleasePartition
from shoal.stream.topic import TopicPlan

ALGORITHMS = ("naive", "sharp", "full")
FIRST, HOUR = 1_700_000_000_000, 3_600_000  # milliseconds
SLICE, TRANSACTION = 2_000, 20_000  # events
USERS = 4  # of a group: each has one event in a tick
WEIGHED = 2_000, 8_000  # groups whose objects are weighed: what all have in common is in both
TICKS_WEIGHED = 3

Found = TypeVar("Found")
Times = tuple[float, ...]  # seconds of processor time: reading, closing, writing


def main() -> None:
    """Print two tables."""
    quick = figures.is_quick(__doc__, "a tenth of it")
    events, users = (100_000, 20_000) if quick else (1_000_000, 200_000)
    print(f"{events:,} events of {users:,} users in one group; processor time, microseconds a row")
    print(f"{'':10}{'rows':>10}{'a row':>10}{'an event':>10}")
    for name in ALGORITHMS:
        rows, seconds = alone(time_rows, name, events, users)
        print(f"{name:10}{rows:10,}{seconds * 1e6 / rows:10.2f}{seconds * 1e6 / events:10.2f}", flush=True)
    print(f"\ngroups with {USERS} events in each tick; microseconds a release, seconds a tick, bytes a group")
    columns = ("groups", "reading", "closing", "writing", "all", "a tick", "bytes", "objects")
    print(f"{'':10}" + "".join(f"{column:>10}" for column in columns))
    objects = {name: bytes_of_a_group(name) for name in ALGORITHMS}
    for groups in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
        for name in ALGORITHMS:
            releases, times, grown = alone(time_groups, name, groups, ticks=max(3, min(30, 100_000 // groups)))
            parts = "".join(f"{part * 1e6 / releases:10.1f}" for part in (*times, sum(times)))
            tick = sum(times) * groups / releases
            memory = f"{grown // groups:10,}{objects[name]:10,}"
            print(f"{name:10}{groups:10,}{parts}{tick:10.2f}{memory}", flush=True)


def alone(case: Callable[..., Found], *arguments: object, **named: object) -> Found:
    """What a case found, in a process of its own that collects garbage as a worker does."""
    with multiprocessing.get_context("spawn").Pool(1, tune_garbage_collector) as pool:
        return pool.apply(case, arguments, named)


def time_rows(name: str, events: int, users: int) -> tuple[int, float]:
    """Rows, or cells of merged ones, that were read, and the seconds of processor time that they took."""
    plan = plan_of(name, users, grouped=False)
    messages = list(bound(new_bound(plan), skewed(events, users)))
    rows = 0
    for message in map(Message.decode, messages):
        rows += sum(map(len, message.contributions.values()))
        rows += sum(len(flat) // 3 for partials in message.partials.values() for _, flat in partials)
    gc.freeze()
    _, times = drive(new_release(plan), messages, 0)
    return rows, sum(times)


def time_groups(name: str, groups: int, ticks: int) -> tuple[int, Times, int]:
    """Releases, processor time by part, and by how many bytes the process grew. The first tick is not timed."""
    plan = plan_of(name, USERS * ticks, grouped=True)
    machine, stage = new_release(plan), new_bound(plan)
    times: Times = (0.0, 0.0, 0.0)
    releases = read = 0
    grown, memory = 0, resident()
    for tick in range(ticks + 1):
        messages = [*bound(stage, of_groups(groups, tick)), *bound(stage, after(groups, tick))]
        gc.collect()
        memory = resident()
        made, spent = drive(machine, messages, read)
        read += len(messages)
        grown += resident() - memory
        if tick:
            releases, times = releases + made, tuple(map(add, times, spent))
    return releases, times, grown


def bytes_of_a_group(name: str) -> int:
    """Bytes of the objects of a group, without what groups have in common."""
    few, many = WEIGHED
    weights = [alone(weigh_groups, name, groups, TICKS_WEIGHED) for groups in WEIGHED]
    return (weights[1] - weights[0]) // (many - few)


def weigh_groups(name: str, groups: int, ticks: int) -> int:
    """Bytes of all objects when so many ticks are released and written."""
    plan = plan_of(name, USERS * ticks, grouped=True)
    machine, stage = new_release(plan), new_bound(plan)
    of_ticks = [[*bound(stage, of_groups(groups, tick)), *bound(stage, after(groups, tick))] for tick in range(ticks)]
    gc.collect()
    read = 0
    tracemalloc.start()
    for messages in of_ticks:
        drive(machine, messages, read)
        read += len(messages)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def drive(machine: ReleasePartition, messages: list[bytes], offset: int) -> tuple[int, Times]:
    """Have the machine read the messages; how many releases it made, and in what time."""
    made, reading, closing, writing = 0, 0.0, 0.0, 0.0
    for number, raw in enumerate(messages, offset):
        machine.process([Line(number, raw)], number + 1)
        while machine.pending():
            began = time.process_time()
            machine.work()
            worked = time.process_time()
            released = machine.take()
            writing += time.process_time() - worked
            if released is not None and released.releases:
                made, closing = made + len(released.releases), closing + worked - began
            else:
                reading += worked - began
    return made, (reading, closing, writing)


def plan_of(name: str, users: int, *, grouped: bool) -> TopicPlan:
    """The plan of one mean by this algorithm."""
    return plan_alone(MEAN.format(users=users, algorithm=name, every="1h"), groups=int(grouped))


def new_release(plan: TopicPlan) -> ReleasePartition:
    """Release at its beginning."""
    machine = ReleasePartition([plan], 0, idle_after=HOUR)
    machine.start(0)
    return machine


def new_bound(plan: TopicPlan) -> BoundPartition:
    """Bound at its beginning."""
    stage = BoundPartition(plan, 0)
    stage.start(0)
    return stage


def bound(stage: BoundPartition, records: Iterator[Line]) -> Iterator[bytes]:
    """The messages that a source partition of these records sends."""
    while transaction := list(islice(records, TRANSACTION)):
        for first in range(0, len(transaction), SLICE):
            part = transaction[first : first + SLICE]
            stage.process(part, part[-1].offset + 1)
        taken = stage.take(0)
        yield from (message.encode() for _, message in taken.messages) if taken else ()


def skewed(events: int, users: int) -> Iterator[Line]:
    """Users with a skew: a few have many events."""
    random = np.random.default_rng(1)
    who = (users * random.random(events) ** 2).astype(int)
    values = random.gamma(2.0, 10.0, events).round(2)
    for number in range(events):
        at = FIRST + number * 864
        yield Line(number, b'{"user":"user-%d","value":%.2f,"at":%d}' % (who[number], values[number], at), timestamp=at)


def of_groups(groups: int, tick: int) -> Iterator[Line]:
    """Of each group and each of its users one event in this tick; each tick has users of its own."""
    values = np.random.default_rng(tick).gamma(2.0, 10.0, groups * USERS).round(2)
    first = tick * (groups * USERS + 1)
    for number in range(groups * USERS):
        group, user = divmod(number, USERS)
        name = b"u%d-%d-%d" % (tick, group, user)
        yield event(first + number, name, group, values[number], tick)


def after(groups: int, tick: int) -> Iterator[Line]:
    """The event that closes the tick."""
    yield event((tick + 1) * (groups * USERS + 1) - 1, b"late-%d" % tick, 0, 1.0, tick + 1)


def event(number: int, user: bytes, group: int, value: float, tick: int) -> Line:
    """A record."""
    at = FIRST // HOUR * HOUR + tick * HOUR
    raw = b'{"user":"%s","group":"g%06d","value":%.2f,"at":%d}' % (user, group, value, at)
    return Line(number, raw, timestamp=at)


def resident() -> int:
    """Bytes of memory that the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    main()
