"""Acceptance of losses: records of source topics that are gone before workers read them, given up by an operator.

The owner of a partition is locked out before its loss is written: no worker reads on from a state that is given another
way on meanwhile. What is written is what a look finds after that.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka import TopicPartition

from shoal.agents.audit.session import Session
from shoal.agents.inspection.states import SECOND_LOOK, State, read_states
from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.topic_ids import ask
from shoal.agents.kafka.topics import kafka_errors
from shoal.agents.kafka.transactions import Writer
from shoal.agents.lost_records import accepted, changed_count, digest_of, seal
from shoal.models.errors import KafkaError, LedgerError
from shoal.models.losses import AcceptedLoss, Place
from shoal.stream.machine import StagePartition
from shoal.stream.state_mark import check_mark


class Loss(NamedTuple):
    """Loss of one source partition: its words for an operator, and the place behind it where reading would go on."""

    partition: int
    words: str
    place: Place

    @property
    def identity(self) -> tuple[int, str, str]:
        """Equal for two looks at one loss, however many records come behind it meanwhile."""
        return self.partition, self.place.mark, self.place.topic_id


class Acceptance:
    """The losses of a topic ahead of the states of an app's workers, on their way into the ledger."""

    def __init__(
        self, session: Session, settings: KafkaSettings, topic: str, *, partition: int | None, beat: int | None
    ) -> None:
        """`partition`: the only one to look at, or all; `beat`: the earliest one that ends a loss, or the next."""
        self._session, self._settings, self._topic = session, settings, topic
        self._partition, self._beat = partition, beat

    def losses(self) -> list[Loss]:
        """Losses of the topic that are not accepted yet, each found by two looks at the brokers.

        Raises:
            LedgerError: no worker has read the topic, or it has no such partition.
            KafkaError: the topic has another number of partitions than it had, or the brokers cannot be used.
            FailStop: a state is of another audit log, or of a newer version.
        """
        found = self._look()
        if found:
            time.sleep(SECOND_LOOK)
            again = {loss.identity for loss in self._look()}
            found = [loss for loss in found if loss.identity in again]
        return found

    def accept(self, losses: list[Loss], who: str) -> list[AcceptedLoss]:
        """Lock out the owners of the partitions, and write the losses if they are still the same.

        Raises:
            LedgerError: they are not.
        """
        return asyncio.run(self._accept(losses, who))

    async def _accept(self, losses: list[Loss], who: str) -> list[AcceptedLoss]:
        due = {loss.identity for loss in losses}
        async with self._locked(loss.partition for loss in losses):
            found = [loss for loss in await asyncio.to_thread(self._look) if loss.identity in due]
            if len(found) < len(due):
                raise LedgerError(
                    f"topic {self._topic}: what is lost has changed while you were asked; nothing is written: start "
                    "again"
                )
            places = {loss.partition: loss.place for loss in found}
            ledger = self._session.ledger
            return await asyncio.to_thread(ledger.of(self._settings.app).accept_loss, self._topic, places, who)

    @asynccontextmanager
    async def _locked(self, partitions: Iterable[int]) -> AsyncIterator[None]:
        reach = Reach(self._settings)
        sources = [StagePartition(BOUND, self._topic, number) for number in partitions]
        writers = [Writer(self._settings, source, reach) for source in sources]
        try:
            with kafka_errors(self._settings):
                await asyncio.gather(*(writer.fence() for writer in writers))
                async with Reader(self._settings) as reader:
                    await asyncio.gather(*(self._settle(writer, reader) for writer in writers))
            yield
        finally:
            await asyncio.gather(*(writer.give_up() for writer in writers))

    async def _settle(self, writer: Writer, reader: Reader) -> None:
        """End the old owner's last transaction as it ended elsewhere: afterwards nobody remembers how it did."""
        targets = [writer.changelog, *self._settings.outputs(writer.partition)]
        unended = set(await reader.with_open_transactions(TopicPartition(*target) for target in targets))
        await writer.settle([target for target in targets if target in unended])

    def _look(self) -> list[Loss]:
        states = [state for state in self._states() if self._partition in (None, state.partition.number)]
        losses = self._session.app_ledger.losses()
        return [
            Loss(state.partition.number, words, self._place(state))
            for state in states
            if (words := self._gap(state, losses)) is not None
        ]

    def _states(self) -> list[State]:
        count = self._session.app_ledger.partitions().get(self._topic)
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

    def _gap(self, state: State, losses: list[AcceptedLoss]) -> str | None:
        """Loss of one partition in words, beyond `losses`, which are accepted; None without any."""
        if state.raw_mark is None:
            return None
        check_mark(f"topic {self._topic}, partition {state.partition.number}", state.mark, self._session.ledger.log_id)
        loss = accepted(losses, state.partition, state.raw_mark, self._session.key.secret)
        return (state if loss is None else state.behind(loss)).gap(discreet=self._settings.hides_presence)

    def _place(self, state: State) -> Place:
        secret, (first, end) = self._session.key.secret, state.bounds
        digest = digest_of(secret, state.raw_mark or b"")
        if self._settings.hides_presence:
            return Place(digest, state.now, sealed=seal(secret, digest, end), beat=self._beat)
        position = state.mark["offset"]
        is_anew = state.was not in (None, state.now)
        return Place(digest, state.now, first=position, next=first if is_anew or position < first else end)
