"""When the bound stage makes transactions: at once where release waits for one, seldom where nobody does.

Time is that of a loop that sleeps in no time. What Kafka does with transactions is tested with brokers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.transport import Batch
from shoal.agents.worker import partition as worker_partition
from shoal.agents.worker.outbox import BoundMachine, ReleaseMachine
from shoal.agents.worker.partition import MOST_RESTS, Partition
from shoal.models.config.file import Config
from shoal.models.records import BEAT_HEADER, CLOCK_HEADER
from shoal.models.times import iso
from shoal.stream.file_run import Line
from shoal.stream.guard import PublishedBefore
from shoal.stream.machine import Outbox, StagePartition
from shoal.stream.topic import plan_topic
from tests.agents.worker.test_partition import Written
from tests.stream.simulation import SECRET, STAMP, config, event
from tests.support.effort import examples

HOURLY = {"algorithm": "naive", "every": "1h"}
EACH = {"algorithm": "naive", "every": "contribution"}
SLOTTED = {"statistic": "mean", "slot": "20m", "group": "g", "max_groups": 2, "algorithm": "baseline",
           "epsilon": 5000, "unit": "user", "max_slots": 9}  # fmt: skip
HOUR = 3600
PLACE = StagePartition(BOUND, "events", 0)
TINY = 1e-6  # seconds by which sums of floats may differ


class SleeplessLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to where its next timer is, in place of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def jump(timeout: float | None) -> Any:
            assert timeout is not None, "everything waits for ever"
            self.now += timeout
            return select(0)

        selector.select = jump

    def time(self) -> float:
        return self.now


class Clocked(Written):
    """Notes when it was given what to commit."""

    loop: SleeplessLoop

    async def write(self, outbox: Outbox) -> None:
        self.times = [*getattr(self, "times", []), self.loop.now]
        await super().write(outbox)


class Stage:
    """One source partition and its transactions, in the time of a loop."""

    def __init__(self, cfg: Config, loop: SleeplessLoop, latency: float, *, hides_presence: bool = False) -> None:
        self.settings = KafkaSettings(
            "localhost:1", "app", latency=latency, cadence=cfg.cadence / 1e6, hides_presence=hides_presence
        )
        plan = plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=2)
        self.machine = BoundMachine(self.settings, plan, 0)
        self.writer = Clocked(self.settings)
        self.writer.loop = self.loop = loop
        self.partition = Partition(self.settings, PLACE, self.machine, self.writer)
        self.partition.inbox.share = 1 << 30
        self.partition.begin(0, durable=False)
        self.machine.start(0)
        self.partition.run()
        self.end = 0

    async def take_in(self, *records: bytes | tuple[str, int]) -> None:
        """Process records: events, or headers with a time in seconds."""
        lines = list[Line]()
        for record in records:
            headers = () if isinstance(record, bytes) else ((record[0], iso(record[1] * 10**6).encode()),)
            value = record if isinstance(record, bytes) else None
            lines.append(Line(self.end + len(lines), value, timestamp=STAMP, headers=headers))
        self.partition.accept(Batch(self.end, self.end + len(lines), lines))
        self.end += len(lines)
        while self.partition.position < self.end:
            await asyncio.sleep(0)
        for _ in range(5):  # until the other task has heard of it
            await asyncio.sleep(0)

    def written_at(self, offset: int) -> float | None:
        """When the record before this offset was committed; None: not yet."""
        found = zip(self.writer.covered, getattr(self.writer, "times", ()), strict=True)
        return next((time for covered, time in found if covered >= offset), None)


def play(story: Callable[[SleeplessLoop], Awaitable[None]]) -> None:
    """Run a story in the time of its own loop."""
    loop = SleeplessLoop()
    clocks = SimpleNamespace(monotonic=loop.time, perf_counter=loop.time, process_time=lambda: 0.0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker_partition, "time", clocks)
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(story(loop))  # type: ignore[arg-type]


def test_what_follows_from_the_promise() -> None:
    of_a_second = KafkaSettings("b", "a", latency=1.0, cadence=3600.0)
    assert (of_a_second.fetch_wait, of_a_second.rest, of_a_second.gather) == (0.25, 0.25, 10.0)
    of_short_ticks = KafkaSettings("b", "a", latency=0.2, cadence=2.0)
    assert (of_short_ticks.fetch_wait, of_short_ticks.rest) == (0.05, 0.05)
    # a tick of 200 ms ends with an awaited transaction, so that others may gather over several
    assert (of_short_ticks.gather, KafkaSettings("b", "a", latency=0.2, cadence=0.2).gather) == (10.0, 2.0)
    # four fetches pass between two looks at idle partitions, however short those are
    assert KafkaSettings("b", "a", latency=1.0, idle_after=1.0).fetch_wait == 1 / 32
    # and nobody gathers for less time than those rest for whom others wait
    assert KafkaSettings("b", "a", latency=60.0, cadence=3600.0).gather == 60.0


steps = st.lists(
    st.tuples(st.sampled_from(["event", "event", "step", "idle", "clock"]), st.floats(0.0, 3.0)), max_size=25
)


@examples(60)
@given(steps=steps, latency=st.sampled_from([0.05, 0.2, 1.0, 20.0]), at_end=st.sampled_from(["drain", "wait"]))
def test_what_is_awaited_is_written_within_a_rest_and_all_else_within_the_gathering(
    steps: Sequence[tuple[str, float]], latency: float, at_end: str
) -> None:
    async def story(loop: SleeplessLoop) -> None:
        stage = Stage(config(HOURLY), loop, latency)
        s, now, hour = stage.settings, 0, 0
        processed: list[tuple[int, float, bool]] = []  # offset after it, when, whether release waits for it
        for kind, pause in steps:
            await asyncio.sleep(pause)
            now += 1
            if kind == "idle":
                stage.partition.idle(1)
                processed.append((stage.end, loop.now, stage.end > 0))
                continue
            hour += kind != "event"
            time = hour * HOUR + now
            await stage.take_in(event("a", 1, time) if kind != "clock" else (CLOCK_HEADER, time))
            processed.append((stage.end, loop.now, kind != "event" or len(processed) == 0))
        if at_end == "drain":
            await stage.partition.drain()
            assert stage.partition.committed == stage.end, "who goes writes at once what it has"
        else:
            await asyncio.sleep(s.gather + s.rest + TINY)
        for offset, at, is_awaited in processed:
            written = stage.written_at(offset)
            assert written is not None or offset == 0
            if written is not None and written > at:
                assert written <= at + (MOST_RESTS * s.rest if is_awaited else s.gather + MOST_RESTS * s.rest) + TINY
        await stage.partition.close()

    play(story)


def test_an_event_that_enters_no_step_waits_for_one_that_does() -> None:
    async def story(loop: SleeplessLoop) -> None:
        stage = Stage(config(HOURLY), loop, 1.0)
        await stage.take_in(event("a", 1, 10))  # the first word of a partition, which all others wait for
        await asyncio.sleep(1.0)
        assert stage.writer.covered == [1]
        # when events of the same hour come
        await stage.take_in(event("a", 1, 20))
        await asyncio.sleep(5.0)
        assert stage.writer.covered == [1], "nobody waits for it"
        # and then one of the next
        await stage.take_in(event("a", 1, HOUR + 1))
        assert stage.writer.covered == [1, 3]
        # and where none comes, they are written when the gathering ends
        await stage.take_in(event("a", 1, HOUR + 2))
        await asyncio.sleep(9.9)
        assert stage.writer.covered == [1, 3]
        await asyncio.sleep(0.2)
        assert stage.writer.covered == [1, 3, 4]
        # and that delays no hour that begins just after it
        await stage.take_in(event("a", 1, 2 * HOUR + 1))
        assert stage.writer.covered == [1, 3, 4, 5]
        # while the next one waits for the rest between two that are awaited
        await stage.take_in(event("a", 1, 3 * HOUR + 1))
        assert stage.writer.covered == [1, 3, 4, 5]
        await asyncio.sleep(0.26)
        assert stage.writer.covered == [1, 3, 4, 5, 6]
        await stage.partition.close()

    play(story)


@pytest.mark.parametrize(
    ("metrics", "record"),
    [
        ((HOURLY, EACH), event("a", 1, 20)),  # a release per contribution, beside one per hour
        ((HOURLY, SLOTTED), event("a", 1, 1300, g="x")),  # the end of a slot, within an hour
        ((HOURLY, HOURLY | {"every": "1m"}), event("a", 1, 70)),
        ((HOURLY,), (BEAT_HEADER, HOUR + 1)),
        ((HOURLY,), (CLOCK_HEADER, HOUR + 1)),
    ],
)
def test_whatever_lets_release_go_on_is_written_at_once(metrics: Any, record: Any) -> None:
    async def story(loop: SleeplessLoop) -> None:
        stage = Stage(config(*metrics), loop, 1.0)
        await stage.take_in(event("a", 1, 10, g="x"))
        await asyncio.sleep(1.0)
        await stage.take_in(record)
        assert stage.writer.covered == [1, 2]
        await stage.partition.close()

    play(story)


@pytest.mark.parametrize("before", [{}, {"m0/1": {"another": 3}}], ids=["published", "withheld"])
def test_release_is_awaited_for_what_it_publishes_or_withholds(before: dict[str, dict[str, int]]) -> None:
    # given a partition of the contributions, whose releases the audit log may have had before
    plan = plan_topic(config(HOURLY), "events", SECRET, source_partitions=1, contributions_partitions=1)
    settings = KafkaSettings("b", "a", partitions=1)
    published = PublishedBefore(before, lambda *_: None)
    release = ReleaseMachine(settings, [plan], 0, idle_after=1, published_before=published)
    bound = BoundMachine(settings, plan, 0)
    release.start(0)
    bound.start(0)
    # when a tick is over, then it is awaited, and not before
    for offset, time in enumerate((10, HOUR + 10)):
        bound.process([Line(offset, event("a", 1, time), timestamp=STAMP)], offset + 1)
        taken = bound.take(1)
        assert taken is not None
        for _, message in taken.messages:
            release.receive(message)
        release.work()
        assert release.is_awaited == (time > HOUR)
    assert bool(release.withheld) == bool(before)


def test_where_presence_is_protected_the_pause_does_not_follow_the_load() -> None:
    def pauses(*, hides_presence: bool) -> list[float]:
        found = []

        async def story(loop: SleeplessLoop) -> None:
            stage = Stage(config(HOURLY), loop, 1.0, hides_presence=hides_presence)
            for worked in (0.0, 1.0):
                for number in range(20):
                    stage.partition._rests.flushed(0.5, loop.now + number, worked * (loop.now + number))
                found.append(stage.partition._pause)
            await stage.partition.close()

        play(story)
        return found

    assert pauses(hides_presence=True) == [0.25, 0.25]
    seldom, often = pauses(hides_presence=False)
    assert seldom < often == MOST_RESTS * 0.25
