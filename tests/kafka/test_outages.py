"""Brokers and the audit log go away and come back; nobody loses anything, and nobody has to look after it."""

import asyncio
import signal
import threading
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from shoal.agents.broker.process import Broker
from tests.kafka.kafka_tools import Toy, make_topics, read_all, run
from tests.support.kafka import Kafka


@pytest.mark.long
def test_a_worker_rides_out_a_dead_broker(tmp_path: Path) -> None:
    # given a busy worker
    with Broker() as broker:
        app = Toy(broker.bootstrap, "toy", {"clicks": 4}, 4)
        app.produce(100_000)
        with app.worker(tmp_path / "w.log") as worker:
            worker.wait_owns(8)
            # when the broker is killed in the middle of its work, and is away for a while
            time.sleep(0.4)
            broker.kill()
            time.sleep(8)
            assert worker.process.poll() is None
            broker.start()
            # then the worker goes on by itself, and said so once
            app.produce(20_000, seed=2)
            app.wait_drained()
            worker.signal(signal.SIGTERM)
            assert worker.ends() == 0
            assert worker.text.count("brokers_away") <= 1
        assert app.differences() == []


@pytest.mark.long
def test_a_worker_that_gave_transactions_up_goes_on_in_the_same_process(tmp_path: Path) -> None:
    # given a worker that waits for a transaction for a second only, and stops dead when one is written
    flag = tmp_path / "freeze"
    with Broker() as broker:
        app = Toy(broker.bootstrap, "toy", {"clicks": 4}, 4, flush_limit=1.0)
        with app.worker(tmp_path / "w.log", freeze=str(flag)) as worker:
            worker.wait_owns(8)
            flag.touch()
            app.produce(20_000)
            worker.wait(lambda _: not flag.exists())
            # when the broker goes away before the commit, then what was given up is taken over anew
            broker.kill()
            worker.signal(signal.SIGCONT)
            worker.wait(lambda w: "gave_up" in w.text)
            broker.start()
            app.produce(20_000, seed=2)
            app.wait_drained()
            # and when it is told to stop while the broker is away, it ends well
            app.produce(20_000, seed=3)
            broker.kill()
            worker.signal(signal.SIGTERM)
            assert worker.ends() == 0
        # and the next one does again what was not committed: nothing is lost, nothing is there twice
        broker.start()
        with app.worker(tmp_path / "v.log") as worker:
            app.wait_drained()
            worker.signal(signal.SIGTERM)
            assert worker.ends() == 0
        assert app.differences() == []


def test_a_worker_waits_for_a_broker_that_does_not_answer(tmp_path: Path) -> None:
    with Kafka() as broker:
        # given a broker that takes connections and says nothing
        app = Toy(broker.bootstrap, "toy", {"clicks": 2}, 2, flush_limit=1.0)
        app.produce(10_000)
        broker.freeze()
        with app.worker(tmp_path / "w.log", start_limit=1.0) as worker:
            # when it answers again, then the worker that waited for it begins
            worker.wait(lambda w: "brokers_unready" in w.text)
            broker.thaw()
            worker.wait_owns(4)
            assert worker.text.count("brokers_unready") == 1
            # and when the same happens in the midst of its work, then it goes on
            app.produce(30_000, seed=2)
            broker.freeze()
            time.sleep(3)
            broker.thaw()
            app.wait_drained()
            worker.signal(signal.SIGTERM)
            assert worker.ends() == 0
        assert app.differences() == []


def test_a_worker_waits_for_brokers_at_the_start(tmp_path: Path) -> None:
    with Broker() as broker:
        app = Toy(broker.bootstrap, "toy", {"clicks": 1}, 1)
        broker.stop()
        with app.worker(tmp_path / "w.log") as worker:
            worker.wait(lambda w: "brokers_away" in w.text)
            time.sleep(1)
            broker.start()
            worker.wait_owns(2)
            assert worker.text.count("brokers_away") == 1
            worker.signal(signal.SIGTERM)
            assert worker.ends() == 0


