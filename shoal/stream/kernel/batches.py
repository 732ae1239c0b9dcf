"""Records that stay in the bytes of their batches, for the kernel; one becomes an object only when it is asked for.

A fetch is mostly one run of batches that the kernel opened. A batch that the kernel left to aiokafka comes as the
records that aiokafka made of it, in its place in the order.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, overload

from shoal.stream.machine import Record

SIZE_OF_RECORD = 256  # bytes, approximately, of a record that is an object already, without key and value


class Batches(Sequence[Record]):
    """Records of one partition, in order."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[Any]) -> None:
        """`parts`: each is a `RecordBatch` of the kernel, or a list of records."""
        self.parts: list[Any] = [part for part in parts if len(part)]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, which: int) -> Record: ...

    @overload
    def __getitem__(self, which: slice) -> "Batches": ...

    def __getitem__(self, which: int | slice) -> "Record | Batches":
        if isinstance(which, slice):
            first, last, _ = which.indices(len(self))
            return Batches(self._between(first, last))
        number = which + len(self) if which < 0 else which
        parts = self._between(number, number + 1) if number >= 0 else []
        if not parts:
            raise IndexError("there is no such record")
        found: Record = parts[0][0]
        return found

    def _between(self, first: int, last: int) -> list[Any]:
        found, begin = [], 0
        for part in self.parts:
            end = begin + len(part)
            if first < end and begin < last:
                found.append(part[max(first - begin, 0) : last - begin])
            begin = end
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of memory, approximately."""
        return sum(_size_of(part) for part in self.parts)


def _size_of(part: Any) -> int:
    if not isinstance(part, list):
        size: int = part.nbytes
        return size
    return sum(SIZE_OF_RECORD + len(record.key or b"") + len(record.value or b"") for record in part)


def gathered(found: list[Any], kind: Any) -> Batches:
    """The records of a fetch, which brought batches of `kind`, the kernel's class, and perhaps records between them.

    Batches that follow one another are joined into one.
    """
    parts = (list(group) for _, group in groupby(found, key=lambda one: isinstance(one, kind)))
    return Batches(kind.join(part) if isinstance(part[0], kind) else part for part in parts)
