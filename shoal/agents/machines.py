"""The stream's machines as the Kafka layer hosts them: what they make becomes records of topics.

bound    of a source partition:  contributions, dead letters, changelog
release  of a contributions partition:  releases, activations, changelog
"""

import time
from collections.abc import Mapping, Sequence

from shoal.agents.machine import Outbox, Record
from shoal.agents.settings import KafkaSettings
from shoal.stream.bound import BoundPartition
from shoal.stream.release import ReleasePartition


class BoundMachine:
    """One source partition."""

    def __init__(self, settings: KafkaSettings, state: BoundPartition) -> None:
        self.state = state
        self.fresh = True  # no state was found: the partition must never have committed
        self._settings = settings
        self._source = f"{state.plan.topic}|{state.partition}".encode()

    @property
    def next_offset(self) -> int | None:
        """First source offset not covered."""
        return self.state.next_offset

    @property
    def counted(self) -> bool:
        """Whether the state was restored from one that says what it holds."""
        return self.state.counted

    @property
    def backlog(self) -> int:
        """Events processed and not taken."""
        return self.state.backlog

    def restore(self, items: Mapping[bytes, bytes]) -> None:
        """Take the changelog's last values."""
        self.fresh = not items
        self.state.restore(items)

    def start(self, offset: int) -> None:
        """Begin without state."""
        self.state.start(offset)

    def process(self, records: Sequence[Record], end: int) -> None:
        """Take events."""
        self.state.process(records, end)

    def idle(self, wall_ms: int) -> None:
        """Nothing more at this wall time."""
        self.state.idle(wall_ms)

    def pending(self) -> bool:
        """Never: an event's work is done when it is processed."""
        return False

    def work(self, budget_ms: float) -> None:
        """Nothing."""

    def take(self, max_records: int) -> Outbox | None:
        """A transaction: changed accounts, messages, dead letters."""
        bound = self.state.take(int(time.time() * 1000))
        if bound is None:
            return None
        outbox = Outbox(bound.next_offset, bound.changelog, events=bound.events)
        for home, message in bound.messages:
            place = (self._settings.contributions, home)
            outbox.records.setdefault(place, []).append((self._source, message.encode(), []))
        if bound.dead_letters:
            place = (self._settings.dead_letters, self.state.partition % self._settings.partitions)
            outbox.records[place] = [(self._source, letter, []) for letter in bound.dead_letters]
        return outbox

    def committed(self, outbox: Outbox) -> None:
        """Nothing to do."""

    def lookup(self, key: bytes) -> bytes | None:
        """An account's present changelog value."""
        return self.state.lookup(key)


class ReleaseMachine:
    """One contributions partition."""

    def __init__(self, settings: KafkaSettings, state: ReleasePartition) -> None:
        self.state = state
        self.fresh = True  # no state was found: the partition must never have committed
        self._settings = settings

    @property
    def next_offset(self) -> int | None:
        """First contributions offset not covered."""
        return self.state.next_offset

    @property
    def counted(self) -> bool:
        """Whether the state was restored from one that says what it holds."""
        return self.state.counted

    @property
    def backlog(self) -> int:
        """Messages and releases not taken."""
        return self.state.backlog

    def restore(self, items: Mapping[bytes, bytes]) -> None:
        """Take the changelog's last values."""
        self.fresh = not items
        self.state.restore(items)

    def start(self, offset: int) -> None:
        """Begin without state."""
        self.state.start(offset)

    def process(self, records: Sequence[Record], end: int) -> None:
        """Take messages."""
        self.state.process(records, end)

    def idle(self, wall_ms: int) -> None:
        """Clocks come with the messages; silence says nothing."""

    def pending(self) -> bool:
        """Messages to read, or ticks to close."""
        return self.state.pending()

    def work(self, budget_ms: float) -> None:
        """Some of it."""
        until = time.perf_counter() + budget_ms / 1000
        self.state.work(lambda: time.perf_counter() >= until)

    def take(self, max_records: int) -> Outbox | None:
        """A transaction: releases to the partition of the same number, activations beside them, state."""
        released = self.state.take()
        if released is None:
            return None
        outbox = Outbox(released.next_offset, released.changelog, events=released.events)
        if released.releases:
            outbox.records[self._settings.releases, self.state.partition] = [
                (release.record_key, release.value, list(release.headers)) for release in released.releases
            ]
        if released.activations:
            outbox.records[self._settings.activations, self.state.partition] = [
                (activated.record_key, activated.value, []) for activated in released.activations
            ]
        return outbox

    def committed(self, outbox: Outbox) -> None:
        """Nothing to do."""

    def lookup(self, key: bytes) -> bytes | None:
        """Heads are made when a transaction is: between two, there is nothing to look up."""
        return None
