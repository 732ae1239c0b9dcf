"""A toy domain for the Kafka layer: counts and sums per key, with outputs that can be predicted exactly.

`bound` adds up each key's numbers and sends (count, sum) on whenever the count is a power of two. `release` numbers
what it gets. `audit` appends to a file per partition.
"""

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.agents.lane import lane_of_environment
from shoal.models.errors import FailStop
from shoal.stream.machine import LastValues, Outbox, OutRecord, Record, StagePartition

MARK = b"\x00mark"
PAIR, ONE = struct.Struct(">qq"), struct.Struct(">q")


class ToyBound:
    """Count and sum per key; one output at each power of two."""

    counted = False
    has_complete = False
    is_awaited = True

    def __init__(self, partition: StagePartition, contributions: str, partitions: int) -> None:
        self.partition, self.contributions, self.partitions = partition, contributions, partitions
        self.next_offset: int | None = None
        self.backlog = 0
        self.idles: list[int] = []
        self.state: dict[bytes, list[int] | bytes] = {}
        self.touched: dict[bytes, list[int]] = {}
        self.out: dict[tuple[str, int], list[OutRecord]] = {}

    def restoring(self) -> LastValues:
        return LastValues(self.restore)

    def restore(self, items: Mapping[bytes, bytes]) -> None:
        self.state = dict(items)
        mark = self.state.pop(MARK, None)
        if isinstance(mark, bytes):
            self.next_offset = ONE.unpack(mark)[0]

    def start(self, offset: int) -> None:
        self.next_offset = offset

    def process(self, records: Sequence[Record], end: int) -> None:
        state, touched = self.state, self.touched
        for record in records:
            key = record.key or b""
            pair = state.get(key)
            if pair is None:
                pair = state[key] = [0, 0]
            elif pair.__class__ is bytes:
                pair = state[key] = list(PAIR.unpack(pair))
            assert isinstance(pair, list)
            count = pair[0] + 1
            pair[0] = count
            pair[1] += int(record.value or b"0")
            touched[key] = pair
            if not count & (count - 1):
                value = b"%b %d %d %d" % (key, count, pair[1], record.offset)
                target = (self.contributions, zlib.crc32(key) % self.partitions)
                origin = f"{self.partition.topic}/{self.partition.number}".encode()
                self.out.setdefault(target, []).append((key, value, [("from", origin)]))
        self.next_offset = end
        self.backlog += len(records)

    def idle(self, wall_ms: int) -> None:
        self.idles.append(wall_ms)

    def pending(self) -> bool:
        return False

    def work(self, enough: Callable[[], bool]) -> None:
        raise AssertionError("nothing is pending")

    def outbox(self) -> Outbox | None:
        if not self.backlog:
            return None
        assert self.next_offset is not None
        log: list[tuple[bytes, bytes | None]] = [(key, PAIR.pack(*pair)) for key, pair in self.touched.items()]
        log.append((MARK, ONE.pack(self.next_offset)))
        box = Outbox(self.next_offset, log, self.out, self.backlog)
        self.touched, self.out, self.backlog = {}, {}, 0
        return box

    def look_up(self, key: tuple[bytes]) -> bytes | None:
        pair = self.state.get(key[0])
        return PAIR.pack(*pair) if isinstance(pair, list) else pair


class ToyRelease:
    """Number what arrives, one release each; some of it later, as pending work."""

    counted = False
    has_complete = False
    is_awaited = True

    def __init__(self, partition: StagePartition, releases: str) -> None:
        self.partition, self.releases = partition, releases
        self.next_offset: int | None = None
        self.backlog = 0
        self.number = 0
        self.todo: list[bytes] = []  # work that is due
        self.covered: int | None = None  # by what is done
        self.out: list[OutRecord] = []

    def restoring(self) -> LastValues:
        return LastValues(self.restore)

    def restore(self, items: Mapping[bytes, bytes]) -> None:
        if MARK in items:
            self.next_offset, self.number = PAIR.unpack(items[MARK])

    def start(self, offset: int) -> None:
        self.next_offset = offset

    def process(self, records: Sequence[Record], end: int) -> None:
        self.todo += [record.value or b"" for record in records]
        self.covered = end
        self.backlog += len(records)

    def idle(self, wall_ms: int) -> None:
        pass

    def pending(self) -> bool:
        return bool(self.todo)

    def work(self, enough: Callable[[], bool]) -> None:
        for value in self.todo:
            self.number += 1
            self.out.append((b"toy", b"%d %b" % (self.number, value), [("n", b"%d" % self.number)]))
        self.todo = []
        self.next_offset = self.covered

    def outbox(self) -> Outbox | None:
        if not self.out:
            return None
        assert self.next_offset is not None
        mark = PAIR.pack(self.next_offset, self.number)
        target = (self.releases, self.partition.number)
        box = Outbox(self.next_offset, [(MARK, mark)], {target: self.out}, len(self.out))
        self.out, self.backlog = [], len(self.todo)
        return box

    def look_up(self, key: tuple[bytes]) -> None:
        return None


class ToyDomain:
    """Both stages, an audit log in files, and a guard that compares the last release with the state."""

    def __init__(self, sources: Sequence[str], app: str, partitions: int, folder: Path | None = None) -> None:
        self.sources = sources
        self.batches: Mapping[str, Any] = {}
        self.new_batches: Any = getattr(lane_of_environment().module, "NewBatch", None)
        self.app, self.partitions, self.folder = app, partitions, folder
        self.bounds: list[ToyBound] = []

    def machine(self, partition: StagePartition) -> ToyBound | ToyRelease:
        if partition.stage == "release":
            return ToyRelease(partition, f"{self.app}.releases")
        machine = ToyBound(partition, f"{self.app}.contributions", self.partitions)
        self.bounds.append(machine)
        return machine

    async def admit(
        self, partition: StagePartition, machine: object, last_release: Record | None, *, fresh: bool
    ) -> None:
        if isinstance(machine, ToyRelease):
            last = int(dict(last_release.headers)["n"]) if last_release is not None else 0
            if last != machine.number:
                raise FailStop(f"the state has published {machine.number}, the topic ends with {last}")

    async def pass_loss(self, *_: object) -> None:
        """No loss is accepted here."""

    def remedy(self, topic: str) -> str:
        return f"bring {topic} back"

    async def watch_deployment(self) -> None:
        """Nothing to watch."""

    async def watch(self) -> None:
        """Nothing to watch."""

    def ahead(self) -> set[StagePartition]:
        return set()

    def sink(self, topic: str, partition: int, records: Sequence[Record]) -> None:
        if self.folder is not None:
            with (self.folder / f"{topic}.{partition}").open("ab") as log:
                log.writelines(b"%d %b\n" % (record.offset, record.value or b"") for record in records)