def test_the_stream_does_not_wait_for_the_audit_log(kafka: Kafka, tmp_path: Path) -> None:
    # given an audit log that is away
    name, missing, logs = kafka.name("toy"), tmp_path / "no-sql", tmp_path / "audit"
    app = Toy(kafka.bootstrap, name, {f"{name}-clicks": 4}, 4)
    logs.mkdir()
    missing.touch()
    with app.worker(
        tmp_path / "w.log", folder=str(logs), no_sql=str(missing), settings={"poll_records": 500}
    ) as worker:
        # when there is a lot to do, then it gets done
        app.produce(60_000)
        app.wait_drained()
        assert not list(logs.iterdir())
        # and when the log is back, it gets every release once and in order
        missing.unlink()
        releases = run(read_all(app.brokers, f"{name}.releases"))
        worker.wait(lambda _: audited(logs) >= sum(map(len, releases.values())))
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
        assert worker.text.count("audit_log_away") == 1
    for partition, records in releases.items():
        must = [b"%d %b" % (r.offset, r.value) for r in records]
        assert (logs / f"{name}.releases.{partition}").read_bytes().splitlines() == must
    # and a second worker starts behind what the log has
    with app.worker(tmp_path / "v.log", folder=str(logs)) as worker:
        worker.wait_owns(8)
        time.sleep(1)
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
    assert audited(logs) == sum(map(len, releases.values()))


def audited(logs: Path) -> int:
    return sum(len(log.read_bytes().splitlines()) for log in logs.iterdir())


def test_a_topic_made_anew_ends_the_worker(kafka: Kafka, tmp_path: Path) -> None:
    name = kafka.name("toy")
    app = Toy(kafka.bootstrap, name, {f"{name}-clicks": 1}, 1)
    app.produce(5_000)
    with app.worker(tmp_path / "w.log") as worker:
        app.wait_drained()
        # when somebody deletes the contributions and makes the topic again
        run(make_anew(kafka.bootstrap, f"{name}.contributions"))
        threading.Thread(target=app.produce, args=(5_000,), kwargs={"seed": 2}).start()
        # then the worker ends, and names the topic
        assert worker.ends() == 1
        assert "fail_stop" in worker.text
        assert f"{name}.contributions[0]" in worker.text


async def make_anew(brokers: str, topic: str) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await client.start()
    await client.delete_topics([topic])
    await client.close()
    while topic not in await topics(brokers):
        await make_topics(brokers, {topic: 1})
        await asyncio.sleep(0.05)


async def topics(brokers: str) -> list[str]:
    client = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await client.start()
    found: list[str] = await client.list_topics()
    await client.close()
    return found


def test_an_effect_is_committed_soon_when_there_is_little_to_do(kafka: Kafka, tmp_path: Path) -> None:
    name = kafka.name("toy")
    app = Toy(kafka.bootstrap, name, {f"{name}-clicks": 4}, 4)
    with app.worker(tmp_path / "w.log") as worker:
        worker.wait_owns(8)
        delays = run(send_and_see(app, 30))
        print("delays", [round(delay * 1000) for delay in delays])
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
    assert sorted(delays)[len(delays) // 2] < 0.25  # a busy machine is slow; 0.05 on a quiet one


async def send_and_see(app: Toy, rounds: int) -> list[float]:
    """Seconds from the send of an event to its contribution as a read_committed consumer sees it."""
    producer = AIOKafkaProducer(bootstrap_servers=app.brokers)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=app.brokers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=20,
    )
    await producer.start()
    await consumer.start()
    consumer.assign([TopicPartition(f"{app.app}.contributions", p) for p in range(app.partitions)])
    delays = []
    for number in range(rounds):
        began = time.monotonic()
        await producer.send_and_wait(next(iter(app.sources)), b"1", key=b"new%d" % number, partition=number % 4)
        await consumer.getone()
        delays.append(time.monotonic() - began)
        await asyncio.sleep(0.05)
    await producer.stop()
    await consumer.stop()
    return delays
