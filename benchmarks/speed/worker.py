"""`shoal worker` with a stopwatch: the same host, domain and audit log, until all events are through.

    python -m benchmarks.speed.worker CONFIG EVENTS [--only-bound | --audited] [--every N]

Time runs from the moment the worker owns its partitions, before its first fetch, until the last transaction is
committed, but for those of release that publish nothing and only say how far it read; with --audited, until the last
release is in the SQL log too. With --only-bound the contributions are written and never read. When so many events are
processed, reading stops and bound commits at once, as at the end of a worker; it would gather more for ten seconds. The
program prints the lines of JSON that `watching.py` reads.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
import traceback
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

LOOK = 0.005  # seconds between two looks at the partitions, each of which costs what is measured


class Stopwatch:
    """Watches one worker and stops it when it is done."""

    def __init__(self, app: ShoalApp, options: argparse.Namespace) -> None:
        self._host: Host = app.host
        self._events, self._every = options.events, options.every or options.events // 4
        self._only_bound, self._audited = options.only_bound, options.audited
        self._began = asyncio.Event()
        self._host.on_owned.append(self._owned)
        self._task = asyncio.create_task(self._guarded())

    def _owned(self) -> None:
        if self._only_bound:
            for part in self._of(RELEASE):
                self._host.hold(TP(part.partition.topic, part.partition.number), "benchmark")
        self._say()
        self._began.set()

    def _of(self, stage: str) -> list[Partition]:
        return [part for partition, part in self._host.partitions.items() if partition.stage == stage]

    def _processed(self) -> int:
        """The number of events that bound has processed, whether or not they are committed."""
        return sum(part.events + part.machine.backlog for part in self._of(BOUND))

    async def _guarded(self) -> None:
        try:
            await self._watch()
        except Exception:
            traceback.print_exc()
            os._exit(1)

    async def _watch(self) -> None:
        await self._began.wait()
        due = self._every
        while (processed := self._processed()) < self._events:
            if processed >= due:
                self._say()
                due = processed + self._every
            await asyncio.sleep(LOOK)
        self._say()
        for part in self._of(BOUND):
            self._host.hold(TP(part.partition.topic, part.partition.number), "benchmark")
            await part.drain()
        if not self._only_bound:
            await self._released()
        machines: list[Any] = [part.machine for part in self._of(BOUND)]
        self._say(
            done=True,
            kernel=all(machine.read_by_kernel is not None for machine in machines),
            users=sum(machine.users for machine in machines),
            releases=sum(part.machine.published_count for part in self._of(RELEASE)),  # type: ignore[attr-defined]
            transactions=sum(part.transactions for part in self._host.partitions.values()),
        )
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
        is_committed = part.committed == part.position or not part.machine.is_awaited
        return part.quiet and is_committed and part.position > offset

    def _say(self, **more: Any) -> None:
        said = {"events": self._processed(), "seconds": time.perf_counter(), "cpu": time.process_time()} | more
        print(json.dumps(said), flush=True)


def main() -> None:
    """Measure one worker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("events", type=int)
    parser.add_argument("--only-bound", action="store_true")
    parser.add_argument("--audited", action="store_true")
    parser.add_argument("--every", type=int, default=0, help="say how far it is after so many events, too")
    options = parser.parse_args()
    watches: list[Stopwatch] = []
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with open_session(options.config) as session:
        settings = settings_of(session.config)
        domain = Stages(session, settings, Health())
        run_worker(
            settings,
            domain,
            on_verified=domain.agree,
            on_app=lambda app: watches.append(Stopwatch(app, options)),
        )


if __name__ == "__main__":
    main()
