"""What several statistics refuse of a metric's keys: a `ValueError` with the key, what is wrong, and the remedy."""

from collections.abc import Iterable, Iterator

from shoal.mechanisms.spec import ADD_REMOVE, DISTRIBUTION, PER_SLOT, USER_SLOT, Spec
from shoal.mechanisms.words import many

# Keys that statistics without slots have no use for.
SLOT_KEYS = (
    "slot", "cell", "max_cells", "max_slots", "across_cells", "contribution_cap", "min_users", "spread_share",
)  # fmt: skip
BIN_KEYS = ("bins", "quantiles")
PRESENCE_KEYS = ("groups", "start", "end", "selection", "clip")


class NotAMultiple(ValueError):
    """A time that lies between two multiples of a span; `nearest` are these two, in microseconds since the epoch."""

    def __init__(self, key: str, span_key: str, nearest: tuple[int, int]) -> None:
        super().__init__(f"{key} is not a multiple of {span_key}, counted from 1970-01-01")
        self.nearest = nearest


def check_times(spec: Spec, span_key: str, span: int) -> None:
    """Refuse a missing start, a start or end between two multiples of `span`, and an end that is not after the start.

    Raises:
        NotAMultiple: a time lies between two multiples.
        ValueError: anything else.
    """
    if spec.start is None:
        raise ValueError(f"start is missing; add it: the time at which the first {span_key} begins, such as 2026-01-01")
    for key in ("start", "end"):
        time = getattr(spec, key) or 0
        if rest := time % span:
            raise NotAMultiple(key, span_key, (time - rest, time - rest + span))
    if spec.end is not None and spec.end <= spec.start:
        raise ValueError("end is not after start; choose a later one")


def refuse_given(spec: Spec, keys: Iterable[str], why: str) -> None:
    """Refuse these keys where they are given, since the statistic has no use for them."""
    for key in keys:
        if getattr(spec, key) is not None:
            raise ValueError(f"{key} {why}; remove it")


def refuse_presence_keys(spec: Spec) -> None:
    """Refuse keys that are for relation add-remove."""
    refuse_given(spec, PRESENCE_KEYS, f"is for relation {ADD_REMOVE}")


def refuse_slot_keys(spec: Spec) -> None:
    """Refuse keys and units that are for statistics per slot."""
    refuse_given(spec, SLOT_KEYS, f"is for statistics per slot: {', '.join(PER_SLOT)}")
    if spec.statistic != DISTRIBUTION:
        refuse_given(spec, BIN_KEYS, f"is for a slot-distribution, or for a distribution under relation {ADD_REMOVE}")
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
    if spec.max_events_per_user is not None and not is_event:
        raise ValueError("max_events_per_user is for unit event; other units have max_contributions; remove it")


def check_values(spec: Spec) -> None:
    """Require values and a range, except of a count."""
    for key in ("value", "range"):
        if getattr(spec, key) is None and spec.statistic != "count":
            raise ValueError(f"{key} is missing; add it")


def refuse_delta(spec: Spec) -> None:
    """Refuse a delta for what is pure."""
    if spec.delta != 0:
        raise ValueError(f"delta must be 0: {spec.algorithm} is pure differential privacy")


def check_life(spec: Spec) -> None:
    """Refuse a stated life for any algorithm but sharp."""
    if spec.life is not None and spec.algorithm != "sharp":
        raise ValueError(f"life tunes sharp; {spec.algorithm} does not use it; remove it")


def event_limit(spec: Spec) -> Iterator[str]:
    """The clause of a guarantee on how many events of a user count, where that is limited."""
    if spec.max_events_per_user is not None:
        yield f"at most {many(spec.max_events_per_user, 'event')} of a user can count"


def check_unit_of_slots(spec: Spec, slot: int) -> None:
    """Refuse a unit that is not a number of whole slots.

    Raises:
        ValueError: it is none.
    """
    unit = spec.privacy_unit
    if unit.is_event:
        raise ValueError(f"unit event is not for statistics per slot; use {USER_SLOT}, or a coarser one")
    if unit.period is not None and unit.period % slot:
        raise ValueError(f"unit {unit.name} is not a whole number of slots; choose one that is, or {USER_SLOT}")
