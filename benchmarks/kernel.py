"""Bound without a broker, in both lanes: processor time of an event, from its record to the bytes of messages.

python -m benchmarks.kernel [--quick] [--bytes]

Each algorithm reads the same events in both lanes, in turn, three times; the fastest of each counts. With `--bytes`,
what an event adds to the changelog instead, by what the bytes are for: both lanes write the same, so one does it.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import aiokafka.consumer.fetcher as fetcher
import numpy as np
from aiokafka import TopicPartition
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks.workload import MEAN, plan_alone
from shoal.agents.kafka import fast_records
from shoal.agents.lane import lane_named
from shoal.mechanisms.stores.packed import number_bytes, unpack_numbers
from shoal.stream.bound import Bound, BoundPartition
from shoal.stream.deltas.record import CHANGED, CLEARED, KEPT, PREFIX, decode
from shoal.stream.topic import TopicPlan

STATISTICS = {
    **{name: MEAN.format(algorithm=name, users="{users}", every="1h") for name in ("naive", "sharp", "full")},
    "groups": MEAN.format(algorithm="full", users="{users}", every="1h"),
    "sum": 'statistic = "sum"\nevery = "1h"\ndecay = {{ kind = "window", length = "7d" }}\n',
    "add-remove": 'statistic = "mean"\nrelation = "add-remove"\nevery = "1h"\nstart = "2023-01-01"\nlife = "365d"\n',
}
OF_A_USER = {"groups": 4}  # groups in which a user counts
SLICE, TRANSACTION = 2_000, 20_000  # records
BATCH, FETCH = (
    16_384,
    1 << 20,
)  # bytes: what producers send at once if they are not told otherwise, and what a worker asks for
TP = TopicPartition("events", 0)
WAYS = {
    "twin": (False, False),
    "kernel, records": (True, False),
    "kernel": (True, True),
}  # with the kernel, with batches
ROUNDS = 3
PARTS = ("names", "lengths", "numbers", "headers")
GROUPS = 5_000  # of the metric that has groups


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the events")
    parser.add_argument("--bytes", action="store_true", help="what an event adds to the changelog")
    said = parser.parse_args()
    events, users = (100_000, 20_000) if said.quick else (1_000_000, 200_000)
    fetches = list(_fetches(_records(events, users)))
    if said.bytes:
        _print_bytes(fetches, events, users)
        return
    print(f"{events:,} events of {users:,} users, in batches of 16 KB; processor time of bound, microseconds an event")
    print(f"{'':12}" + "".join(f"{name:>18}" for name in WAYS) + f"{'twin / kernel':>18}")
    for name, metric in STATISTICS.items():
        plan = plan_alone(metric.format(users=users), groups=OF_A_USER.get(name, 0), contributions_partitions=4)
        times = [[_time(plan, fetches, *way) for way in WAYS.values()] for _ in range(ROUNDS)]
        best = [min(one) * 1e6 / events for one in zip(*times, strict=True)]
        print(f"{name:12}" + "".join(f"{one:18.2f}" for one in best) + f"{best[0] / best[-1]:18.1f}")


def _print_bytes(fetches: list[tuple[int, bytes]], events: int, users: int) -> None:
    """What the changelog costs, for transactions of one size and of one five times as large."""
    columns = [f"{part}, {share}" for share in ("changed", "again") for part in PARTS]
    print(
        f"{events:,} events of {users:,} users; bytes of bound's changelog an event, and those that a successor reads"
    )
    print(
        "of each name. Again: what the rolling snapshot writes. A record's frame in Kafka, some 10 bytes, is left out."
    )
    for size in (TRANSACTION, 5 * TRANSACTION):
        print(f"transactions of {size:,} events")
        print(f"{'':12}" + "".join(f"{name:>18}" for name in columns) + f"{'mark':>8}{'all':>8}{'read':>8}")
        for name, metric in STATISTICS.items():
            plan = plan_alone(metric.format(users=users), groups=OF_A_USER.get(name, 0), contributions_partitions=4)
            bound = new_bound(plan, kernel=True)
            found: Counter[str] = Counter()
            needed: list[tuple[int, int]] = []  # number of a record, and its bytes
            for taken in _run(bound, fetches, True, size):
                needed = [one for one in needed if one[0] >= taken.needs] + list(_weigh(taken.changelog, found))
            read = sum(size for _, size in needed) / max(1, sum(sum(one.sizes) for one in bound.accounts))
            parts = "".join(f"{found[column] / events:18.2f}" for column in columns)
            print(f"{name:12}{parts}{found['mark'] / events:8.2f}{found.total() / events:8.2f}{read:8.1f}")


def _weigh(changelog: list[tuple[bytes, bytes | None]], found: Counter[str]) -> Iterator[tuple[int, int]]:
    """Add up the bytes of a transaction by what they are for; (number, bytes) of its records."""
    for key, raw in changelog:
        value = raw or b""
        size = len(key) + len(value)
        if not key.startswith(PREFIX):
            found["mark"] += size
            continue
        record = decode(key, value)
        rest = {CHANGED: 0, KEPT: 0, CLEARED: 0}
        for section in record.sections():
            share = "again" if section.kind == KEPT else "changed"
            of_names, of_numbers = _names_and_numbers(section.entries, section.width)
            found[f"names, {share}"] += of_names
            found[f"numbers, {share}"] += of_numbers
            found[f"lengths, {share}"] += len(section.entries) - of_names - of_numbers
            rest[section.kind] += len(section.encode()) - len(section.entries)
            size -= len(section.encode())
        found["headers, again"] += rest[KEPT]
        found["headers, changed"] += rest[CHANGED] + rest[CLEARED] + size
        yield record.number, len(key) + len(value)


def _names_and_numbers(entries: bytes, width: int) -> tuple[int, int]:
    """The bytes of names, and those of numbers."""
    held = [(len(name), len(number_bytes(number))) for name, number in unpack_numbers(entries, width)]
    return sum(name for name, _ in held), sum(number for _, number in held)


def _records(events: int, users: int) -> Iterator[tuple[int, bytes]]:
    """Users with a skew: a few have many events."""
    random = np.random.default_rng(1)
    who = (users * random.random(events) ** 2).astype(int)
    values = random.gamma(2.0, 10.0, events).round(2)
    for number in range(events):
        at = 1_700_000_000_000 + number * 864
        fields = who[number], str(values[number]).encode(), number * 7919 % GROUPS, at
        raw = b'{"user":"user-%d","value":%s,"group":"group-%d","at":%d}' % fields
        yield at, raw


def _fetches(records: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Record batches as a broker hands them out: the offset of the first record, and bytes."""
    first = begin = number = 0
    fetch, batch = b"", _builder()
    for number, (at, raw) in enumerate(records):
        if batch.append(number - begin, at, None, raw, []) is None:
            fetch += _stored(batch, begin)
            begin, batch = number, _builder()
            batch.append(0, at, None, raw, [])
            if len(fetch) >= FETCH:
                yield first, fetch
                first, fetch = begin, b""
    yield first, fetch + _stored(batch, begin)


