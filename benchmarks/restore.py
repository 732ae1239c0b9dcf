"""Restores every partition of bound, one after the other, as a takeover does; prints JSON.

python -m benchmarks.restore CONFIG TOPIC PARTITIONS
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from aiokafka import TopicPartition

from shoal.agents.audit.session import Session, open_session
from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.settings import BOUND, settings_of
from shoal.agents.process_settings import tune_garbage_collector
from shoal.agents.worker.outbox import BoundMachine
from shoal.stream.topic import plan_topic


async def restore(session: Session, topic: str, partitions: int) -> list[dict[str, float]]:
    """Per partition: accounts, and seconds to load the changelog and to restore the machine from it."""
    settings = settings_of(session.config)
    plan = plan_topic(
        session.config,
        topic,
        session.key.secret,
        source_partitions=partitions,
        contributions_partitions=settings.partitions,
    )
    found = []
    async with Reader(settings) as reader:
        for partition in range(partitions):
            tp = TopicPartition(settings.changelog(BOUND, topic), partition)
            began, cpu = time.perf_counter(), time.process_time()
            states = await reader.load(await reader.stable_bounds([tp]))
            loaded = time.perf_counter()
            machine = BoundMachine(settings, plan, partition, log_id=session.ledger.log_id)
            machine.restore(states.pop(tp))
            ended = time.perf_counter()
            cpu = time.process_time() - cpu
            found.append({"accounts": machine.users, "load": loaded - began, "restore": ended - loaded, "cpu": cpu})
    return found


if __name__ == "__main__":
    tune_garbage_collector()
    with open_session(Path(sys.argv[1])) as opened:
        print(json.dumps({"partitions": asyncio.run(restore(opened, sys.argv[2], int(sys.argv[3])))}))
