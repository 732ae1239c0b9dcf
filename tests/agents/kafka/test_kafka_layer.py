"""Parts of the Kafka layer that need no broker: idleness, fail-stop messages, holds, tables."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError, ProducerFenced, TransactionalIdAuthorizationFailed
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.client_errors import lost_records
from shoal.agents.kafka.fail_stop import describe
from shoal.agents.kafka.idleness import Idleness
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transactions import Writer
from shoal.agents.worker.app import make_app
from shoal.agents.worker.outbox import BoundMachine
from shoal.agents.worker.partition import Partition
from shoal.models.errors import FailStop
from shoal.stream.file_run import Line
from shoal.stream.machine import Outbox, StagePartition
from tests.kafka.toy_machine import PAIR, ToyBound, ToyDomain
from tests.privacy.hosted import compiled
from tests.stream.simulation import config

TP0 = TopicPartition("events", 0)


def test_a_takeover_knows_all_that_a_source_partition_writes_to() -> None:
    """What hangs there has to be ended: dead letters, too, or none that come after it are ever read."""
    plan = compiled(config({"group": "g", "max_groups": 2}), sources=5, homes=3)
    for number in range(5):
        settings = KafkaSettings("localhost:9", "shoal", partitions=3)
        machine = BoundMachine(settings, plan, number)
        machine.start(0)
        machine.process([Line(0, b"no event", timestamp=0)], 1)
        machine.idle(0)
        outbox = machine.outbox()
        assert outbox is not None
        assert (settings.dead_letters, number % 3) in outbox.records
        assert set(outbox.records) == set(settings.outputs(StagePartition("bound", "events", number)))


def test_idle_needs_a_fetch_that_was_sent_after_the_last_record() -> None:
    idleness = Idleness()
    # given a response at time 100, which brought the last record and position 5
    assert idleness.at(TP0, 5, highwater=5, responded=100) is None
    # while that is the last response, nothing is known about what came since
    assert idleness.at(TP0, 5, highwater=5, responded=100) is None
    # the next response answers a fetch sent after 100, from position 5: idle at 100
    assert idleness.at(TP0, 5, highwater=5, responded=130) == 100
    assert idleness.at(TP0, 5, highwater=5, responded=160) == 130


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=30))
def test_idle_is_only_ever_said_at_the_high_watermark(steps: list[tuple[int, int, int]]) -> None:
    idleness, now, before = Idleness(), 0, None
    for position, ahead, later in steps:
        now += later
        idle = idleness.at(TP0, position, position + ahead, now)
        if idle is not None:
            assert ahead == 0
            assert before == (position, idle)
            assert idle < now
        before = (position, now) if ahead == 0 else None


def test_an_open_transaction_at_the_end_is_not_idleness() -> None:
    idleness = Idleness()
    for responded in range(1, 5):  # the position stays at the last stable offset, below the high watermark
        assert idleness.at(TP0, 5, highwater=6, responded=responded) is None


def test_messages_of_unexpected_errors_hold_no_values() -> None:
    users: dict[str, int] = {}
    try:
        users["user-4711"]
    except KeyError as error:
        message = describe(error, "bound of events[3] at offset 17")
    assert "4711" not in message
    assert "bound of events[3] at offset 17: unexpected KeyError at test_kafka_layer.py:" in message


def test_messages_of_our_errors_are_as_they_are() -> None:
    assert describe(FailStop("what; what to do"), "where") == "what; what to do"
    assert describe(ProducerFenced(), "bound of events[3]").startswith("bound of events[3]: fenced; another worker")


def test_fail_stop_ends_the_process_at_once_with_two_lines() -> None:
    code = """
import atexit
from shoal.agents.kafka.fail_stop import fail_stop
from shoal.models.errors import FailStop
atexit.register(print, "flushed")
fail_stop(FailStop("no way on"), "here")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    machine, human = done.stderr.splitlines()
    assert '"event":"fail_stop"' in machine
    assert human == "shoal: no way on"


@pytest.mark.parametrize(("error", "code"), [("BaseException", 1), ("ValueError", 1), ("KeyboardInterrupt", 0)])
def test_all_but_an_orderly_end_is_a_failure(error: str, code: int) -> None:
    # given what may come out of a task: a panic of the kernel, a bug, or the user's Ctrl-C
    program = f"""
from shoal.agents.kafka.fail_stop import ORDERLY, stop_on_failure
try:
    with stop_on_failure("here"):
        raise {error}
except ORDERLY:
    pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert f"here: unexpected {error} at" in done.stderr or not code


@pytest.mark.slow
def test_of_two_threads_that_fail_the_first_speaks_for_both() -> None:
    program = """
