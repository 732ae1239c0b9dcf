"""`shoal worker` as one of several, with a stopwatch: it holds its sources back until all may begin; prints JSON lines.

    python -m benchmarks.speed.member CONFIG GO

GO is a file: when it is there, the sources are let go. Each line says how many partitions of events the worker has, how
many events it has committed, and when, and with how much CPU since the start, it last committed anything.
"""

import argparse
import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from faust.types.tuples import TP

from shoal.agents.audit.session import open_session
from shoal.agents.kafka.settings import BOUND, settings_of
from shoal.agents.worker.app import ShoalApp
from shoal.agents.worker.health import Health
from shoal.agents.worker.host import Host
from shoal.agents.worker.partition import Partition
from shoal.agents.worker.process import run_worker
from shoal.agents.worker.stages import Stages

TELL_EVERY = 0.1
LOOK = 0.005
WAITS = "benchmark"


class Member:
    """Lets a worker begin together with the others, and writes down how far it is and what it has cost."""

    def __init__(self, app: ShoalApp, go: Path) -> None:
        self._host: Host = app.host
        self._go = go
        self._began = 0.0  # CPU when the sources were let go
        self._host.on_owned.append(self._owned)
        self._task = asyncio.create_task(self._watch())

    def _of_events(self) -> list[Partition]:
        return [part for partition, part in self._host.partitions.items() if partition.stage == BOUND]

    def _owned(self) -> None:
        if not self._go.exists():
            for part in self._of_events():
                self._host.hold(TP(part.partition.topic, part.partition.number), WAITS)

    async def _watch(self) -> None:
        going, told, last = False, 0.0, (0.0, 0.0)
        done: list[int] = []
        while True:
            if not going and self._go.exists():
                going, self._began = True, time.process_time()
                for part in self._of_events():
                    self._host.let_go(TP(part.partition.topic, part.partition.number), WAITS)
            now = [part.committed for part in self._host.partitions.values()]
            if now != done:
                done, last = now, (time.time(), time.process_time() - self._began)
            if time.monotonic() >= told + TELL_EVERY:
                told = time.monotonic()
                self._tell(*last)
            await asyncio.sleep(LOOK)

    def _tell(self, at: float, cpu: float) -> None:
        parts = self._of_events()
        said: dict[str, Any] = {"partitions": len(parts), "events": sum(part.events for part in parts)}
        print(json.dumps(said | {"at": at, "cpu": cpu}), flush=True)


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("go", type=Path)
    options = parser.parse_args()
    members: list[Member] = []
    structlog.configure(processors=[_drop])
    with open_session(options.config) as session:
        # The last transaction ends the run, so none may gather for ten seconds.
        settings = replace(settings_of(session.config), cadence=0.0)
        domain = Stages(session, settings, Health())
        run_worker(
            settings, domain, on_verified=domain.agree, on_app=lambda app: members.append(Member(app, options.go))
        )


def _drop(_logger: object, _name: str, _line: Any) -> Any:
    raise structlog.DropEvent


if __name__ == "__main__":
    main()
