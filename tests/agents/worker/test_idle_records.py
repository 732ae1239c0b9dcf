"""Idle records: as many as ticks need, none without use, and no tick that waits for one that never comes."""

import dataclasses
import time
from pathlib import Path

import orjson
from faust.types.tuples import TP
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.worker.idle_records import LastCommit, Pace, see
from shoal.models.records import Message
from shoal.stream.clock import TopicClocks
from shoal.stream.partitioning import PARTITIONERS
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits

IDLE_AFTER = 1_000
STEP = 10_000
HOUR = 20_000  # as good as one: much longer than IDLE_AFTER


@dataclasses.dataclass
class Owner:
    """One source partition and who owns it now; its clock counts steps."""

    pace: Pace
    number: int = 0
    mark: int | None = None  # how far its events are; a step is STEP
    clock_wall: int | None = None
    grown: int = 0
    said: int | None = None
    fresh: bool = False
    words: int = 0  # idle records

    def say(self, topic: TopicClocks, partition: int, wall: int, *, idle: bool) -> None:
        self.number += 1
        message = Message("t", partition, self.number, 0, wall, {"c": self.mark}, idle)
        topic.sources[partition].follows(message, "")
        topic.hear(message)

    def event(self, topic: TopicClocks, partition: int, wall: int, steps: int) -> None:
        self.fresh, self.grown = False, wall
        if steps or self.mark is None:
            self.mark, self.clock_wall = ((self.step or 0) + steps) * STEP, wall
        else:
            self.mark += 1
        self.say(topic, partition, wall, idle=False)

    @property
    def step(self) -> int | None:
        return None if self.mark is None else self.mark // STEP

    @property
    def seen(self) -> list[LastCommit]:
        """As others know it."""
        return [] if self.clock_wall is None else [LastCommit(self.number, self.clock_wall, self.grown)]

    def look(self, topic: TopicClocks, partition: int, wall: int, others: list[LastCommit]) -> None:
        if self.pace.is_due(wall, others, self.said, fresh=self.fresh):
            self.said, self.fresh, self.words = wall, True, self.words + 1
            self.say(topic, partition, wall, idle=True)


