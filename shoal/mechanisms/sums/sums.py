"""The interface of every decayed sum: public parameters, frozen, and a summer that takes one step after the other.

Step t has an integer x_t, the sum of what came in it, in grid steps; most steps may hold 0. Release t is a weighted sum
of x_1 .. x_t, plus noise; what step s weighs depends on its age t - s alone, or with forward decay on s and t. All that
is ever released is a function of R x + z: R is an integer matrix ("which draw protects which steps"), z are independent
draws of discrete Laplace noise. A unit that changes the steps by d changes R x by R d, so

    privacy loss <= sum over draws of |(R d)_v| / scale_v <= width * max over s of sum over v of |R_vs| / scale_v

also if steps react to releases, and although a draw may protect steps that are still to come (docs/proofs/decay.md).
`column` states R step by step. Nothing is assumed about where a unit's changes lie: all may be in one step.

Numbers      x and releases are integers; a release counts in units of 1 / `denominator` grid steps
Rounding     weights are public; what rounds, rounds a function of R x + z, or moves with x by exactly R d
Silence      `skip` passes steps in which, publicly, nobody contributes and which release nothing
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.error_bars import COVERAGE

FRACTION = 40  # binary places of weights, and of sums that have them
UNIT = 1 << FRACTION


class Node(NamedTuple):
    """A draw that protects a step."""

    subkey: int  # the number of its subkey
    place: int  # its index under that subkey
    coefficient: int  # of the step, in R
    scale: Fraction  # of the draw, in units of R x


class DecayedSum(Protocol):
    """All public parameters of a decayed sum."""

    @property
    def width(self) -> int:
        """The grid steps that one unit can change in all its steps together."""
        ...

    @property
    def epsilon(self) -> Fraction:
        """The privacy loss of a unit, paid once for all releases together."""
        ...

    @property
    def mechanism(self) -> str:
        """The name that a release gives the mechanism that made it."""
        ...

    @property
    def denominator(self) -> int:
        """The number of parts of a grid step in which releases count."""
        ...

    def shape(self) -> str:
        """The sum's kind and all its parameters, as the digest of a metric's parameters has them.

        Every text is written out: if it followed the names of a class or its fields, a renaming would change the
        digest, and with it the metric's key and noise, and every ledger would refuse the metric.
        """
        ...

    def variance(self, t: int) -> float:
        """Variance of the noise of release t, in squared grid steps; hardly larger if steps were skipped."""
        ...

    def noise_sd(self, t: int) -> float:
        """Standard deviation of that noise in grid steps, rounded to six digits."""
        ...

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        """The bound, in grid steps, below which the size of that noise stays with probability `coverage`."""
        ...

    def summer(self, subkey: Subkeys) -> "Summer":
        """The releases under a key, from the first step on."""
        ...

    def counts(self) -> "Summer":
        """The same weights without noise, for public numbers such as how many contributions a step has."""
        ...


class Summer(Protocol):
    """The decayed sum of one group of a metric."""

    @property
    def t(self) -> int: ...

    def add(self, x: int) -> int:
        """Take one more step and return its release."""
        ...

    def skip(self, steps: int) -> None:
        """Pass `steps` steps that publicly hold nothing and release nothing."""
        ...

    @property
    def kept(self) -> Mapping[int, int]:
        """The exact sums, by step, that must survive a restart besides the head."""
        ...

    def take_changes(self) -> tuple[dict[int, int], list[int]]:
        """The steps added to `kept` and not dropped again, and those dropped, since the last call or restore."""
        ...

    def head(self) -> list[Any]:
        """The rest of the state: a bounded list of ints of 64 bits, strings and lists."""
        ...

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        """Become the summer that had this head and these kept steps."""
        ...


def text(number: int) -> str:
    """An integer of any size, as text for the state.

    >>> text(-1 << 70), int(text(-1 << 70), 16) == -1 << 70
    ('-400000000000000000', True)
    """
    return f"{number:x}"


def spelled(number: Fraction) -> str:
    """An exact number as a shape spells it.

    >>> spelled(Fraction(5, 4)), spelled(Fraction(3))
    ('Fraction(5, 4)', 'Fraction(3, 1)')
    """
    return f"Fraction({number.numerator}, {number.denominator})"


@dataclass(frozen=True)
class Noised:
    """The public parameters that every sum, or step, with noise of its own has."""

    width: int  # grid steps that one unit can move in all
    epsilon: Fraction  # paid once, wherever the unit's changes lie

    def __post_init__(self) -> None:
        check.positive(width=self.width, epsilon=self.epsilon)

    @property
    def denominator(self) -> int:
        return 1

    @property
    def _shared_shape(self) -> str:
        return f"width={self.width}, epsilon={spelled(self.epsilon)}"


class Headed:
    """A summer whose head is all of its state."""

    __slots__ = ()

    @property
    def kept(self) -> Mapping[int, int]:
        return {}

    def take_changes(self) -> tuple[dict[int, int], list[int]]:
        return {}, []


class Kept:
    """The exact sums of the last `length` steps, without those that are 0, and what changed in them.

    >>> steps = Kept(3)
    >>> [steps.push(t, x) for t, x in enumerate([5, 0, 7, 1, 2], start=1)], dict(steps.held)
    ([0, 0, 0, 5, 0], {3: 7, 4: 1, 5: 2})
    """

    __slots__ = ("_added", "_dropped", "held", "length")

    def __init__(self, length: int) -> None:
        self.length = length
        self.held: dict[int, int] = {}  # in order of steps
        self._added: dict[int, int] = {}
        self._dropped: list[int] = []

    def push(self, t: int, x: int) -> int:
        """Take the last step t and return the sum of the step that it makes too old."""
        if x:
            self.held[t] = self._added[t] = x
        return self._drop(t - self.length)

    def forget(self, t: int) -> int:
        """Pass empty steps up to t and return the sum of all steps that are now too old."""
        gone = 0
        while self.held and (oldest := next(iter(self.held))) <= t - self.length:
            gone += self._drop(oldest)
        return gone

    def _drop(self, step: int) -> int:
        x = self.held.pop(step, 0)
        if x and self._added.pop(step, None) is None:
            self._dropped.append(step)
        return x

    def take_changes(self) -> tuple[dict[int, int], list[int]]:
        changes = self._added, self._dropped
        self._added, self._dropped = {}, []
        return changes

    def restore(self, held: Mapping[int, int]) -> None:
        self.held = dict(sorted(held.items()))
        self._added, self._dropped = {}, []


class Windowed:
    """A summer that keeps the exact sums of the last `length` steps that are not 0."""

    __slots__ = ("_steps", "t")

    def __init__(self, length: int) -> None:
        self._steps, self.t = Kept(length), 0

    @property
    def kept(self) -> Mapping[int, int]:
        return self._steps.held

    def take_changes(self) -> tuple[dict[int, int], list[int]]:
        return self._steps.take_changes()

    def head(self) -> list[Any]:
        return [self.t]

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        (self.t,) = head
        self._steps.restore(kept)
