"""What of a run may depend on values, and what may not.

`watch_file` and `watch_cluster` run a stream and keep everything that leaves a stage. `pattern` is all of it but the
numbers that are sums or noised sums: under the relation "values" it must be the same bytes for two neighbours.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson
from hypothesis import strategies as st

from shoal.mechanisms.statistic import PART_BITS
from shoal.models.config.file import Config
from shoal.models.records import Message
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import FileRun, Line
from shoal.stream.release import ReleasePartition
from shoal.stream.tick_queue import CHUNK_BITS
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.simulation import SECRET, STAMP, Cluster, Home, Source, config, rows_of

CHARGED = {
    "value",
    "low",
    "high",
    "prior",
    "nodes",
}  # the fields of what is published that a value may move, through noise
# The error bars of its variance, but not of its mean, are a function of the noisy mean.
VARIANCE = {"name": "variance", "statistic": "variance", "every": "5s", "max_gap": 2}


@dataclasses.dataclass
class Watched:
    """All that left the stages of one run."""

    releases: list[bytes] = dataclasses.field(default_factory=list)
    activations: list[bytes] = dataclasses.field(default_factory=list)
    dead_letters: list[bytes] = dataclasses.field(default_factory=list)
    messages: list[tuple[int, Message]] = dataclasses.field(default_factory=list)
    state_keys: list[Any] = dataclasses.field(default_factory=list)
    counters: Counter[str] = dataclasses.field(default_factory=Counter)

    def pattern(self) -> dict[str, Any]:
        """Everything that no value may move."""
        return {
            "releases": [without_charged(one) for one in self.releases],
            "activations": [without_charged(one) for one in self.activations],
            "dead letters": [without_record(one) for one in self.dead_letters],
            "messages": [(home, *without_totals(message)) for home, message in self.messages],
            "state keys": self.state_keys,
            "counters": dict(self.counters),
        }


def without_charged(published: bytes) -> list[tuple[str, Any]]:
    """Names and values in their order; of charged fields the name and whether it is null."""
    fields = orjson.loads(published)
    if fields["metric"] == VARIANCE["name"] and fields["noise_sd"] is not None:
        del fields["noise_sd"]["variance"]
    return [(name, value is None if name in CHARGED else value) for name, value in fields.items()]


def without_record(letter: bytes) -> dict[str, Any]:
    """Why and where, not what: the record stands in its topic already."""
    internal = ("record", "length", "sha256")
    return {name: value for name, value in orjson.loads(letter).items() if name not in internal}


def without_totals(message: Message) -> tuple[Any, ...]:
    """A message but for the exact sums in it, and for how samples that were summed over units are spread over parts."""
    alone = [(key, *row[:-1], shape(row[-1])) for key, row in rows_of(message) if row[1]]
    clock = (message.watermarks, message.idle)
    place = message.topic, message.partition, message.number, message.offset, message.wall
    return (*place, clock, alone, merged(message))


def shape(total: Any) -> Any:
    """Of a slot's samples the cells, and how many there are in each."""
    return {cell: len(samples) for cell, samples in total.items()} if isinstance(total, dict) else None


def merged(message: Message) -> Counter[tuple[str, int, int]]:
    """Samples by (group, time, level)."""
    found: Counter[tuple[str, int, int]] = Counter()
    for key, (effective, pseudonym, _, level, samples, _) in rows_of(message):
        found[key, effective, level] += 0 if pseudonym else samples
    return found


def without_parts(keys: Iterable[tuple[bytes, bool]]) -> tuple[Any, ...]:
    """Changelog keys and whether they are tombstones; of what is summed over units (group, tick, level) alone."""
    others, summed = [], set()
    for key, gone in keys:
        if key.startswith(b"p"):
            group, tick, chunk = orjson.loads(key[1:])
            summed.add((group, tick, chunk << CHUNK_BITS >> PART_BITS, gone))
        else:
            others.append((key, gone))
    return others, summed


def watch_file(cfg: Config, lines: Iterable[bytes], *, secret: bytes = SECRET) -> Watched:
    """A file run."""
    return watch_run(plan_topic(cfg, "events", secret, source_partitions=1, contributions_partitions=1), lines)


def watch_run(plan: TopicPlan, lines: Iterable[bytes]) -> Watched:
    """A file run of what was compiled before."""
    runner, seen = FileRun(plan), Watched()
    receive = runner.release.receive

    def overhear(message: Message, offset: int = -1) -> None:
        seen.messages.append((0, message))
        receive(message, offset)

    runner.release.receive = overhear  # type: ignore[method-assign]
    for output in runner.outputs(Line(offset, raw) for offset, raw in enumerate(lines)):
        seen.releases += [release.value for release in output.releases]
        seen.activations += output.activations
        seen.dead_letters += output.dead_letters
    seen.counters = runner.counters
    return seen