class Story:
    """Partitions that get events or none, are looked at every eighth of `idle_after`, and change hands."""

    def __init__(self, partitions: int, cadence: int) -> None:
        self.cadence, self.wall = cadence, 50_000
        self.topic = TopicClocks("t", partitions, IDLE_AFTER * 1000)
        self.owners = [Owner(Pace(IDLE_AFTER, cadence)) for _ in range(partitions)]
        self.away: set[int] = set()  # partitions whose owner is down

    def event(self, partition: int, steps: int) -> None:
        self.owners[partition].event(self.topic, partition, self.wall, steps)

    def take_over(self, partition: int) -> None:
        owner = self.owners[partition]
        self.away.discard(partition)
        owner.pace, owner.said, owner.fresh = Pace(IDLE_AFTER, self.cadence), None, False

    def passes(self, milliseconds: int) -> None:
        for _ in range(0, milliseconds, IDLE_AFTER // 8):
            self.wall += IDLE_AFTER // 8
            for partition, owner in enumerate(self.owners):
                if partition in self.away:
                    continue
                others = [seen for other in self.owners if other is not owner for seen in other.seen]
                owner.look(self.topic, partition, self.wall, others)

    @property
    def clock(self) -> int | None:
        """The step that all ticks before are closed of."""
        clock = self.topic.clock("c")
        return None if clock is None else clock // STEP

    @property
    def words(self) -> int:
        return sum(owner.words for owner in self.owners)


acts = st.one_of(
    st.tuples(st.just("event"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("take over"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("goes away"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("time"), st.integers(1, 4_000), st.just(0)),
)


@given(st.lists(acts, max_size=40), st.sampled_from([100, 1_000, HOUR]))
def test_no_tick_waits_for_ever_for_an_idle_partition(history: list[tuple[str, int, int]], cadence: int) -> None:
    # given any history of events, silence and takeovers of four partitions
    story = Story(4, cadence)
    for act, number, steps in history:
        if act == "event":
            story.event(number, steps)
        elif act == "goes away":
            story.away.add(number)
        elif act == "take over":
            story.take_over(number)
        else:
            story.passes(number)
    # when nothing comes any more, and whoever was down is replaced at last
    story.passes(3 * IDLE_AFTER + cadence)
    for partition in sorted(story.away):
        story.take_over(partition)
    story.passes(3 * IDLE_AFTER)
    # then every step that any of them reached is passed, as if idleness were repeated for ever
    reached = [owner.step for owner in story.owners if owner.step is not None]
    assert story.clock == max(reached, default=None)
    # and from then on nobody says anything
    said = story.words
    story.passes(20 * IDLE_AFTER)
    assert story.words == said


def test_events_within_a_step_cost_few_idle_records() -> None:
    # given one busy partition and three idle ones, with ticks of an hour
    story = Story(4, HOUR)
    story.event(0, 1)
    story.passes(3 * IDLE_AFTER)
    said = story.words
    # when events come for two hours that enter no new one, then the idle ones speak every quarter of an hour
    for _ in range(2 * HOUR // (IDLE_AFTER // 8)):
        story.event(0, 0)
        story.passes(IDLE_AFTER // 8)
    assert story.words <= said + 3 * 8
    # and one word of each lets the next hour pass, and that in time
    said = story.words
    story.event(0, 1)
    story.passes(2 * IDLE_AFTER)
    assert said + 3 <= story.words <= said + 6
    assert story.clock == story.owners[0].step


def test_a_tick_that_waited_for_an_owner_who_was_down_closes_when_one_is_there() -> None:
    # given two idle partitions, of one of which the owner is down, and a third one that goes on within its step
    story = Story(3, HOUR)
    story.event(0, 1)
    story.away.add(2)
    story.passes(2 * IDLE_AFTER)
    for _ in range(100):  # so long that release forgets when the step was entered
        story.event(0, 0)
        story.passes(IDLE_AFTER // 8)
    assert story.clock is None
    # when all is quiet, and the owner is replaced much later
    story.passes(HOUR)
    story.take_over(2)
    story.passes(2 * IDLE_AFTER)
    # then the step passes
    assert story.clock == story.owners[0].step


def test_steps_that_keep_coming_are_let_pass_in_time_and_at_a_bounded_pace() -> None:
    # given ticks that are shorter than `idle_after`, so that there is always a newer one
    story = Story(2, 100)
    for _ in range(400):
        story.event(0, 1)
        story.passes(IDLE_AFTER // 8)
        # then the clock is never behind by more than `idle_after`, its rounding, and a quarter
        assert story.owners[0].step is not None
        if story.owners[0].step > 20:
            assert (story.clock or 0) > story.owners[0].step - 16
    assert story.owners[1].words <= 400 * (IDLE_AFTER // 8) // (IDLE_AFTER // 4) + 1
    assert story.owners[0].words == 1  # before anybody had a clock


def test_a_partition_with_events_that_move_no_clock_is_not_said_idle_after_each() -> None:
    # given two partitions that both have something to say, and then only events of the past in one of them
    story = Story(2, 4 * IDLE_AFTER)
    story.event(0, 1)
    story.event(1, 1)
    story.passes(3 * IDLE_AFTER)
    said = story.words
    for _ in range(80):
        story.event(1, 0)
        story.passes(IDLE_AFTER // 8)
    # then both say so, each once in a quarter of the cadence
    assert said < story.words <= said + 2 * (80 // 8 + 1)


def test_what_owners_commit_is_read_as_steps_and_growth() -> None:
    tp = TP("events", 0)
    # an owner that tells no wall time is seen by its offsets
    first = see({}, {tp: (7, "")}, 1_000)
    assert first == {tp: LastCommit(7, 1_000, 1_000)}
    assert see(first, {tp: (7, "")}, 2_000) == first
    assert see(first, {tp: (8, "")}, 2_000) == {tp: LastCommit(8, 2_000, 2_000)}
    # one that does is seen by both
    told = see({}, {tp: (8, "1234")}, 2_000)
    assert told == {tp: LastCommit(8, 1_234, 1_234)}
    assert see(told, {tp: (9, "1234")}, 3_000) == {tp: LastCommit(9, 1_234, 3_000)}
    assert see(told, {tp: (8, "1300")}, 3_000) == {tp: LastCommit(8, 1_300, 1_234)}


def test_an_idle_app_writes_nothing_and_a_partition_that_wakes_late_still_counts(kafka: Kafka, tmp_path: Path) -> None:
    home = PARTITIONERS["murmur2"]
    with Deployment(kafka, tmp_path, {"group": "city"}, partitions=2, idle_after="1s") as shoals:
        # given events in all partitions but one, in two workers of which none knows all the others' partitions
        events = visits(400)
        in_third = [home(orjson.loads(event)["who"].encode(), 4) == 3 for event in events]
        early = [event for event, late in zip(events[:200], in_third, strict=False) if not late]
        shoals.oracle.run(early, "events", until_end=False)
        shoals.worker()
        shoals.worker()
        shoals.produce(early)
        shoals.wait_releases(len(shoals.oracle.releases()))
        assert shoals.releases() == shoals.oracle.releases()
        # when nothing comes for several times as long as makes a partition idle, then no topic of the app grows
        names = ("contributions", f"bound.{shoals.topic()}.changelog", "release.changelog")
        topics = [f"{shoals.app}.{name}" for name in names]
        time.sleep(3)  # clocks that were told just now are let pass once more
        before = [kafka.length(topic) for topic in topics]
        time.sleep(4)
        assert [kafka.length(topic) for topic in topics] == before
        # and when the last partition wakes up, under another worker, its events count as in a file
        shoals.workers[0].kill()
        shoals.workers[1].wait_owns(6)
        shoals.oracle.forget()
        shoals.oracle.run([*early, *events[200:]])
        shoals.produce(events[200:], end=True)
        shoals.expect_equality()
        shoals.stop_all()
