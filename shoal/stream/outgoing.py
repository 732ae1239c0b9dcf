"""What a source partition sends: contributions by home, merged where the mechanism allows, and its clock.

In come blocks and watermarks; out come numbered messages of bounded size for the contributions partitions.
"""

from collections.abc import Callable, Iterator, Sequence

from shoal.mechanisms.statistic import Block
from shoal.models.records import Message, Row, record_key
from shoal.stream.plan import Metric, TopicPlan

MESSAGE_BYTES = 400_000  # estimated; a Kafka record may have a million
ROW_BYTES = 90
ROWS = MESSAGE_BYTES // ROW_BYTES
TOTAL_BYTES = 21  # more, for each of several coordinates


class Outlet:
    """What one metric has to send: its rows by group. Blocks with a part become a count and a sum per tick."""

    def __init__(self, plan: TopicPlan, metric: Metric) -> None:
        self._plan, self._metric = plan, metric
        self._pseudonym, self._every = metric.pseudonym, metric.every or 0
        self._homes: dict[str | None, tuple[str, int]] = {}
        self._rows: dict[str | None, list[Row]] = {}
        self._partials: dict[tuple[str | None, int, int, int], list[int]] = {}
        self.send: Callable[[str | None, int, bytes, Block], None]
        """Queue a block of a user's, closed at an effective time."""
        self.send = self._merge if metric.merges and metric.every is not None else self._append

    def _append(self, group: str | None, effective: int, user: bytes, block: Block) -> None:
        number, level, samples, total, _ = block
        row = (effective, self._pseudonym(user), number, level, samples, total)
        rows = self._rows.get(group)
        if rows is None:
            self._rows[group] = [row]
        else:
            rows.append(row)

    def _merge(self, group: str | None, effective: int, user: bytes, block: Block) -> None:
        _, level, samples, total, part = block
        if part is None:
            self._append(group, effective, user, block)
            return
        place = group, effective // self._every, part, level
        partial = self._partials.get(place)
        if partial is None:
            self._partials[place] = [samples, total]
        else:
            partial[0] += samples
            partial[1] += total

    def take(self) -> Iterator[tuple[int, str, list[Row]]]:
        """(contributions partition, key in the message, rows) of every group that has some."""
        for (group, tick, part, level), (samples, total) in self._partials.items():
            self._rows.setdefault(group, []).append((tick * self._every, "", part, level, samples, total))
        rows, self._rows, self._partials = self._rows, {}, {}
        unpack = self._metric.unpack
        for group, found in rows.items():
            key, home = self._home(group)
            if unpack is not None:
                found = [(*row[:5], unpack(row[5], row[4])) for row in found]
            yield home, key, found

    def _home(self, group: str | None) -> tuple[str, int]:
        home = self._homes.get(group)
        if home is None:
            # Keyed by version too: contributions of a retired version may still wait in the topic.
            key = f"{self._metric.label}|{group or ''}"
            home = self._homes[group] = key, self._plan.home_of(record_key(self._metric.name, group))
        return home


class Outgoing:
    """The messages that one source partition has still to send, and how many it sent to each home so far."""

    def __init__(self, plan: TopicPlan, partition: int) -> None:
        self.numbers = [0] * plan.contributions_partitions
        self.outlets = [Outlet(plan, metric) for metric in plan.metrics]
        self._plan = plan
        self._partition = partition
        self._sent_steps: list[tuple[int, ...] | None] = [None] * len(plan.clocks)

    def take(
        self, next_offset: int, wall: int, watermarks: Sequence[int | None], *, idle: bool
    ) -> list[tuple[int, Message]]:
        """(home, message) pairs for everything queued; every home hears of a clock that entered a new step."""
        by_home: list[dict[str, list[Row]]] = [{} for _ in self.numbers]
        for outlet in self.outlets:
            for home, key, found in outlet.take():
                by_home[home][key] = found
        speaks = self._entered_step(watermarks) or idle
        clock = {clock.label: watermarks[clock.index] for clock in self._plan.clocks} if self._plan.has_ticks else None
        messages: list[tuple[int, Message]] = []
        for home, rows in enumerate(by_home):
            if rows or speaks:
                parts = [self._message(home, next_offset, wall, part) for part in _split(rows)]
                # The clock stands in the last one: it covers the whole transaction.
                parts[-1].watermarks, parts[-1].idle = clock, idle
                messages += [(home, part) for part in parts]
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
        total = found[0][5]
        each = ROW_BYTES + (TOTAL_BYTES * len(total) if isinstance(total, list) else 0)
        most = MESSAGE_BYTES // each
        for begin in range(0, len(found), most):
            part = found[begin : begin + most]
            cost = len(part) * each + 6 * len(key)
            if parts[-1] and (size + cost > MESSAGE_BYTES or key in parts[-1]):
                parts.append({})
                size = 0
            parts[-1][key] = part
            size += cost
    return parts
