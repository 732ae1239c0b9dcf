"""Fingerprints of contributions, that do not depend on how these were cut into messages.

blocks    digest of the rows, in order; where a message ends does not matter
partials  sum over ticks and cells of a(tick) * (samples * b(cell) + total * c(cell)) mod 2**127 - 1, with a, b and c
          drawn for this audit (of several coordinates, each has a c of its own): how a tick's samples are split into
          partials does not matter. If any sum is another one, the difference is a polynomial of degree two in what
          was drawn, and not zero: it vanishes with a chance of 2**-126
samples   of slots: sum over samples of a(slot, cell, user, place among that user's in the cell) * (value + 1), of
          several coordinates with an a for each; of each slot that is over. How they were cut into pieces does not
          matter, but each piece has the number that follows, by which release puts them in order
"""

import secrets
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from operator import itemgetter, mul
from typing import Any

import orjson

from shoal.mechanisms.parts.lengths import Even
from shoal.models.records import Partial, Row

PRIME = 2**127 - 1
MOST_CELLS = 1 << 16  # whose coefficients are remembered; metrics have fewer, and who forges may name any
_SALT = secrets.token_bytes(32)  # not noise: coefficients that whoever wrote the topic could not know


SAMPLES = itemgetter(4)  # of a row


class Cells(dict[int, int]):
    """Coefficients of cells, drawn on first sight, for their samples, or for a coordinate of their totals."""

    def __init__(self, lane: int) -> None:
        super().__init__()
        self._lane = lane

    def __missing__(self, cell: int) -> int:
        drawn = _coefficient(cell, self._lane)
        if len(self) < MOST_CELLS:
            self[cell] = drawn
        return drawn


class Blocks:
    """A fingerprint of rows whose order counts."""

    __slots__ = ("_digest", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._digest = blake2b(digest_size=32)

    def add(self, rows: Sequence[Row]) -> None:
        """Take in rows of one group, all of one message."""
        if rows:
            self.take(orjson.dumps(rows)[1:-1], sum(map(SAMPLES, rows)))

    def take(self, written: bytes | memoryview, samples: int) -> None:
        """The same of rows in JSON as `orjson` writes them, without the brackets of the list."""
        self.samples += samples
        self._digest.update(written)
        self._digest.update(b",")

    @property
    def print(self) -> bytes:
        return self._digest.digest()


class Partials:
    """A fingerprint of partials, whose sums per tick and cell count.

    >>> split, whole = Partials(), Partials()
    >>> split.add([(60, [0, 2, 30]), (0, [0, 1, 5, 7, 1, 2]), (60, [0, 1, 12])])
    >>> whole.add([(0, [7, 1, 2, 0, 1, 5]), (60, [0, 3, 42])])
    >>> split.print == whole.print, split.samples
    (True, 5)
    """

    __slots__ = ("_sum", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._sum = 0

    def add(self, partials: Iterable[Partial]) -> None:
        for start, flat in partials:
            self._sum = (self._sum + _coefficient(start) * self._tick(flat)) % PRIME

    def _tick(self, flat: list[Any]) -> int:
        """What a tick's cells add up to."""
        if set(map(type, flat)) <= {int}:  # nearly all: then in a tenth of the time
            cells, samples, totals = flat[::3], flat[1::3], flat[2::3]
            self.samples += sum(samples)
            found: int = sum(map(mul, map(LANES[0].__getitem__, cells), samples))
            found += sum(map(mul, map(LANES[1].__getitem__, cells), totals))
            return found
        found, numbers = 0, iter(flat)
        for cell, samples, total in zip(numbers, numbers, numbers, strict=True):
            self.samples += samples
            for lane, number in enumerate([samples, *total] if isinstance(total, list) else [samples, total]):
                if not isinstance(number, int):
                    raise TypeError("sums are whole numbers")
                found += _of_cell(cell, lane) * number
        return found

    @property
    def print(self) -> bytes:
        return self._sum.to_bytes(16, "big")


class Samples:
    """A fingerprint of samples of slots; a user's order within a cell counts.

    >>> split, whole = Samples(), Samples()
    >>> split.add([(0, "u", 1, 0, 2, {"a": [5], "b": [7]}), (0, "u", 3, 0, 1, {"a": [6]})])
    >>> whole.add([(0, "u", 1, 0, 3, {"b": [7], "a": [5, 6]})])
    >>> minute = Even(60)
    >>> split.over(minute, 60) == whole.over(minute, 60), split.over(minute, 59), split.samples
    (True, {}, 3)
    """

    __slots__ = ("_numbers", "_positions", "_sums", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._numbers: dict[tuple[int, str], int] = {}  # of a user's last sample in the slot
        self._sums: dict[int, int] = {}  # by slot's start
        self._positions: dict[tuple[int, str, str], int] = {}

    def add(self, rows: Iterable[Row]) -> None:
        for start, user, number, level, count, cells in rows:
            self.samples += count
            last = self._numbers.get((start, user), 0)
            if (number, level, count) != (last + 1, 0, sum(map(len, cells.values()))):  # bound sends no such row
                self._sums[start] = (self._sums.get(start, 0) + _coefficient(start, user, number)) % PRIME
            self._numbers[start, user] = last + count
            for cell, values in cells.items():
                first = self._positions.get((start, user, cell), 0)
                self._positions[start, user, cell] = first + len(values)
                for position, value in enumerate(values, first):
                    more = _sample_print(value, start, cell, user, position)
                    self._sums[start] = (self._sums.get(start, 0) + more) % PRIME

    def forget(self, length: Even, promise: int) -> None:
        """Forget slots that were over by the promise: nothing more comes for them."""
        self._positions = {
            name: position for name, position in self._positions.items() if length.end_after(name[0]) > promise
        }
        self._numbers = {name: number for name, number in self._numbers.items() if length.end_after(name[0]) > promise}

    @property
    def held(self) -> int:
        """Users with slots that may still be open."""
        return len(self._numbers)

    def over(self, length: Even, promise: int) -> dict[int, int]:
        """Fingerprints of the slots that were over by the promise."""
        return {start: sum_ for start, sum_ in self._sums.items() if length.end_after(start) <= promise}


def _sample_print(value: Any, *name: int | str) -> int:
    """The part of a sample in a slot's fingerprint; one of several coordinates is a list."""
    if isinstance(value, list):
        return sum(_sample_print(number, *name, axis) for axis, number in enumerate(value))
    return _coefficient(*name) * (int(value) + 1)


def _of_cell(cell: Any, lane: int) -> int:
    """The coefficient; JSON decides what a name is, so that `true` is not 1."""
    return LANES[lane][cell] if type(cell) is int and lane < len(LANES) else _coefficient(cell, lane)


def _coefficient(*name: int | str) -> int:
    drawn = blake2b(orjson.dumps(name), key=_SALT, digest_size=16)
    return int.from_bytes(drawn.digest(), "big")


LANES = tuple(map(Cells, range(8)))  # of samples, and of the first coordinates of totals
