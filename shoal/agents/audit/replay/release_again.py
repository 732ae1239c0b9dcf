"""Recomputes the release stage of one contributions partition, and compares it with what was published."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from shoal.agents.audit.log import Group
from shoal.agents.audit.replay import matching
from shoal.agents.audit.replay.against_log import Logged
from shoal.models.records import Message
from shoal.models.version import VersionId
from shoal.stream.machine import Record
from shoal.stream.release import ReleasePartition

Batches = AsyncIterator[Sequence[Record]]


class ReleaseAgain:
    """A machine without state, fed from the first contribution on, and one matcher for each of its topics."""

    def __init__(
        self,
        machine: ReleasePartition,
        versions: dict[str, VersionId],
        releases: tuple[matching.ReleaseMatcher, Batches],
        activations: tuple[matching.ActivationMatcher, Batches],
        logged: Logged,
        written: int,
    ) -> None:
        self.machine = machine
        self.releases, self._releases_in_topic = releases
        self.activations, self._activations_in_topic = activations
        self._versions = versions  # of each metric
        self._logged, self._written = logged, written  # up to this offset activations are in the log
        self._required = 0  # releases that the next message's transaction must follow

    async def receive(self, message: Message, offset: int) -> None:
        """Take in the next message, and do what it makes due.

        Raises:
            FailStop: a message is missing before this one, or it is of an unknown metric.
        """
        self.machine.receive(message, offset)
        # A message and what it released at once are one transaction; ticks that it closed may be in the next ones.
        self._required = self.machine.published_count
        while self.machine.pending():
            self.machine.work(lambda: self.machine.backlog >= matching.AHEAD)
            if self.machine.pending():
                await self.compare()

    async def compare(self) -> None:
        """Compare what was made since the last call."""
        while (made := self.machine.take()) is not None:
            self.releases.expect(
                matching.ExpectedRecord(
                    (Group(self._versions[release.metric], release.group), release.seq),
                    release.record_key,
                    release.value,
                )
                for release in made.releases
            )
            self.activations.expect(
                matching.ExpectedRecord(name, release.record_key, release.value)
                for release in made.activations
                if (name := matching.name_of(self.activations.app, release.value, "level")) is not None
            )
        await self._match(self.releases, self._releases_in_topic)
        await self._match(self.activations, self._activations_in_topic)
        self._compare_log()

    async def _match(self, matcher: matching.Matcher, topic: Batches) -> None:
        matcher.settle()
        while matcher.hungry:
            records = await anext(topic, None)
            if records is None:
                matcher.skip_missing(self._required)
                break
            matcher.find(map(_found, records))
            matcher.settle()

    async def finish(self) -> None:
        """Judge the rest once all contributions were received: what is left of the topics is too much."""
        await self.compare()
        await _settle(self.releases, self._releases_in_topic)
        await _settle(self.activations, self._activations_in_topic)
        self.activations.finish(self.releases.finish(self._required))
        self._compare_log()

    def _compare_log(self) -> None:
        self._logged.releases([expected for expected, _ in self.releases.take_accepted()])
        for expected, offset in self.activations.take_accepted():
            self._logged.activations([expected], must=offset is not None and offset < self._written)


async def _settle(matcher: matching.Matcher, topic: Batches) -> None:
    """Read on in the topic, as far as it is compared."""
    matcher.settle(complete=True)
    while not matcher.over and (records := await anext(topic, None)) is not None:
        matcher.find(map(_found, records))
        matcher.settle(complete=True)


def _found(record: Any) -> matching.FoundRecord:
    return matching.FoundRecord(record.offset, record.key, record.value, record.headers)
