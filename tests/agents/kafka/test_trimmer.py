"""When the beginning of a log is deleted, and up to where: never what the last commit needs."""

import asyncio
from typing import Any

import pytest
from aiokafka.errors import (
    IncompatibleBrokerVersion,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka import transactions
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transactions import Trimmer, Writer
from shoal.stream.machine import LogSpan, Outbox, StagePartition
from tests.support.effort import examples


def a_writer() -> Writer:
    settings = KafkaSettings("b:1", "app")
    return Writer(settings, StagePartition("bound", "events", 0), Reach(settings))


def told(first: int, needs: int, size: int) -> Outbox:
    return Outbox(0, log=LogSpan(first, needs, cost=size))


steps = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(1, 400), st.integers(0, 9)), min_size=1, max_size=60
)


@examples(100)
@given(steps)
def test_nothing_that_is_needed_is_deleted(found: list[tuple[int, int, int, int]]) -> None:
    async def go() -> None:
        deleted: list[int] = []
        writer = a_writer()

        async def delete(before: int) -> None:
            deleted.append(before)

        patch.setattr(writer, "delete_changelog", delete)
        trimmer, offset, record, needs = Trimmer(writer), 0, 1, 0
        begins: dict[int, int] = {}
        for records, behind, size, restarts in found:
            # given transactions that begin at an offset with a record, and need one that is not before the last need,
            # perhaps in the middle of a transaction
            writer.changelog_began, begins[record] = offset, offset
            needs = max(needs, record - behind)
            trimmer.committed(told(record, needs, size))
            await asyncio.sleep(0)
            # then what is deleted ends where that record's transaction begins, at the latest
            assert all(before <= max((begins[one] for one in begins if one <= needs), default=0) for before in deleted)
            if restarts == 0:
                trimmer = Trimmer(writer)
                trimmer.restored([(one, begin, 9) for one, begin in begins.items()])
            offset, record = offset + records + 2, record + records
        assert deleted == sorted(deleted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions, "LEAST_BYTES", 300)
        asyncio.run(go())


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TopicAuthorizationFailedError(), "Kafka denies Delete on it"),
        (PolicyViolationError(), "its cleanup.policy is not delete"),
        (IncompatibleBrokerVersion(), "refuses to delete records (IncompatibleBrokerVersion)"),
        (UnsupportedVersionError(), "refuses to delete records (UnsupportedVersionError)"),
        (NotLeaderForPartitionError(), None),
        (OffsetOutOfRangeError(), None),  # of a leader that was just elected
        (TimeoutError(), None),
    ],
)
def test_what_is_refused_is_said_once_and_never_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str | None
) -> None:
    monkeypatch.setattr(transactions, "LEAST_BYTES", 1)
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(transactions.log, "warning", lambda event, **fields: said.append({"event": event} | fields))

    async def go() -> int:
        writer, asked = a_writer(), []

        async def delete(before: int) -> None:
            asked.append(before)
            raise error

        monkeypatch.setattr(writer, "delete_changelog", delete)
        trimmer = Trimmer(writer)
        for record in range(1, 20):
            writer.changelog_began = 3 * record
            trimmer.committed(told(record, record, 100))
            await asyncio.sleep(0)
        await trimmer.stop()
        return len(asked)

    asked = asyncio.run(go())
    if reason is None:  # brokers are away or busy: later is as good
        assert asked > 1
        assert not said
        return
    assert asked == 1
    (warning,) = said
    assert warning["event"] == "not_trimmed"
    assert reason in warning["reason"]


@pytest.mark.parametrize("events", [0, 19])
@pytest.mark.parametrize("since", ["the takeover", "later"])
def test_where_presence_is_protected_what_is_said_does_not_depend_on_how_many_events_came(
    monkeypatch: pytest.MonkeyPatch, events: int, since: str
) -> None:
    monkeypatch.setattr(transactions, "LEAST_BYTES", 1)
    said: list[str] = []
    monkeypatch.setattr(transactions.log, "warning", lambda event, **fields: said.append(event))

    async def go() -> list[int]:
        writer, asked = a_writer(), list[int]()

        async def delete(before: int) -> None:
            asked.append(before)
            if since == "the takeover" or before > 0:
                raise TopicAuthorizationFailedError

        monkeypatch.setattr(writer, "delete_changelog", delete)
        trimmer = Trimmer(writer, hides_presence=True)
        trimmer.restored([])
        await asyncio.sleep(0)
        for record in range(1, 1 + events):
            writer.changelog_began = 3 * record
            trimmer.committed(told(record, record, 100))
            await asyncio.sleep(0)
        await trimmer.stop()
        return asked

    # when a worker may not delete, from the beginning or after its right was taken away
    asked = asyncio.run(go())
    # then it says so at the takeover or not at all, and asks no more
    assert said == (["not_trimmed"] if since == "the takeover" else [])
    assert asked[0] == 0
    assert len(asked) == (2 if events and since == "later" else 1)


def test_an_outbox_without_a_log_and_a_writer_that_has_ended_delete_nothing() -> None:
    async def go() -> None:
        writer = a_writer()
        Trimmer(writer).committed(Outbox(0, [(b"", b"")]))
        await writer.delete_changelog(7)  # it has no producer
        await Trimmer(writer).stop()

    asyncio.run(go())


def test_a_log_of_a_partition_without_accounts_does_not_grow_for_ever() -> None:
    """Regression: a transaction without accounts costs nothing, so that its log was never deleted: half a GB a week."""

    async def go() -> list[int]:
        writer, asked = a_writer(), list[int]()

        async def delete(before: int) -> None:
            asked.append(before)

        patch.setattr(writer, "delete_changelog", delete)
        trimmer = Trimmer(writer)
        trimmer.restored([(1, 0, 0), (2, 4, 0)])
        for record in range(3, 2_000):
            writer.changelog_began = 4 * (record - 1)
            trimmer.committed(told(record, record, 0))
            await asyncio.sleep(0)
        return asked

    with pytest.MonkeyPatch.context() as patch:
        asked = asyncio.run(go())
    assert 3 < len(asked) < 20
    assert 2_000 * 4 - asked[-1] < 2_000
