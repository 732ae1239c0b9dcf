"""What a running worker says of itself: why it is not ready, what a tick waits for, and that a topic was changed."""

import asyncio
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from shoal.agents.kafka.settings import RELEASE, KafkaSettings
from shoal.agents.kafka.topics import verify_topics
from shoal.agents.lane import TWIN
from shoal.agents.worker.health import Health
from shoal.agents.worker.outbox import ReleaseMachine
from shoal.agents.worker.readiness import Readiness
from shoal.agents.worker.timings import Timings
from shoal.agents.worker.watch import Watching
from shoal.stream.machine import StagePartition
from tests.kafka.kafka_tools import run
from tests.stream.simulation import Cluster, config, event
from tests.support.kafka import Brokers, Kafka
from tests.support.workers import wait_until

UNJOINED = "the consumer group app, which waits up to 10 s for workers that died, is not joined yet"
SETTINGS = KafkaSettings("somewhere:9092", "app", partitions=3, idle_after=1.0)


class Stage:
    """A worker that never runs: its host and domain as they would be, to be changed one by one."""

    def __init__(self, settings: KafkaSettings = SETTINGS) -> None:
        thread = SimpleNamespace(generation=2, ends=dict)
        host = SimpleNamespace(
            settings=settings, partitions={}, accepting=True, stopping=False, reach=SimpleNamespace(away=False),
            sink=SimpleNamespace(away=False, feeds={}), app=SimpleNamespace(_consumer=SimpleNamespace(_thread=thread)),
            timings=Timings(settings),
        )  # fmt: skip
        domain = SimpleNamespace(
            health=Health(), plans={}, discreet=False, withheld=set(), budget=None, lane=TWIN, unknown={}
        )
        self.host, self.domain = cast("Any", host), cast("Any", domain)
        self.domain.health.running = True
        self.readiness = Readiness(self.host, self.domain)

    def owns(self, machine: ReleaseMachine) -> None:
        partition = StagePartition(RELEASE, self.host.settings.contributions, 0)
        self.host.partitions = {partition: SimpleNamespace(machine=machine, processed=3)}


def waits_for(stage: Stage) -> set[tuple[str, int]]:
    """(metric, source partition)."""
    stage.readiness.look()
    return {(metric, partition) for metric, _, partition in stage.readiness.waiting()}


def speaking(*times: int) -> ReleaseMachine:
    """A contributions partition that heard of events at these times, each of a source partition of its own."""
    cluster = Cluster(config({"every": "10s"}), len(times), 1)
    for source, at in enumerate(times):
        if at:
            user = next(u for u in map(str, range(99)) if cluster.plan.partition_of(u.encode(), len(times)) == source)
            cluster.produce([event(user, 0.5, at)])
            cluster.bound(source, 5)
    machine = ReleaseMachine(KafkaSettings("b:1", "app"), [cluster.plan], 0, idle_after=1_000_000)
    machine.start(0)
    machine.process(cluster.homes[0].log, len(cluster.homes[0].log))
    machine.work()
    return machine


def test_a_worker_that_is_not_ready_says_why() -> None:
    stage = Stage()
    stage.owns(speaking(25, 25))
    assert stage.readiness.reasons() == []
    stage.host.reach.away = True
    stage.host.sink.away = True
    stage.host.accepting = False
    assert stage.readiness.reasons() == [
        "no broker of somewhere:9092 answers",
        "the audit log cannot be reached; releases go on, and it catches up later",
        "a rebalance is under way, or partitions are being taken over",
    ]
    stage.host.app._consumer._thread.generation = -1
    assert UNJOINED in stage.readiness.reasons()
    stage.host.stopping = True
    assert "the worker is stopping" in stage.readiness.reasons()
    stage.domain.health.running = False
    assert [reason[:22] for reason in stage.readiness.reasons()] == ["the worker is starting"]


