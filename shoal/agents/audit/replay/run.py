"""Replay: recomputes every release from the contributions and the key, and compares it with topic and audit log.

Nothing is written, and workers may run meanwhile: each contributions partition is replayed up to the offset that its
release stage had committed, and with `from_events` each source partition up to the offset of its bound stage. Fails if
brokers, topics or SQL are away; a release that is not what it must be is a finding, not an error.

The order of reading keeps younger records from being taken for forged, and older ones for missing: the audit log first,
then the ends of releases and activations, the marks of the stages, and the ends of the contributions.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiokafka import TopicPartition

from shoal.agents.audit.replay.against_log import Logged
from shoal.agents.audit.replay.agreed import Agreed
from shoal.agents.audit.replay.bound_again import BoundAgain, Promises
from shoal.agents.audit.replay.contributions import SentRows, compare
from shoal.agents.audit.replay.matching import ActivationMatcher, Findings, ReleaseMatcher
from shoal.agents.audit.replay.release_again import ReleaseAgain
from shoal.agents.audit.replay.scan import Scan, partition_counts
from shoal.agents.audit.session import Session, former_topics
from shoal.agents.audit.verify import Finding
from shoal.agents.kafka.changelog import Reader, group_offsets
from shoal.agents.kafka.settings import BOUND, RELEASE, KafkaSettings, need_kafka
from shoal.agents.kafka.topics import kafka_errors
from shoal.agents.lost_records import accepted, turn_of
from shoal.models.config.file import Config
from shoal.models.digests import FIRST
from shoal.models.errors import FailStop, KafkaError
from shoal.models.losses import AcceptedLoss
from shoal.models.records import Message
from shoal.stream.foreign_records import read_message
from shoal.stream.machine import Record, StagePartition
from shoal.stream.release import ReleasePartition
from shoal.stream.state_mark import MARK
from shoal.stream.topic import TopicPlan, plan_topic

Progress = Callable[[int, int], None]  # records read, records to read
Way = tuple[str, int, int]  # source topic, its partition, contributions partition


@dataclass
class ReplayReport:
    """The result of a replay."""

    releases: int = 0  # in the topic, of the versions that were replayed
    confirmed: int = 0  # of these, equal to the recomputed release: bytes, order, key and header
    activations: int = 0  # likewise confirmed
    findings: list[Finding] = field(default_factory=list)  # what is not as it must be
    notes: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.findings


async def replay(
    session: Session,
    settings: KafkaSettings,
    *,
    from_events: bool = False,
    kernel: Any = None,
    on_progress: Progress = lambda done, total: None,
) -> ReplayReport:
    """Recompute all releases, compare, and report; `from_events` recomputes the contributions too.

    Events go by the twin, which is the specification, unless there is a `kernel`.

    Raises:
        AuditError: there is nothing in Kafka to replay: the app has run over files only, or not at all.
        KafkaError: brokers do not answer, or a topic is missing.
        LedgerError: a metric is active in the ledger and missing in the configuration.
        ConfigError: workers have published, and the configuration names no brokers.
    """
    agreed = Agreed(session)
    need_kafka(session.config, session.path)
    with kafka_errors(settings):
        return await _Replay(session, settings, agreed, kernel, on_progress).run(from_events=from_events)


@dataclass
class _Span:
    """A partition from its first offset up to where it is replayed."""

    first: int
    end: int
    mark: dict[str, Any] | None  # of the stage that reads it; None: it committed nothing
    there: int = 0  # the topic's end
    raw_mark: bytes = b""
    sound: bool = True  # False: its mark is not ours, or what it needs is gone; it is not replayed


class _Replay:
    """One replay under way."""

    def __init__(
        self, session: Session, settings: KafkaSettings, agreed: Agreed, kernel: Any, on_progress: Progress
    ) -> None:
        self.session, self.settings, self.agreed, self.kernel = session, settings, agreed, kernel
        self.report, self.findings = ReplayReport(), Findings()
        self.homes = agreed.counts[settings.contributions]
        self.plans = {topic: self._plan(topic, agreed.config) for topic in agreed.config.topics}
        self.sources: dict[str, list[_Span]] = {}
        self.yielded: dict[Way, SentRows] = {}  # by the events
        self.sent: dict[Way, SentRows] = {}  # in the topic
        self.promises: dict[tuple[str, int], Promises] = {}  # after a source partition's last event
        self.gapped: dict[tuple[str, int], Set[str]] = {}  # metrics of which it lost records
        self.losses: list[AcceptedLoss] = []
        self._on_progress, self._done, self._total = on_progress, 0, 0

    def _plan(self, topic: str, config: Config) -> TopicPlan:
        return plan_topic(
            config,
            topic,
            self.session.key.secret,
            source_partitions=self.agreed.counts[topic],
            contributions_partitions=self.homes,
            retired=frozenset(version.label for version in self.agreed.retired),
        )

    async def run(self, *, from_events: bool) -> ReplayReport:
        for kind, message in self.agreed.differences:
            self.findings.add(kind, "configuration", message)
        for message in self.agreed.left_out:
            self.findings.add("skipped", "configuration", message, failure=False)
        await self._check_topics(from_events)
        self.logged = Logged(self.session.app_ledger, self.agreed.active, self.findings)
        async with AsyncExitStack() as stack:
            self.reader = await stack.enter_async_context(Reader(self.settings))
            batches = {} if self.kernel is None else dict.fromkeys(self.plans, self.kernel.RecordBatch)
            self.scans = [await stack.enter_async_context(Scan(self.settings, batches)) for _ in range(3)]
            await self._everything(from_events)
        findings = self.findings.all()
        self.report.findings = [finding for finding in findings if finding.failure]
        self.report.notes = [finding for finding in findings if not finding.failure]
        return self.report

    async def _check_topics(self, from_events: bool) -> None:
        s = self.settings
        needed = [s.contributions, s.releases, s.activations, s.changelog(RELEASE, s.contributions)]
        if from_events:
            needed += [*self.plans, *(s.changelog(BOUND, topic) for topic in self.plans)]
        counts = await partition_counts(s, needed)
        for topic in needed:
            agreed = self.agreed.counts.get(topic, counts[topic])
            if counts[topic] != agreed:
                raise KafkaError(
                    f"topic {topic} has {counts[topic]} partitions and is registered with {agreed}; restore the count"
                )

    async def _everything(self, from_events: bool) -> None:
        s = self.settings
        written = await self._written()
        topics = (s.contributions, s.releases, s.activations)
        ends = await self.scans[0].stable_ends(TopicPartition(topic, p) for topic in topics for p in range(self.homes))
        if from_events:
            for topic, plan in self.plans.items():
                if topic in s.compacted:
                    message = "a compacted topic may have lost events: its contributions are not recomputed"
                    self.findings.add("compacted", topic, message, failure=False)
                else:
                    self.sources[topic] = await self._spans(BOUND, topic, plan.source_partitions, ends_with_mark=True)
        homes = await self._spans(RELEASE, s.contributions, self.homes, ends_with_mark=not from_events)
        self.losses = self.session.app_ledger.losses()  # after the marks, which may know of them
        self._total = sum(max(0, span.end - span.first) for spans in (homes, *self.sources.values()) for span in spans)
        for topic, spans in self.sources.items():
            for partition, span in enumerate(spans):
                await self._events(topic, partition, span)
        followed = [await self._home(p, span, ends, written[p]) for p, span in enumerate(homes)]
        self.logged.finish(complete=all(followed))
        for topic, spans in self.sources.items():
            for partition, span in enumerate(spans):
                self._compare_sent(topic, partition, span, [p for p, whole in enumerate(followed) if whole])

    def _advance(self, records: int) -> None:
        self._done += records
        self._on_progress(min(self._done, self._total), self._total)

    # ---------------------------------------------------------------- where the stages were

    async def _written(self) -> dict[int, int]:
        """The offsets up to which the audit stage says that SQL has the activations of each partition."""
        tps = [TopicPartition(self.settings.activations, p) for p in range(self.homes)]
        return {tp.partition: offset or 0 for tp, offset in (await group_offsets(self.settings, tps)).items()}

    async def _spans(self, stage: str, topic: str, count: int, *, ends_with_mark: bool) -> list[_Span]:
        """Each partition, up to what its stage has committed or up to the end of the log."""
        changelogs = [TopicPartition(self.settings.changelog(stage, topic), p) for p in range(count)]
        bounds = await self.reader.bounds(changelogs)
        last = [await self.reader.last_committed(tp, bounds[tp]) for tp in changelogs]
        inputs = await self.reader.bounds(TopicPartition(topic, p) for p in range(count))
        spans = []
        for p, record in enumerate(last):
            first, end = inputs[TopicPartition(topic, p)]
            mark = self._mark(changelogs[p], record)
            committed = first if not mark else mark["offset"]
            raw = (record.value if record is not None and mark else None) or b""
            spans.append(_Span(first, committed if ends_with_mark else end, mark or None, end, raw, sound=mark != {}))
        return spans

    def _mark(self, tp: TopicPartition, record: Record | None) -> dict[str, Any] | None:
        """Every transaction of a stage ends its part of the changelog with its mark; empty if this is none of ours."""
        if record is None:
            return None
        mark: dict[str, Any] = orjson.loads(record.value or b"{}") if record.key == MARK else {}
        if mark.get("log") == self.session.ledger.log_id:
            return mark
        where = f"{tp.topic}[{tp.partition}]"
        self.findings.add("state", where, "its state is not of this audit log, or somebody else wrote there")
        return {}

    # ---------------------------------------------------------------- contributions to releases

    async def _home(self, partition: int, span: _Span, ends: Mapping[TopicPartition, int], written: int) -> bool:
        """Replay one contributions partition; False if it cannot be followed to its end."""
        if not span.sound:
            return False
        again = await self._release_again(partition, span, ends, written)
        tp = TopicPartition(self.settings.contributions, partition)
        where = f"{tp.topic}[{partition}]"
        try:
            async for records in self.scans[0].read(tp, span.first, span.end):
                for record in records:
                    await self._message(again, record, span, ends[tp])
                await again.compare()
                self._advance(len(records))
            await again.finish()
        except FailStop as error:
            self.findings.add("contributions", where, f"{error}; not replayed from there")
            return False
        finally:
            self.report.releases += again.releases.found
            self.report.confirmed += again.releases.confirmed
            self.report.activations += again.activations.confirmed
        repeated = again.machine.counters["repeated_messages"]
        if repeated:
            self.findings.add("contributions", where, f"{repeated} messages are repeats; release left them out")
        strays = again.machine.strays
        if strays.count:
            message = f"{strays.count} records are not shoal's, the last at offset {strays.last}; release left them out"
            self.findings.add("contributions", where, message, failure=False)
        late = again.machine.counters["woke_late"]
        if late:
            message = f"{late} samples came after their tick, as their partition was held to be idle"
            self.findings.add("idle", where, message, failure=False)
        return True

    async def _message(self, again: ReleaseAgain, record: Record, span: _Span, end: int) -> None:
        try:
            message = read_message(record, "contributions", again.machine.strays)
            if message is None:
                return
            self._note(again.machine.partition, message, must=record.offset < end)
            if span.mark is not None and record.offset < span.mark["offset"]:
                await again.receive(message, record.offset)
        except (ValueError, TypeError, LookupError, AttributeError):
            raise FailStop(f"offset {record.offset}: somebody else wrote what is there") from None

    async def _release_again(
        self, partition: int, span: _Span, ends: Mapping[TopicPartition, int], written: int
    ) -> ReleaseAgain:
        s, retired = self.settings, self.agreed.retired
        releases, activations = TopicPartition(s.releases, partition), TopicPartition(s.activations, partition)
        bounds = await self.reader.bounds([releases, activations])  # after the mark: all that it knows of is there
        history = span.mark or {"count": 0, "chain": FIRST.hex()}
        idle_after = self.session.config.kafka.idle_after
        former = former_topics(self.agreed.counts, (*self.plans, self.settings.contributions))
        machine = ReleasePartition(self.plans.values(), partition, idle_after=idle_after, durable=False, former=former)
        machine.start(span.first)
        known = {"end": ends[releases], "count": history["count"], "chain": history["chain"]}
        released = ReleaseMatcher(s.app, f"{s.releases}[{partition}]", self.findings, retired, **known)
        activated = ActivationMatcher(s.app, f"{s.activations}[{partition}]", self.findings, retired, ends[activations])
        return ReleaseAgain(
            machine,
            {version.metric: version for version in self.agreed.active},
            (released, self.scans[1].read(releases, *bounds[releases])),
            (activated, self.scans[2].read(activations, *bounds[activations])),
            self.logged,
            written,
        )

    # ---------------------------------------------------------------- events to contributions

    async def _events(self, topic: str, partition: int, span: _Span) -> None:
        """Recompute what one source partition must have sent."""
        if span.mark is None or not span.sound:
            return
        again = BoundAgain(
            self.agreed.config, topic, lambda config: self._plan(topic, config), partition, span.mark, self.kernel
        )
        self._note_loss(f"{topic}[{partition}]", span.mark, again.gapped)
        self.gapped[topic, partition] = again.gapped
        if not again.recomputes or self._is_given_up(topic, partition, span):
            self.promises[topic, partition] = Promises()
            return
        if span.end > span.there:
            message = f"it ends at {span.there}, before what was read; nothing can be recomputed"
            self.findings.add("events", f"{topic}[{partition}]", message)
            span.sound = False
            return
        if span.first > again.first:
            message = f"events {again.first} to {span.first - 1} are gone; nothing can be recomputed without them"
            self.findings.add("events", f"{topic}[{partition}]", message)
            span.sound = False
            return
        async for records in self.scans[0].read(TopicPartition(topic, partition), span.first, span.end):
            for home, message_ in again.take(records):
                way = topic, partition, home
                if (rows := self.yielded.get(way)) is None:
                    rows = self.yielded[way] = SentRows(self.plans[topic], self.kernel)
                rows.add(message_)
            self._advance(len(records))
        self.promises[topic, partition] = again.promises()

    def _is_given_up(self, topic: str, partition: int, span: _Span) -> bool:
        """Whether a loss is accepted for the very state, which is not behind it yet: nothing is recomputed then."""
        place, known = StagePartition(BOUND, topic, partition), {0, *(loss.id for loss in self.losses)}
        if turn_of(span.raw_mark) not in known:
            return False  # which is a finding
        loss = accepted(self.losses, place, span.raw_mark, self.session.key.secret)
        if loss is None:
            return False
        self.gapped[topic, partition] = frozenset(metric.label for metric in self.plans[topic].metrics)
        message = f"{loss.words()}; no worker is behind it yet, and nothing is recomputed from events"
        self.findings.add("lost", f"{topic}[{partition}]", message, failure=False)
        return True

    def _note_loss(self, where: str, mark: Mapping[str, Any], gapped: Set[str]) -> None:
        """Say what an accepted loss leaves unproven, or that the log lacks what the state knows of."""
        turn = mark.get("turn")
        if turn is None:
            return
        loss = next((one for one in self.losses if one.id == turn), None)
        if loss is None:
            self.findings.add("state", where, "its state is behind an accepted loss that the audit log does not have")
        elif gapped:
            names = ", ".join(sorted(gapped))
            message = f"{loss.words()}; contributions of {names} are taken as they are, not recomputed from events"
            self.findings.add("lost", where, message, failure=False)

    def _note(self, home: int, message: Message, *, must: bool) -> None:
        """Take in a message. `must`: it was there before bound's mark was read, so bound must know of it."""
        if message.topic not in self.sources:
            return
        span = self.sources[message.topic][message.partition]
        if span.mark is not None and message.number <= span.mark["numbers"][home]:
            sent = self.sent.setdefault((message.topic, message.partition, home), SentRows(self.plans[message.topic]))
            if message.number > sent.messages:  # else a repeat, which release leaves out and reports
                sent.add(message)
        elif must and span.sound:
            where = f"{message.topic}[{message.partition}] to {self.settings.contributions}[{home}]"
            self.findings.add("contributions", where, f"message {message.number} is there; bound has not sent it")

    def _compare_sent(self, topic: str, partition: int, span: _Span, homes: Sequence[int]) -> None:
        if span.mark is None or not span.sound:
            return
        for home in homes:
            way, plan = (topic, partition, home), self.plans[topic]
            where = f"{topic}[{partition}] to {self.settings.contributions}[{home}]"
            yielded, sent = (
                self.yielded.get(way) or SentRows(plan),
                self.sent.get(way) or SentRows(plan),
            )
            if sent.messages != span.mark["numbers"][home]:
                message = f"the topic has {sent.messages} messages, and bound has sent {span.mark['numbers'][home]}"
                self.findings.add("contributions", where, message)
            gapped = self.gapped[topic, partition]
            clocks = self.promises[topic, partition].to(home)
            compare(self.findings, where, plan, yielded, sent, clocks, gapped)
