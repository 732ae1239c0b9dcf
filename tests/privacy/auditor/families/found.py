"""Keys that nobody declared, found and then counted; a unit is there, or is not.

Who comes next may depend on which keys were shown.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from shoal.stream.topic import TopicPlan
from tests.privacy.auditor.crossings import NEVER, Found, Rows, Shown, World
from tests.privacy.auditor.families.presence import STATISTICS, sent_of
from tests.privacy.auditor.families.sums import rate
from tests.privacy.auditor.streams import HIGH, HOUR, LOW, USUAL, Case, Event, of_user

DECAYS = ("none", "none", "window", "exponential", "polynomial", "forward", "table")
KEYS = ("g0", "g1", "g2")


@dataclass(frozen=True)
class FoundCase(Case):
    """Events of each tick, by what was shown before it, as far as anybody reacts to that."""

    ticks: int = 1
    keys: tuple[str, ...] = KEYS
    reacts: bool = False
    most: int = 1  # events of others in a tick
    users: int = 3
    mine: int = 1  # events of the unit's in a tick, at most
    seed: str = ""

    def audited(self, plan: TopicPlan, count: int) -> Iterator[tuple[Found, float, float, list[str]]]:
        """What is found between the stream without the unit and so many with it."""
        (metric,) = plan.metrics
        found = Found(metric, self.keys, self.ticks)
        for number in range(count):
            yield found, *found.compared(*(self._world(metric, number, is_there=there) for there in (False, True)))

    def _world(self, metric: Any, number: int, *, is_there: bool) -> World:
        made: dict[tuple[tuple[str, int], ...], Rows] = {}

        def world(shown: Shown) -> Rows:
            told = tuple(sorted(shown.items())) if self.reacts else ()
            if told not in made:
                events = list(self._stream(shown if self.reacts else {}, number))
                made[told] = sent_of(metric, [one for one in events if is_there or not self.is_mine(one)])
            return made[told]

        return world

    def _stream(self, shown: Mapping[str, int], number: int) -> Iterator[Event]:
        for tick in range(self.ticks):
            before = sorted((key, at) for key, at in shown.items() if NEVER < at < tick)
            drawn = random.Random(f"{self.seed}/{number}/{tick}/{before}")
            whose = ["u0"] * drawn.randrange(self.mine + 1)
            whose += [f"u{drawn.randrange(1, self.users + 1)}" for _ in range(drawn.randrange(self.most + 1))]
            drawn.shuffle(whose)
            ends = [str(LOW), str(HIGH)] if number else USUAL
            for user in whose:
                yield Event(user, tick * HOUR, drawn.choice(self.keys), (drawn.choice(ends),))


def draw(drawn: random.Random) -> FoundCase:
    """One case."""
    statistic, unit = drawn.choice(STATISTICS), drawn.choice(["user", "user", "user-2h", "event"])
    kind = drawn.choice(DECAYS if statistic != "users" else ("none", "window"))
    ticks, keys = drawn.choice([(1, 3), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)])
    epsilon = drawn.choice([1, 2, 5])
    metric: dict[str, Any] = {
        "statistic": statistic, "relation": "add-remove", "every": "1h", "start": "1970-01-01", "unit": unit,
        "epsilon": str(epsilon), "grid": 1024, "group": "g",
        "selection": {"epsilon": str(epsilon * drawn.choice([Fraction(1, 2), Fraction(4, 5)]))},
    }  # fmt: skip
    if unit != "event":
        metric["max_contributions"] = drawn.choice([1, 2, 3])
        drawn.choice([1, 2])  # once more, so that the cases of known seeds stay what they are
        metric["max_groups"] = drawn.choice([1, 1, 2, 3])
    metric |= {"end": f"1970-01-01T{ticks:02}:00:00Z"} if drawn.random() < 0.5 else {"life": "1h"}
    if statistic in ("count", "users"):
        metric |= {"value": None, "range": None, "grid": None}
    elif statistic == "sum":
        metric["range"] = drawn.choice([(LOW, HIGH), (-HIGH, HIGH), (LOW + 64, HIGH)])
    if statistic == "users":
        metric["decay"] = {"kind": kind} | ({"length": "1h"} if kind == "window" else {})
    elif kind != "none":
        metric["decay"] = {"kind": kind} | decay(kind, drawn)
    delta = Fraction(drawn.choice(["0.3", "0.1", "0.001", "1e-9"]))
    users, seed = drawn.choice([1, 3, 9]), str(drawn.random())
    mine: Callable[[Event], bool] = of_user()
    case = FoundCase(
        f"{statistic}/{kind}", metric, (), mine, delta, ticks=ticks, keys=KEYS[:keys],
        reacts=drawn.random() < 0.5, most=drawn.choice([1, 2, 5, 8]), users=users, mine=drawn.choice([1, 3]), seed=seed,
    )  # fmt: skip
    match unit:
        case "user-2h":
            period = drawn.randrange(ticks) // 2
            return replace(case, is_mine=lambda event: event.user == "u0" and event.time // (2 * HOUR) == period)
        case "event":  # the user's events are units of their own: one of them, whichever comes at this tick
            at = drawn.randrange(ticks)
            return replace(case, is_mine=lambda event: event.user == "u0" and event.time == at * HOUR, mine=1)
    return case


def decay(kind: str, drawn: random.Random) -> dict[str, Any]:
    """How a decay forgets."""
    match kind:
        case "window":
            return {"length": f"{drawn.choice([1, 2, 3])}h"}
        case "exponential":
            return {"alpha": drawn.choice(["0.1", "0.5"])}
        case "forward":
            return {"exponent": "1"}
        case "table":
            return {"weights": ["1", "0.5", "1/3"]}
    return rate(kind, drawn)
