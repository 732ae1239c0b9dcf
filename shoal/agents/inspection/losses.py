"""What sources have lost ahead of the states of workers, and how an operator accepts it.

The owner of a partition is locked out before its loss is written: no worker reads on from a state that is given another
way on meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka import TopicPartition

from shoal.agents.audit.replay.scan import Scan
from shoal.agents.audit.session import Session
from shoal.agents.inspection.states import State, read_states
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.topic_ids import ask
from shoal.agents.kafka.topics import kafka_errors
from shoal.agents.kafka.transactions import Writer
from shoal.agents.lost_records import accepted, changed_count, digest_of
from shoal.models.errors import KafkaError, LedgerError
from shoal.models.losses import AcceptedLoss, Place
from shoal.models.records import BEAT_HEADER
from shoal.models.times import iso
from shoal.stream.event_time import time_in_headers
from shoal.stream.machine import StagePartition


class Loss(NamedTuple):
    """What one partition of a source lost, in words, and where reading would go on."""

    partition: int
    words: str
    place: Place


class Acceptance:
    """The losses of a topic ahead of the states of an app's workers, on their way into the ledger."""

    def __init__(self, session: Session, settings: KafkaSettings, topic: str, partition: int | None) -> None:
        """`partition`: the only one to look at; None: all."""
        self._session, self._settings, self._topic, self._partition = session, settings, topic, partition

    def losses(self, beat: int | None) -> list[Loss]:
        """What is lost and not accepted yet.

        `beat`: where presence is protected, the time in microseconds of the beat from which records count again; None:
        the next one after all that are in the topic.

        Raises:
            LedgerError: no worker has read the topic, it has no such partition, or the beat is in the topic already.
            KafkaError: the topic has another number of partitions than it had, or the brokers cannot be used.
        """
        states = [state for state in self._states() if self._partition in (None, state.partition.number)]
        lost = [(state, words) for state in states if (words := self._gap(state)) is not None]
        resumes = self._beat(beat, [state for state, _ in lost]) if lost and self._settings.hides_presence else None
        return [Loss(state.partition.number, words, self._place(state, resumes)) for state, words in lost]

    def accept(self, losses: list[Loss], beat: int | None, who: str) -> list[AcceptedLoss]:
        """Lock out the owners of the partitions, and write the losses if they are still the same.

        Raises:
            LedgerError: they are not.
        """
        return asyncio.run(self._accept(losses, beat, who))

    async def _accept(self, losses: list[Loss], beat: int | None, who: str) -> list[AcceptedLoss]:
        async with self._locked(loss.partition for loss in losses):
            again = await asyncio.to_thread(self.losses, beat)
            if again != losses:
                raise LedgerError(
                    f"topic {self._topic}: what is lost has changed while you were asked; nothing is written: start "
                    "again"
                )
            places = {loss.partition: loss.place for loss in losses}
            ledger = self._session.ledger
            return await asyncio.to_thread(ledger.accept_loss, self._settings.app, self._topic, places, who)

    @asynccontextmanager
    async def _locked(self, partitions: Iterable[int]) -> AsyncIterator[None]:
        reach = Reach(self._settings)
        sources = [StagePartition(BOUND, self._topic, number) for number in partitions]
        writers = [Writer(self._settings, source, reach) for source in sources]
        try:
            with kafka_errors(self._settings):
                await asyncio.gather(*(writer.fence() for writer in writers))
            yield
        finally:
            await asyncio.gather(*(writer.give_up() for writer in writers))

    def _states(self) -> list[State]:
        count = self._session.ledger.partitions(self._settings.app).get(self._topic)
        if count is None:
            raise LedgerError(f"topic {self._topic}: no worker has read it, so none of its losses is to be accepted")
        if self._partition is not None and not 0 <= self._partition < count:
            raise LedgerError(f"topic {self._topic} has partitions 0 to {count - 1}, and none {self._partition}")
        there, _ = asyncio.run(ask(self._settings, [self._topic]))
        if self._topic not in there:
            raise KafkaError(f"topic {self._topic} is not there; make it anew first: shoal topics {self._session.path}")
        if there[self._topic].partitions != count:
            raise KafkaError(changed_count(self._topic, there[self._topic].partitions, count))
        return read_states(self._settings, {self._topic: count})

    def _gap(self, state: State) -> str | None:
        """What is lost in one partition behind what is accepted already."""
        if state.raw_mark is None:
            return None
        losses, secret = self._session.ledger.losses(self._settings.app), self._session.key.secret
        loss = accepted(losses, state.partition, state.raw_mark, secret)
        return (state if loss is None else state.behind(loss)).gap(discreet=self._settings.hides_presence)

    def _place(self, state: State, beat: int | None) -> Place:
        mark = digest_of(self._session.key.secret, state.raw_mark or b"")
        if beat is not None:
            return Place(mark, state.now, beat=beat)
        position, (first, end) = state.mark["offset"], state.bounds
        is_anew = state.was not in (None, state.now)
        return Place(mark, state.now, first=position, next=first if is_anew or position < first else end)

    def _beat(self, named: int | None, states: list[State]) -> int:
        """The time of the beat from which records count again: later than all beats that are in the partitions.

        So no record that is left is behind it, and where the loss ended among them decides nothing.
        """
        beats = [state.mark["beat"] for state in states if state.mark.get("beat") is not None]
        latest = max([*beats, *asyncio.run(self._beats(states))], default=0)
        if named is not None and named <= latest:
            raise LedgerError(f"--beat {iso(named)} is not later than the last beat in the topic, {iso(latest)}")
        return latest + 1 if named is None else named

    async def _beats(self, states: list[State]) -> list[int]:
        """Times of the beats that are in the partitions of these states."""
        beats = []
        with kafka_errors(self._settings):
            async with Scan(self._settings) as scan:
                tps = {TopicPartition(self._topic, state.partition.number): state for state in states}
                ends = await scan.stable_ends(tps)
                for tp, state in tps.items():
                    async for records in scan.read(tp, state.bounds[0], ends[tp]):
                        found = (time_in_headers(record) for record in records if record.value is None)
                        beats += [time for name, time in filter(None, found) if name == BEAT_HEADER]
        return beats
