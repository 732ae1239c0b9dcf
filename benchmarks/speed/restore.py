"""A worker's takeover of partitions that have state, with a stopwatch around the restore; prints JSON lines.

python -m benchmarks.speed.restore CONFIG

The clock begins when the former owner is locked out, and ends when every partition's state is there: changelogs are
read from Kafka, and checked. Then the process ends. The lines are those that `watching.py` reads.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import structlog

from shoal.agents.audit.session import open_session
from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.settings import BOUND, settings_of
from shoal.agents.worker.health import Health
from shoal.agents.worker.partition import Partition
from shoal.agents.worker.process import run_worker
from shoal.agents.worker.stages import Stages
from shoal.agents.worker.takeover import Takeover
from shoal.stream.machine import StagePartition

HELD = 0.3  # seconds for which the state is there to be looked at


async def timed(takeover: Takeover, reader: Reader) -> dict[StagePartition, Partition]:
    """Restore, say what it took, and end."""
    _say([])
    restored = await RESTORE(takeover, reader)
    machines: list[Any] = [part.machine for partition, part in restored.items() if partition.stage == BOUND]
    _say(machines, done=True, kernel=all(machine.read_by_kernel is not None for machine in machines))
    await asyncio.sleep(HELD)
    os._exit(0)


def _say(machines: list[Any], **more: Any) -> None:
    users = sum(machine.users for machine in machines)
    print(json.dumps({"events": users, "seconds": time.perf_counter(), "cpu": time.process_time()} | more), flush=True)


RESTORE = Takeover._restore

if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    Takeover._restore = timed  # type: ignore[method-assign, assignment]
    with open_session(Path(sys.argv[1])) as session:
        settings = settings_of(session.config)
        domain = Stages(session, settings, Health())
        run_worker(settings, domain, on_verified=domain.agree)
