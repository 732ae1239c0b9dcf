"""Detects topics that were deleted and created again: they keep their name, and Kafka gives them another id.

Offsets cannot show this: a topic that was filled again, further than before, looks like the sequel of the old one. A
topic that has another id or more partitions, or is gone, causes a fail-stop. `metadata.py` has the request.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from aiokafka.errors import UnknownTopicOrPartitionError

from shoal.agents.kafka.metadata import MetadataRequest
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import admin
from shoal.agents.lost_records import changed_count, made_anew
from shoal.models.errors import FailStop, KafkaError
from shoal.stream.state_mark import ANEW

STATE_KEY = b"\x00topic"  # in a changelog: the id of the topic that the state was made of
ASK_EVERY = 5.0
MISSED_LIMIT = 3
UNKNOWN = UnknownTopicOrPartitionError.errno


class TopicId(NamedTuple):
    """The id that Kafka gave to a topic, and its number of partitions."""

    id: str
    partitions: int


async def ask(settings: KafkaSettings, topics: Iterable[str]) -> tuple[dict[str, TopicId], set[str]]:
    """The topics that exist, and the names of those that do not.

    Raises:
        KafkaError: no broker answers.
    """
    async with admin(settings) as client:
        response = await client._send_request(MetadataRequest(topics))
    ids = {
        name: TopicId(raw.hex(), len(partitions))
        for error, name, raw, _, partitions, *_ in response.topics
        if not error
    }
    return ids, {name for error, name, *_ in response.topics if error == UNKNOWN}


class TopicIds:
    """The ids that the topics had when this worker first asked, which must not change."""

    def __init__(self, settings: KafkaSettings, topics: Iterable[str], remedy: Callable[[str], str]) -> None:
        """`remedy`: what an operator can do about a topic that was made anew."""
        self._settings, self._topics, self._remedy = settings, tuple(topics), remedy
        self._known: dict[str, TopicId] = {}
        self._missed: Counter[str] = Counter()  # looks in a row in which a topic was not there

    async def learn(self) -> Mapping[str, TopicId]:
        """Ask, compare with what is known, and return it."""
        ids, missing = await ask(self._settings, self._topics)
        for topic, now in ids.items():
            self._check(topic, self._known.setdefault(topic, now), now)
        self._missed = Counter({topic: self._missed[topic] for topic in missing & self._known.keys()})
        return self._known

    def _check(self, topic: str, known: TopicId, now: TopicId) -> None:
        """Refuse a topic that was replaced, or grew."""
        if now.id != known.id:
            raise FailStop(f"{made_anew(topic)}; {self._remedy(topic)}")
        if now.partitions != known.partitions:
            raise FailStop(changed_count(topic, now.partitions, known.partitions))

    async def watch(self) -> None:
        """Ask for ever; brokers that do not answer are no answer.

        Raises:
            FailStop: a topic is another one, has other partitions, or was deleted: one look could be mistaken for that.
        """
        while True:
            await asyncio.sleep(ASK_EVERY)
            with contextlib.suppress(KafkaError):
                await self.learn()
                self.note_missing()

    def note_missing(self) -> None:
        """Count the topics that the last look did not find; refuse those that several looks did not find."""
        for topic in list(self._missed):
            self._missed[topic] += 1
            if self._missed[topic] >= MISSED_LIMIT:
                raise FailStop(f"topic {topic} was deleted; bring back the topics that belong together, or {ANEW}")
