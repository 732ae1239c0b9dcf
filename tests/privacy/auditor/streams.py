"""Streams and their neighbours, as random configurations are audited with them."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

from shoal.models.config.file import Config
from tests.support.metric_keys import limited

LOW, HIGH = 0, 1024
HOUR = 3600
USUAL = ["0", "300", "1024", "7.5", "64", "1"]
EXTREME = ["0", "1024", "1e400", "-1e400", "1e9", "-1e9", "1025", "0.5", "1", "64", "1e-400", "9" * 400]


@dataclass(frozen=True)
class Event:
    """One event; numbers as they are written."""

    user: str
    time: int
    group: str
    numbers: tuple[str, ...]  # of the fields x, y, z

    def raw(self) -> bytes:
        """As it stands in a topic."""
        numbers = "".join(f',"{name}":{number}' for name, number in zip("xyz", self.numbers, strict=False))
        return f'{{"u":"{self.user}","t":{self.time},"g":"{self.group}"{numbers}}}'.encode()


@dataclass(frozen=True)
class Case:
    """A configuration and a stream, and whose values the worlds differ in."""

    label: str
    metric: dict[str, Any]
    events: Sequence[Event]
    is_mine: Callable[[Event], bool]
    delta: Fraction = Fraction(0)
    sources: int = 1  # partitions of the source topic
    is_gaussian: bool = False  # noise of a mean, where it is chosen or not

    @property
    def epsilon(self) -> float:
        """What the configuration declares."""
        return float(self.metric["epsilon"])

    def config(self) -> Config:
        """The configuration; invalid ones are refused."""
        usual = {"name": "m", "topic": "events", "user": "u", "time": "t", "value": "x", "range": (LOW, HIGH)}
        metric = limited(usual | self.metric | ({"delta": str(self.delta)} if self.delta else {}))
        given = {key: value for key, value in metric.items() if value is not None}  # a count has no value
        return Config.model_validate({"privacy": {"epsilon": 10**6, "delta": str(self.delta)}, "metric": [given]})

    def worlds(self, seed: int, count: int) -> list[list[Event]]:
        """The stream with the unit's values all at one end, all at the other, and so many at random."""
        drawn = random.Random(f"worlds/{seed}")
        ways: list[Callable[[], str]] = [lambda: str(LOW), lambda: str(HIGH)]
        ends, any_number = (lambda: drawn.choice([str(LOW), str(HIGH)])), (lambda: _number(drawn))
        ways += [ends if index % 2 else any_number for index in range(count)]
        return [[self._changed(event, way) for event in self.events] for way in ways]

    def pairs(self, worlds: int) -> Iterator[tuple[int, int]]:
        """The worlds that are compared: each with the two ends, and with the next."""
        for first, second in combinations(range(worlds), 2):
            if first < 2 or second == first + 1:
                yield first, second

    def _changed(self, event: Event, number: Callable[[], str]) -> Event:
        return replace(event, numbers=tuple(number() for _ in event.numbers)) if self.is_mine(event) else event


def _number(drawn: random.Random) -> str:
    return drawn.choice([*EXTREME, repr(drawn.uniform(LOW, HIGH))])


@dataclass
class Stream:
    """How events come: who, how many, in how many groups, how far apart."""

    users: int
    events: int
    groups: int = 1
    rest: int = 3  # hours between two events at most, where there are rests
    is_gappy: bool = False
    fields: int = 1
    drawn: random.Random = field(default_factory=random.Random)

    def make(self) -> list[Event]:
        """In the order of arrival; some are late."""
        drawn, now, found = self.drawn, 0, []
        gaps = [0, 0, 1, HOUR // 2, HOUR, self.rest * HOUR] if self.is_gappy else [0, HOUR // 3, HOUR]
        for _ in range(self.events):
            now += drawn.choice(gaps)
            late = drawn.choice([HOUR, 3 * HOUR]) if drawn.random() < 0.1 else 0
            user, group = f"u{drawn.randrange(self.users)}", f"g{drawn.randrange(self.groups)}"
            numbers = tuple(drawn.choice(USUAL) for _ in range(self.fields))
            found.append(Event(user, max(now - late, 0), group, numbers))
        return found


def of_user(name: str = "u0") -> Callable[[Event], bool]:
    """Whether an event is one of the user's."""
    return lambda event: event.user == name


def of_period(events: Sequence[Event], length: int, drawn: random.Random) -> Callable[[Event], bool]:
    """Whether an event is one of a user's in one period of their own time."""
    period = drawn.choice([event.time // length for event in events if event.user == "u0"] or [0])
    return lambda event: event.user == "u0" and event.time // length == period


def of_event(events: Sequence[Event], drawn: random.Random) -> Callable[[Event], bool]:
    """Whether an event is this one."""
    chosen = drawn.choice(events)
    return lambda event: event is chosen
