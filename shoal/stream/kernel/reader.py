"""Reads the records of a partition with the kernel, and describes the metrics' rules to it."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from shoal.mechanisms.accounts import Accounts, Periods, RecordKind
from shoal.mechanisms.continual_mean.accounts import MeanAccounts
from shoal.mechanisms.continual_mean.blocks import BlockBounder
from shoal.mechanisms.continual_mean.sharp.bounder import SharpBounder
from shoal.mechanisms.overall_accounts import OverallAccounts
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.per import Field
from shoal.stream.event_time import EventClock
from shoal.stream.kernel.queues import Queues
from shoal.stream.kernel.stores import KernelPeriods
from shoal.stream.machine import Record
from shoal.stream.topic import Metric, TopicPlan

MOST_IN_A_RUN = 64  # most records that the twin reads before the kernel is tried again


class Kernel:
    """The kernel's side of one source partition."""

    def __init__(self, module: Any, plan: TopicPlan, home: tuple[int, int] | None) -> None:
        self._module, self._plan, self._home = module, plan, home
        self._stores: list[list[Any]] = [[] for _ in plan.metrics]
        self.queues = Queues(module, plan)
        self._reader: Any = None
        self.taken = 0  # the number of records that the kernel has read

    def stores_of(self, metric: Metric) -> Callable[..., Periods]:
        """A function that makes the stores of a metric's accounts in the kernel."""

        def make(length: Even | None, *kinds: RecordKind, durable: bool) -> KernelPeriods:
            span = None if length is None else length.microseconds
            stores = self._module.Stores(span, [kind.width for kind in kinds], durable)
            self._stores[metric.index].append(stores)
            return KernelPeriods(stores, length, *kinds)

        return make

    def begin(self, accounts: Sequence[Accounts]) -> None:
        """Make the reader; the accounts, one for each metric, use stores that `stores_of` made."""
        clocks = [(c.path, c.lateness, c.max_ahead, c.drops_late, c.beats) for c in self._plan.clocks]
        metrics = [
            {
                "clock": metric.clock, "user": metric.parts.source.user, "group": _group_of(metric),
                "value": _value_of(metric), "rule": _rule_of(metric, one), "stores": self._stores[metric.index],
                "queue": self.queues.each[metric.index],
            }
            for metric, one in zip(self._plan.metrics, accounts, strict=True)
        ]  # fmt: skip
        self._reader = self._module.Reader(clocks, metrics, self._home)

    def activate(self, begun: Sequence[bool]) -> None:
        """Tell the kernel which metrics have begun."""
        self._reader.activate(list(begun))

    def read(
        self,
        records: Sequence[Record],
        clocks: Sequence[EventClock],
        counters: Counter[str],
        *,
        twin: Callable[[Sequence[Record]], None],
        refuse: Callable[[int, str, Record], None],
    ) -> None:
        """Read records, a list or a `RecordBatch` of the kernel: plain ones with the kernel, the others with the twin.

        While records are not plain, the twin reads ever longer runs, since asking the kernel about each would cost
        more. Samples that do not count are counted in `counters`, or are given to `refuse` with the number of their
        metric, to become dead letters.
        """
        first, run = 0, 1
        while first < len(records):
            left = self._feed(records, first, clocks)
            for reason, count in self._reader.take_counts():
                counters[reason] += count
            for metric, number, reason in self._reader.take_refusals():
                refuse(metric, reason, records[number])
            run = 1 if left > first else min(2 * run, MOST_IN_A_RUN)
            first = min(left + run, len(records))
            if left < first:
                twin(records[left:first])

    def survey(
        self, lines: Any, first: int, clocks: Sequence[EventClock], stretch: int
    ) -> tuple[int, tuple[int, int] | None, dict[int, int]]:
        """Read lines of a file from number `first` on without counting them, until one must be left to the twin.

        Returns the number of that line, the earliest and the latest time, and the number of the first line in each
        stretch of time, by the stretch's number; a stretch is `stretch` microseconds long.
        """
        self._reader.latest = [clock.latest for clock in clocks]
        left, times, begun = self._reader.survey(lines, first, stretch)
        for clock, latest in zip(clocks, self._reader.latest, strict=True):
            clock.latest = latest
        return left, times, begun

    def _feed(self, records: Sequence[Record], first: int, clocks: Sequence[EventClock]) -> int:
        """Let the kernel take records from number `first` on; return the number of the one at which it stops."""
        self._reader.latest = [clock.latest for clock in clocks]
        left: int = self._reader.feed(records, first)
        for clock, latest in zip(clocks, self._reader.latest, strict=True):
            clock.latest = latest
        self.taken += left - first
        return left


def kernel_of(module: Any, plan: TopicPlan, partition: int, *, checks_partition: bool) -> Kernel:
    """The kernel's side of a source partition, whose topic it must be able to read (`known.py`)."""
    return Kernel(module, plan, (partition, plan.source_partitions) if checks_partition else None)


def _value_of(metric: Metric) -> tuple[str, float, float, int] | None:
    """Path of the value, low end of the range, grid steps per unit, and grid steps; None if the metric has no value."""
    if metric.parts.fields is None:
        return None
    grid = metric.parameters.grids[0]
    low, per_unit = grid.scale
    return metric.parts.fields.names[0], low, per_unit, grid.steps


def _group_of(metric: Metric) -> str | None:
    """Path of the group; None if the metric has none."""
    return metric.parts.place.name if isinstance(metric.parts.place, Field) else None


def _rule_of(metric: Metric, accounts: Accounts) -> dict[str, Any]:
    """The rule of a metric's accounts, as the kernel's `RuleSpec` has it."""
    match accounts:
        case MeanAccounts(rule=rule):
            bounder = metric.bounder
            return {
                "cap": rule.max_contributions, "groups": rule.groups, "doubles": isinstance(bounder, BlockBounder),
                "sharp": bounder.table if isinstance(bounder, SharpBounder) else None,
            }  # fmt: skip
        case OverallAccounts(limit=limit):
            return {
                "samples": limit.samples, "keys": limit.keys, "leaves_out": limit.leaves_out, "alone": limit.alone,
                "start": limit.start, "end": limit.end,
                "declared": None if limit.declared is None else list(limit.declared),
                "newcomers": [block.total for block in limit.newcomers], "once": limit.once,
            }  # fmt: skip
    raise TypeError(f"the kernel does not know {type(accounts).__name__}")
