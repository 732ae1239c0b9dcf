"""The messages of a source partition: its contributions by home, merged where the mechanism allows, and its clock.

In come blocks and watermarks; out come numbered messages of bounded size. A *home* is a contributions partition.

How many messages there are, and where they are cut, must be decided by pattern alone: who contributes, when and to
which group. So a row or a cell is counted with the most bytes that it can take. Samples that are summed over users fall
into cells. A cell is a level, which is pattern, and a part of that level, which may stand for the bucket of a value. So
the number of cells that are filled depends on values, and merged samples are counted with the most cells that this many
samples can fill.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol

from shoal.mechanisms.parts.lengths import INSTANT, Even
from shoal.mechanisms.statistic import COUNT_BITS, COUNT_MASK, PART_BITS, Block
from shoal.models.records import Message, Partial, Row, record_key
from shoal.stream.topic import Clock, Metric, TopicPlan

# Most bytes of one message, as counted here; in fact it has a fifth more at most. A Kafka record may have a million.
MESSAGE_BYTES = 400_000
# A row has at most 107 bytes: 20 of time and of total, 34 of pseudonym, 10 of number and of samples, 5 of level, and
# eight brackets and commas. Most have less than 90.
ROW_BYTES = 90
ROWS = MESSAGE_BYTES // ROW_BYTES
CELL_BYTES = 35  # a cell has at most 38: 5 digits of cell, 10 of samples, 20 of total, commas
SAMPLE_BYTES = 11  # ten digits and a comma: a grid has at most 2**32 steps
TOTAL_BYTES = 21  # in addition, for each of several coordinates


Send = Callable[[str | None, int, bytes, Block], None]
Sums = list[int]  # [cell, samples, total, ...] of a tick
Part = tuple[Mapping[str, list[Row]], Mapping[str, list[Partial]]]  # the rows and partials of one message
NOTHING: list[Part] = [({}, {})]
TIME = itemgetter(0)  # of a row


class Queue:
    """The contributions of one metric, by group: rows, and of blocks that merge a count and a sum per tick and cell."""

    def __init__(self, metric: Metric) -> None:
        self._pseudonym, self._length = metric.pseudonym, metric.length or INSTANT
        self._rows: dict[str | None, list[Row]] = {}
        # (group, tick) -> cell -> sum << COUNT_BITS | samples
        self._partials: dict[tuple[str | None, int], dict[int, int]] = {}
        self.send: Send = self._merge if metric.bounder.merges and metric.length is not None else self._append
        """Queue a user's block, which was closed at an effective time."""

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
        group_tick = group, self._length.index(effective)
        cells = self._partials.get(group_tick)
        if cells is None:
            cells = self._partials[group_tick] = {}
        cell = level << PART_BITS | part
        cells[cell] = cells.get(cell, 0) + (total << COUNT_BITS) + samples

    def take_rows(self) -> list[tuple[str | None, list[Row]]]:
        """Take (group, rows) out of the queue, in the order of their first rows."""
        rows, self._rows = self._rows, {}
        return list(rows.items())

    def take_partials(self) -> list[tuple[str | None, int, Sums]]:
        """Take (group, start of the tick, sums) out of the queue, in the order of their first samples."""
        partials, self._partials = self._partials, {}
        return [(group, self._length.start(tick), _flat(cells)) for (group, tick), cells in partials.items()]


def _flat(cells: dict[int, int]) -> Sums:
    return [number for cell, held in cells.items() for number in (cell, held & COUNT_MASK, held >> COUNT_BITS)]


