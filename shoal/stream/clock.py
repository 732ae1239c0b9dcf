"""Clocks: how far event time has got, over all partitions of a topic, as the log alone tells it.

A source partition speaks through its messages: a watermark per clock, the wall time of writing, and whether it had
nothing more at that wall time (idle). A tick closes once the topic's clock has passed its end.

    clock = min over all registered partitions i of reach(i);  one that never spoke holds everything up
    reach(i) = watermark(i)                                                       while i has events
    reach(i) = max(watermark(i), max_j watermark(j) as written by wall(i) - idle_after)   while i is idle

An idle partition thus lets older clocks pass and nothing newer than its own word; once all are idle, and have repeated
it for `idle_after`, the clock is the maximum watermark.

A clock that goes by beats is the minimum alone: whether a partition is idle says whether somebody is there. It also
waits for the beats of all other topics that are read, so that the ticks of all metrics have one order, that of beats;
else it would be that in which load lets topics be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.models.errors import FailStop
from shoal.models.records import Message
from shoal.stream.state_mark import ANEW, lacks

# Wall times of past watermarks are kept in steps of idle_after / 4, rounded up: a coarser past holds clocks back
# a little longer and can never let one pass too early.
STEPS = 4
KEPT = 3  # lengths of idle_after for which the past is kept


@dataclass(slots=True)
class SourceClock:
    """What one source partition has said so far."""

    number: int = 0  # of its last message
    watermarks: dict[str, int | None] = field(default_factory=dict)
    idle_wall: int | None = None
    past: dict[str, list[list[int]]] = field(default_factory=dict)  # clock -> [wall, watermark], oldest first
    offset: int | None = None  # what its last message says, as the next; not kept in the state
    turn: int = 0

    def follows(self, message: Message, where: str, *, waits: bool = False) -> bool:
        """Whether a message is the next one, which it then was; if not, it was here before.

        waits: of some metric samples wait at the source, until their slot is over.

        Raises:
            FailStop: a message is missing before it, or the source has lost its state or gone back to an older one.
        """
        if message.number == 1 and self.number:
            raise FailStop(
                f"{where}: topic {message.topic}, partition {message.partition} begins again at its first message "
                f"after {self.number}; its state is lost, and its users would start again at count 0: restore the "
                f"changelog, or {ANEW}"
            )
        if message.number <= self.number:
            if waits or self._may_differ(message):
                before = "an offset that is not known any more" if self.offset is None else f"offset {self.offset}"
                raise FailStop(
                    f"{where}: message {message.number} of topic {message.topic}, partition {message.partition} came "
                    f"again, up to its offset {message.offset}, after message {self.number}, up to {before}; its state "
                    f"is older than its messages, and would count again what has counted: restore the changelog, or "
                    f"{ANEW}"
                )
            return False
        if message.number != self.number + 1:
            raise FailStop(
                f"{where}: message {message.number} of topic {message.topic}, partition {message.partition} (its "
                f"offset {message.offset}) where {self.number + 1} was due; a message is lost: do not go on, find out "
                "whether a topic was re-created or truncated"
            )
        self.number, self.offset, self.turn = message.number, message.offset, message.turn
        return True

    def _may_differ(self, message: Message) -> bool:
        """Whether a message that is here again may be about other events, and so those after it.

        A source whose state is older than its messages writes their numbers again, but what they cover depends on how
        its transactions are cut this time: the messages after them may count again what has counted. Whoever has read
        the same events by the same number has sent the same, so the last number decides. It decides nothing in the
        middle of a transaction, whose further messages are about the same events; clocks stand in the last one alone.
        Nor is it enough where samples wait: when they were sent depends on how transactions were cut, too.
        """
        if message.number < self.number:
            return self.offset is not None and (message.turn > self.turn or message.offset > self.offset)
        return (message.turn, message.offset) != (self.turn, self.offset) or message.watermarks is None

    def hear(self, message: Message, idle_after_ms: int) -> None:
        """Take in a message's clock."""
        if message.watermarks is None:
            self.idle_wall = None
            return
        step = max(1, idle_after_ms // STEPS)
        wall = -(-message.wall // step) * step
        for clock, watermark in message.watermarks.items():
            if watermark is not None and watermark != self.watermarks.get(clock):
                self._remember(clock, wall, watermark, wall - KEPT * idle_after_ms)
            self.watermarks[clock] = watermark
        self.idle_wall = message.wall if message.idle else None

    def _remember(self, clock: str, wall: int, watermark: int, forget: int) -> None:
        past = self.past.setdefault(clock, [])
        if past and past[-1][0] >= wall:
            past[-1][1] = watermark
            return
        past.append([wall, watermark])
        while len(past) > 1 and past[1][0] <= forget:
            past.pop(0)

    def as_of(self, clock: str, wall: int) -> int | None:
        """The watermark as written by a wall time."""
        found = None
        for written, watermark in self.past.get(clock, ()):
            if written > wall:
                break
            found = watermark
        return found

    def dump(self) -> list[Any]:
        """JSON-able state."""
        return [self.number, self.watermarks, self.idle_wall, self.past]


class TopicClocks:
    """All source partitions of one topic."""

    def __init__(self, topic: str, partitions: int, idle_after_us: int) -> None:
        self.topic = topic
        self.idle_after_ms = max(1, idle_after_us // 1000)
        self.sources = [SourceClock() for _ in range(partitions)]

    def hear(self, message: Message) -> None:
        """Take in a message's clock."""
        self.sources[message.partition].hear(message, self.idle_after_ms)

    def clock(self, name: str) -> int | None:
        """The topic's clock; None while a partition has never spoken."""
        lowest: int | None = None
        for source in self.sources:
            reach = source.watermarks.get(name)
            if source.idle_wall is not None:
                reach = self._passed(name, source.idle_wall - self.idle_after_ms, reach)
            if reach is None:
                return None
            lowest = reach if lowest is None else min(lowest, reach)
        return lowest

    def ahead(self) -> set[int]:
        """Partitions that are ahead of the slowest in every clock, while that one has events: pacing holds them."""
        names = {name for source in self.sources for name in source.watermarks}
        ahead = set(range(len(self.sources)))
        for name in names:
            reached = [source.watermarks.get(name) for source in self.sources]
            lowest = min((mark for mark in reached if mark is not None), default=None)
            slowest = [index for index, mark in enumerate(reached) if mark is None or mark == lowest]
            if any(self.sources[index].idle_wall is not None for index in slowest):
                return set()  # nobody waits for an idle one longer than `idle_after`
            ahead -= set(slowest)
        return ahead if names else set()

    def _passed(self, name: str, wall: int, own: int | None) -> int | None:
        found = [watermark for source in self.sources if (watermark := source.as_of(name, wall)) is not None]
        if own is not None:
            found.append(own)
        return max(found, default=None)

    def dump(self) -> list[list[Any]]:
        """JSON-able state."""
        return [source.dump() for source in self.sources]

    def load(self, dumped: list[list[Any]], where: str) -> None:
        """Restore what `dump` gave.

        Raises:
            FailStop: it is of another number of partitions.
        """
        if len(dumped) != len(self.sources):
            raise FailStop(
                f"{where}: its state knows {len(dumped)} partitions of topic {self.topic}, there are "
                f"{len(self.sources)}; a changed count re-hashes users: use a new topic and version"
            )
        self.sources = [SourceClock(*fields) for fields in dumped]


class Clocks(dict[str, TopicClocks]):
    """The clocks of all topics, by name: those that are read, and those whose metrics are all retired.

    Of the latter no metric needs a clock, but a later configuration may go on with the topic, and must know then which
    messages were there.
    """

    def __init__(
        self, topics: Mapping[str, int], idle_after_us: int, beats: Mapping[str, Mapping[str, int]] | None = None
    ) -> None:
        """`topics`: partitions of each; `beats`: of each that has them, its clocks that go by them, with lateness."""
        super().__init__({topic: TopicClocks(topic, count, idle_after_us) for topic, count in topics.items()})
        self._beats = beats or {}

    def reached(self, topic: str, name: str, *, beats: bool = False) -> int | None:
        """How far ticks may be closed that go by a clock of a topic; None: not at all yet."""
        if not beats:
            return self[topic].clock(name)
        found = [self.last_beat(other, index) for other in self._beats for index in range(len(self[other].sources))]
        heard = [beat for beat in found if beat is not None]
        return None if len(heard) < len(found) else min(heard) - self._beats[topic][name]

    def marks(self, topic: str, name: str, *, beats: bool = False) -> list[int | None]:
        """How far each partition of a topic is, by one clock; None: it has said nothing."""
        if not beats:
            return [source.watermarks.get(name) for source in self[topic].sources]
        found = (self.last_beat(topic, index) for index in range(len(self[topic].sources)))
        return [None if beat is None else beat - self._beats[topic][name] for beat in found]

    def hold_up(self, topic: str, beat: int | None) -> list[tuple[str, int]]:
        """Partitions of other topics that have not had a beat of this time yet, or none at all where that is None."""
        found = []
        for other in self._beats.keys() - {topic}:
            for index in range(len(self[other].sources)):
                last = self.last_beat(other, index)
                if last is None or (beat is not None and last < beat):
                    found.append((other, index))
        return sorted(found)

    def last_beat(self, topic: str, index: int) -> int | None:
        """The last beat of a partition; a clock that is new is told with the next message, and others are known."""
        marks = self[topic].sources[index].watermarks
        told = ((marks.get(name), lateness) for name, lateness in self._beats[topic].items())
        return max((mark + lateness for mark, lateness in told if mark is not None), default=None)

    def of(self, topic: str, where: str) -> TopicClocks:
        """A topic's clocks.

        Raises:
            FailStop: the topic is neither read nor retired.
        """
        if topic not in self:
            raise FailStop(lacks(where, f"topic {topic}"))
        return self[topic]
