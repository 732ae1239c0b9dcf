"""The keys of `[[metric]]`, their types, bounds and defaults.

Forms, adapter and the `rules.py` of each statistic refuse combinations of keys.
"""

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from shoal.mechanisms.spec import FEW_USERS, VALUES
from shoal.models.config import per_coordinate
from shoal.models.config.cell import MOST_BINS, Cap, CellSection
from shoal.models.config.clip import Clip
from shoal.models.config.decay import DecaySection
from shoal.models.config.per_coordinate import PositiveNumbers, Ranges
from shoal.models.config.section import Duration, Exact, Instant, Section
from shoal.models.config.selection import SelectionSection
from shoal.models.predicates import Predicate

NAME = r"[a-z0-9_-]+"


def _prior(value: Any) -> Any:
    return value if value == FEW_USERS else per_coordinate.numbers(value)


# Keys with one value, or a list with one for each coordinate.
Fields = Annotated[str | Predicate | tuple[str, ...] | None, PlainValidator(per_coordinate.field_names)]
Prior = Annotated[Fraction | tuple[Fraction, ...] | Literal["few-users"] | None, PlainValidator(_prior)]


class MetricKeys(Section):
    """What a metric's table may hold, each key by itself."""

    name: str = Field(..., pattern=f"^{NAME}$", description="names the statistic in releases and in the ledger")
    topic: str = Field(..., pattern=r"^[a-zA-Z0-9._-]+$", description="the topic of events")
    user: str = Field(..., min_length=1, description="field with the user id; dots reach into nested objects")
    value: Fields = Field(
        None,
        description="field with the value; a predicate, such as amount > 100: 1 where it holds, else 0; a list of 2 "
        "to 8 fields, or with a delta to 32: its coordinates; a count needs none",
    )
    time: str | None = Field(None, min_length=1, description="field with the event time; none: the record's timestamp")
    group: str | None = Field(None, min_length=1, description="field that splits the statistic into groups")
    statistic: str = Field(
        ...,
        description="what is released: mean, sum, count or variance, which has the mean, too; under relation "
        "add-remove also users and distribution; with a slot mean, variance or distribution",
    )
    relation: str = Field(
        VALUES,
        description="values: neighbouring streams differ in one unit's values, and pattern is public; add-remove: all "
        "records of the unit are there, or none is",
    )
    range: Ranges = Field(
        None,
        description="values are clipped to it; public; a list: one for each coordinate; none for a count or predicate",
    )
    epsilon: Exact = Field(
        ..., description="the privacy loss of one unit in this metric, over everything it releases; 0 for a count"
    )
    delta: Exact = Field(
        Fraction(0),
        ge=0,
        lt=1,
        description="0: pure differential privacy; above 0: windows of sharp, and means of sharp and naive without a "
        "decay, may have Gaussian noise; few-users needs it",
    )
    max_contributions: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="m: how many samples of a unit count, in all; without groups of a slot: in each slot",
    )
    max_groups: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="with a group or cell: in how many of them a unit counts; with a slot: of each slot; none: 1",
    )
    max_per_group: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="in place of max_contributions, with a group or cell, for a mean without a decay and, under "
        "relation values, with a slot: how many samples of a unit count in each group; groups share epsilon",
    )
    users: int | None = Field(
        None,
        ge=1,
        le=2**40,
        description="expected users (of unit event: events); affects accuracy only; needed with every, except by sharp",
    )
    algorithm: str | None = Field(
        None,
        description="under relation values; of a mean without a decay: sharp (its default), naive, wishful, "
        "single-tree, multi-tree or full; of sums, counts, variances and means with one: sharp (their default) or "
        "patent; with a slot: best (its default), baseline, array-averaging, levy, fixed-quantile, epsilon-quantile, "
        "few-users",
    )
    every: Duration | Literal["contribution"] | None = Field(
        None,
        description="how often results are released, in event time: the length of a step; contribution, of a mean "
        "without a decay: after each sample",
    )
    decay: DecaySection | None = Field(None, description="how sums, counts, means and variances forget; none: not")
    version: int = Field(1, ge=1, description="raise it to change anything that affects the guarantee")
    unit: str | None = Field(
        None,
        description="user (the default): all of a person's values, for ever; event, of means and sums; user-day, or "
        "any period, but for a mean without a decay; with a slot user-slot (the default), or with max_slots user-day "
        "and user",
    )
    prior: Prior = Field(
        None,
        description="centre of clipping, in the range; must itself be private: a constant or a charged release; or "
        "few-users, if no useful range is known: it is chosen privately",
    )
    sigma: PositiveNumbers = Field(
        None,
        description="above 0: values are sigma-subgaussian, and range bounds their mean; none: it bounds the values",
    )
    life: Duration | None = Field(
        None,
        gt=0,
        description="how long the metric is expected to run; affects accuracy alone, never the guarantee; none: from "
        "start to end, or 365d",
    )
    failure: Exact = Field(Fraction(1, 1000), gt=0, lt=1, description="probability that an accuracy bound fails")
    max_events_per_user: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="with unit event: k; further events of a user are left out; a ledger per person is charged k times",
    )
    simultaneous: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="q: noise intervals of q releases hold together with 95 %; none: each by itself",
    )
    lateness: Duration = Field(0, description="how far behind its partition's latest time an event keeps its own")
    late: Literal["fold", "drop"] = Field("fold", description="later events: fold into the open tick, or drop")
    max_ahead: Duration | None = Field(
        None,
        description="how far a time may be ahead of its record's timestamp; one further ahead is a dead letter; none: "
        "every or slot, at least 5m and at most 1h",
    )
    max_gap: int | None = Field(
        None,
        ge=1,
        description="of sums, counts, variances and means with a decay, under relation values: how many silent steps "
        "stop a group's releases; none: 1000000",
    )
    grid: int | None = Field(
        None,
        ge=2,
        le=2**32,
        description="steps over the range, to which values are rounded; below 2**29 for sharp from 64 contributions "
        "on; none: 65536 for a variance of every step or under relation add-remove, else 1048576",
    )
    clamp: bool | None = Field(
        None, description="clamp the published estimate; none: only sharp, best and few-users do"
    )
    withheld: bool | None = Field(
        None,
        description="for a mean without a decay: true: each release says how many samples came and do not count, or "
        "not yet, and what share of all they are; public; none: false",
    )
    slot: Duration | None = Field(None, description="length of a slot; each slot is released once, at its end")
    cell: CellSection | None = Field(
        None, description="with a slot: where an event was; none: the group, or one for all"
    )
    max_slots: int | None = Field(
        None, ge=1, le=2**20, description="S: slots in which a unit counts, each with epsilon / S; not for user-slot"
    )
    across_cells: Literal["chop-user", "clip-user", "split"] | None = Field(
        None,
        description="how a unit is limited to max_groups: it leaves the cells that lose least (chop-user, the default, "
        "and clip-user), or keeps its first ones (split)",
    )
    contribution_cap: Annotated[int, Field(ge=1, le=2**20)] | Cap | None = Field(
        None, description="how many samples of a unit count in a cell: a number, median or optimal (the default)"
    )
    spread_share: Exact | None = Field(
        None,
        description="0.001 to 0.9, for best of a mean per slot: the part of epsilon, at most, that first finds where "
        "users' means lie and how far apart, if a cell's counts say that it pays; none: it goes by counts alone",
    )
    min_users: int | None = Field(
        None, ge=1, le=2**40, description="cells with fewer users are withheld: a courtesy, not a guarantee; none: 1"
    )
    bins: int | None = Field(None, ge=2, le=MOST_BINS, description="of a distribution; none: 64")
    quantiles: tuple[Exact, ...] | None = Field(
        None, max_length=100, description="of a distribution; none: 0.05, 0.25, 0.5, 0.75, 0.95"
    )
    groups: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        max_length=2**20,
        description="with relation add-remove and a group or cell: its keys; others do not count; none: they are "
        "found in private",
    )
    start: Instant | None = Field(None, description="with relation add-remove: when the first step or slot begins")
    end: Instant | None = Field(None, description="with relation add-remove: when the last one ends; none: never")
    selection: SelectionSection | None = Field(
        None, description="with relation add-remove, a group or cell and no groups: how keys are found"
    )
    clip: Clip | None = Field(
        None,
        description="with relation add-remove, for a mean or sum: auto, or how the end of each key's range is chosen, "
        "in private; none: values are clipped to range",
    )
