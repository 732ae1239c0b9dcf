"""Many draws at once: the words of consecutive draws, of which each reads its own at its own pace.

Guarantee    what a lane decides is what the scalar functions decide from the same words; a lane that needs words beyond
             its own, or a comparison of more than 64 bits, is left to them (`left`)
Arithmetic   uint64 throughout; a number is known by bounds, in units of 2**-64, that are right for certain
Proof        docs/proofs/keyed-noise.md
"""

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.keyed import Bits

Words = NDArray[np.uint64]
Indices = NDArray[np.intp]
Marks = NDArray[np.bool_]

CHUNK = 1 << 12  # draws at a time: their words fit into a processor's cache
FEW = 32  # lanes that are drawn one by one in less time than together
_LAST = (1 << 64) - 1


class Lanes:
    """The words of draws start .. start + count - 1; lane i belongs to draw start + i."""

    __slots__ = ("_at", "_end", "_open", "_words", "length")

    def __init__(self, bits: Bits, start: int, count: int) -> None:
        self._words: Words = np.frombuffer(bits.block(start, count), dtype="<u8")
        self.length = bits.words  # of each lane
        self._at: Indices = np.arange(count) * self.length
        self._end: Indices = self._at + self.length
        self._open: Marks = np.zeros(count, dtype=np.bool_)

    def read(self, lanes: Indices) -> Words:
        """The next word of each of these lanes."""
        at = self._at[lanes]
        self._at[lanes] = at + 1
        return self.words(at)

    def words(self, at: Indices) -> Words:
        """The words at these places; what is read past a lane's end counts for nothing."""
        return self._words.take(at, mode="clip")

    def places(self, lanes: Indices) -> Indices:
        """Where each of these lanes reads next."""
        return self._at[lanes]

    def move(self, lanes: Indices, at: Indices) -> None:
        """These lanes read next at these places."""
        self._at[lanes] = at

    def leave(self, lanes: Indices) -> None:
        """These lanes are not decided here."""
        self._open[lanes] = True

    def inside(self, lanes: Indices) -> Marks:
        """Which of the lanes have read no word past their end; only they go on, so each comes to an end."""
        inside: Marks = self._at[lanes] <= self._end[lanes]
        return inside

    @property
    def left(self) -> list[int]:
        """The lanes that the scalar definition must decide."""
        lanes: list[int] = np.flatnonzero(self._open | (self._at > self._end)).tolist()
        return lanes


def first_failure_is_odd(lanes: Lanes, chosen: Indices, x: Words, slack: int = 0, place: int = 1) -> Marks:
    """For each chosen lane: whether Bernoulli(x / place), Bernoulli(x / (place + 1)), ... fails at an odd place first.

    The number meant is above 0 and, in units of 2**-64, between x and x + slack + 1; at place 1 it is below 1.
    """
    odd: Marks = np.zeros(len(chosen), dtype=np.bool_)
    going: Indices = np.arange(len(chosen))
    at, after = lanes.places(chosen), lanes.places(chosen)
    lanes.leave(chosen[x == 0])  # the number might be 0, for which no word is read
    last = place + lanes.length  # one word per place: who goes on beyond has read too many
    while going.size and place <= last:
        word, low = lanes.words(at), x // place
        on = word < low
        unclear = (word <= ((x + slack) // place if slack else low)) & ~on
        if unclear.any():
            lanes.leave(chosen[going[unclear]])
        at += 1
        after[going] = at
        odd[going] = ~on & (place % 2 == 1)  # of those that go on, their own failure decides
        going, at, x = going[on], at[on], x[on]
        place += 1
    lanes.move(chosen, after)
    return odd


def successes(lanes: Lanes, chosen: Indices) -> Words:
    """For each chosen lane: how many Bernoulli(exp(-1)) succeed before the first that fails."""
    count: Words = np.zeros(len(chosen), dtype=np.uint64)
    going: Indices = np.arange(len(chosen))
    while going.size:
        one: Words = np.full(len(going), _LAST, dtype=np.uint64)
        odd = first_failure_is_odd(lanes, chosen[going], one, place=2)  # Bernoulli(1 / 1) reads nothing
        going = going[odd & lanes.inside(chosen[going])]
        count[going] += 1
    return count
