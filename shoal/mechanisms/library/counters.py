"""Counters: every prefix sum of a stream of integers, or a sum that forgets, released as the stream arrives."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from shoal.mechanisms import check
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.counters.square_root import SquareRoot
from shoal.mechanisms.error_bars import noise_quantile, six_digits
from shoal.mechanisms.library.keys import Key, Transcript
from shoal.mechanisms.library.numbers import EXACT, around, exact, exactly, whole
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.sums.decays import Decay
from shoal.mechanisms.sums.sums import DecayedSum

Algorithm = Literal["blue", "binary", "square-root"]


@dataclass(frozen=True, kw_only=True)
class Counter:
    """Prefix sums of a stream of integers: one epsilon for all of them together, however long the stream.

    Shapes   `open(key)`, then `add(x)` with one int per element: it returns the noisy sum of all so far, an int
    Units    width: the most by which one unit changes all elements together, in the units of x: a user who may add 1
             in three elements has 3. horizon: elements expected; of "blue" it tunes accuracy and may be left out.
             variance(t), noise_sd(t), noise_quantile(t): of release t = 1, 2, ..., in the units of x
    Raises   TypeError: a float; ValueError: a parameter that is missing, too small or of no use; KeyReused: the key has
             released another input
    Source   "blue": best linear estimates from complete trees, docs/proofs/blue.md; "binary": Chan, Shi and Song
             (2011), docs/proofs/binary-counter.md; "square-root": Gaussian noise, Fichtenberger, Henzinger and
             Upadhyay (2023), docs/proofs/square-root.md, which needs a delta

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import Counter, Key
    >>> visits = Counter(epsilon=Fraction(1), horizon=1000)
    >>> visits.loss.epsilon, visits.noise_sd(1), visits.noise_sd(1000)
    (Fraction(1, 1), 4.07918, 12.7054)
    >>> stream = visits.open(Key(bytes(range(32))).named("visits"))
    >>> [stream.add(x) for x in (5, 0, 7)]
    [1, 2, 6]
    >>> stream.t, [round(end, 1) for end in stream.interval()]
    (3, [-7.1, 19.1])
    """

    epsilon: EXACT
    delta: EXACT = 0
    width: int = 1
    horizon: int | None = None
    algorithm: Algorithm = "blue"

    def __post_init__(self) -> None:
        if self.algorithm not in ("blue", "binary", "square-root"):
            raise ValueError(f"algorithm is blue, binary or square-root, not {self.algorithm}")
        if self.horizon is None and self.algorithm != "blue":
            raise ValueError(f"horizon is missing: {self.algorithm} needs it; give it, or use blue")
        if self.delta and self.algorithm != "square-root":
            raise ValueError(f"delta must be 0: {self.algorithm} is pure differential privacy; or use square-root")
        _ = self.tree  # what it refuses, it refuses now

    @cached_property
    def tree(self) -> BinaryTree | GrowingBlue | SquareRoot:
        """The public parameters as the mechanism has them; not a part of the library."""
        epsilon, delta = exact(epsilon=self.epsilon), exact(delta=self.delta)
        match self.algorithm:
            case "binary":
                return BinaryTree(self.horizon or 0, self.width, epsilon)
            case "square-root":
                return SquareRoot(self.horizon or 0, self.width, epsilon, delta)
        return GrowingBlue(self.width, epsilon, horizon=self.horizon)

    @property
    def loss(self) -> Loss:
        """The cost to one unit of all releases together, whether they are made or not."""
        return Loss(Fraction(self.epsilon), Fraction(self.delta))

    def variance(self, t: int) -> float:
        """Variance of the noise of release t."""
        return self.tree.variance(t)

    def noise_sd(self, t: int) -> float:
        """Standard deviation of the noise of release t, rounded to six digits."""
        return six_digits(math.sqrt(self.variance(t)))

    def noise_quantile(self, t: int) -> float:
        """What the size of the noise of release t stays below with probability 0.95, rounded to six digits."""
        return self.tree.noise_quantile(t) if isinstance(self.tree, SquareRoot) else noise_quantile(self.tree.scales(t))

    def open(self, key: Key) -> "CounterStream":
        """A stream of elements to be counted under a key."""
        said = exactly(self.epsilon, self.delta)
        secret = key._of_stream(("counter", self.algorithm, *said, self.width, self.horizon or 0))
        return CounterStream(self, secret)


class CounterStream:
    """A stream whose prefix sums are released, as `Counter.open` makes it.

    Shapes   `add(x)`: an int in, an int out; `t`: elements so far; `interval()`: two floats around the last release
    Units    those of x
    Raises   TypeError: x is no int; ValueError: there is no release yet; KeyReused: the key has released another input
    Source   the counter's

    >>> from shoal.mechanisms import Counter, CounterStream, Key
    >>> stream: CounterStream = Counter(epsilon=10**9).open(Key(bytes(range(32))).named("hardly any noise"))
    >>> [stream.add(x) for x in (1, 2, 3)], stream.t
    ([1, 3, 6], 3)
    """

    def __init__(self, counter: Counter, secret: bytes) -> None:
        self._counter, self._transcript = counter, Transcript(secret)
        self._noise = counter.tree.counter(lambda epoch: derive(secret, "tree", epoch))
        self._total, self._released = 0, 0
        self.t = 0

    def add(self, x: int) -> int:
        """Take one more element; the noisy sum of all so far."""
        whole(x=x)
        self._transcript.note(x)
        self._transcript.release()
        self._total += x
        self.t += 1
        self._released = self._total + self._noise.noise(self.t)
        return self._released

    def interval(self) -> tuple[float, float]:
        """The interval around the last release that holds the exact sum with probability 0.95."""
        return around(self._released, self._counter.noise_quantile, self.t)


@dataclass(frozen=True, kw_only=True)
class DecayedCounter:
    """Sums of a stream of integers that forget: one epsilon for all releases together, however long the stream.

    Shapes   `open(key)`, then `add(x)` with one int per step, 0 for a step that holds nothing: it returns the noisy
             weighted sum, a Fraction
    Units    decay: Window, Exponential, Polynomial, Forward or Undecayed, in steps. width: the most by which one unit
             changes all steps together, in the units of x. variance(t), noise_sd(t), noise_quantile(t): of release t
    Raises   TypeError: a float; ValueError: a parameter that is not above 0; KeyReused: the key has released another
             input
    Source   the best of several mechanisms for each decay, shoal/mechanisms/sums/decays.py; docs/proofs/decay.md

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import DecayedCounter, Key, Window
    >>> week = DecayedCounter(decay=Window(7), epsilon=Fraction(1))
    >>> week.mechanism, week.noise_sd(100)
    ('per-step', 3.59019)
    >>> stream = week.open(Key(bytes(range(32))).named("week"))
    >>> [str(stream.add(x)) for x in (5, 0, 7)]
    ['4', '4', '12']
    """

    decay: Decay
    epsilon: EXACT
    delta: EXACT = 0
    width: int = 1

    def __post_init__(self) -> None:
        if getattr(self.decay, "of_updates", False):
            raise ValueError("a counter adds at every step; a window of updates is for DecayedStatistic")
        refuse_idle(self.delta, self.sums.mechanism)

    @cached_property
    def sums(self) -> DecayedSum:
        """The public parameters as the mechanism has them; not a part of the library."""
        check.positive(epsilon=self.epsilon, width=self.width)
        return self.decay.sharp(self.width, exact(epsilon=self.epsilon), exact(delta=self.delta))

    @property
    def mechanism(self) -> str:
        """The mechanism that was chosen, by public parameters alone."""
        return self.sums.mechanism

    @property
    def loss(self) -> Loss:
        """The cost to one unit of all releases together, whether they are made or not."""
        return Loss(Fraction(self.epsilon), Fraction(self.delta))

    def variance(self, t: int) -> float:
        """Variance of the noise of release t."""
        return self.sums.variance(t)

    def noise_sd(self, t: int) -> float:
        """Standard deviation of the noise of release t, rounded to six digits."""
        return self.sums.noise_sd(t)

    def noise_quantile(self, t: int) -> float:
        """What the size of the noise of release t stays below with probability 0.95, rounded to six digits."""
        return self.sums.noise_quantile(t)

    def open(self, key: Key) -> "DecayedStream":
        """A stream of steps to be summed under a key."""
        return DecayedStream(self, key._of_stream(("decayed", self.sums.shape())))


class DecayedStream:
    """A stream whose decayed sums are released, as `DecayedCounter.open` makes it.

    Shapes   `add(x)`: an int in, a Fraction out; `t`: steps so far; `interval()`: two floats around the last release
    Units    those of x
    Raises   TypeError: x is no int; ValueError: there is no release yet; KeyReused: the key has released another input
    Source   the mechanism's

    >>> from shoal.mechanisms import DecayedCounter, DecayedStream, Exponential, Key
    >>> half = DecayedCounter(decay=Exponential.half_life(1), epsilon=10**9)
    >>> stream: DecayedStream = half.open(Key(bytes(range(32))).named("hardly any noise"))
    >>> [round(float(stream.add(x)), 4) for x in (8, 0, 0)]
    [8.0, 4.0, 2.0]
    """

    def __init__(self, counter: DecayedCounter, secret: bytes) -> None:
        self._counter, self._transcript = counter, Transcript(secret)
        self._summer = counter.sums.summer(lambda number: derive(secret, "step", number))
        self._released = Fraction(0)
        self.t = 0

    def add(self, x: int) -> Fraction:
        """Take one more step; the noisy weighted sum."""
        whole(x=x)
        self._transcript.note(x)
        self._transcript.release()
        self.t += 1
        self._released = Fraction(self._summer.add(x), self._counter.sums.denominator)
        return self._released

    def interval(self) -> tuple[float, float]:
        """The interval around the last release that holds the exact weighted sum with probability 0.95."""
        return around(float(self._released), self._counter.noise_quantile, self.t)


def refuse_idle(delta: EXACT, mechanism: str) -> None:
    """Refuse a delta that nothing is done with.

    Raises:
        ValueError: the noise is Laplace noise, and pure.
    """
    check.not_negative(delta=delta)
    if delta and mechanism != "square-root":
        raise ValueError("delta must be 0: the noise is Laplace noise here, and needs none")
