"""Many draws at once: consecutive ones of one subkey, or one of each of many; each reads its own words at its own pace.

Guarantee    what a lane decides is what the scalar functions decide from the same words; a lane that needs words beyond
             its own, or a comparison of more than 64 bits, is left to them (`left`)
Arithmetic   uint64 throughout; a number is known by bounds, in units of 2**-64, that are right for certain
Proof        docs/proofs/keyed-noise.md
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms import check
from shoal.mechanisms.noise.keyed import Bits

Words = NDArray[np.uint64]
Indices = NDArray[np.intp]
Marks = NDArray[np.bool_]
Numbers = NDArray[np.int64] | NDArray[np.object_]

CHUNK = 1 << 14  # draws at a time: their words fit into a processor's cache
FEW, VERY_FEW = 32, 4  # lanes that are drawn one by one in less time than together
SINGLY = 100  # draws of as many subkeys: below that, one by one is faster from the start
_ONE: Words = np.array([(1 << 64) - 1], dtype=np.uint64)


class Form(NamedTuple):
    """The form of the numbers in a block of draws."""

    shift: int  # a magnitude is upper << shift | lower
    small: bool  # all fit into int64 by far
    vector: bool  # all intermediate results fit into uint64


class Sampler(Protocol):
    """A distribution over the integers that can be drawn one by one or, with equal results, many at once in lanes."""

    @property
    def form(self) -> Form: ...

    def draw(self, index: int) -> int: ...

    def words(self, index: int) -> bytes:
        """The words that this draw has of its own."""
        ...

    def attempt(self, block: "Lanes", trying: Indices, drawn: "Signed") -> Marks:
        """Try once in each of these lanes and say which are done; their numbers are then in `drawn`."""
        ...


class Lanes:
    """The words of some draws, each of which has a lane."""

    __slots__ = ("_at", "_end", "_open", "_words", "length")

    def __init__(self, words: bytes, count: int) -> None:
        self._words: Words = np.frombuffer(words, dtype="<u8")
        self.length = len(self._words) // count  # of each lane
        self._at: Indices = np.arange(count) * self.length
        self._end: Indices = self._at + self.length
        self._open: Marks = np.zeros(count, dtype=np.bool_)

    def read(self, lanes: Indices) -> Words:
        at = self._at[lanes]
        self._at[lanes] = at + 1
        return self.words(at)

    def words(self, at: Indices) -> Words:
        """The words at these indices; what is read past a lane's end is never used."""
        return self._words.take(at, mode="clip")

    def places(self, lanes: Indices) -> Indices:
        """The index of the word that each of these lanes reads next."""
        return self._at[lanes]

    def skip(self, lanes: Indices, count: Indices) -> None:
        """Advance each of these lanes by its own number of words."""
        self._at[lanes] += count

    def leave(self, lanes: Indices) -> None:
        """Leave these lanes to the scalar definition."""
        self._open[lanes] = True

    def inside(self, lanes: Indices) -> Marks:
        """Which lanes have read no word past their end; only those go on, so every loop ends."""
        inside: Marks = self._at[lanes] <= self._end[lanes]
        return inside

    @property
    def left(self) -> list[int]:
        """The lanes that the scalar definition must decide."""
        lanes: list[int] = np.flatnonzero(self._open | (self._at > self._end)).tolist()
        return lanes


class Signed:
    """One integer per lane."""

    __slots__ = ("_lower", "_negative", "upper")

    def __init__(self, count: int) -> None:
        self.upper: Words = np.zeros(count, dtype=np.uint64)
        self._lower: Words = np.zeros(count, dtype=np.uint64)
        self._negative: Marks = np.zeros(count, dtype=np.bool_)

    def put(self, chosen: Indices, upper: Words, lower: Words, negative: Marks) -> Marks:
        """Keep these numbers except negative zeros, and say which were kept."""
        self.upper[chosen], self._lower[chosen], self._negative[chosen] = upper, lower, negative
        kept: Marks = (upper | lower != 0) | ~negative
        return kept

    def numbers(self, form: Form) -> Numbers:
        """The integers, as int64 if they are small and as Python's integers otherwise."""
        if form.small:
            small = (self.upper << form.shift | self._lower).astype(np.int64)
            np.negative(small, out=small, where=self._negative)
            return small
        large: NDArray[np.object_] = (self.upper.astype(np.object_) << form.shift) + self._lower.astype(np.object_)
        np.negative(large, out=large, where=self._negative)
        return large