def test_an_app_without_a_consumer_has_not_joined() -> None:
    stage = Stage()
    stage.host.app = None
    assert stage.readiness.reasons() == [UNJOINED]
    assert [*stage.readiness.behind().values(), stage.readiness.audit_behind()] == [0]


def test_more_workers_than_partitions_are_told_that_they_are_of_no_use() -> None:
    stage = Stage()
    stage.domain.plans = {"events": SimpleNamespace(source_partitions=5)}
    assert stage.readiness.reasons() == [
        "there are more workers than partitions: at most 5 of them have something to do"
    ]


def test_what_must_not_be_in_the_contributions_is_an_alarm() -> None:
    stage, state = Stage(), speaking(25, 25)
    stage.owns(state)
    state.strays.count, state.strays.last = 2, 17
    state.counters["repeated_messages"] = 1
    reasons = stage.readiness.reasons()
    assert sorted(stage.domain.health.alarms) == ["repeated_messages", "stray_records"]
    assert any("topic app.contributions, partition 0, offset 17: not written by shoal" in reason for reason in reasons)


def test_a_tick_that_waits_for_long_names_its_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    # given three source partitions, of which one is far ahead, one behind, and one never spoke
    stage = Stage()
    stage.owns(speaking(45, 5, 0))
    now = time.monotonic()
    assert waits_for(stage) == {("m0", 2)}  # which is first of all to say anything
    stage.owns(speaking(45, 5, 25))
    assert stage.readiness.reasons() == []
    assert waits_for(stage) == {("m0", 1)}
    # when that lasts, then the worker is not ready any more
    monkeypatch.setattr(stage.readiness, "_now", lambda: now + 100)
    assert stage.readiness.reasons() == ["metric m0: its open tick has waited for events[1] for more than 60 s"]
    assert stage.readiness.seconds_since_tick()["m0"] > 90
    # and once it has passed, it is
    stage.owns(speaking(45, 35, 25))
    assert stage.readiness.reasons() == []
    assert stage.readiness.event_times() == {"m0": 25.0}


def test_lag_is_what_is_in_the_topics_and_not_processed() -> None:
    stage = Stage()
    stage.owns(speaking(25, 25))
    stage.host.sink.feeds = {("app.releases", 0): SimpleNamespace(done=7)}
    ends = {("app.contributions", 0): 13, ("app.releases", 0): 9}
    stage.host.app._consumer._thread.ends = lambda: ends
    assert [*stage.readiness.behind().values(), stage.readiness.audit_behind()] == [10, 2]


def test_a_worker_whose_group_waits_for_a_dead_one_says_so_once() -> None:
    stage = Stage()
    watching = Watching(stage.readiness)
    stage.host.app._consumer._thread.generation = -1
    with structlog.testing.capture_logs() as said:
        stage.domain.health.running = False
        watching.look(5)
        assert said == [], "it is not the group that a worker waits for"
        stage.domain.health.running = True
        watching.look(10)
        watching.look(15)
    assert [(line["event"], line["reason"]) for line in said] == [("joining", UNJOINED.removesuffix(" yet"))]
    # and one that has joined in time says nothing, also when it joins anew later
    stage.host.app._consumer._thread.generation = 1
    watching = Watching(stage.readiness)
    with structlog.testing.capture_logs() as said:
        watching.look(5)
        stage.host.app._consumer._thread.generation = -1
        watching.look(10)
    assert said == []


def test_a_worker_that_owns_nothing_for_a_minute_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    watching = Watching(stage.readiness)
    with structlog.testing.capture_logs() as said:
        for second in (0, 30, 59):
            watching.look(second)
        assert said == []
        for second in (60, 90, 300):
            watching.look(second)
    (line,) = said
    assert (line["event"], line["seconds"]) == ("owns_nothing", 60)
    assert line["reason"].startswith("there are more workers than partitions")
    # and a stuck tick is said once, too
    stage.owns(speaking(45, 5))
    with structlog.testing.capture_logs() as said:
        watching.look(400)
        now = time.monotonic()
        monkeypatch.setattr(watching._readiness, "_now", lambda: now + 100)
        watching.look(500)
        watching.look(505)
    assert [(line["event"], line["reason"][:9]) for line in said] == [("tick_waits", "metric m0")]


