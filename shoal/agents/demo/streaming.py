"""Events in, releases out: the demo's producer and its reader of what the worker publishes.

What can fail: the worker ends, or publishes nothing for a long time.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator

from aiokafka import AIOKafkaConsumer, TopicPartition

from shoal.agents.audit.ledger import Ledger
from shoal.agents.demo.processes import WorkerProcess
from shoal.agents.demo.progress import DemoProgress
from shoal.agents.demo.scene import Scene
from shoal.agents.input.event_file import EventFile
from shoal.agents.kafka.produce import Produced, produce_file
from shoal.agents.kafka.settings import KafkaSettings, settings_of
from shoal.agents.kafka.topics import create_sources, verify_topics
from shoal.models.config.file import Config
from shoal.models.errors import KafkaError
from shoal.stream.file_run import Line

FRAME = 0.1  # seconds between two looks at the topics
PATIENCE = 60.0  # seconds without a release


async def make_topics(config: Config) -> None:
    """Create the demo's topics: sources, and those of the app."""
    settings = settings_of(config)
    await create_sources(settings, config.topics)
    await verify_topics(settings, config.topics)


async def wait_until_ready(worker: WorkerProcess) -> None:
    """Return when the worker has its partitions."""
    until = time.monotonic() + PATIENCE
    while not worker.ready:
        worker.check()
        if time.monotonic() > until:
            raise KafkaError(f"the worker took no partitions within {PATIENCE:.0f} s; its log is worker.log")
        await asyncio.sleep(FRAME)


async def stream(scene: Scene, progress: DemoProgress, worker: WorkerProcess, on_frame: Callable[[], None]) -> None:
    """Send every event and read until the last release is there.

    Raises:
        KafkaError: the worker ended, or fell silent.
    """
    settings = settings_of(progress.config)
    (topic,) = progress.config.topics
    lines = _counted(EventFile(str(scene.file), progress.config, topic).lines(), progress)
    sending = asyncio.create_task(produce_file(settings, progress.config, topic, lines, end=True, rate=scene.rate))
    try:
        await _follow(settings, progress, lambda: _check(worker, sending), on_frame)
        await sending
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


def _check(worker: WorkerProcess, sending: "asyncio.Task[Produced]") -> None:
    worker.check()
    if sending.done():
        sending.result()  # raises what it raised


def _counted(lines: Iterator[Line], progress: DemoProgress) -> Iterator[Line]:
    for line in lines:
        progress.sent += 1
        yield line


async def _follow(
    settings: KafkaSettings, progress: DemoProgress, check: Callable[[], None], on_frame: Callable[[], None]
) -> None:
    """Read releases and activations, as any consumer would, until all are there."""
    consumer = AIOKafkaConsumer(
        isolation_level="read_committed", enable_auto_commit=False, auto_offset_reset="earliest",
        **settings.connect("demo"),
    )  # fmt: skip
    await consumer.start()
    try:
        topics = (settings.releases, settings.activations)
        consumer.assign([TopicPartition(topic, p) for topic in topics for p in range(settings.partitions)])
        silent_since = time.monotonic()
        while not (progress.complete and await _at_end(consumer)):
            check()
            for records in (await consumer.getmany(timeout_ms=int(FRAME * 1000))).values():
                silent_since = time.monotonic()
                for record in records:
                    progress.take(record.value)
            if time.monotonic() - silent_since > PATIENCE:
                raise KafkaError(f"the worker published nothing for {PATIENCE:.0f} s; its log is worker.log")
            on_frame()
    finally:
        await consumer.stop()


async def _at_end(consumer: AIOKafkaConsumer) -> bool:
    ends = await consumer.end_offsets(consumer.assignment())
    return all([await consumer.position(tp) >= end for tp, end in ends.items()])


async def wait_for_log(progress: DemoProgress, worker: WorkerProcess) -> None:
    """Return when the audit log holds every release; it may be a moment behind the topic."""
    until = time.monotonic() + PATIENCE
    with Ledger.open(progress.config.audit.url) as ledger:
        while True:
            worker.check()
            logged: Counter[str] = Counter()
            for group, head in ledger.of(progress.config.kafka.app).heads().items():
                logged[group.version.metric] += head.seq
            if all(logged[metric] == len(releases) for metric, releases in progress.releases.items()):
                return
            if time.monotonic() > until:
                raise KafkaError("the audit log does not catch up with the topic; the worker's log is worker.log")
            await asyncio.sleep(FRAME)
