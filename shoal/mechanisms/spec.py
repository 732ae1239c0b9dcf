"""The keys of one metric as its statistic reads them, and what is refused whatever the statistic is.

A `[[metric]]` of the configuration is a `Spec`. A key that was not given is None, or has its default. What is refused
raises `ValueError`: the key, what is wrong with it, and the remedy.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Protocol

FEW_USERS = "few-users"
PER_SLOT = ("slot-mean", "slot-mean-variance", "slot-distribution")  # statistics
USER_SLOT = "user-slot"  # the unit of a slot, whose length its metric says
# Keys that statistics without slots have no use for.
SLOT_KEYS = (
    "slot", "cell", "max_cells", "max_slots", "across_cells", "contribution_cap", "min_users", "bins", "quantiles",
)  # fmt: skip


PATTERN = "who contributes when, and in which group, is public"


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
    def half_life(self) -> int | None: ...  # microseconds
    @property
    def alpha(self) -> Fraction | None: ...
    @property
    def exponent(self) -> Fraction | None: ...


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
    def horizon(self) -> int | None: ...
    @property
    def max_gap(self) -> int: ...
    @property
    def clamp(self) -> bool | None: ...
    @property
    def max_slots(self) -> int | None: ...
    @property
    def across_cells(self) -> str | None: ...
    @property
    def contribution_cap(self) -> int | str | None: ...
    @property
    def min_users(self) -> int | None: ...
    @property
    def bins(self) -> int | None: ...
    @property
    def quantiles(self) -> tuple[Fraction, ...] | None: ...

    @property
    def values(self) -> tuple[str, ...]: ...  # fields with the coordinates
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
    def expected_releases(self) -> int | None: ...  # of a group, as far as the keys say
    @property
    def decay_or_none(self) -> DecaySpec: ...  # of kind none where there is none


def refuse_given(spec: Spec, keys: Iterable[str], why: str) -> None:
    """Refuse these keys where they are given, since the statistic has no use for them."""
    for key in keys:
        if getattr(spec, key) is not None:
            raise ValueError(f"{key} {why}; remove it")


def check_relation(spec: Spec) -> None:
    """Refuse a relation other than `values`."""
    if spec.relation != "values":
        raise ValueError(f"relation {spec.relation!r} is not built; this version has: values")


def refuse_slot_keys(spec: Spec) -> None:
    """Refuse keys and units that are for statistics per slot."""
    refuse_given(spec, SLOT_KEYS, f"is for statistics per slot: {', '.join(PER_SLOT)}")
    if spec.unit == USER_SLOT:
        raise ValueError(f"unit {USER_SLOT} is for statistics per slot: {', '.join(PER_SLOT)}")


def check_limits(spec: Spec) -> None:
    """Require a limit of samples per unit; unit event has none, as an event is one sample in one group."""
    is_event = spec.privacy_unit.is_event
    if spec.max_contributions is None and not is_event:
        raise ValueError("max_contributions is missing; add it")
    if spec.max_contributions is not None and is_event:
        raise ValueError("max_contributions is not for unit event, which protects one event; remove it")
    if spec.max_groups_per_user != 1 and is_event:
        raise ValueError("max_groups_per_user is not for unit event: an event is in one group; remove it")


def check_values(spec: Spec) -> None:
    """Require values and a range, except of a count."""
    for key in ("value", "range"):
        if getattr(spec, key) is None and spec.statistic != "count":
            raise ValueError(f"{key} is missing; add it")


def refuse_few_users(spec: Spec) -> None:
    """Refuse a prior from few users, which only a slot's mean has."""
    if spec.prior == FEW_USERS:
        raise ValueError("prior must be a number: few-users is for a slot-mean")


def refuse_delta(spec: Spec) -> None:
    """Refuse a delta for what is pure."""
    if spec.delta != 0:
        raise ValueError(f"delta must be 0: {spec.algorithm} is pure differential privacy")


def check_horizon(spec: Spec) -> None:
    """Refuse a horizon for any algorithm but sharp."""
    if spec.horizon is not None and spec.algorithm != "sharp":
        raise ValueError(f"horizon tunes sharp; {spec.algorithm} has no use for it; remove it")


def many(count: int, what: str) -> str:
    """The number and the noun, in the plural where there are several.

    >>> many(1, "slot"), many(2, "slot")
    ('1 slot', '2 slots')
    """
    return f"{count} {what}" + ("s" if count > 1 else "")
