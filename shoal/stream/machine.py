"""The interface between the Kafka layer and the stream's rules: records in, transactions out.

In come records of one partition, in order; out come outboxes, each of which becomes one Kafka transaction. A machine
is pure and synchronous: it knows no Kafka, no event loop and no clock, and a host (`partition.py`) drives it. Nothing
here can fail; a machine that raises ends the worker.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

Headers = list[tuple[str, bytes]]
OutRecord = tuple[bytes | None, bytes, Headers]


class StagePartition(NamedTuple):
    """Where a machine works. Everything that belongs to a partition is keyed by all three."""

    stage: str
    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.stage} of {self.topic}[{self.number}]"


class Record(Protocol):
    """One Kafka record. The fast path hands out aiokafka's C records, which do not know their topic or partition."""

    @property
    def key(self) -> bytes | None:
        """The record key."""

    @property
    def value(self) -> bytes | None:
        """The value; None is a tombstone."""

    @property
    def offset(self) -> int:
        """Position in the partition."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch, as the producer or the broker stamped them."""

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]:
        """The headers, in order."""


class LogSpan(NamedTuple):
    """What a transaction says of a changelog that is a log."""

    first: int
    """The first of its records."""

    needs: int
    """The first record that a successor needs; what is before it may be deleted when the transaction is committed."""

    cost: int
    """The most bytes that its records may have, whatever the values: by it is decided when enough may be deleted."""


@dataclass(slots=True)
class Outbox:
    """One transaction's worth, taken from a machine: all of it becomes visible, or none."""

    next_offset: int
    """First source offset not covered. The changelog's mark record says the same, and that one is the truth."""

    changelog: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    """To the machine's own changelog partition, the mark record last; None is a tombstone."""

    records: dict[tuple[str, int], list[OutRecord]] = field(default_factory=dict)
    """To other topics: (topic, partition) -> records in order."""

    events: int = 0
    """Source records covered, for statistics."""

    log: LogSpan | None = None
    """Of a changelog that is a log."""

    stamp: int | None = None
    """Milliseconds that `records` bear as their timestamp; None: the time of writing."""


class Restoration(Protocol):
    """Restores a machine from its changelog, record by record in the order of offsets."""

    @property
    def is_empty(self) -> bool:
        """Whether the changelog held no state; asked when the restoration is complete."""

    @property
    def needs_beginning(self) -> bool:
        """Whether what was restored needs the topic's first record."""

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Restore what the next record says; a value of None is a tombstone."""

    def done(self) -> None:
        """Complete the restoration, after the last record."""


class LastValues:
    """Restores a machine whose changelog is a table: of each key the last value holds, and a tombstone removes it."""

    needs_beginning = True

    def __init__(self, restore: Callable[[Mapping[bytes, bytes]], None]) -> None:
        self._restore = restore
        self._values: dict[bytes, bytes] = {}
        self.is_empty = True

    def take(self, key: bytes | None, value: bytes | None) -> None:
        if value is None:
            self._values.pop(key or b"", None)
        else:
            self._values[key or b""] = value

    def done(self) -> None:
        self._restore(self._values)
        self.is_empty = not self._values
        self._values = {}


class Machine(Protocol):
    """The rules of one stage for one partition."""

    @property
    def next_offset(self) -> int | None:
        """First source offset that the restored state does not cover; None when there is no state yet."""

    @property
    def backlog(self) -> int:
        """Source records and own outputs that were processed and not yet taken; the host waits when it is large."""

    @property
    def has_complete(self) -> bool:
        """Whether an outbox is waiting that will not grow, so that nobody should wait for more."""

    @property
    def is_awaited(self) -> bool:
        """Whether others wait for what the next outbox has; one that only says how far it read can come later."""

    def restoring(self) -> Restoration:
        """What takes the changelog. Called once, before all else."""

    def start(self, offset: int) -> None:
        """There is no state: begin at this source offset. Called once, after `restore`, if next_offset is None."""

    def process(self, records: Sequence[Record], end: int) -> None:
        """Take records that follow the last ones; `end` is the position after them, past invisible records too."""

    def idle(self, wall_ms: int) -> None:
        """The partition was at its high watermark at this wall time, and all before it has been processed."""

    def pending(self) -> bool:
        """Whether work of its own is due (a long tick to close) before the next records may come."""

    def work(self, enough: Callable[[], bool]) -> None:
        """Do some of it, until there is enough."""

    def outbox(self) -> Outbox | None:
        """Everything since the last call, or None."""

    def look_up(self, key: tuple[Any, ...]) -> Any:
        """What Faust's `table[key]` shows of the state; None: nothing."""


class Domain(Protocol):
    """What the layer needs to know of the statistics."""

    sources: Sequence[str]
    """The events' topics."""

    batches: Mapping[str, Any]
    """Topics whose machines take whole batches, each with the kernel's class for them; known before the first fetch."""

    new_batches: Any
    """The kernel's class of batches to be written; None: there is no kernel. Known as early."""

    def machine(self, partition: StagePartition) -> Machine:
        """Make the machine of a partition."""

    async def admit(
        self, partition: StagePartition, machine: Machine, last_release: Record | None, *, fresh: bool
    ) -> None:
        """Judge a restored machine before it may process: raise FailStop to refuse.

        Called after the old owner is fenced. A `fresh` machine found no state in its changelog. `last_release` is, for
        the release stage, the last committed record of the releases partition of the same number, None when there is
        none; for other stages always None.
        """

    async def pass_loss(self, partition: StagePartition, machine: Machine, mark: bytes) -> bytes | None:
        """Have a restored machine go on behind the loss that was accepted for the state with this mark, if any.

        Returns the id of the topic that is read from then on.
        """

    def remedy(self, topic: str) -> str:
        """What an operator can do if a topic lacks what a state has yet to read."""

    async def watch_deployment(self) -> None:
        """Raise FailStop once another configuration is in use; runs from the first takeover on, and never waits."""

    def ahead(self) -> Set[StagePartition]:
        """Source partitions that are not to be read for now, for others lag behind; asked every second."""

    def sink(self, topic: str, partition: int, records: Sequence[Record]) -> None:
        """Write releases or activations to the audit log. Runs in a thread, one call at a time.

        Raises `shoal.agents.audit.database.Unavailable` to be called again with the same records later.
        """
