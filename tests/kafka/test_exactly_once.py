"""Whatever happens to workers, Kafka holds exactly what the events say: outputs, order, state and offsets."""

import itertools
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.kafka.kafka_tools import Toy, read_all, run
from tests.support.backends import mostly
from tests.support.effort import tries
from tests.support.kafka import Kafka

TWO_TOPICS = {"clicks": 8, "taps": 3}
KILLS = tries(4)


def toy(kafka: Kafka, sources: dict[str, int], partitions: int = 8, **settings: object) -> Toy:
    app = kafka.name("toy")
    return Toy(kafka.bootstrap, app, {f"{app}-{n}": count for n, count in sources.items()}, partitions, **settings)


def feed(app: Toy, events: int, pause: float, users: int = 5_000) -> threading.Thread:
    """Produce in the background, as the world does."""
    thread = threading.Thread(target=app.produce, args=(events,), kwargs={"users": users, "pause": pause})
    thread.start()
    return thread


def feed_until(app: Toy, enough: threading.Event) -> threading.Thread:
    """Produce in the background until there was enough, however slow the workers are."""

    def produce() -> None:
        for seed in itertools.takewhile(lambda _: not enough.is_set(), itertools.count(1)):
            app.produce(4_000, users=5_000, seed=seed, pause=0.3)

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    return thread


@pytest.mark.long
def test_workers_killed_at_random_moments_change_nothing(kafka: Kafka, tmp_path: Path) -> None:
    # given events that keep coming, and a static member, whose place is free at once
    app = toy(kafka, {"clicks": 4}, partitions=4, instance="one")
    feeding = feed(app, events=16_000 * KILLS, pause=0.25)
    chance = random.Random(7)
    # when workers die one after the other, some of them while they take over
    for number in range(KILLS):
        with app.worker(tmp_path / f"{number}.log") as worker:
            if number % 3:
                worker.wait_owns(8)
            time.sleep(chance.choice([chance.uniform(0, 0.4), chance.uniform(0, 1.5)]))
            worker.signal(signal.SIGKILL)
            worker.ends()
    # then the last one ends up exactly where one undisturbed worker would
    with app.worker(tmp_path / "last.log") as worker:
        feeding.join()
        app.wait_drained()
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
    assert app.differences() == []


def test_a_worker_frozen_before_its_commit_is_fenced(kafka: Kafka, tmp_path: Path) -> None:
    # given a worker that stops dead when all of a transaction is written and nothing of it is committed
    app = toy(kafka, {"clicks": 2}, partitions=2)
    flag = tmp_path / "freeze"
    enough = threading.Event()
    feeding = feed_until(app, enough)
    with app.worker(tmp_path / "frozen.log", freeze=str(flag)) as frozen, app.worker(tmp_path / "heir.log") as heir:
        frozen.wait_owns(1)
        heir.wait_owns(1)
        time.sleep(1)
        flag.touch()
        frozen.wait(lambda _: not flag.exists())
        # when another takes over its partitions, and it wakes up
        heir.wait_owns(4)
        time.sleep(0.5)
        frozen.signal(signal.SIGCONT)
        # then it learns that it is fenced, and ends
        assert frozen.ends() == 1
        assert "fenced; another worker owns it now" in frozen.text
        enough.set()
        feeding.join()
        app.wait_drained()
        heir.signal(signal.SIGTERM)
        assert heir.ends() == 0
    assert app.differences() == []
    # and what it wrote is in the log, and in no reader's eyes
    assert records(app, "read_uncommitted") > records(app, "read_committed")


def records(app: Toy, isolation: str) -> int:
    """How many records the app has written, as a reader of this isolation level sees it."""
    names = ["contributions", "releases", "release.changelog", *(f"bound.{topic}.changelog" for topic in app.sources)]
    topics = [run(read_all(app.brokers, f"{app.app}.{name}", isolation)) for name in names]
    return sum(len(partition) for topic in topics for partition in topic.values())


@pytest.mark.long
def test_workers_come_and_go(kafka: Kafka, tmp_path: Path) -> None:
    # given two topics of different partition counts, and one worker
    app = toy(kafka, TWO_TOPICS)
    feeding = feed(app, events=150_000, pause=0.15)
    with app.worker(tmp_path / "a.log") as a, app.worker(tmp_path / "b.log") as b, app.worker(tmp_path / "c.log") as c:
        # when there are one, two, three, and then one again
        for worker in (a, b, c):
            worker.wait_owns(1)
        time.sleep(2)
        for worker in (b, a):
            worker.signal(signal.SIGTERM)
            # then each leaves in order
            assert worker.ends() == 0
        # and the last owns everything
        c.wait_owns(8 + 3 + 8)
        feeding.join()
        app.wait_drained()
        c.signal(signal.SIGTERM)
        assert c.ends() == 0
    assert app.differences() == []


@mostly("kernel")
def test_lost_batches_are_read_again(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    # given a worker that loses every tenth batch between fetch and partition
    app = toy(kafka, TWO_TOPICS)
    app.produce(60_000)
    with app.worker(tmp_path / "w.log", drop=0.1, settings={"poll_records": 500}) as worker:
        # when it has read everything
        app.wait_drained()
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
        # then some were lost, and nothing is missing
        assert "lost" in worker.text
    assert app.differences() == []


@pytest.mark.long
def test_a_second_worker_starts_from_what_the_first_one_wrote(kafka: Kafka, tmp_path: Path) -> None:
    app = toy(kafka, TWO_TOPICS)
    for round_ in range(2):
        app.produce(20_000, seed=round_)
        with app.worker(tmp_path / "w.log") as worker:
            app.wait_drained()
            worker.signal(signal.SIGTERM)
            assert worker.ends() == 0
    assert app.differences() == []


def test_idle_is_told_when_there_is_nothing_to_read(kafka: Kafka, tmp_path: Path) -> None:
    app = toy(kafka, {"clicks": 2}, partitions=1, idle_after=0.4)
    app.produce(1_000)
    with app.worker(tmp_path / "w.log") as worker:
        app.wait_drained()
        time.sleep(2)
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
        told = int(worker.text.split("idle ")[-1])
    assert told >= 4  # both partitions, and again where a machine does not say that it has told others


def test_an_instance_name_belongs_to_one_worker(kafka: Kafka, tmp_path: Path) -> None:
    app = toy(kafka, {"clicks": 2}, partitions=1, instance="one")
    with app.worker(tmp_path / "a.log") as first:
        first.wait_owns(3)
        with app.worker(tmp_path / "b.log") as second:
            assert first.ends() == 1
            assert "instance one is in use by another worker" in first.text
            second.wait_owns(3)
