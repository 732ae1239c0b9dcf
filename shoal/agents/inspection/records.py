"""What is in the source topics: whether records are keyed by their users, are JSON, and can be read at all.

A sample of each partition is read and counted nowhere: the records that a worker would read next, and if there are few
of them, the last ones before. What is found is a warning, and keeps no worker from starting. Numbers of records are for
those who may see the events.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from aiokafka import TopicPartition

from shoal.agents import misplaced, open_transactions
from shoal.agents.audit.replay.scan import Scan
from shoal.agents.inspection.findings import Section
from shoal.agents.kafka.changelog import group_offsets
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import admin, kafka_errors
from shoal.agents.misplaced import Place, Share
from shoal.models.config.file import Config
from shoal.models.events import Refusal, parse, user_reader
from shoal.models.framings import Framing, framing_of
from shoal.stream.machine import Record
from shoal.stream.partitioning import PARTITIONERS

SAMPLE = 1_000  # offsets of a partition
LIMIT = 2.0  # seconds for a topic


@dataclass(slots=True)
class Sample:
    """Counts over the records of a topic that were looked at."""

    records: Counter[int] = field(default_factory=Counter)  # that have a user, by partition
    misplaced: Counter[int] = field(default_factory=Counter)
    framed: Counter[Framing] = field(default_factory=Counter)
    seen: int = 0  # that have a value
    keyless: int = 0  # misplaced ones without a key
    broken: int = 0  # neither JSON nor in a framing that is known

    def wrong(self, topic: str) -> dict[Place, Share]:
        """Partitions with a large share of misplaced records."""
        shares = {(topic, number): Share(count, self.misplaced[number]) for number, count in self.records.items()}
        return {place: share for place, share in shares.items() if share.is_large}


class Sampler:
    """Reads the users of a topic's records."""

    def __init__(self, config: Config, topic: str, partitions: int) -> None:
        metrics = config.metrics_of(topic)
        self.user = str(metrics[0].source.user)  # of all metrics of a topic
        self.sample = Sample()
        self._read_user = user_reader(self.user)
        self._home, self._partitions = PARTITIONERS[config.kafka.partitioner], partitions

    def look(self, partition: int, record: Record) -> None:
        """Count a record; beats and clock records have no value, and are passed over."""
        raw, sample = record.value, self.sample
        if raw is None:
            return
        sample.seen += 1
        event = parse(raw)
        if isinstance(event, Refusal):
            self._explain(raw, event.reason)
            return
        user = self._read_user(event, raw)
        if isinstance(user, Refusal):
            return
        sample.records[partition] += 1
        if self._home(user, self._partitions) != partition:
            sample.misplaced[partition] += 1
            sample.keyless += record.key is None

    def _explain(self, raw: bytes, reason: str) -> None:
        framing = framing_of(raw) if reason == "not-json" else None
        if framing is None:
            self.sample.broken += 1
        else:
            self.sample.framed[framing] += 1


async def look_at_records(settings: KafkaSettings, config: Config, counts: Mapping[str, int], found: Section) -> None:
    """Look at a sample of each topic, and at open transactions; `counts`: the partitions of each topic.

    Raises:
        KafkaError: brokers are away, or a right is missing.
    """
    for topic in config.topics:
        sampler = Sampler(config, topic, counts[topic])
        await _read(settings, topic, sampler, counts[topic])
        warnings = [*_warnings(topic, sampler, config.kafka.partitioner)]
        for text in warnings:
            found.warn(text)
        if not warnings:
            found.ok(f"{topic}: {_seen(sampler.sample)}")
    places = [(topic, number) for topic in config.topics for number in range(counts[topic])]
    async with admin(settings) as client:
        opened = await open_transactions.open_transactions(client, places)
    for one in opened:
        if time.time() - one.written >= open_transactions.LASTING:
            found.warn(f"{open_transactions.said(one)}; {open_transactions.remedy(one, settings.brokers)}")


async def _read(settings: KafkaSettings, topic: str, sampler: Sampler, partitions: int) -> None:
    """Give records of each partition to the sampler, as long as there is time."""
    tps, deadline = [TopicPartition(topic, number) for number in range(partitions)], time.monotonic() + LIMIT
    with kafka_errors(settings):
        committed = await group_offsets(settings, tps)
        async with Scan(settings) as scan:
            firsts, ends = await scan.first_offsets(tps), await scan.stable_ends(tps)
            for tp in tps:
                start = next_sample(firsts[tp], ends[tp], committed[tp])
                async for records in scan.read(tp, start, min(start + SAMPLE, ends[tp])):
                    for record in records:
                        sampler.look(tp.partition, record)
                    if time.monotonic() > deadline:
                        return


def next_sample(first: int, end: int, committed: int | None) -> int:
    """Where a sample begins: where a worker reads on, but at least 1,000 offsets before the end.

    >>> next_sample(0, 5000, None), next_sample(0, 5000, 300), next_sample(0, 5000, 4990), next_sample(40, 50, None)
    (0, 300, 4000, 40)
    """
    return max(first, min(first if committed is None else committed, end - SAMPLE))


def _warnings(topic: str, sampler: Sampler, partitioner: str) -> Iterator[str]:
    """What is wrong with a topic, each with what to do behind a semicolon."""
    sample = sampler.sample
    if wrong := sample.wrong(topic):
        keyless = f" ({sample.keyless:,} of them have no key)" if sample.keyless else ""
        yield f"{misplaced.said(wrong, sampler.user)}{keyless}; {misplaced.remedy(sampler.user, partitioner)}"
    for framing, count in sample.framed.most_common():
        yield f"{topic}: {count:,} of {sample.seen:,} records are not JSON but {framing.name}; {framing.remedy}"
    if Share(sample.seen, sample.broken).is_large:
        text = f"{topic}: {sample.broken:,} of {sample.seen:,} records are not JSON objects"
        yield f"{text}; look at the producer, and at them with `shoal dead-letters CONFIG --reason not-json`"


def _seen(sample: Sample) -> str:
    """What was looked at and found in order."""
    with_user, elsewhere = sample.records.total(), sample.misplaced.total()
    return (
        f"{sample.seen:,} records looked at, {with_user:,} have a user, {elsewhere:,} are not in the user's partition"
    )
