"""What a source partition sends: contributions by home, merged where the mechanism allows, and its clock.

In come blocks and watermarks; out come numbered messages of bounded size for the contributions partitions.
"""

from collections.abc import Sequence

from shoal.mechanisms.statistic import Block
from shoal.models.records import Message, Row, record_key
from shoal.stream.plan import Metric, TopicPlan

MESSAGE_BYTES = 400_000  # estimated; a Kafka record may have a million
ROW_BYTES = 90
ROWS = MESSAGE_BYTES // ROW_BYTES


class Outgoing:
    """The messages that one source partition has still to send, and how many it sent to each home so far."""

    def __init__(self, plan: TopicPlan, partition: int) -> None:
        self.numbers = [0] * plan.contributions_partitions
        self._plan = plan
        self._partition = partition
        self._sent_steps: list[tuple[int, ...] | None] = [None] * len(plan.clocks)
        self._homes: dict[tuple[int, str | None], tuple[str, int]] = {}
        self._clear()

    def _clear(self) -> None:
        self._rows: list[dict[str, list[Row]]] = [{} for _ in range(self._plan.contributions_partitions)]
        self._partials: dict[tuple[int, str | None, int], list[int]] = {}

    def add(self, metric: Metric, group: str | None, effective: int, user: bytes, block: Block) -> None:
        """Queue a block; where it merges, only the tick's count and sum are kept, and no pseudonym is made."""
        number, level, samples, total = block
        if metric.merges and metric.every is not None:
            partial = self._partials.setdefault((metric.index, group, effective // metric.every), [0, 0])
            partial[0] += samples
            partial[1] += total
            return
        key, home = self._home(metric, group)
        row = (effective, metric.pseudonym(user), number, level, samples, total)
        self._rows[home].setdefault(key, []).append(row)

    def _home(self, metric: Metric, group: str | None) -> tuple[str, int]:
        """Key in the message, and contributions partition, of a metric's group."""
        home = self._homes.get((metric.index, group))
        if home is None:
            # Keyed by version too: contributions of a retired version may still wait in the topic.
            home = f"{metric.label}|{group or ''}", self._plan.home_of(record_key(metric.name, group))
            self._homes[metric.index, group] = home
        return home

    def take(
        self, next_offset: int, wall: int, watermarks: Sequence[int | None], *, idle: bool
    ) -> list[tuple[int, Message]]:
        """(home, message) pairs for everything queued; every home hears of a clock that entered a new step."""
        for (index, group, tick), (samples, total) in self._partials.items():
            metric = self._plan.metrics[index]
            key, home = self._home(metric, group)
            row = (tick * (metric.every or 0), "", 0, 0, samples, total)
            self._rows[home].setdefault(key, []).append(row)
        speaks = self._entered_step(watermarks) or idle
        clock = {clock.label: watermarks[clock.index] for clock in self._plan.clocks} if self._plan.has_ticks else None
        messages: list[tuple[int, Message]] = []
        for home, rows in enumerate(self._rows):
            if rows or speaks:
                parts = [self._message(home, next_offset, wall, part) for part in _split(rows)]
                # The clock stands in the last one: it covers the whole transaction.
                parts[-1].watermarks, parts[-1].idle = clock, idle
                messages += [(home, part) for part in parts]
        self._clear()
        return messages

    def _entered_step(self, watermarks: Sequence[int | None]) -> bool:
        """Whether a watermark entered a new step of some cadence since the last time."""
        entered = False
        for clock in self._plan.clocks:
            watermark = watermarks[clock.index]
            if watermark is None:
                continue
            steps = tuple(watermark // cadence for cadence in clock.cadences)
            if steps != self._sent_steps[clock.index]:
                self._sent_steps[clock.index] = steps
                entered = True
        return entered and self._plan.has_ticks

    def _message(self, home: int, next_offset: int, wall: int, rows: dict[str, list[Row]]) -> Message:
        self.numbers[home] += 1
        return Message(self._plan.topic, self._partition, self.numbers[home], next_offset, wall, contributions=rows)


def _split(rows: dict[str, list[Row]]) -> list[dict[str, list[Row]]]:
    """The same rows in parts of bounded size; one empty part if there are none."""
    parts: list[dict[str, list[Row]]] = [{}]
    size = 0
    for key, found in rows.items():
        for begin in range(0, len(found), ROWS):
            part = found[begin : begin + ROWS]
            cost = len(part) * ROW_BYTES + 6 * len(key)
            if parts[-1] and (size + cost > MESSAGE_BYTES or key in parts[-1]):
                parts.append({})
                size = 0
            parts[-1][key] = part
            size += cost
    return parts
