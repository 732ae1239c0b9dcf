"""The same source partition in both lanes, for metrics of all kinds that the kernel knows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from shoal.agents.lane import lane_named
from shoal.models.config.file import Config
from shoal.stream.bound import BoundPartition
from shoal.stream.machine import Record
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.kernel.records import GROUPS, USERS
from tests.stream.simulation import SECRET, apply, config

KERNEL: Any = lane_named("kernel").module  # refused is a failure here, for the twin would be compared with itself

SUM = {"statistic": "sum", "every": "10s"}
COUNT = SUM | {"statistic": "count", "value": None}
TWO_SIDED = {"relation": "add-remove", "every": "10s", "start": "1970-01-01"}
FOUND = {"group": "g", "delta": "1e-6", "max_contributions": 5}
CONFIGS: dict[str, Config] = {
    "naive": config({"algorithm": "naive"}),
    "full": config({"epsilon": 4000, "max_contributions": 4}),
    "sharp": config({"algorithm": "sharp", "max_contributions": 5}),
    "sharp with blocks": config({"algorithm": "sharp", "max_contributions": 128, "grid": 1024}),
    "a release per contribution": config({"algorithm": "naive", "every": "contribution"}),
    "groups": config({"algorithm": "naive", "group": "g", "max_groups": 2, "max_per_group": 3}),
    "several metrics": config(
        {"algorithm": "naive"},
        {"algorithm": "sharp", "group": "g", "every": "7s"},
        {"lateness": "3s", "late": "drop"},
    ),
    "sums": config(SUM, COUNT | {"group": "g", "max_groups": 2}),
    "sums of a day": config(SUM | {"unit": "user-day", "max_contributions": 2}),
    "events": config(SUM | {"unit": "event", "max_contributions": None}),
    "some events": config(SUM | {"unit": "event", "max_contributions": None, "max_events_per_user": 3}),
    "add-remove": config(TWO_SIDED, TWO_SIDED | {"statistic": "count", "value": None}),
    "declared keys": config(
        TWO_SIDED | {"group": "g", "groups": ["a", "b"], "end": "1970-01-01T00:02:30Z", "life": None}
    ),
    "found keys": config(TWO_SIDED | FOUND),
    "users of each step": config(
        TWO_SIDED
        | {
            "statistic": "users",
            "value": None,
            "max_contributions": 2,
            "unit": "user-2m",
            "decay": {"kind": "window", "length": "10s"},
        }
    ),
    "users": config(TWO_SIDED | {"statistic": "users", "value": None, "max_contributions": 2}),
}


_plans: dict[tuple[int, int], tuple[Config, TopicPlan]] = {}


def plan_of(cfg: Config, sources: int) -> TopicPlan:
    """The plan of a configuration, made once: a plan never changes."""
    if (id(cfg), sources) not in _plans:
        plan = plan_topic(cfg, "events", SECRET, source_partitions=sources, contributions_partitions=2)
        _plans[id(cfg), sources] = cfg, plan  # the configuration stays, and so does its id
    return _plans[id(cfg), sources][1]


@dataclass
class Lanes:
    """The same source partition in both lanes."""

    twin: BoundPartition
    kernel: BoundPartition
    changelogs: tuple[dict[bytes, bytes], dict[bytes, bytes]]

    @classmethod
    def of(cls, cfg: Config, sources: int = 1) -> "Lanes":
        plan = plan_of(cfg, sources)
        lanes = cls(BoundPartition(plan, 0), BoundPartition(plan, 0, kernel=KERNEL), ({}, {}))
        lanes.twin.start(0)
        lanes.kernel.start(0)
        return lanes

    def process(self, batch: Sequence[Record], kernels: Sequence[Record] | None = None) -> None:
        """Give both the same records; `kernels`: in another form."""
        end = batch[-1].offset + 1
        self.twin.process(batch, end)
        self.kernel.process(batch if kernels is None else kernels, end)

    def take(self) -> None:
        """Compare a transaction of both."""
        twin, kernel = self.twin.take(0), self.kernel.take(0)
        assert (twin is None) == (kernel is None)
        if twin is not None and kernel is not None:
            assert [(home, m.encode()) for home, m in kernel.messages] == [
                (home, m.encode()) for home, m in twin.messages
            ]
            assert kernel.changelog == twin.changelog
            assert kernel.dead_letters == twin.dead_letters
            assert (kernel.next_offset, kernel.events) == (twin.next_offset, twin.events)
            for log in self.changelogs:
                apply(log, twin.changelog)
        assert self.kernel.counters == self.twin.counters
        assert self.kernel.users == self.twin.users
        for metric in self.twin.plan.metrics:
            for user, group in product(USERS, (None, *GROUPS)):
                assert self.kernel.count(metric.name, user, group) == self.twin.count(metric.name, user, group)

    def restart(self) -> None:
        """Make both anew from their changelogs."""
        for name, log in zip(("twin", "kernel"), self.changelogs, strict=True):
            old: BoundPartition = getattr(self, name)
            lane = BoundPartition(old.plan, 0, kernel=KERNEL if name == "kernel" else None)
            lane.restore(log)
            if lane.next_offset is None:
                lane.start(0)
            setattr(self, name, lane)