def draw_block(sampler: Sampler, bits: Bits, start: int, count: int) -> Numbers:
    """Draws start .. start + count - 1 of the sampler, which reads `bits`."""
    check.not_negative(start=start, count=count)
    form, end = sampler.form, start + count
    drawn: NDArray[Any] = np.zeros(count, dtype=np.int64 if form.small else np.object_)
    if not form.vector:
        drawn[:] = [sampler.draw(index) for index in range(start, end)]
        return drawn
    for first in range(start, end, CHUNK):
        last = min(first + CHUNK, end)
        words = bits.block(first, last - first)
        drawn[first - start : last - start] = _chunk(sampler, words, last - first, partial(_draw_at, sampler, first))
    return drawn


def draw_each(samplers: Sequence[Sampler], indices: Sequence[int]) -> list[int]:
    """One draw of each of these samplers, which are of one distribution and differ in their subkeys alone."""
    count = len(samplers)
    if count < SINGLY or not samplers[0].form.vector:
        return [sampler.draw(index) for sampler, index in zip(samplers, indices, strict=True)]
    if count > CHUNK:
        return draw_each(samplers[:CHUNK], indices[:CHUNK]) + draw_each(samplers[CHUNK:], indices[CHUNK:])
    words = b"".join([sampler.words(index) for sampler, index in zip(samplers, indices, strict=True)])
    drawn: list[int] = _chunk(samplers[0], words, count, lambda lane: samplers[lane].draw(indices[lane])).tolist()
    return drawn


def _draw_at(sampler: Sampler, start: int, lane: int) -> int:
    return sampler.draw(start + lane)


def _chunk(law: Sampler, words: bytes, count: int, alone: Callable[[int], int]) -> Numbers:
    """Draw all lanes at once and retry those that are refused; the last few, and those left open, are drawn `alone`."""
    block, drawn = Lanes(words, count), Signed(count)
    trying: Indices = np.arange(count)
    while trying.size > FEW:
        again = trying[~law.attempt(block, trying, drawn)]
        trying = again[block.inside(again)]
    block.leave(trying)
    numbers = drawn.numbers(law.form)
    for lane in block.left:
        numbers[lane] = alone(lane)
    return numbers


def first_failure_is_odd(lanes: Lanes, chosen: Indices, x: Words, slack: Words | None = None) -> Marks:
    """Marks the chosen lanes in which Bernoulli(x / 1), Bernoulli(x / 2), ... fails at an odd place first.

    The number meant is between 0 and 1; in units of 2**-64 it is in x .. x + slack + 1, or x .. x + 1.
    """
    lanes.leave(chosen[x == 0])  # the number might be 0, for which no word is read
    return _odd(lanes, chosen, x, x if slack is None else x + slack, 1)


def _odd(lanes: Lanes, chosen: Indices, least: Words, most: Words, place: int) -> Marks:
    """Like `first_failure_is_odd`, but starting at `place`. An array of length 1 holds for all lanes."""
    at, first = lanes.places(chosen), place
    failed: Indices = np.full(len(chosen), place)
    going: Indices = np.arange(len(chosen))
    while going.size and place <= lanes.length + 1:  # one word per place: who goes on beyond has read too many
        word, low = lanes.words(at), least // place
        on = np.flatnonzero(word < low)
        unclear = word == low if most is least else (word >= low) & (word <= most // place)
        if unclear.any():
            lanes.leave(chosen[going[unclear]])
        going, at = going.take(on), at.take(on) + 1
        place += 1
        failed[going] = place
        if least.size > 1:
            same, least = most is least, least.take(on)
            most = least if same else most.take(on)
    lanes.skip(chosen, failed - (first - 1))
    return (failed & 1).astype(np.bool_)


def successes(lanes: Lanes, chosen: Indices) -> Words:
    """The number of times that Bernoulli(exp(-1)) succeeds before the first failure, for each chosen lane."""
    count: Words = np.zeros(len(chosen), dtype=np.uint64)
    going: Indices = np.arange(len(chosen))
    tried = 0
    while going.size > VERY_FEW and tried < lanes.length:  # a word each at least
        going = going[_exp(lanes, chosen[going])]
        tried += 1
        count[going] = tried
    lanes.leave(chosen[going])
    return count


def all_succeed(lanes: Lanes, chosen: Indices, needed: Words) -> Marks:
    """Marks the chosen lanes in which Bernoulli(exp(-1)) succeeds as often as needed; none is tried after a failure."""
    done: Marks = np.ones(len(chosen), dtype=np.bool_)
    going: Indices = np.flatnonzero(needed)
    tried = 0
    while going.size > VERY_FEW:
        succeeds = _exp(lanes, chosen[going])
        done[going[~succeeds]] = False
        tried += 1
        going = going[succeeds & (needed[going] > tried)]
    lanes.leave(chosen[going])
    return done


def _exp(lanes: Lanes, chosen: Indices) -> Marks:
    """Bernoulli(exp(-1)) for each chosen lane; Bernoulli(1 / 1) reads nothing."""
    return _odd(lanes, chosen, _ONE, _ONE, place=2)
