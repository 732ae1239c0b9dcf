"""Bound alone on what has a step: streams of small events, and the exact sums of steps that it sends."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from shoal.models.config.file import Config
from shoal.stream.bound import Bound, BoundPartition
from shoal.stream.file_run import Line
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.simulation import SECRET, STAMP, apply, config, names_of, rows_of

STEPS = 16  # of the grid of these configurations
Place = tuple[str, int]  # group, microsecond at which its step begins


def sums(**changes: Any) -> Config:
    """One sum per step of 5 seconds, of at most two samples of a unit."""
    return config({"statistic": "sum", "every": "5s", "max_contributions": 2} | changes)


schedules = st.lists(
    st.tuples(st.sampled_from(["transaction", "transaction", "process", "crash", "idle"]), st.integers(1, 8)),
    max_size=30,
)


def plan_of(cfg: Config, *, sources: int = 1) -> TopicPlan:
    return plan_topic(cfg, "events", SECRET, source_partitions=sources, contributions_partitions=1)


@dataclasses.dataclass(frozen=True)
class Event:
    user: str
    time: int
    group: str = "x"
    value: float = 1

    def raw(self) -> bytes:
        return f'{{"u":"{self.user}","x":{self.value},"t":{self.time},"g":"{self.group}"}}'.encode()


class Stage:
    """Bound on one partition, with what its committed transactions left; it may crash."""

    def __init__(self, plan: TopicPlan, *, partition: int = 0, checks: bool = True) -> None:
        self.plan, self.partition, self.checks = plan, partition, checks
        self.changelog: dict[bytes, bytes] = {}
        self.log: list[Line] = []
        self.taken: list[Bound] = []
        self.counters: Counter[str] = Counter()
        self.machine = self._fresh()

    def _fresh(self) -> BoundPartition:
        machine = BoundPartition(self.plan, self.partition, checks_partition=self.checks)
        machine.restore(self.changelog)
        if machine.next_offset is None:
            machine.start(0)
        return machine

    def produce(self, *events: Event | bytes) -> None:
        raws = [event if isinstance(event, bytes) else event.raw() for event in events]
        self.log += [Line(len(self.log) + n, raw, timestamp=STAMP) for n, raw in enumerate(raws)]

    def clock(self, seconds: int, header: str = "shoal-clock") -> None:
        """A record that moves the clock; with the header `shoal-beat` also where presence is protected."""
        text = f"1970-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z".encode()
        self.log.append(Line(len(self.log), None, timestamp=STAMP, headers=((header, text),)))

    def process(self, count: int = 1_000_000) -> None:
        """Without a commit."""
        offset = self.machine.next_offset or 0
        records = self.log[offset : offset + count]
        self.machine.process(records, offset + len(records))

    def commit(self) -> Bound | None:
        taken = self.machine.take(wall=1)
        if taken is not None:
            apply(self.changelog, taken.changelog)
            self.taken.append(taken)
            self.counters.update(self.machine.counters)
            self.machine.counters.clear()
        return taken

    def run(self, *events: Event | bytes, every: int = 1_000_000) -> "Stage":
        """Produce, and process to the end in transactions of so many records."""
        self.produce(*events)
        while (self.machine.next_offset or 0) < len(self.log):
            self.process(every)
            self.commit()
        self.commit()
        return self

    def idle(self) -> Bound | None:
        """Nothing more to read."""
        self.machine.idle(wall=1)
        return self.commit()

    def crash(self) -> None:
        """What was not committed is gone; somebody else takes over."""
        self.machine = self._fresh()

    def suffer(self, schedule: Iterable[tuple[str, int]]) -> None:
        """What may happen to a worker, and then the rest of the log."""
        for action, count in schedule:
            match action:
                case "transaction":
                    self.process(count)
                    self.commit()
                case "process":
                    self.process(count)
                case "idle":
                    self.idle()
                case "crash":
                    self.crash()
        self.run()

    @property
    def state(self) -> set[bytes]:
        """The names that the changelog holds, with their tags and periods."""
        return set(names_of(self.changelog))

    def step_sums(self) -> Counter[Place]:
        """Of all groups together, exact."""
        return step_sums(self.taken)

    def samples(self) -> Counter[Place]:
        return step_sums(self.taken, field=4)


def step_sums(taken: Iterable[Bound], field: int = 5) -> Counter[Place]:
    found: Counter[Place] = Counter()
    for bound in taken:
        for _, message in bound.messages:
            for key, row in rows_of(message):
                found[key.partition("|")[2], row[0] // 1_000_000] += int(row[field])
    return found


def moved(one: Counter[Place], other: Counter[Place]) -> int:
    """L1 distance of all step sums of all groups together."""
    return sum(abs(one[place] - other[place]) for place in one.keys() | other.keys())


def run(plan: TopicPlan, events: Sequence[Event]) -> Stage:
    return Stage(plan).run(*events)
