"""A metric before and after a restart of its clock, in a worker of several partitions.

A wrong time, with a wrong stamp, closes all ticks of version 1. Version 2 is raised in mid-stream and begins with the
clock's next epoch. The worlds differ in what a unit sent to either version. The releases of all versions are attacked
together, where the unit loses at most the sum of their charges, and those of each version separately. With relation
"values" another metric of the topic may keep its version, and with it the clock that went too far.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from shoal.models.config.file import Config
from shoal.models.times import iso
from shoal.models.version import VersionId
from shoal.stream.topic import TopicPlan
from tests.privacy.auditor.families import presence, slots, sums
from tests.privacy.auditor.streams import HOUR, Case, Event, of_event, of_period, of_user
from tests.privacy.auditor.unknowns import Unknowns
from tests.privacy.auditor.worlds import ACTIONS, Seen, hosted_run
from tests.privacy.hosted import Hosted, compiled

SOURCES = 2
MOST_EVENTS = 40
KEPT = "kept"  # name of the metric that is not raised
MICROSECONDS = 10**6
AHEAD = (30, 300)  # hours by which the wrong time is ahead
Action = tuple[str, int, int]


@dataclass(frozen=True)
class Sent(Event):
    """An event, or a beat in all partitions, and what the worker does after it."""

    version: int = 1  # that of the metric when the event is read
    is_beat: bool = False
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True)
class EpochsCase(Case):
    """A metric of two versions, and what a unit sent to them."""

    later: dict[str, Any] = field(default_factory=dict)  # keys of version 2 that differ from those of version 1
    kept: dict[str, Any] | None = None  # the metric that is not raised
    is_drained: bool = True  # whether all that came is released before version 2 is there

    @property
    def charges(self) -> dict[str, float]:
        """Epsilon of each version, by its label."""
        said = {"m/1": self.metric, "m/2": self.metric | self.later} | ({f"{KEPT}/1": self.kept} if self.kept else {})
        return {label: float(metric["epsilon"]) for label, metric in said.items()}

    @property
    def epsilon(self) -> float:
        return sum(self.charges.values())

    def config(self) -> Config:
        return self._configured(self.metric)

    def raised(self) -> Config:
        """The configuration with version 2; the metric that is not raised stays in the epoch of its registration."""
        config = self._configured(self.metric | self.later | {"version": 2})
        return config.in_epochs({VersionId(config.kafka.app, "m", 2): 1})

    def _configured(self, *metrics: dict[str, Any]) -> Config:
        found = [replace(self, metric=one)._config() for one in (*metrics, *filter(None, [self.kept]))]
        sections = tuple(config.metric[0] for config in found)
        return found[0].model_copy(update={"metric": sections})

    def _config(self) -> Config:
        return super().config()

    @cached_property
    def plans(self) -> tuple[TopicPlan, TopicPlan]:
        """The topic before and after the restart."""
        before, after = compiled(self.config(), SOURCES), compiled(self.raised(), SOURCES)
        first, second = ({metric.label for metric in plan.metrics} for plan in (before, after))
        return before, replace(after, retired=frozenset(first - second), added=frozenset(second - first))

    @property
    def hides_presence(self) -> bool:
        """Whether the unit's records are in one of two worlds only."""
        return self.metric.get("relation") == "add-remove"

    def worlds(self, seed: int, count: int) -> list[list[Event]]:
        """The worlds of other cases; before them the stream without the unit if its presence is hidden."""
        without = [[event for event in self.events if not self.is_mine(event)]] if self.hides_presence else []
        return without + super().worlds(seed, count)

    def pairs(self, worlds: int) -> Iterator[tuple[int, int]]:
        return ((0, other) for other in range(1, worlds)) if self.hides_presence else super().pairs(worlds)

    def run(self, world: Sequence[Event], unknowns: Unknowns, seed: int, *, whole: bool) -> Seen:
        """All that a worker releases which is restarted with version 2 in mid-stream."""
        before, after = self.plans
        looks = whole and not self.hides_presence  # where presence is public, all that is seen is public
        with hosted_run(before, unknowns, seed, whole=looks) as run:
            for version in (1, 2):
                for event in world:
                    if isinstance(event, Sent) and event.version == version:
                        self._send(run.worker, event)
                if version == 1:
                    if self.is_drained:
                        run.worker.drain()
                    run.worker.deploy(after)
            if not self.hides_presence:
                last = max(event.time for event in self.events) + 10 * HOUR
                run.worker.end(iso(last * MICROSECONDS).encode())
            run.worker.drain()
        return run.seen()

    @staticmethod
    def _send(worker: Hosted, event: Sent) -> None:
        if event.is_beat:
            worker.beat(event.time * MICROSECONDS)
        else:
            worker.produce(event.user, event.raw())
        for action in event.actions:
            worker.act(*action)


