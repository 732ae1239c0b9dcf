"""Runs one program, and notes what it says, what it and the broker cost, and what else the machine had to do.

A program says in lines of JSON how far it is: `events`, `seconds` and `cpu` by its own clocks, with `done` in the last
one, which comes when all is committed. In between nothing is asked of it but its memory.
"""

import json
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from benchmarks import figures
from shoal.agents.broker.process import dies_with

LOOK = 0.05  # seconds between two looks at the memory
MB = 2**20


class FailedError(Exception):
    """A program that did not do its work, and what it said last."""


class Watched:
    """The processes whose cost is noted around one program."""

    def __init__(self, broker: int) -> None:
        self._broker = psutil.Process(broker)

    def cost(self) -> dict[str, float]:
        """Processor seconds so far of the broker, of this process and of the whole machine."""
        return {
            "at": time.monotonic(),
            "broker": seconds_of(self._broker),
            "own": time.process_time(),
            "machine": machine_seconds(),
        }

    def run(self, command: Sequence[str], log: Path, limit: float, **environment: str) -> dict[str, Any]:
        """The marks of one run, and what it cost from the first to the last of them.

        Raises:
            FailedError: it ended without saying that it is done, or not within so many seconds.
        """
        load = os.getloadavg()[0]
        with log.open("wb") as errors:
            process = subprocess.Popen(
                command,
                cwd=figures.ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | environment,
                preexec_fn=dies_with(os.getpid()),
            )
        try:
            marks = self._follow(process, time.monotonic() + limit)
        finally:
            if process.poll() is None:
                _end(process)
            assert process.stdout is not None
            process.stdout.close()
        if not marks or not marks[-1].get("done"):
            said = log.read_text(errors="replace").strip().splitlines()
            raise FailedError(said[-1][:300] if said else f"ended with {process.returncode}")
        return summed(marks) | {"load": load}

    def _follow(self, process: subprocess.Popen[bytes], deadline: float) -> list[dict[str, Any]]:
        assert process.stdout is not None
        marks: list[dict[str, Any]] = []
        memory = Memory(process.pid)
        with selectors.DefaultSelector() as selector, memory:
            selector.register(process.stdout, selectors.EVENT_READ)
            os.set_blocking(process.stdout.fileno(), False)
            rest = b""
            while time.monotonic() < deadline:
                selector.select(1.0)
                read = process.stdout.read()
                if read == b"":
                    break
                *lines, rest = (rest + (read or b"")).split(b"\n")
                for line in lines:
                    if line.startswith(b'{"events"'):
                        marks.append(json.loads(line) | {"cost": self.cost(), "mb": memory.now()})
                if marks and marks[-1].get("done"):
                    marks[-1]["peak_mb"] = memory.peak
                    break
            else:
                raise FailedError("was not done in time")
        return marks


class Memory:
    """The resident memory of a process, looked at all the time."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak = 0.0

    def now(self) -> float:
        """Its size in MB; what it was at most, once it has ended."""
        try:
            size = float(self._process.memory_info().rss) / MB
        except psutil.Error:
            return self.peak
        self.peak = max(self.peak, size)
        return size

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK):
            self.now()


def summed(marks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a run cost, from its first mark to its last, and between each two before the end was committed."""
    first, last = marks[0], marks[-1]
    spent = {name: last["cost"][name] - first["cost"][name] for name in last["cost"]}
    worker = last["cpu"] - first["cpu"]
    result = {
        "events": last["events"] - first["events"],
        "seconds": last["seconds"] - first["seconds"],
        "cpu": worker,
        "broker_cpu": spent["broker"],
        "others": max(0.0, spent["machine"] - spent["broker"] - spent["own"] - worker) / max(spent["at"], 1e-9),
        "first_mb": first["mb"],
        "last_mb": last["mb"],
        "peak_mb": last["peak_mb"],
    }
    result |= {name: last[name] for name in ("counted", "total", "users", "kernel") if name in last}
    result["stretches"] = [
        {name: after[name] - before[name] for name in ("events", "seconds", "cpu")}
        for before, after in pairwise(mark for mark in marks if not mark.get("done"))
    ]
    return result


def machine_seconds() -> float:
    """Processor seconds that the whole machine was busy so far."""
    machine = psutil.cpu_times()
    idle = machine.idle + getattr(machine, "iowait", 0.0)
    guests = getattr(machine, "guest", 0.0) + getattr(machine, "guest_nice", 0.0)  # counted in other fields, too
    return float(sum(machine) - idle - guests)


def seconds_of(process: psutil.Process) -> float:
    """Processor seconds of a process so far, without its children."""
    spent = process.cpu_times()
    return float(spent.user + spent.system)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it end by itself, for some seconds."""
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
