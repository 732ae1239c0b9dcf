"""What a worker does while its database is away: it waits, says so once, and can always be stopped."""

import asyncio
import threading
import time
from typing import cast

import pytest
from faust.types.tuples import TP

from shoal.agents.audit.database import Unavailable
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transport import Batch
from shoal.agents.worker import audit_feed, process
from shoal.agents.worker.audit_feed import Sink
from shoal.agents.worker.process import Worker
from shoal.agents.worker.threads import in_thread
from shoal.stream.machine import Domain
from tests.support.workers import wait_until

AWAY = "audit_log_away"


def test_registration_waits_for_a_database_that_is_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process, "FIRST_DELAY", 0.01)
    answers = [Unavailable("locked"), Unavailable("locked"), None]

    def agree() -> None:
        if error := answers.pop(0):
            raise error

    assert asyncio.run(Worker(KafkaSettings("", "app"), cast(Domain, None))._agree(agree))
    assert answers == []
    assert capsys.readouterr().out.count(AWAY) == 1


def test_an_outage_is_said_once_through_all_partitions_and_rebalances(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit_feed, "FIRST_DELAY", 0.01)
    away, done = [True], []

    def write(topic: str, partition: int, records: object) -> None:
        if away[0]:
            raise Unavailable("away")
        done.append(partition)

    async def story() -> None:
        feed = Sink(write, lambda tp, why: None, lambda tp, why: None)
        for _ in range(3):  # rebalances
            feed.assign({TP("releases", p): 0 for p in range(2)})
            for p in range(2):
                feed.accept(TP("releases", p), Batch(0, 1, []))
            await asyncio.sleep(0.05)
        away[0] = False
        while len(done) < 2:
            await asyncio.sleep(0.01)
        await feed.stop()

    asyncio.run(story())
    said = capsys.readouterr().out
    assert (said.count(AWAY), said.count("audit_log_back")) == (1, 1)


def test_a_call_that_blocks_holds_up_neither_the_loop_nor_its_end() -> None:
    release = threading.Event()
    began = time.monotonic()

    async def story() -> None:
        waiting = asyncio.create_task(in_thread(release.wait, 30))
        assert await in_thread(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await in_thread(lambda: 1 // 0)
        waiting.cancel()

    asyncio.run(story())
    assert time.monotonic() - began < 10
    release.set()
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "shoal wait"], 10, str)