def test_a_policy_that_is_changed_under_a_worker_is_an_alarm_until_it_is_set_right(kafka: Kafka) -> None:
    # given the topics of an app
    source, settings = kafka.create_topic(kafka.name("events")), KafkaSettings(kafka.bootstrap, kafka.name("app"))
    run(verify_topics(settings, [source]))
    stage = Stage(settings)
    stage.domain.plans = {source: SimpleNamespace(source_partitions=1)}
    watching = Watching(stage.readiness)
    run(watching._ask_policies())
    assert stage.domain.health.alarms == {}
    # when somebody sets a retention
    set_config(kafka, settings.releases, "retention.ms", "3600000")
    set_config(kafka, source, "retention.ms", "7200000")
    with structlog.testing.capture_logs() as said:
        run(watching._ask_policies())
    # then there is an alarm, with the command that sets it right, and a line for the source
    alarm = stage.domain.health.alarms["policy"]
    assert f"topic {settings.releases}: retention.ms is 3600000, must be -1" in alarm
    assert f"--entity-name {settings.releases} --add-config retention.ms=-1" in alarm
    assert [line["event"] for line in said] == ["alarm", "retention"]
    assert f"topic {source}: retention.ms = 7200000: records that are older by" in said[1]["warning"]
    assert said[1]["warning"].endswith(f"--entity-name {source} --add-config retention.ms=-1")
    # and when it is set right, the alarm is over
    set_config(kafka, settings.releases, "retention.ms", "-1")
    with structlog.testing.capture_logs() as said:
        run(watching._ask_policies())
    assert stage.domain.health.alarms == {}
    assert [line["event"] for line in said] == ["all_clear"]
    # and compaction of what must stay is found, too
    set_config(kafka, settings.contributions, "cleanup.policy", "compact")
    set_config(kafka, source, "cleanup.policy", "compact")
    with structlog.testing.capture_logs() as said:
        run(watching._ask_policies())
    assert "cleanup.policy is compact, must be delete" in stage.domain.health.alarms["policy"]
    assert said[1]["warning"].startswith(f"topic {source}: cleanup.policy = compact: of records with one key, all but")
    assert said[1]["warning"].endswith(f"--entity-name {source} --add-config cleanup.policy=delete")


def test_brokers_that_do_not_answer_are_no_alarm() -> None:
    stage = Stage(KafkaSettings("127.0.0.1:1", "app"))
    run(Watching(stage.readiness)._ask_policies())
    assert stage.domain.health.alarms == {}


def test_what_only_looks_goes_on_after_a_mistake_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.agents.worker.watch.LOOK_EVERY", 0.001)
    stage = Stage()
    stage.host.partitions = None
    watching = Watching(stage.readiness)

    async def until_it_failed_twice(said: Sequence[object]) -> None:
        task = asyncio.create_task(watching.watch())
        async with asyncio.timeout(60):
            while len(said) < 2:
                await asyncio.sleep(0.001)
        assert not task.done()
        task.cancel()

    with structlog.testing.capture_logs() as said:
        run(until_it_failed_twice(said))
    assert {line["event"] for line in said} == {"watch_failed"}


def set_config(kafka: Brokers, topic: str, key: str, value: str) -> None:
    run(alter(kafka, topic, {"retention.ms": "-1", "retention.bytes": "-1"} | {key: value}))
    wait_until(lambda: kafka.topic_config(topic)[key] == value, 30, lambda: str(kafka.topic_config(topic)))


async def alter(kafka: Brokers, topic: str, config: dict[str, str]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        (answer,) = await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=config)])
        assert [resource[0] for resource in answer.resources] == [0], answer
    finally:
        await admin.close()
