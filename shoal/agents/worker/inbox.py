"""Batches that wait to be processed, bounded by the memory that they take, however far a stage is behind.

A worker has a fixed number of bytes for what it has read and not processed, and each of its partitions has an equal
share of them (`share_out`). A partition whose share is full is not read until half of it is free again; until then its
records wait in Kafka. There is always room for one batch; otherwise a share smaller than a batch would stop a partition
for ever.
"""

from collections import deque
from collections.abc import Collection

from shoal.agents.kafka.transport import Batch

LEAST_UNFLUSHED = 40_000  # records of a partition: with fewer, transactions would cost more than their records
LEAST_FETCH = 64 << 10  # bytes of a partition in one fetch: with fewer, fetches would cost more than what they bring


class Inbox:
    """The batches of one partition, oldest first, and the one that is being processed."""

    def __init__(self) -> None:
        self.share = 0  # bytes; 0: one batch at a time
        self.held = 0  # bytes that its batches take, including the one in hand
        self._waiting: deque[Batch] = deque()
        self._in_hand = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether its share is full, so that reading should pause."""
        return self.held > 0 and self.held >= self.share

    @property
    def low(self) -> bool:
        """Whether half of its share is free, so that reading may continue."""
        return 2 * self.held <= self.share or not self.held

    @property
    def first(self) -> Batch:
        return self._waiting[0]

    @property
    def last(self) -> Batch:
        return self._waiting[-1]

    def add(self, batch: Batch) -> None:
        self._waiting.append(batch)
        self.held += batch.memory

    def take(self) -> None:
        """Take out the first batch; its memory counts until it is `done`."""
        self._in_hand += self._waiting.popleft().memory

    def done(self) -> None:
        """The batch that was taken out is processed, and its memory is free."""
        self.held -= self._in_hand
        self._in_hand = 0

    def clear(self) -> None:
        """Drop the batches that wait; the memory of the one in hand still counts."""
        self._waiting.clear()
        self.held = self._in_hand


def share_out(most: int, inboxes: Collection[Inbox]) -> None:
    """Give each of a worker's inboxes an equal share of `most` bytes."""
    for inbox in inboxes:
        inbox.share = most // len(inboxes)


def unflushed(most: int, of_worker: int, partitions: int) -> int:
    """How many records each of the worker's source partitions may have processed and not committed.

    >>> [unflushed(200_000, 400_000, partitions) for partitions in (1, 4, 100)]
    [200000, 100000, 40000]
    """
    return min(most, max(LEAST_UNFLUSHED, of_worker // max(1, partitions)))


def fetch_bytes(most: int, partitions: int) -> int:
    """How many bytes of each partition one fetch may bring: `most` if there are few partitions, less if there are many.

    >>> fetch_bytes(1 << 20, partitions=28), fetch_bytes(1 << 20, partitions=100), fetch_bytes(1 << 20, partitions=5000)
    (1048576, 335544, 65536)
    """
    return min(most, max(LEAST_FETCH, 32 * most // max(1, partitions)))
