"""The part `of`: the statistic that is released, with the values that it is computed from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

Range = tuple[Fraction, Fraction]


class Predicate(Protocol):
    """A condition on the fields of an event, which is 1 where it holds and 0 where it does not."""

    @property
    def text(self) -> str: ...
    @property
    def fields(self) -> tuple[str, ...]: ...
    @property
    def numbers(self) -> tuple[str, ...]: ...
    @property
    def kinds(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def test(self) -> Callable[[Sequence[Any]], bool]: ...


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an event that a sample is read from."""

    names: tuple[str, ...]  # of each coordinate; of a predicate its text
    predicate: Predicate | None = None

    @property
    def protected(self) -> tuple[str, ...]:
        """Fields of the event whose contents are protected."""
        return self.names if self.predicate is None else self.predicate.fields

    @property
    def numeric(self) -> tuple[str, ...]:
        """Protected fields that must hold numbers."""
        return self.names if self.predicate is None else self.predicate.numbers

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """Type of each protected field: number, text or boolean."""
        return tuple((name, "number") for name in self.names) if self.predicate is None else self.predicate.kinds

    @property
    def is_number(self) -> bool:
        """Whether a sample is a number of the event, and not the truth of a predicate."""
        return self.predicate is None


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a sample: one coordinate or several, each clipped to its range and rounded to a grid."""

    fields: Fields
    ranges: tuple[Range, ...]  # one for each coordinate
    grid: int  # steps over a range

    @property
    def count(self) -> int:
        """Number of coordinates of a value."""
        return len(self.fields.names)


@dataclass(frozen=True, slots=True)
class Clip:
    """The private choice of the range that each key's values are clipped to."""

    share: Fraction  # of units whose first value may lie above the range


@dataclass(frozen=True, slots=True)
class PublicCount:
    """Statistic `count` under relation values: the exact number of samples; `fields` are read if named."""

    name: ClassVar[str] = "count"
    fields: Fields | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """Statistic `count` under relation add-remove: the noisy number of samples."""

    name: ClassVar[str] = "count"
    fields: Fields | None = None


@dataclass(frozen=True, slots=True)
class Users:
    """Statistic `users`: the noisy number of units with a sample."""

    name: ClassVar[str] = "users"
    fields: Fields | None = None


@dataclass(frozen=True, slots=True)
class Sum:
    """Statistic `sum`: sum of a metric's values."""

    name: ClassVar[str] = "sum"
    values: Values
    clip: Clip | None = None  # None: values are clipped to the given range


@dataclass(frozen=True, slots=True)
class Mean:
    """Statistic `mean`: mean of a metric's values."""

    name: ClassVar[str] = "mean"
    values: Values
    clamp: bool  # whether the estimate is clamped to the range
    clip: Clip | None = None  # None: values are clipped to the given range


@dataclass(frozen=True, slots=True)
class Variance:
    """Statistic `variance`: mean and variance of a metric's values."""

    name: ClassVar[str] = "variance"
    values: Values
    clamp: bool


@dataclass(frozen=True, slots=True)
class Distribution:
    """Statistic `distribution`: histogram, cumulative shares and quantiles of a metric's values."""

    name: ClassVar[str] = "distribution"
    values: Values
    bins: int
    quantiles: tuple[Fraction, ...]
    clamp: bool  # whether shares are clamped to 0 and 1


WithoutValues = PublicCount | Count | Users
WithValues = Sum | Mean | Variance | Distribution
Of = WithoutValues | WithValues
