"""Statistics that protect presence, of declared keys and of keys that begin late; the unit is there, or is not.

A world goes through the accounts of the product, is summed by key and step as bound sends it, and is released by the
product's groups and releasers. In place of a release's value its noisy sides are looked at, of which all that is
published is a function.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.mechanisms.accounts import Site
from shoal.mechanisms.linear.clipped import ClippedReleaser
from shoal.mechanisms.parts.lengths import INSTANT
from shoal.mechanisms.statistic import Block, Contribution
from shoal.stream.topic import Metric, TopicPlan
from tests.privacy.auditor.choices import Choices
from tests.privacy.auditor.families.sums import SIX_HOURS, rate
from tests.privacy.auditor.streams import HIGH, HOUR, LOW, Case, Event, Stream, of_event, of_period, of_user
from tests.privacy.auditor.unknowns import Unknowns
from tests.privacy.auditor.worlds import Seen

DECAYS = ("none", "none", "window", "window", "exponential", "polynomial", "forward", "table")
STATISTICS = ("mean", "distribution", "sum", "count", "users", "variance")
BINS = 5
KEYS = ("g0", "g1", "g2")
MICROSECONDS = 10**6


@dataclass(frozen=True)
class PresenceCase(Case):
    """Neighbours with and without a unit."""

    begins: Mapping[str, int] = field(default_factory=dict)  # steps before the first release of a key that is found
    choices: int = 0  # seed of when clip ranges are chosen, and which

    def worlds(self, seed: int, count: int) -> list[list[Event]]:
        """The stream without the unit, and with it: its values all at one end, all at the other, and at random."""
        return [[event for event in self.events if not self.is_mine(event)], *super().worlds(seed, count)]

    def pairs(self, worlds: int) -> Iterator[tuple[int, int]]:
        return ((0, other) for other in range(1, worlds))

    def run(self, plan: TopicPlan, world: Sequence[Event], unknowns: Unknowns) -> Seen:
        """What is released of a world."""
        (metric,) = plan.metrics
        choices = Choices(self.choices)
        with unknowns.installed(), choices.installed():
            released = list(released_of(metric, world, self.begins))
        pattern = [(tick, group, len(numbers)) for tick, group, numbers in released]
        numbers = [number for _, _, numbers in released for number in numbers]
        return Seen((pattern, None), np.array(numbers, dtype=float), choices.made, len(released))


def released_of(
    metric: Metric, world: Sequence[Event], begins: Mapping[str, int]
) -> Iterator[tuple[int, str, list[float]]]:
    """Step, key and noisy sides of every release."""
    of: Any = metric.parameters
    sent = sent_of(metric, world)
    groups = metric.groups()
    late = {group: of.releaser(metric.key, group.encode()) for group in begins}
    for group, releaser in late.items():
        past = [
            row._replace(effective=begins[group] - tick)
            for (name, tick), rows in sorted(sent.items()) if name == group and tick < begins[group] for row in rows
        ]  # fmt: skip
        releaser.begin(begins[group], past)
    for tick in range(of.first, of.end):
        for group, releaser in late.items():
            if tick >= begins[group]:
                for row in sent.get((group, tick), ()):
                    releaser.add(row)
                releaser.close()
                yield tick, group, _sides(of, releaser)
        rows = [(group, sent[group, tick]) for group in of.groups if (group, tick) in sent]
        for closed in groups.close(tick, sorted(rows)) if not late else ():
            if closed is not None:
                releaser = groups.releaser(closed.group)  # type: ignore[attr-defined]  # each key is computed alone
                yield tick, closed.group, _sides(of, releaser)


def _sides(of: Any, releaser: Any) -> list[float]:
    if isinstance(releaser, ClippedReleaser):
        if releaser.counters is None:
            assert releaser.estimate() == of.without_counters(), "something is told before a range is chosen"
            return []
        releaser = releaser.counters
    return [number / of.sums.denominator for number in releaser.released]


def sent_of(metric: Metric, world: Sequence[Event]) -> dict[tuple[str, int], list[Contribution]]:
    """What the accounts send, summed by key, step and part."""
    found: dict[tuple[str, int, int, int], tuple[int, int]] = {}
    unpack = metric.unpack

    def send(group: str | None, effective: int, user: bytes, block: Block) -> None:
        at = group or "", (metric.length or INSTANT).index(effective), block.level, block.part or 0
        samples, total = found.get(at, (0, 0))
        found[at] = samples + block.samples, total + block.total

    accounts = metric.accounts(Site("m", send, lambda user: True, durable=False))
    for event in world:
        value = metric.parameters.quantize([float(event.numbers[0])] if metric.parts.names else [])
        group = event.group if metric.parts.place is not None else None
        accounts.add(event.user.encode(), group, value, *[event.time * MICROSECONDS] * 2)
    sent: dict[tuple[str, int], list[Contribution]] = {}
    for (group, tick, level, part), (samples, total) in sorted(found.items()):
        rest = total if unpack is None else unpack(total, samples)
        sent.setdefault((group, tick), []).append(Contribution(0, "", part, level, samples, rest))
    return sent


def draw(drawn: random.Random) -> PresenceCase:
    """One case."""
    statistic, unit = drawn.choice(STATISTICS), drawn.choice(["user", "user", "user-6h", "event"])
    kind = drawn.choice(DECAYS if statistic != "users" else ("none", "window"))
    steps = drawn.choice([1, 2, 4, 7])
    metric: dict[str, Any] = {
        "statistic": statistic, "relation": "add-remove", "every": "1h", "start": "1970-01-01", "unit": unit,
        "end": f"1970-01-01T{steps:02}:00:00Z", "epsilon": drawn.choice(["0.5", "1", "3", "7.3"]), "grid": 1024,
    }  # fmt: skip
    metric |= _values(statistic, drawn)
    if kind != "none" or drawn.random() < 0.5:
        metric["decay"] = {"kind": kind} | (_decay(kind, drawn) if statistic != "users" else {})
        if statistic == "users" and kind == "window":
            metric["decay"]["length"] = "1h"
    if unit != "event":
        metric["max_contributions"] = drawn.choice([1, 2, 3, 5])
    begins: dict[str, int] = {}
    if drawn.random() < 0.6:
        metric |= {"group": "g", "groups": list(KEYS[: drawn.choice([1, 2, 3])])}
        if unit != "event":
            metric["max_groups"] = drawn.choice([1, 2])
        if drawn.random() < 0.5:
            begins = {key: drawn.randrange(steps) for key in metric["groups"]}
    gaussian = kind == "window" and statistic != "users" and drawn.random() < 0.4
    delta = Fraction(drawn.choice(["0.01", "1e-6"])) if gaussian else Fraction(0)
    events = _events(steps, drawn)
    clips = statistic in ("mean", "sum") and metric["range"] == (LOW, HIGH) and not gaussian and drawn.random() < 0.5
    if clips:
        metric["clip"] = _clip(Fraction(metric["epsilon"]), drawn)
    mine = {"event": lambda: of_event(events, drawn), "user-6h": lambda: of_period(events, SIX_HOURS, drawn)}
    label = f"{statistic}/{kind}{'/late' if begins else ''}{'/clip' if clips else ''}"
    choices = drawn.randrange(1 << 30)
    return PresenceCase(label, metric, events, mine.get(unit, of_user)(), delta, begins=begins, choices=choices)


def _clip(epsilon: Fraction, drawn: random.Random) -> dict[str, Any]:
    """Of which the choice is worth a good deal; fewer are then needed, so that when it is made tells something."""
    share = drawn.choice(["0.01", "0.2", "0.5"])
    return {"share": share, "epsilon": str(epsilon * Fraction(2, 5)), "crossing": str(epsilon * Fraction(3, 10))}


def _decay(kind: str, drawn: random.Random) -> dict[str, Any]:
    match kind:
        case "forward":
            return {"exponent": drawn.choice(["0.5", "1", "3"])}
        case "table":
            return {"weights": drawn.choice([["1", "0.5", "1/3"], ["1", "1"], ["0.9", "0.9", "0.9", "0.1"]])}
    return rate(kind, drawn)


def _values(statistic: str, drawn: random.Random) -> dict[str, Any]:
    if statistic in ("count", "users"):
        return {"value": None, "range": None, "grid": None}
    ends = [(LOW, HIGH)] if statistic != "sum" else [(LOW, HIGH), (-HIGH, LOW), (-HIGH, HIGH), (LOW + 64, HIGH)]
    binned = {"bins": BINS} if statistic == "distribution" else {}
    return {"range": drawn.choice(ends)} | binned


def _events(steps: int, drawn: random.Random) -> list[Event]:
    """In the order of arrival; some lie before others in time, and some after the end."""
    events = Stream(drawn.choice([1, 2, 4]), drawn.choice([6, 12, 30]), 3, drawn=drawn).make()
    return [replace(event, time=drawn.randrange((steps + 1) * HOUR)) for event in events]
