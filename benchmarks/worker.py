"""`shoal worker` with a stopwatch: the same host, domain and audit log, until all events are through; prints JSON.

    python -m benchmarks.worker CONFIG EVENTS [--only-bound | --audited] [--every N]

Time runs from the moment the worker owns its partitions, before its first fetch, until the last transaction is
committed; with --audited, until the last release is in the SQL log too. With --only-bound the contributions are written
and never read.
"""

import argparse
import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import structlog
from faust.types.tuples import TP

from shoal.agents.audit.session import open_session
from shoal.agents.kafka.settings import BOUND, RELEASE, settings_of
from shoal.agents.worker.app import ShoalApp
from shoal.agents.worker.health import Health
from shoal.agents.worker.host import Host
from shoal.agents.worker.partition import Partition
from shoal.agents.worker.process import run_worker
from shoal.agents.worker.stages import Stages

LOOK = 0.002  # seconds between two looks at the partitions


class Stopwatch:
    """Watches one worker and stops it when it is done."""

    def __init__(self, app: ShoalApp, options: argparse.Namespace) -> None:
        self._host: Host = app.host
        self._events, self._every = options.events, options.every
        self._only_bound, self._audited = options.only_bound, options.audited
        self._began = asyncio.Event()
        self.result: dict[str, Any] = {"windows": []}
        self._host.on_owned.append(self._owned)
        self._task = asyncio.create_task(self._watch())

    def _owned(self) -> None:
        if self._only_bound:
            for part in self._of(RELEASE):
                self._host.hold(TP(part.partition.topic, part.partition.number), "benchmark")
        self._wall, self._cpu, self._first = time.perf_counter(), time.process_time(), self._committed()
        self._began.set()

    def _of(self, stage: str) -> list[Partition]:
        return [part for partition, part in self._host.partitions.items() if partition.stage == stage]

    def _committed(self) -> int:
        return sum(part.events for part in self._of(BOUND))

    async def _watch(self) -> None:
        await self._began.wait()
        done = 0
        while (committed := self._committed()) < self._events:
            if committed >= done + self._every:
                self._note(committed)
                done = committed
            await asyncio.sleep(LOOK)
        if not self._only_bound:
            await self._released()
        self._note(self._events)
        self.result |= self.result["windows"][-1]
        self.result["transactions"] = sum(part.transactions for part in self._host.partitions.values())
        self.result["accounts"] = sum(part.machine.users for part in self._of(BOUND))  # type: ignore[attr-defined]
        self.result["releases"] = sum(part.machine.published_count for part in self._of(RELEASE))  # type: ignore[attr-defined]
        os.kill(os.getpid(), signal.SIGTERM)

    async def _released(self) -> None:
        """Return when committed transactions of release cover every contribution; and the log, every release."""
        ends = self._written(BOUND, self._host.settings.contributions)
        while not all(self._covers(part, ends.get(part.partition.number, -1)) for part in self._of(RELEASE)):
            await asyncio.sleep(LOOK)
        releases = self._host.settings.releases
        ends = self._written(RELEASE, releases) if self._audited else {}
        while any(self._host.sink.feeds[TP(releases, number)].done <= offset for number, offset in ends.items()):
            await asyncio.sleep(LOOK)

    def _written(self, stage: str, topic: str) -> dict[int, int]:
        """Highest offset known of what a stage wrote to each partition of a topic."""
        ends: dict[int, int] = {}
        for part in self._of(stage):
            for (name, number), offset in part.writer.last_offsets.items():
                if name == topic:
                    ends[number] = max(offset, ends.get(number, -1))
        return ends

    def _covers(self, part: Partition, offset: int) -> bool:
        return part.quiet and part.committed == part.position > offset

    def _note(self, events: int) -> None:
        seconds, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        self.result["windows"].append({"events": events, "seconds": seconds, "cpu": cpu, "mb": resident_mb()})


def resident_mb() -> float:
    """Memory of this process at present."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Measure one worker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("events", type=int)
    parser.add_argument("--only-bound", action="store_true")
    parser.add_argument("--audited", action="store_true")
    parser.add_argument("--every", type=int, default=1 << 62, help="note time and memory after so many events, too")
    options = parser.parse_args()
    watches: list[Stopwatch] = []
    owns: dict[str, Any] = {}

    def keep(_logger: object, _name: str, line: Any) -> Any:
        owns.update(line if line["event"] == "owns" else {})
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    with open_session(options.config) as session:
        settings = settings_of(session.config)
        domain = Stages(session, settings, Health())
        run_worker(
            settings,
            domain,
            on_verified=domain.agree,
            on_app=lambda app: watches.append(Stopwatch(app, options)),
        )
    print(json.dumps(watches[0].result | {"takeover": owns["seconds"]}))


if __name__ == "__main__":
    main()