class Outlet:
    """The queue of one metric, and the home of each of its groups."""

    def __init__(self, plan: TopicPlan, metric: Metric) -> None:
        self._plan, self._metric = plan, metric
        self._homes: dict[str | None, tuple[str, int]] = {}
        self.queue = Queue(metric)

    def take(self) -> Iterator[tuple[int, str, list[Row], list[tuple[Partial, int]]]]:
        """(home, key in the message, rows, partials with their costs) of every group that has some."""
        rows = dict(self.queue.take_rows())
        partials: dict[str | None, list[tuple[Partial, int]]] = {}
        for group, tick, sums in self.queue.take_partials():
            flat = self._unpacked_sums(sums)
            partials.setdefault(group, []).append(((tick, flat), self._partial_cost(flat)))
        for group in rows | partials:
            key, home = self._home(group)
            yield home, key, self._unpacked(rows.get(group, [])), partials.get(group, [])

    def _unpacked(self, rows: list[Row]) -> list[Row]:
        unpack = self._metric.unpack
        return rows if unpack is None else [(*row[:5], unpack(row[5], row[4])) for row in rows]

    def _unpacked_sums(self, sums: Sums) -> list[Any]:
        unpack = self._metric.unpack
        if unpack is None:
            return sums
        unpacked = list[Any]()
        for cell, samples, total in zip(sums[::3], sums[1::3], sums[2::3], strict=True):
            unpacked += cell, samples, unpack(total, samples)
        return unpacked

    def _partial_cost(self, flat: list[Any]) -> int:
        """Most bytes of a partial without its group's key: those of the most cells that this many samples can fill."""
        samples: dict[int, int] = {}
        add_samples(samples, flat)
        return ROW_BYTES + most_cells(samples, self._metric.bounder.parts) * _cost(CELL_BYTES, flat[2])

    def _home(self, group: str | None) -> tuple[str, int]:
        home = self._homes.get(group)
        if home is None:
            # The key contains the version, because contributions of a retired one may still be in the topic.
            key = f"{self._metric.label}|{group or ''}"
            home = self._homes[group] = key, self._plan.home_of(record_key(self._metric.name, group))
        return home


class Waiting(Protocol):
    """The contributions of all metrics of a topic that wait to be sent: `Outlets`, or the kernel's queues."""

    @property
    def sends(self) -> list[Send]: ...  # by metric: queues a user's block, which was closed at an effective time

    def take(self) -> list[list[Part]]: ...  # takes all out, by home, in parts of bounded size


class Outlets:
    """The queues of all metrics of a topic, in Python."""

    def __init__(self, plan: TopicPlan) -> None:
        self.each = [Outlet(plan, metric) for metric in plan.metrics]
        self._homes = plan.contributions_partitions

    @property
    def sends(self) -> list[Send]:
        return [outlet.queue.send for outlet in self.each]

    def take(self) -> list[list[Part]]:
        by_home = [Parts() for _ in range(self._homes)]
        for outlet in self.each:
            for home, key, rows, partials in outlet.take():
                by_home[home].add(key, rows, partials)
        return [list[Part](parts.parts) for parts in by_home]


class Outgoing:
    """Makes the messages of one source partition, and knows how many it has sent to each home."""

    def __init__(self, plan: TopicPlan, partition: int, waiting: Waiting) -> None:
        self.numbers = [0] * plan.contributions_partitions
        self.turn = 0  # the last accepted loss
        self._waiting = waiting
        self._plan = plan
        self._partition = partition
        self._hearing = plan.hearing
        self._sent_steps: list[tuple[int, ...] | None] = [None] * len(plan.clocks)

    def take(
        self, next_offset: int, wall: int, watermarks: Sequence[int | None], *, idle: bool
    ) -> list[tuple[int, Message]]:
        """(home, message) of all that is queued.

        Every home in `plan.hearing` gets one if a clock entered a new step, or if `idle`.
        """
        speaks = self.would_speak(watermarks) or idle
        if speaks:
            self._sent_steps = self._steps(watermarks)
        clock = {clock.label: watermarks[clock.index] for clock in self._plan.clocks} if self._plan.has_ticks else None
        messages: list[tuple[int, Message]] = []
        for home, found in enumerate(self._waiting.take()):
            if found or (speaks and home in self._hearing):
                parts = [self._message(home, next_offset, wall, part) for part in found or NOTHING]
                # The clock is in the last message of a home, since it holds for the whole transaction.
                parts[-1].watermarks, parts[-1].idle = clock, idle
                messages += [(home, part) for part in parts]
        return messages

    def would_speak(self, watermarks: Sequence[int | None]) -> bool:
        """Whether a watermark has entered a new step of some cadence since the last `take`, or there was a beat."""
        return self._plan.has_ticks and self._steps(watermarks) != self._sent_steps

    def _steps(self, watermarks: Sequence[int | None]) -> list[tuple[int, ...] | None]:
        """Current step of each cadence, by clock; a clock without a watermark keeps the steps that were sent last."""
        return [
            self._sent_steps[clock.index] if watermark is None else self._steps_of(clock, watermark)
            for clock, watermark in zip(self._plan.clocks, watermarks, strict=True)
        ]

    def _steps_of(self, clock: Clock, watermark: int) -> tuple[int, ...]:
        if clock.beats and self._plan.is_waited_for:  # beats are few: each is sent, whoever contributes here
            return (watermark,)
        return tuple(length.index(watermark) for length in clock.cadences)

    def _message(self, home: int, next_offset: int, wall: int, part: Part) -> Message:
        rows, partials = part
        self.numbers[home] += 1
        return Message(
            self._plan.topic, self._partition, self.numbers[home], next_offset, wall,
            contributions=rows, partials=partials, turn=self.turn,
        )  # fmt: skip


