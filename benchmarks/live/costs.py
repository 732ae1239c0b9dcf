"""Processor time of single processes, and of all that runs beside them.

What a process costs is that of its threads, without its children. What runs beside is the machine's busy time less that
of the processes that are part of the measurement.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from benchmarks.speed.watching import machine_seconds, seconds_of

BESIDE = "beside"  # the name of what runs beside the measured processes
MOST_BESIDE = 1.5  # cores beside a measurement above which it does not count


@dataclass(frozen=True)
class Look:
    """Seconds of processor time so far, by process, and of the whole machine."""

    at: float
    machine: float
    processes: Mapping[str, float]


class Processes:
    """The processes of a measurement, by name."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}

    def look(self, at: float) -> Look:
        """Processor time of every process so far, read at the time `at`."""
        return Look(at, machine_seconds(), {name: seconds_of(one) for name, one in self._processes.items()})


def cores(before: Look, after: Look) -> dict[str, float]:
    """Cores that each process and all others took between two looks.

    >>> before, after = Look(0.0, 10.0, {"worker": 1.0}), Look(4.0, 14.0, {"worker": 3.0})
    >>> cores(before, after)
    {'worker': 0.5, 'beside': 0.5}
    """
    passed = after.at - before.at
    spent = {name: after.processes[name] - before.processes[name] for name in after.processes}
    others = after.machine - before.machine - sum(spent.values())
    return {name: seconds / passed for name, seconds in spent.items()} | {BESIDE: max(0.0, others / passed)}