class WatchedCluster(Cluster):
    """A cluster that keeps what its transactions write."""

    def __init__(self, cfg: Config, sources: int, homes: int) -> None:
        super().__init__(cfg, sources, homes)
        self.seen = Watched()

    def produce_as(self, user: str, raw: bytes) -> None:
        """One event to its user's partition, as it is written."""
        log = self.sources[self.plan.partition_of(user.encode(), len(self.sources))].log
        log.append(Line(len(log), raw, timestamp=STAMP))

    def _commit_bound(self, source: Source, machine: BoundPartition) -> None:
        take = machine.take

        def overhear(wall: int) -> Any:
            bound = take(wall)
            if bound is not None:
                self.seen.dead_letters += bound.dead_letters
                self.seen.messages += bound.messages
                self.seen.state_keys.append([key for key, _ in bound.changelog])
            return bound

        machine.take = overhear  # type: ignore[method-assign]
        super()._commit_bound(source, machine)
        machine.take = take  # type: ignore[method-assign]

    def _commit_release(self, home: Home, machine: ReleasePartition) -> None:
        take = machine.take

        def overhear() -> Any:
            released = take()
            if released is not None:
                self.seen.releases += [release.value for release in released.releases]
                self.seen.activations += [activated.value for activated in released.activations]
                self.seen.state_keys.append(without_parts((key, value is None) for key, value in released.changelog))
            return released

        machine.take = overhear  # type: ignore[method-assign]
        super()._commit_release(home, machine)
        machine.take = take  # type: ignore[method-assign]

    def watched(self) -> Watched:
        """After the end: with all counters."""
        for machine in [source.machine for source in self.sources] + [home.machine for home in self.homes]:
            if machine is not None:
                self.seen.counters.update(machine.counters)
        return self.seen


# ---------------------------------------------------------------- streams and their neighbours

USERS = [f"user{index}" for index in range(5)]
# Every way to write a number: no parser's idea of range, precision or length may show.
SPELLINGS = [
    "0", "-0", "0.0", "-0.0", "1", "0.5", "0.25", "1e0", "1E+2", "1e-7", "-3", "0.1e1", "1e308", "-1e308", "1e309",
    "-1e309", "1e400", "-1e400", "1e-400", "0e400", "1e99999999999999999999", "-1e99999999999999999999",
    "9007199254740993", "18446744073709551615", "18446744073709551616", "-9223372036854775809",
    "340282366920938463463374607431768211456",
    "9" * 257, "9" * 258, "-" + "9" * 400, "9" * 5000, "0." + "3" * 5000, "1" + "0" * 400 + "e-400", "1.0e-99999",
    "0.1000000000000000055511151231257827021181583404541015625", "4.9e-324", "2.2250738585072011e-308",
]  # fmt: skip
numbers = st.sampled_from(SPELLINGS)


@dataclasses.dataclass(frozen=True)
class Row:
    """One event; a number as it is written."""

    user: str
    number: str
    time: int
    group: str

    def raw(self) -> bytes:
        return f'{{"u":"{self.user}","t":{self.time},"g":"{self.group}","x":{self.number},"y":{self.number}}}'.encode()


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """Two streams that differ in the values of one user."""

    user: str
    first: tuple[Row, ...]
    second: tuple[Row, ...]