class Parts:
    """Rows and partials for one home, in parts of bounded size; none if there is nothing."""

    def __init__(self) -> None:
        self.parts: list[tuple[dict[str, list[Row]], dict[str, list[Partial]]]] = []
        self._size = 0

    def add(self, key: str, rows: list[Row], partials: list[tuple[Partial, int]]) -> None:
        """Add the rows and partials of a group, with the partials' costs."""
        if rows and isinstance(rows[0][5], dict):
            for row in rows:
                self._open(6 * len(key) + _cells_cost(row[5]))[0].setdefault(key, []).append(row)
        elif rows:
            each = _cost(ROW_BYTES, rows[0][5])
            most = MESSAGE_BYTES // each
            for begin in range(0, len(rows), most):
                part = rows[begin : begin + most]
                self._open(6 * len(key) + len(part) * each)[0].setdefault(key, []).extend(part)
        for partial, cost in partials:
            self._open(6 * len(key) + cost)[1].setdefault(key, []).append(partial)

    def _open(self, cost: int) -> tuple[dict[str, list[Row]], dict[str, list[Partial]]]:
        """The last part, or a new one if that has no room for this cost."""
        if not self.parts or self._size + cost > MESSAGE_BYTES:
            self.parts.append(({}, {}))
            self._size = 0
        self._size += cost
        return self.parts[-1]


def _cells_cost(cells: dict[str, list[Any]]) -> int:
    """Most bytes of a row with samples by cell: names of cells, which JSON may write six times as long, and numbers."""
    return ROW_BYTES + sum(6 * len(cell) + _cost_of(samples) + 6 for cell, samples in cells.items())


def _cost_of(samples: list[Any]) -> int:
    """Most bytes of a cell's samples; a sample with several coordinates is a list."""
    several = isinstance(samples[0], list)
    return len(samples) * (SAMPLE_BYTES * len(samples[0]) + 2 if several else SAMPLE_BYTES)


def _cost(least: int, total: Any) -> int:
    """Most bytes of a row or cell: these at least, and more if its total has several coordinates."""
    return least + (TOTAL_BYTES * len(total) if isinstance(total, list) else 0)


def most_cells(samples: Mapping[int, int], parts: int) -> int:
    """The most cells that these numbers of samples by level can fill, if a level has this many parts.

    >>> most_cells({0: 3, 5: 1000}, parts=64)
    67
    """
    return sum(min(count, parts) for count in samples.values())


def add_samples(samples: dict[int, int], flat: Sequence[Any]) -> None:
    """Add the samples in [cell, samples, total, ...] to the numbers of samples by level.

    >>> samples = {0: 1}
    >>> add_samples(samples, [3, 2, 70, 259, 1, 5])
    >>> samples
    {0: 3, 1: 1}
    """
    for cell, count in zip(flat[::3], flat[1::3], strict=True):
        level = cell >> PART_BITS
        samples[level] = samples.get(level, 0) + count


def by_tick(rows: list[Row], length: Even) -> Iterator[tuple[int, list[Row]]]:
    """The rows of a message in runs of one tick, in their order."""
    times = list(map(TIME, rows))
    if times != sorted(times):  # rarely: event times went back
        rest = iter(rows)
        for tick, same in groupby(map(length.index, times)):
            yield tick, list(islice(rest, len(list(same))))
        return
    end = 0
    while end < len(rows):
        begin, tick = end, length.index(times[end])
        end = bisect_left(times, length.end(tick), begin)
        yield tick, rows[begin:end]
