"""The keys of one metric as its statistic reads them.

A `[[metric]]` of the configuration is a `Spec`. A key that was not given is None, or has its default.
"""

from fractions import Fraction
from typing import Protocol

FEW_USERS = "few-users"
DISTRIBUTION = "distribution"  # statistic
PER_SLOT = ("slot-mean", "slot-mean-variance", "slot-distribution")  # statistics
USER_SLOT = "user-slot"  # the unit of a slot, whose length its metric says
FIRST_MEDIAN, NEWEST_MEDIAN = 1, 2  # of the algorithm full: as many arrays as printed, or half of them
PATTERN = "who contributes when, and in which group, is public"
VALUES, ADD_REMOVE = "values", "add-remove"  # relations


class UnitSpec(Protocol):
    """The unit of privacy: whose data one guarantee covers."""

    @property
    def name(self) -> str: ...
    @property
    def period(self) -> int | None: ...  # microseconds; None: for ever
    @property
    def is_event(self) -> bool: ...
    def words(self) -> str: ...


class DecaySpec(Protocol):
    """The decay of sums, as keys describe it."""

    @property
    def kind(self) -> str: ...
    @property
    def length(self) -> int | None: ...  # microseconds
    @property
    def updates(self) -> int | None: ...  # steps in which anything came
    @property
    def half_life(self) -> int | None: ...  # microseconds
    @property
    def alpha(self) -> Fraction | None: ...
    @property
    def exponent(self) -> Fraction | None: ...
    @property
    def weights(self) -> tuple[Fraction, ...] | None: ...
    @property
    def weight(self) -> str | None: ...
    @property
    def horizon(self) -> int | None: ...  # microseconds
    @property
    def error(self) -> Fraction | None: ...
    @property
    def zeta(self) -> Fraction | None: ...


class SelectionSpec(Protocol):
    """How keys are found that nobody declared."""

    @property
    def epsilon(self) -> Fraction | None: ...  # a part of the metric's
    @property
    def keys(self) -> int: ...  # of a unit that it is counted for


class ClipSpec(Protocol):
    """How the range that a key's values are clipped to is chosen."""

    @property
    def epsilon(self) -> Fraction | None: ...  # a part of the metric's
    @property
    def crossing(self) -> Fraction | None: ...  # another one
    @property
    def share(self) -> Fraction | None: ...  # of units above it


class Spec(Protocol):
    """The keys of one metric; the last ones are derived from several. Durations in microseconds."""

    @property
    def statistic(self) -> str: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def relation(self) -> str: ...
    @property
    def epsilon(self) -> Fraction: ...
    @property
    def delta(self) -> Fraction: ...
    @property
    def failure(self) -> Fraction: ...
    @property
    def simultaneous(self) -> int | None: ...
    @property
    def unit(self) -> str: ...
    @property
    def grid(self) -> int: ...
    @property
    def users(self) -> int | None: ...
    @property
    def max_contributions(self) -> int | None: ...
    @property
    def max_groups_per_user(self) -> int: ...
    @property
    def max_events_per_user(self) -> int | None: ...
    @property
    def group(self) -> str | None: ...
    @property
    def cell(self) -> object: ...
    @property
    def prior(self) -> object: ...
    @property
    def sigma(self) -> object: ...
    @property
    def every(self) -> int | str | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def slot(self) -> int | None: ...
    @property
    def decay(self) -> object: ...
    @property
    def life(self) -> int | None: ...  # microseconds; None: as life.py says
    @property
    def max_gap(self) -> int: ...
    @property
    def clamp(self) -> bool | None: ...
    @property
    def withheld(self) -> bool | None: ...
    @property
    def max_slots(self) -> int | None: ...
    @property
    def across_cells(self) -> str | None: ...
    @property
    def contribution_cap(self) -> int | str | None: ...
    @property
    def spread_share(self) -> Fraction | None: ...
    @property
    def min_users(self) -> int | None: ...
    @property
    def bins(self) -> int | None: ...
    @property
    def quantiles(self) -> tuple[Fraction, ...] | None: ...
    @property
    def groups(self) -> tuple[str, ...] | None: ...  # declared; None: all keys, or there are none
    @property
    def start(self) -> int | None: ...  # microseconds since the Unix epoch
    @property
    def end(self) -> int | None: ...
    @property
    def selection(self) -> SelectionSpec | None: ...
    @property
    def clip(self) -> ClipSpec | None: ...

    @property
    def values(self) -> tuple[str, ...]: ...  # fields with the coordinates
    @property
    def numeric_fields(self) -> tuple[str, ...]: ...  # those of them, or of a predicate, that hold numbers
    @property
    def ranges(self) -> tuple[tuple[Fraction, Fraction], ...]: ...  # of each coordinate, as priors and sigmas are
    @property
    def priors(self) -> tuple[Fraction | None, ...]: ...
    @property
    def sigmas(self) -> tuple[Fraction | None, ...]: ...
    @property
    def privacy_unit(self) -> UnitSpec: ...
    @property
    def contribution_limit(self) -> int: ...  # samples of a unit that count
    @property
    def cell_limit(self) -> int: ...  # K
    @property
    def slot_limit(self) -> int: ...  # S
    @property
    def cadence(self) -> int | None: ...  # length of a tick, step or slot
    @property
    def protects_presence(self) -> bool: ...  # whether its relation is add-remove
    @property
    def expected_releases(self) -> int: ...  # of a group
    @property
    def median(self) -> int: ...  # how the private medians of the algorithm full are made
    @property
    def decay_or_none(self) -> DecaySpec: ...  # of kind none where there is none
