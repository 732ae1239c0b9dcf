"""Throughput of every system on the same topic, in rounds: compared systems run within minutes of each other."""

import asyncio
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.speed import subjects
from benchmarks.speed.context import Context
from benchmarks.speed.subjects import KERNEL_LANE, PEER, TWIN_LANE, Place, Subject
from benchmarks.speed.watching import FailedError, Watched
from benchmarks.workload import Workload

TOLERANCE = 1e-9  # sums are added up in different orders


@dataclass(frozen=True)
class Size:
    """How much is read; the slow ones stop early."""

    topic: int
    users: int
    twin: int
    peers: Mapping[str, int]
    rounds: int

    def events(self, subject: Subject) -> int:
        """How many events of the topic a subject reads."""
        if subject.kind == TWIN_LANE:
            return min(self.twin, self.topic)
        return min(self.peers.get(subject.key, self.topic), self.topic)


FULL = Size(4_000_000, 200_000, 1_000_000, {"quix": 400_000, "bytewax": 500_000, "faust": 20_000}, 3)
QUICK = Size(400_000, 40_000, 400_000, {"faust": 10_000}, 1)


def measure(context: Context) -> dict[str, Any]:
    """Produce the topic, and run all rounds; nobody but the raw loop and who is named, if anybody is."""
    size = QUICK if context.quick else FULL
    size = dataclasses.replace(size, topic=context.events or size.topic, rounds=context.rounds or size.rounds)
    chosen, missing = _chosen(context.some)
    workload = Workload(size.topic, size.users)
    asyncio.run(workload.produce(context.brokers, subjects.TOPIC, subjects.PARTITIONS))
    raw, rounds = subjects.raw(), []
    for number in range(size.rounds):

        def run(subject: Subject, name: str = f"round{number}") -> dict[str, Any]:
            place = Place(context.folder, context.brokers, size.users, f"{name}-{subject.key}")
            return _one(context.watched, subject, place, size)

        before = run(raw)
        found = {subject.key: run(subject) for subject in chosen}
        found[raw.key] = between(before, run(raw))
        _compare(found, raw.key)
        rounds.append(found)
    return {
        "topic": size.topic,
        "users": size.users,
        "partitions": subjects.PARTITIONS,
        "subjects": {
            one.key: {"label": one.label, "kind": one.kind, "events": size.events(one), "versions": one.versions}
            for one in (raw, *chosen)
        },
        "missing": missing,
        "rounds": rounds,
    }


def _chosen(only: Sequence[str]) -> tuple[list[Subject], dict[str, str]]:
    """Who runs, and who cannot."""
    there: list[Subject] = subjects.both_lanes()
    missing: dict[str, str] = {}
    if reason := subjects.kernel_is_missing():
        there = [subject for subject in there if subject.kind != KERNEL_LANE]
        missing["shoal, kernel"] = reason
    if not only or PEER in only or any(peer.key in only for peer in subjects.PEERS):
        peers, absent = subjects.installed()
        there, missing = there + peers, missing | absent
    return [one for one in there if not only or one.kind in only or one.key in only], missing


def _one(watched: Watched, subject: Subject, place: Place, size: Size) -> dict[str, Any]:
    """One run; what went wrong, if it did."""
    events = size.events(subject)
    command = subject.command(place, events)
    try:
        found = watched.run(command, place.folder / f"{place.name}.log", subject.limit, **subject.environment)
    except FailedError as error:
        found = {"failed": str(error)}
    if found.get("kernel") is False and subject.kind == KERNEL_LANE:
        found = {"failed": "the kernel was not used"}
    said = found.get("failed") or f"{found['events'] / found['cpu'] / 1000:,.0f} k events/CPU-s"
    print(f"{place.name}: {said}", file=sys.stderr, flush=True)
    return found


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The mean of two runs of the same, for the machine's speed drifts.

    >>> between({"seconds": 1.0, "users": 5, "stretches": []}, {"seconds": 3.0, "users": 5, "stretches": []})
    {'seconds': 2.0, 'users': 5, 'stretches': []}
    """
    return {name: (value + after[name]) / 2 if isinstance(value, float) else value for name, value in before.items()}


def _compare(found: dict[str, Any], reference: str) -> None:
    """Whoever read all of the topic must have come to the same result as the raw loop."""
    truth = found[reference]
    for run in found.values():
        if run.get("events") == truth["events"] and not same(run, truth):
            run["failed"] = "its result is not that of the raw loop"


def same(run: Mapping[str, Any], truth: Mapping[str, Any]) -> bool:
    """Whether two results agree, as far as both tell.

    >>> same({"users": 3}, {"users": 3, "counted": 7, "total": 0.3}), same({"counted": 6}, {"counted": 7})
    (True, False)
    >>> same({"total": 0.30000000000000004}, {"total": 0.3})
    True
    """
    both = [name for name in ("users", "counted", "total") if name in run and name in truth]
    return all(abs(run[name] - truth[name]) <= TOLERANCE * abs(truth[name]) for name in both)
