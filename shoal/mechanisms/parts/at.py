"""The part `at`: when releases are made, and how sums forget."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from shoal.mechanisms.parts.lengths import Even


@dataclass(frozen=True, slots=True)
class Undecayed:
    """Decay `none`: every step weighs 1."""

    kind: ClassVar[str] = "none"


@dataclass(frozen=True, slots=True)
class Window:
    """Decay `window`: steps of the last `length` microseconds weigh 1, older steps 0."""

    kind: ClassVar[str] = "window"
    length: int


@dataclass(frozen=True, slots=True)
class Updates:
    """Decay `window` of updates: the last `count` steps with a sample weigh 1, older steps 0."""

    kind: ClassVar[str] = "window"
    count: int


@dataclass(frozen=True, slots=True)
class AllWindows:
    """Decay `all-windows`: releases from which the sum over any window can be computed."""

    kind: ClassVar[str] = "all-windows"
    zeta: Fraction | None  # exponent with which the patent's noise grows by node height; None: its default


@dataclass(frozen=True, slots=True)
class HalfLife:
    """A step weighs half as much `length` microseconds later."""

    kind: ClassVar[str] = "exponential"
    length: int


@dataclass(frozen=True, slots=True)
class Exponential:
    """A step weighs `alpha` times as much as the next step."""

    kind: ClassVar[str] = "exponential"
    alpha: Fraction


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A step of age a weighs (a + 1) ** -exponent."""

    kind: ClassVar[str] = "polynomial"
    exponent: Fraction
    horizon: int | None  # microseconds up to which weights are exact; None: ten million steps
    error: Fraction | None  # of the patent: part by which sums may be too small; None: its default


@dataclass(frozen=True, slots=True)
class Forward:
    """Step i weighs (i / t) ** exponent at step t."""

    kind: ClassVar[str] = "forward"
    exponent: Fraction


@dataclass(frozen=True, slots=True)
class Table:
    """A step of age a weighs weights[a]; older steps weigh nothing."""

    kind: ClassVar[str] = "table"
    weights: tuple[Fraction, ...]
    error: Fraction | None


@dataclass(frozen=True, slots=True)
class Formula:
    """A step of age i weighs what a formula of i says, up to `horizon` microseconds."""

    kind: ClassVar[str] = "formula"
    weight: str
    horizon: int
    error: Fraction | None


Decay = Undecayed | Window | Updates | AllWindows | HalfLife | Exponential | Polynomial | Forward | Table | Formula


@dataclass(frozen=True, slots=True)
class EachContribution:
    """Part `at` of a mean that is released after each contribution."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """Part `at` of a mean of all records so far, released at the end of every tick."""

    length: Even
    life: int | None  # microseconds that the metric is expected to run; None: not stated


@dataclass(frozen=True, slots=True)
class Steps:
    """Part `at` of decayed sums, released at the end of every step."""

    length: Even
    decay: Decay
    rest: int | None  # silent steps after which a group has no releases; None: it always has
    life: int | None  # microseconds that the metric is expected to run; None: not stated


@dataclass(frozen=True, slots=True)
class Slots:
    """Part `at` of a statistic per slot: a release of the slot's records at its end."""

    length: Even


At = EachContribution | Ticks | Steps | Slots
