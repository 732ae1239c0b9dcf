"""Whether brokers are there: refused is away at once, one silence is not."""

import asyncio
from typing import Any

import pytest

from shoal.agents.kafka import reachability
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import KafkaSettings


def ask(monkeypatch: pytest.MonkeyPatch, *silences: bool) -> tuple[bool, int]:
    """Whether a broker that keeps silent so often is held to be there, and how often it was asked."""
    asked: list[str] = []
    left = list(silences)

    async def open_connection(host: str, port: int) -> tuple[Any, Any]:
        asked.append(host)
        if left.pop(0):
            await asyncio.sleep(60)

        class Writer:
            def close(self) -> None:
                pass

        return None, Writer()

    monkeypatch.setattr(reachability, "CONNECT_LIMIT", 0.01)
    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    return asyncio.run(Reach(KafkaSettings("somewhere:9092", "app")).ask()), len(asked)


def test_one_silence_of_a_broker_is_not_its_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(monkeypatch, False) == (True, 1)
    assert ask(monkeypatch, True, False) == (True, 2)
    assert ask(monkeypatch, True, True) == (False, 2)


def test_a_port_on_which_nothing_listens_is_no_broker() -> None:
    assert not asyncio.run(Reach(KafkaSettings("127.0.0.1:1", "app")).ask())