import threading
from shoal.agents.kafka.fail_stop import fail_stop
from shoal.models.errors import FailStop
gate = threading.Barrier(2)
def fail():
    gate.wait()
    fail_stop(FailStop("no way on"), "here")
threading.Thread(target=fail).start()
fail()
"""
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert done.stderr.count("shoal: no way on") == 1


def test_records_that_an_election_lost_under_a_running_worker_are_explained_by_it() -> None:
    stop = lost_records(OffsetOutOfRangeError({TP0: 24}))
    assert str(stop).startswith("events[0] at offset 24: the records to read next are not in the topic; ")
    for cause in ("retention deleted them", "made anew", "an unclean leader election lost them"):
        assert cause in str(stop)


def test_transactional_ids_and_changelogs_are_pure_functions_of_the_place() -> None:
    s = KafkaSettings("b:1", "app")
    assert s.transactional_id("bound", "purchases", 3) == "app.bound.purchases.3"
    assert s.transactional_id("release", "app.contributions", 3) == "app.release.3"
    # and no topic's id is one of those that are reserved for what several partitions of another may share
    topics = ["t", "t.b1", "t.b", "b1"]
    ids = {s.transactional_id("bound", topic, number) for topic in topics for number in range(3)}
    assert not ids & {f"app.bound.{topic}.b{number}" for topic in topics for number in range(12)}
    assert s.changelog("bound", "purchases") == "app.bound.purchases.changelog"
    assert s.changelog("release", "app.contributions") == "app.release.changelog"


def test_a_transactional_id_that_is_denied_in_the_middle_of_a_transaction_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def go() -> None:
        settings = KafkaSettings("localhost:1", "app", partitions=1)
        writer = Writer(settings, StagePartition("release", "app.contributions", 3), Reach(settings))

        async def denied(_rounds: object) -> None:  # as aiokafka says it where batches and commits are refused
            raise TransactionalIdAuthorizationFailed

        monkeypatch.setattr(writer, "_transaction", denied)
        await writer.write(Outbox(1))

    with pytest.raises(TransactionalIdAuthorizationFailed) as refused:
        asyncio.run(go())
    assert describe(refused.value, "here") == (
        "here: Kafka denies Write on transactional id app.release.3; grant it with kafka-acls"
    )


def test_tables_answer_from_the_partitions_and_are_read_only() -> None:
    # given an app with one hosted partition that has state
    s = KafkaSettings("b:1", "app")
    counts = {"events": 4, "app.contributions": 8, "app.releases": 8, "app.activations": 8}
    app = make_app(s, ToyDomain(["events"], "app", 8), counts)
    partition = StagePartition("bound", "events", 2)
    machine = ToyBound(partition, "app.contributions", 8)
    machine.restore({b"ann": PAIR.pack(3, 30)})

    async def hosted() -> Partition:
        return Partition(s, partition, machine, Writer(s, partition, Reach(s)))

    app.host.partitions[partition] = asyncio.run(hosted())
    # then Faust's table shows it, under the changelog's name
    table: Any = app.tables["app.bound.events.changelog"]
    assert table.changelog_topic.get_topic_name() == table.name
    assert table[b"ann",] == PAIR.pack(3, 30)
    assert (b"ann",) in table
    assert (b"bob",) not in table
    assert table.get((b"bob",)) is None
    with pytest.raises(KeyError):
        table[b"bob",]
    # and nothing that Faust offers for changing or listing it does so, least of all by writing to the changelog
    changes: tuple[Callable[[], Any], ...] = (
        lambda: table.__setitem__((b"ann",), b""), lambda: table.__delitem__((b"ann",)), table.clear,
        lambda: table.update({(b"ann",): b""}), lambda: table.raw_update({(b"ann",): b""}),
        lambda: table.setdefault((b"bob",), b""), lambda: table.pop((b"ann",)),
        lambda: table.send_changelog(0, b"", b""),
    )  # fmt: skip
    for change in changes:
        with pytest.raises(TypeError, match="only through the stream"):
            change()
    listings: tuple[Callable[[Any], Any], ...] = (
        iter, len, dict, lambda it: it.keys(), lambda it: it.values(), lambda it: it.items(), lambda it: it.copy(),
    )  # fmt: skip
    for listing in listings:
        with pytest.raises(TypeError, match="too large to list"):
            listing(table)
    assert table
    assert repr(table) == "<StateTable: app.bound.events.changelog>"
