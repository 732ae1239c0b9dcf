"""States that workers left in Kafka: whether they still fit their topics, as a takeover would judge, but read only."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from aiokafka import TopicPartition

from shoal.agents.audit.ledger import Ledger
from shoal.agents.kafka.changelog import Reader, group_offsets
from shoal.agents.kafka.settings import BOUND, RELEASE, KafkaSettings
from shoal.agents.kafka.topic_ids import STATE_KEY, ask
from shoal.agents.kafka.topics import kafka_errors
from shoal.agents.lost_records import accepted, cut_off, gap, no_state, unnamed, way_on
from shoal.models.errors import FailStop
from shoal.models.losses import AcceptedLoss
from shoal.models.times import iso
from shoal.stream.guard import check_last
from shoal.stream.machine import StagePartition
from shoal.stream.state_mark import MARK, check_mark

SECOND_LOOK = 1.0  # seconds before it


@dataclass(frozen=True, slots=True)
class State:
    """The state of one partition, by its mark, and the topic that it was made of, by the brokers."""

    partition: StagePartition
    raw_mark: bytes | None  # mark of the changelog as its bytes; None where the changelog has no state
    was: str | None  # id of the topic that the state was made of, as far as it says
    now: str  # id of the topic that is there
    bounds: tuple[int, int]  # of that topic's partition: the first offset, and the one after its last
    committed: int | None  # the group's offset
    begins: int  # the first offset of the changelog
    last: Mapping[str, bytes] | None = None  # headers of the last release of a release partition; None without one
    is_moving: bool = False  # whether a worker wrote meanwhile

    @property
    def mark(self) -> dict[str, Any]:
        """The mark; empty without a state."""
        return dict(orjson.loads(self.raw_mark or b"{}"))

    def gap(self, *, discreet: bool) -> str | None:
        """Records that the topic lacks for this state, in words; None if it lacks none."""
        if self.raw_mark is None:
            return None
        return gap(self.partition, self.mark["offset"], self.was, self.now, self.bounds, discreet=discreet)

    def behind(self, loss: AcceptedLoss) -> "State":
        """The state as a takeover has it behind an accepted loss."""
        mark = orjson.dumps(self.mark | {"offset": loss.place.next})
        return replace(self, raw_mark=mark, was=loss.place.topic_id)


def read_states(settings: KafkaSettings, partitions: Mapping[str, int]) -> list[State]:
    """The states of sources, and of the contributions, whose `partitions` are given.

    Raises:
        KafkaError: the brokers cannot be used.
    """
    return asyncio.run(_read(settings, partitions))


async def _read(settings: KafkaSettings, partitions: Mapping[str, int]) -> list[State]:
    places = [
        StagePartition(settings.stage(topic), topic, number)
        for topic, count in partitions.items()
        for number in range(count)
    ]
    inputs = {place: TopicPartition(place.topic, place.number) for place in places}
    logs = {place: TopicPartition(settings.changelog(place.stage, place.topic), place.number) for place in places}
    with kafka_errors(settings):
        offsets = await group_offsets(settings, inputs.values())
        async with Reader(settings) as reader:
            begun = await reader.committed_bounds(logs.values())
            marks = {place: await _mark(reader, place, logs[place], begun[logs[place]]) for place in places}
            last = {place: await _last_release(settings, reader, place) for place in places}
            ended = await reader.committed_bounds(logs.values())
            bounds = await reader.bounds(inputs.values())
    ids, _ = await ask(settings, partitions)
    return [
        State(
            place, *marks[place], ids[place.topic].id if place.topic in ids else "", bounds[inputs[place]],
            offsets[inputs[place]], begun[logs[place]][0], last[place], begun[logs[place]] != ended[logs[place]],
        )
        for place in places
    ]  # fmt: skip


async def _mark(
    reader: Reader, place: StagePartition, log: TopicPartition, bounds: tuple[int, int]
) -> tuple[bytes | None, str | None]:
    """The mark of a state, and the id of the topic that it was made of."""
    if place.stage == BOUND:  # a log, in which each transaction names the topic
        found = await reader.last_values(log, bounds, frozenset((MARK, STATE_KEY)))
        mark, named = found.get(MARK), found.get(STATE_KEY)
    else:
        mark = (await reader.last_values(log, bounds, frozenset((MARK,)))).get(MARK)
        named = await reader.first_value(log, bounds, STATE_KEY)
    return mark, None if named is None else named.decode()


async def _last_release(settings: KafkaSettings, reader: Reader, place: StagePartition) -> dict[str, bytes] | None:
    """The headers of the last release of a partition."""
    if place.stage != RELEASE:
        return None
    tp = TopicPartition(settings.releases, place.number)
    last = await reader.last_committed(tp, (await reader.committed_bounds([tp]))[tp])
    return None if last is None else dict(last.headers)


class Judge:
    """Judge of states: compares each with its topic and with the ledger, as a takeover would."""

    def __init__(
        self, settings: KafkaSettings, path: Path, sources: Iterable[str], ledger: Ledger, secret: bytes
    ) -> None:
        self._settings, self._path, self._sources = settings, path, tuple(sources)
        self._ledger, self._secret = ledger, secret
        self.losses: list[AcceptedLoss] = []

    def refusals(self, partitions: Mapping[str, int]) -> tuple[list[State], list[FailStop]]:
        """States, and why takeovers would be refused; a refusal counts if a second look finds it again.

        Raises:
            KafkaError: the brokers cannot be used.
        """
        states = self._look(partitions)
        found = list(self._all(states))
        if found:
            time.sleep(SECOND_LOOK)
            states = self._look(partitions)
            again = {str(error) for error in self._all(states)}
            found = [error for error in found if str(error) in again]
        return states, found

    def _look(self, partitions: Mapping[str, int]) -> list[State]:
        """The states, and then the losses that were accepted for them."""
        states = read_states(self._settings, partitions)
        self.losses = self._ledger.of(self._settings.app).losses()
        return states

    def _all(self, states: Iterable[State]) -> Iterator[FailStop]:
        for state in states:
            try:
                self._check(state)
            except FailStop as error:
                yield error

    def _check(self, state: State) -> None:
        """Compare one state with its topic and log.

        Raises:
            FailStop: a worker would refuse to take it over.
        """
        place = state.partition
        if state.raw_mark is None:
            if state.committed is not None:
                raise FailStop(no_state(place, state.committed))
            return
        if place.stage == BOUND:
            check_mark(f"topic {place.topic}, partition {place.number}", state.mark, self._ledger.log_id)
            loss = accepted(self.losses, place, state.raw_mark, self._secret)
            state = state if loss is None else state.behind(loss)
        else:
            check_mark(f"contributions partition {place.number}", state.mark, self._ledger.log_id)
            if state.begins > 0:
                raise FailStop(cut_off(self._settings.changelog(RELEASE, place.topic), place.number))
        if state.was is None:
            raise FailStop(unnamed(place))
        if lost := state.gap(discreet=self._settings.hides_presence):
            raise FailStop(f"{lost}; {way_on(self._path, place.topic, self._sources)}")
        if place.stage == RELEASE and not state.is_moving:
            chain = bytes.fromhex(state.mark["chain"])
            check_last(place.number, state.mark["count"], chain, state.last)


def waiting(states: Iterable[State]) -> Iterator[str]:
    """A warning for each partition in which no record counts yet behind an accepted loss."""
    for state in states:
        if (resumes := state.mark.get("resumes")) is not None:
            beat = f"a beat of {iso(resumes)} or a later one" if resumes else "the next beat"
            topic, number = state.partition.topic, state.partition.number
            yield f"{topic}[{number}]: no record counts before {beat} behind the loss that was accepted; send beats"
