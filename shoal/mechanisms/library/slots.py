"""Statistics of slots: each tick stands for itself, and what one user adds to one of them is what is protected."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

from shoal.mechanisms.library.keys import Key
from shoal.mechanisms.library.numbers import EXACT, exact, exactly
from shoal.mechanisms.library.statistics import GRID, grid_of
from shoal.mechanisms.library.streams import UserStream
from shoal.mechanisms.parts.by import Best, FewUsers
from shoal.mechanisms.parts.lengths import INSTANT
from shoal.mechanisms.parts.of import Mean
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.slot.accounts import Rule, SlotAccounts
from shoal.mechanisms.slot.algorithms import algorithm_of
from shoal.mechanisms.slot.statistic import Slotted

CHOICES = "best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile"


@dataclass(frozen=True, kw_only=True)
class _OfSlots:
    """What means of slots share."""

    low: EXACT
    high: EXACT
    epsilon: EXACT
    max_contributions: int
    max_groups: int | None = None
    grid: int = GRID

    algorithm: ClassVar[str]

    def __post_init__(self) -> None:
        _ = self.slotted  # what it refuses, it refuses now

    @cached_property
    def slotted(self) -> Slotted:
        """The public parameters as the mechanism has them; not a part of the library."""
        return self._made(Fraction(0), None)

    def _made(self, delta: Fraction, sigma: Fraction | None) -> Slotted:
        return Slotted(
            statistic=Mean,
            algorithm=self.algorithm,
            grid=grid_of(self.low, self.high, self.grid),
            epsilon=exact(epsilon=self.epsilon),
            delta=delta,
            sigma=sigma,
            max_contributions=self.max_contributions,
            max_groups=1 if self.max_groups is None else self.max_groups,
            clamps=self.algorithm in (Best.name, FewUsers.name),
        )

    @property
    def loss(self) -> Loss:
        """The cost to one user of one slot, in all its cells. A user of several slots pays for each."""
        return Loss(self.slotted.epsilon, self.slotted.delta)

    def expected_error(self, samples: list[int]) -> float:
        """The error to expect in a cell whose users give so many samples each, in the units of the range."""
        return algorithm_of(Mean, self.algorithm).predicted_error(samples, self.slotted.parameters)

    def open(self, key: Key, *, first: int = 0) -> UserStream:
        """A stream of samples under a key; `first` is the number of its first slot."""
        made = self.slotted
        said = exactly(self.low, self.high, self.epsilon, made.delta)
        sigma = "" if made.sigma is None else str(made.sigma)
        numbers = self.max_contributions, self.max_groups or 0, self.grid
        rule = Rule(self.max_contributions, INSTANT, INSTANT, 1, made.max_groups, splits=False)
        return UserStream(
            made,
            key._of_stream(("slot-mean", self.algorithm, *said, sigma, *numbers)),
            lambda site, bounder: SlotAccounts(rule, site),
            first,
            grouped=self.max_groups is not None,
            valued=True,
        )


@dataclass(frozen=True, kw_only=True)
class SlotMean(_OfSlots):
    """The mean of each slot, or of each cell of a slot, of users who may give many values: once it is over.

    Shapes   `open(key)` makes a `UserStream` whose ticks are the slots; a slot releases an `Estimate` of each cell in
             which anybody was, whose details say how it was made
    Units    low, high: the range, to which values are clipped, in their units; epsilon: of a user in one slot, in all
             its cells; max_contributions: samples of a user that count in a cell; max_groups: cells of a user in a
             slot, where there are cells. algorithm: best, or one that it chooses from
    Raises   TypeError: a float where privacy is decided; ValueError: a parameter that is too small, no range, or no
             such algorithm; KeyReused: the key has released another input
    Source   Rameshwar et al. (2024); docs/proofs/slots.md, many-cells.md. Relation values: who is in a cell, and how
             often, is public. Unit: a user in one slot

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import Key, SlotMean
    >>> speeds = SlotMean(low=0, high=65, epsilon=Fraction(1), max_contributions=8)
    >>> round(speeds.expected_error([8] * 40), 2)
    1.62
    >>> stream = speeds.open(Key(bytes(range(32))).named("speeds"))
    >>> for bus in range(40):
    ...     for _ in range(8):
    ...         _ = stream.add(f"bus {bus}", 20 + bus % 5)
    >>> estimate = stream.close()[""]
    >>> round(estimate.value, 2), round(estimate.noise_sd, 2), estimate.details["mechanism"]
    (24.01, 2.3, "best: baseline, up to 8 of a user's samples")
    """

    algorithm: Literal["best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile"] = "best"  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.algorithm not in CHOICES:
            raise ValueError(f"algorithm is one of {', '.join(CHOICES)}, not {self.algorithm}")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class FewUsersMean(_OfSlots):
    """The mean of a slot with few users who give many values each: a point near most users' means, or no release.

    Shapes   `open(key)` makes a `UserStream` whose ticks are the slots; a slot releases an `Estimate` of each cell in
             which anybody was, whose `value` is None where no point was near enough to most
    Units    low, high: the range, to which values are clipped, in their units; epsilon, delta: of a user in one slot,
             in all its cells; sigma: a user's values are sigma-subgaussian around one mean, in the units of the range:
             it tunes accuracy alone, none is half the range; max_contributions, max_groups: as of `SlotMean`
    Raises   TypeError: a float where privacy is decided; ValueError: a parameter that is too small, no range, or a
             delta of 0; KeyReused: the key has released another input
    Source   Esfandiari, Mirrokni and Narayanan (2021); docs/proofs/few-users.md. Relation values: who is in a cell, and
             how often, is public. Unit: a user in one slot

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import FewUsersMean, Key
    >>> speeds = FewUsersMean(
    ...     low=0, high=65, epsilon=Fraction(1), delta=Fraction(1, 10**6), sigma=Fraction(5), max_contributions=1000
    ... )
    >>> round(speeds.expected_error([1000] * 60), 2)
    0.76
    >>> stream = speeds.open(Key(bytes(range(32))).named("speeds"))
    >>> for bus in range(60):
    ...     for second in range(1000):
    ...         _ = stream.add(f"bus {bus}", 20 + (bus + second) % 5)
    >>> estimate = stream.close()[""]
    >>> round(estimate.value, 2), round(estimate.noise_sd, 2)
    (22.5, 0.88)
    """

    delta: EXACT
    sigma: EXACT | None = None

    algorithm: ClassVar[str] = "few-users"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must lie between 0 and 1, not {self.delta}: few users need one")

    @cached_property
    def slotted(self) -> Slotted:
        """The public parameters as the mechanism has them; not a part of the library."""
        return self._made(exact(delta=self.delta), None if self.sigma is None else exact(sigma=self.sigma))
