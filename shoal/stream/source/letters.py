"""Dead letters of one source partition: the records that metrics refused, counted by reason."""

from collections import Counter
from collections.abc import Iterable

from shoal.models.records import dead_letter_bytes
from shoal.stream.machine import Record
from shoal.stream.source.intake import Intake
from shoal.stream.topic import TopicPlan


class DeadLetters:
    """Dead letters of the next transaction. They are cut to size at once: a record may have a megabyte."""

    def __init__(self, plan: TopicPlan, partition: int, counters: Counter[str]) -> None:
        self._plan, self._partition, self._counters = plan, partition, counters
        self._letters: list[bytes] = []

    def refuse(self, intakes: Iterable[Intake], reason: str, record: Record) -> None:
        """Count the refusal of a record by each intake's metric, and keep a letter if the topic has dead letters."""
        topic, partition = self._plan.topic, self._partition
        for intake in intakes:
            name = intake.metric.name
            self._counters[f"dead_letters.{name}.{reason}"] += 1
            if self._plan.dead_letters:
                letter = dead_letter_bytes(reason, name, topic, partition, record.offset, record.value)
                self._letters.append(letter)

    def take(self) -> list[bytes]:
        """All letters since the last call, as records."""
        letters, self._letters = self._letters, []
        return letters