def _builder() -> Any:
    return DefaultRecordBatchBuilder(2, 0, 0, -1, -1, 0, BATCH)


def _stored(batch: Any, begin: int) -> bytes:
    return begin.to_bytes(8) + bytes(batch.build())[8:]


def new_bound(plan: TopicPlan, *, kernel: bool) -> BoundPartition:
    """A partition that begins, in one lane."""
    bound = BoundPartition(plan, 0, kernel=lane_named("kernel" if kernel else "twin").module)
    bound.start(0)
    if kernel and bound.read_by_kernel is None:
        raise SystemExit("the kernel is not used: make kernel")
    return bound


def _time(plan: TopicPlan, fetches: list[tuple[int, bytes]], has_kernel: bool, has_batches: bool) -> float:
    """Seconds of processor time for all records, transactions included."""
    bound = new_bound(plan, kernel=has_kernel)
    began = time.process_time()
    for taken in _run(bound, fetches, has_batches, TRANSACTION):
        for _, message in taken.messages:
            message.encode()
    return time.process_time() - began


def _run(bound: BoundPartition, fetches: list[tuple[int, bytes]], has_batches: bool, size: int) -> Iterator[Bound]:
    """All records, in transactions of about that many."""
    kind = lane_named("kernel").module.RecordBatch if has_batches else None
    arguments = fast_records.consumer_arguments({TP.topic: kind} if has_batches else {})
    for first, raw in fetches:
        fetched = fetcher.PartitionRecords(
            TP, fetcher.MemoryRecords(raw), (), first, arguments["key_deserializer"], None, True, fetcher.READ_COMMITTED
        )
        records, _ = fast_records.records_of(list(fetched), kind)
        for at in range(0, len(records), SLICE):
            part = records[at : at + SLICE]
            bound.process(part, part[-1].offset + 1)
            if bound.backlog >= size and (taken := bound.take(0)):
                yield taken
    if taken := bound.take(0):
        yield taken


if __name__ == "__main__":
    main()