def neighbours(
    values: st.SearchStrategy[str] = numbers, *, size: int = 50, least: int = 0, users: list[str] = USERS
) -> st.SearchStrategy[Neighbours]:
    """Users with events in and out of order, in several groups; by default few users with many events each."""
    row = st.builds(Row, st.sampled_from(users), values, st.integers(0, 90), st.sampled_from(["a", "b", "c"]))

    def paired(rows: list[Row]) -> st.SearchStrategy[Neighbours]:
        ordered = sorted(rows, key=lambda row: row.time // 10)  # late by up to nine seconds
        others = st.lists(values, min_size=len(rows), max_size=len(rows))

        def pair(user: str, other: list[str]) -> Neighbours:
            changed = (
                dataclasses.replace(row, number=number) if row.user == user else row
                for row, number in zip(ordered, other, strict=True)
            )
            return Neighbours(user, tuple(ordered), tuple(changed))

        return st.builds(pair, st.sampled_from(users), others)

    return st.lists(row, min_size=least, max_size=size).flatmap(paired)


def raws(rows: Iterable[Row]) -> list[bytes]:
    return [row.raw() for row in rows]


SUM = {"statistic": "sum", "every": "5s", "max_gap": 2}
SLOT = {"statistic": "mean", "slot": "5s", "group": "g", "max_per_group": 3}
WINDOW = {"kind": "window", "length": "15s"}
FEW_USERS = {"prior": "few-users", "epsilon": 2000, "delta": "1e-3"}  # four of them are enough
ONE_SAMPLE = config(
    {"algorithm": "naive", "max_contributions": 1, "users": 1, "clamp": True}, {"max_contributions": 1, "users": 1}
)
CONFIGS: list[Config] = [
    config({"algorithm": "naive"}),
    config({"epsilon": 4000}),  # so much that every level of `full` activates
    config({"epsilon": 60}),  # fewer levels, around priors of several arrays
    config(
        {"epsilon": 9000, "max_contributions": 32, "users": 2, "lateness": "3s"}, {"algorithm": "naive", "every": "7s"}
    ),
    config(
        {"epsilon": 4000, "group": "g", "max_groups": 2, "withheld": True},
        {"algorithm": "naive", "group": "g", "every": "1s", "max_per_group": 3, "withheld": True},
    ),
    config({"epsilon": 4000, "every": "contribution", "late": "drop"}, {"algorithm": "naive", "every": "contribution"}),
    config(
        {"algorithm": "wishful", "prior": "0.5", "max_per_group": 3, "group": "g", "max_groups": 2},
        {"algorithm": "single-tree", "prior": "0.5", "sigma": "0.1", "every": "contribution"},
        {"algorithm": "multi-tree", "prior": "0"},
        {"epsilon": 4000, "sigma": "0.2"},
    ),
    config(  # in a range that their means cannot be apart in
        {"algorithm": "wishful", "max_per_group": 2, "group": "g", "max_groups": 2} | FEW_USERS,
        {"algorithm": "multi-tree", "every": "contribution"} | FEW_USERS,
    ),
    config(
        {"epsilon": 9000, "value": ("x", "y"), "range": ((0, 1), (-1, 3)), "sigma": ("0.3", "0.1")},
        {"algorithm": "naive", "value": ("y", "x"), "range": ((0, 1), (-1, 3)), "clamp": True},
    ),
    ONE_SAMPLE,
    config({"algorithm": "sharp"}, {"algorithm": "sharp", "every": "contribution"}),  # they wait for more units
    config(
        {
            "statistic": "sum",
            "every": "5s",
            "decay": {"kind": "window", "length": "15s"},
            "max_gap": 1,
            "group": "g",
            "max_groups": 2,
        },
        {"statistic": "mean", "every": "5s", "decay": {"kind": "exponential", "half_life": "20s"}, "max_gap": 2},
        {"statistic": "sum", "every": "7s", "decay": {"kind": "all-windows"}, "algorithm": "patent", "max_gap": 2},
        {
            "statistic": "sum",
            "every": "5s",
            "decay": {"kind": "polynomial", "exponent": 2},
            "max_gap": 2,
            "late": "drop",
        },
        {"statistic": "sum", "every": "5s", "decay": {"kind": "forward", "exponent": "1.5"}, "max_gap": 2},
        {
            "statistic": "mean",
            "every": "5s",
            "decay": {"kind": "window", "length": "10s"},
            "max_gap": 2,
            "lateness": "3s",
        },
        {"statistic": "count", "every": "5s", "max_gap": 2},
    ),
    config(VARIANCE | {"decay": WINDOW, "group": "g", "max_groups": 2}),
    config(VARIANCE | {"decay": {"kind": "exponential", "half_life": "20s"}, "late": "drop", "clamp": False}),
    config(VARIANCE | {"lateness": "3s", "unit": "user-10s"}),
    config(
        SLOT | {"algorithm": "baseline", "max_groups": 2},
        SLOT | {"algorithm": "array-averaging", "across_cells": "split", "lateness": "3s"},
        SLOT | {"statistic": "variance", "unit": "user-20s", "max_slots": 2, "contribution_cap": "median"},
        SLOT | {"algorithm": "array-averaging", "unit": "user", "max_slots": 3, "min_users": 2, "late": "drop"},
    ),
]
# These choose a clip range: what follows from it is pattern if the choice is the same. From users' first samples, from
# first blocks that are clipped like samples, in groups, from first blocks with octaves apart; with sigma one centre.
SHARP: list[Config] = [
    config(
        {"algorithm": "sharp", "epsilon": 400, "grid": 200, "max_contributions": 10_000, "life": "60s"},
        {"algorithm": "sharp", "epsilon": 900, "max_contributions": 64, "every": "3s", "life": "60s",
         "withheld": True},
    ),
    config(
        {"algorithm": "sharp", "epsilon": 1200, "max_per_group": 10_000, "life": "60s", "lateness": "3s",
         "group": "g", "max_groups": 2},
    ),
    config(
        {"algorithm": "sharp", "epsilon": 900, "max_contributions": 500, "every": "contribution", "users": None},
    ),
    config(
        {"algorithm": "sharp", "epsilon": 900, "sigma": "0.01", "max_contributions": 9, "life": "60s"},
        {"algorithm": "sharp", "epsilon": 200, "sigma": "0.1", "every": "contribution", "group": "g"},
    ),
]  # fmt: skip
