"""What every decayed sum is: public parameters, frozen, and a summer that takes one step after the other.

Step t has an integer x_t, the sum of what came in it, in grid steps; most steps may hold 0. Release t is a weighted sum
of x_1 .. x_t, the weight depending on the age t - s of step s alone, plus noise. All that is ever released is a
function of R x + z: R is an integer matrix ("which draw protects which steps"), z are independent draws of discrete
Laplace noise. A unit that changes the steps by d changes R x by R d, so

    privacy loss <= sum over draws of |(R d)_v| / scale_v <= width * max over s of sum over v of |R_vs| / scale_v

also if steps react to releases, and although a draw may protect steps that are still to come (docs/proofs/decay.md).
`column` states R step by step. Nothing is assumed about where a unit's changes lie: all may be in one step.

Numbers      x and releases are integers; a release counts in units of 1 / `denominator` grid steps
Rounding     weights are public; what rounds, rounds a function of R x + z, or moves with x by exactly R d
Silence      `skip` passes steps in which, publicly, nobody contributes and which release nothing
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from shoal.mechanisms.counters.counter import Subkeys

FRACTION = 40  # binary places of weights, and of sums that have them
UNIT = 1 << FRACTION


class Node(NamedTuple):
    """A draw that protects a step."""

    subkey: int  # the number of its subkey
    place: int  # its index under that subkey
    coefficient: int  # of the step, in R
    scale: Fraction  # of the draw, in units of R x


class DecayedSum(Protocol):
    """All that is public about a decayed sum."""

    @property
    def width(self) -> int:
        """Grid steps that one unit can change in all: the sum of its changes, be they in one step or in many."""
        ...

    @property
    def epsilon(self) -> Fraction:
        """What a unit pays, once, for all releases together."""
        ...

    @property
    def mechanism(self) -> str:
        """What a release says of how it was made."""
        ...

    @property
    def denominator(self) -> int:
        """Parts of a grid step that a release counts in."""
        ...

    def shape(self) -> str:
        """Which sum it is, with all its parameters, as the digest of a metric's parameters has it.

        Every text is written out: were it to follow the names of a class or its fields, a renaming would change the
        digest, and with it the metric's key and noise, and every ledger would refuse the metric.
        """
        ...

    def variance(self, t: int) -> float:
        """Variance of the noise of release t, in squared grid steps, if no step was skipped; else hardly larger."""
        ...

    def noise_sd(self, t: int) -> float:
        """Its root, rounded to six digits."""
        ...

    def noise_quantile(self, t: int) -> float:
        """The number of grid steps that the size of the noise stays below with probability 0.95."""
        ...

    def summer(self, subkey: Subkeys) -> "Summer":
        """The releases under a key, from the first step on."""
        ...

    def counts(self) -> "Summer":
        """The same weights, without noise: for numbers that are public, such as how many contributions a step has."""
        ...


class PureDecayedSum(DecayedSum, Protocol):
    """One with Laplace noise: pure epsilon-DP."""

    def column(self, step: int) -> tuple[Node, ...]:
        """The draws that protect step 1, 2, ...; all of them, asked for or not."""
        ...


class Summer(Protocol):
    """One metric's decayed sum in one group."""

    @property
    def t(self) -> int:
        """Steps so far."""
        ...

    def add(self, x: int) -> int:
        """Take one more step; its release."""
        ...

    def skip(self, steps: int) -> None:
        """So many steps hold nothing, publicly, and release nothing."""
        ...

    @property
    def kept(self) -> Mapping[int, int]:
        """By step, the exact sums that must survive a restart besides the head."""
        ...

    def take_changes(self) -> tuple[dict[int, int], list[int]]:
        """What was added to `kept` and not dropped again, and what was dropped, since the last call or restore."""
        ...

    def head(self) -> list[Any]:
        """The rest of the state: a bounded list of ints of 64 bits, strings and lists."""
        ...

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        """Become the summer that had this head and these kept steps."""
        ...


def text(number: int) -> str:
    """An integer of any size, for the state.

    >>> text(-1 << 70), int(text(-1 << 70), 16) == -1 << 70
    ('-400000000000000000', True)
    """
    return f"{number:x}"


def spelled(number: Fraction) -> str:
    """An exact number in a shape.

    >>> spelled(Fraction(5, 4)), spelled(Fraction(3))
    ('Fraction(5, 4)', 'Fraction(3, 1)')
    """
    return f"Fraction({number.numerator}, {number.denominator})"


class Kept:
    """The exact sums of the last `length` steps, those that are 0 left out, and what changed in them.

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
        """Step t is the last one; what the step held that is therefore too old."""
        if x:
            self.held[t] = self._added[t] = x
        return self._drop(t - self.length)

    def forget(self, t: int) -> int:
        """Step t is the last one, and the steps since the last one held nothing; the sum of what is too old now."""
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
        """What was added and what was dropped since the last call or restore."""
        changes = self._added, self._dropped
        self._added, self._dropped = {}, []
        return changes

    def restore(self, held: Mapping[int, int]) -> None:
        """Hold these."""
        self.held = dict(sorted(held.items()))
        self._added, self._dropped = {}, []