def draw(drawn: random.Random) -> EpochsCase:
    """One case."""
    return drawn.choice([_values, _values, _present])(drawn)


def _values(drawn: random.Random) -> EpochsCase:
    """With relation "values": an event is hours ahead, and after it the stream goes on as if it had not been there."""
    case = _exact(drawn.choice([sums.draw, slots.draw]), drawn)
    metric = case.metric | ({"max_gap": drawn.choice([1, 3])} if "every" in case.metric else {})
    events = list(case.events[:MOST_EVENTS])
    middle = len(events) // 2
    far = max(event.time for event in events) + drawn.choice(AHEAD) * HOUR
    wrong = replace(drawn.choice(events), time=far)
    parts = [(1, [*events[:middle], wrong, *events[middle : middle + drawn.randrange(4)]]), (2, events[middle:])]
    sent = [_sent(event, version, drawn) for version, part in parts for event in part]
    kept = metric | {"name": KEPT, "epsilon": drawn.choice(["0.5", "1"])} if drawn.random() < 0.4 else None
    later = {"epsilon": _epsilon(metric, drawn)}
    is_mine, is_drained = _unit(metric, sent, drawn), drawn.random() < 0.7
    label = f"values/{metric['statistic']}"
    return EpochsCase(label, metric, sent, is_mine, later=later, kept=kept, is_drained=is_drained)


def _present(drawn: random.Random) -> EpochsCase:
    """With relation "add-remove": a beat is hours ahead, and version 2 starts later than all true beats before it.

    All that came is released first: which tick is the last of a version that is retired depends on how far it was read,
    so on load.
    """
    case = _exact(presence.draw, drawn)
    steps = int(case.metric["end"][11:13])
    start = steps + 2
    times = [(1, 0, steps), (2, start, start + steps)]
    sent = []
    for version, first, end in times:
        wrong = drawn.randrange(first + 1, end + 2) if version == 1 else None
        for hour in range(max(0, first - 1), end + 2):
            beat = Event("", hour * HOUR, "", ())
            far = [replace(beat, time=(hour + drawn.choice(AHEAD)) * HOUR)] if hour == wrong else []
            came = [replace(event, time=first * HOUR + event.time) for event in case.events]
            came = [event for event in came if event.time // HOUR == hour]
            sent += [_sent(event, version, drawn) for event in (*far, beat, *came)]
    later = {"start": f"1970-01-01T{start:02}:00:00Z", "end": f"1970-01-01T{start + steps:02}:00:00Z"}
    later["epsilon"] = _epsilon(case.metric, drawn)
    label = f"add-remove/{case.metric['statistic']}"
    return EpochsCase(label, case.metric, sent, _unit(case.metric, sent, drawn), later=later)


def _exact(family: Callable[[random.Random], Case], drawn: random.Random) -> Case:
    """A case of another family without a delta, whose keys, if it has any, are declared from the start."""
    while True:
        case = family(drawn)
        if not case.delta and "clip" not in case.metric and not getattr(case, "begins", {}):
            return case


def _epsilon(metric: dict[str, Any], drawn: random.Random) -> str:
    """Epsilon of version 2: mostly that of version 1, so that their noise would cancel if it were the same."""
    return str(drawn.choice([metric["epsilon"]] * 3 + ["0.5", "4"]))


def _sent(event: Event, version: int, drawn: random.Random) -> Sent:
    count = drawn.choice([0, 1, 1, 3])
    actions = tuple((drawn.choice(ACTIONS), drawn.randrange(8), drawn.randrange(1, 6)) for _ in range(count))
    return Sent(event.user, event.time, event.group, event.numbers, version, not event.user, actions)


def _unit(metric: dict[str, Any], events: list[Sent], drawn: random.Random) -> Callable[[Event], bool]:
    match metric["unit"]:
        case "event":
            return of_event([event for event in events if not event.is_beat], drawn)
        case "user-6h":
            return of_period(events, 6 * HOUR, drawn)
        case "user-slot":
            return of_period(events, HOUR, drawn)
    return of_user()
