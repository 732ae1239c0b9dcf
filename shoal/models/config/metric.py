"""`[[metric]]` of the configuration: one private statistic of one topic, its defaults and what is refused."""

from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, PrivateAttr, field_validator, model_validator

from shoal.mechanisms.kinds import ALGORITHMS, STATISTICS, Kind, defaults_of, kind_of
from shoal.mechanisms.spec import ADD_REMOVE, FEW_USERS, USER_SLOT, VALUES
from shoal.models.config import per_coordinate
from shoal.models.config.cell import MOST_BINS, Cap, CellSection
from shoal.models.config.decay import DecaySection
from shoal.models.config.per_coordinate import PositiveNumbers, Range, Ranges, for_each
from shoal.models.config.section import DAY, Duration, Exact, Instant, Section, positive_span
from shoal.models.config.selection import SelectionSection
from shoal.models.config.terms import Terms
from shoal.models.config.unit import Unit, parse_unit
from shoal.models.predicates import Predicate, is_predicate

NAME = r"[a-z0-9_-]+"
TRUTH = (Fraction(0), Fraction(1))  # the range of predicates
UNKNOWN_USERS = 1000  # where a release per contribution needs some horizon


def _is_public_count(info: Any) -> bool:
    """Whether it is a count of what is public, which costs nothing."""
    return (info.data.get("statistic"), info.data.get("relation", VALUES)) == ("count", VALUES)


def _prior(value: Any) -> Any:
    return value if value == FEW_USERS else per_coordinate.numbers(value)


# Keys with one value, or a list with one for each coordinate.
Fields = Annotated[str | Predicate | tuple[str, ...] | None, PlainValidator(per_coordinate.field_names)]
Prior = Annotated[Fraction | tuple[Fraction, ...] | Literal["few-users"] | None, PlainValidator(_prior)]


class MetricSection(Section):
    """`[[metric]]`: one private statistic of one topic."""

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
        description="what is released: mean, sum, count, variance, or per slot slot-mean, slot-mean-variance, "
        "slot-distribution",
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
        description="m: how many samples of a unit count; in each group for a mean with every, in each cell for slots",
    )
    users: int | None = Field(
        None,
        ge=1,
        le=2**40,
        description="expected users (of unit event: events); affects accuracy only; needed with every, except by sharp",
    )
    algorithm: str = Field(
        "sharp",
        description="sharp, naive, wishful, single-tree, multi-tree or full; with a step: sharp or patent; "
        "with a slot: best (its default), baseline, array-averaging, levy, fixed-quantile, epsilon-quantile, few-users",
    )
    every: Duration | Literal["contribution"] | None = Field(
        None, description="for a mean without decay: how often it is released, in event time"
    )
    step: Duration | None = Field(
        None,
        description="for sums, counts, variances and decayed means, which are released at the end of every step",
    )
    decay: DecaySection | None = Field(None, description="how sums, counts, means and variances forget; none: not")
    version: int = Field(1, ge=1, description="raise it to change anything that affects the guarantee")
    unit: str = Field(
        "user",
        description="user: all of a person's values, for ever; event, of means and sums; with a step also user-day, or "
        "any period; with a slot user-slot (the default), or with max_slots user-day and user",
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
    horizon: Duration | None = Field(
        None, gt=0, description="how long the stream will last; affects accuracy of sharp, never the guarantee"
    )
    failure: Exact = Field(Fraction(1, 1000), gt=0, lt=1, description="probability that an accuracy bound fails")
    max_groups_per_user: int = Field(1, ge=1, le=2**20, description="G: further groups of a user are left out")
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
    max_ahead: Duration = Field(30 * DAY, description="an event further in the future becomes a dead letter")
    max_gap: int = Field(1_000_000, ge=1, description="with a step: how many silent steps stop a group's releases")
    grid: int = Field(
        2**20,
        ge=2,
        le=2**32,
        description="steps over the range, to which values are rounded; below 2**29 for sharp from 64 contributions on",
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
    max_cells: int | None = Field(
        None, ge=1, le=2**20, description="K: in how many cells of a slot a unit counts; they share epsilon; none: 1"
    )
    max_slots: int | None = Field(
        None, ge=1, le=2**20, description="S: slots in which a unit counts, each with epsilon / S; not for user-slot"
    )
    across_cells: Literal["chop-user", "clip-user", "split"] | None = Field(
        None,
        description="how a unit is limited to max_cells: it leaves the cells that lose least (chop-user, the default, "
        "and clip-user), or keeps its first ones (split)",
    )
    contribution_cap: Annotated[int, Field(ge=1, le=2**20)] | Cap | None = Field(
        None, description="how many samples of a unit count in a cell: a number, median or optimal (the default)"
    )
    spread_share: Exact | None = Field(
        None,
        description="0.001 to 0.9, for best of a slot-mean: the part of epsilon, at most, with which it first finds "
        "where users' means lie and how far apart, if a cell's counts say that it pays; none: it goes by counts alone",
    )
    min_users: int | None = Field(
        None, ge=1, le=2**40, description="cells with fewer users are withheld: a courtesy, not a guarantee; none: 1"
    )
    bins: int | None = Field(None, ge=2, le=MOST_BINS, description="for a slot-distribution; none: 64")
    quantiles: tuple[Exact, ...] | None = Field(
        None, max_length=100, description="for a slot-distribution; none: 0.05, 0.25, 0.5, 0.75, 0.95"
    )
    groups: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        max_length=2**20,
        description="with relation add-remove and a group: its keys; others do not count; none: they are found in "
        "private",
    )
    start: Instant | None = Field(None, description="with relation add-remove: when the first step begins")
    end: Instant | None = Field(None, description="with relation add-remove: when the last step ends; none: never")
    selection: SelectionSection | None = Field(
        None, description="with relation add-remove, a group and no groups: how keys are found"
    )
    _terms: Terms = PrivateAttr(default=Terms())  # not said in the file: `Config.under` sets those of the ledger

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, given: Any) -> Any:
        """Complete the keys that a statistic, or a predicate, has defaults for: a count needs no epsilon."""
        if not isinstance(given, dict):
            return given
        value = given.get("value")
        truth = {"range": TRUTH} if isinstance(value, str) and is_predicate(value) else {}
        return truth | defaults_of(given.get("statistic"), given.get("relation", VALUES)) | given

    @field_validator("every", "step", "slot")
    @classmethod
    def _cadence(cls, value: int | str | None) -> int | str | None:
        return positive_span(value) if isinstance(value, int) else value

    @field_validator("unit")
    @classmethod
    def _exists(cls, value: str) -> str:
        return value if value == USER_SLOT else parse_unit(value).name

    @field_validator("withheld")
    @classmethod
    def _or_nothing(cls, value: bool | None) -> bool | None:
        return value or None

    @field_validator("quantiles")
    @classmethod
    def _inside(cls, value: tuple[Fraction, ...] | None) -> tuple[Fraction, ...] | None:
        if value is not None and not all(0 < quantile < 1 for quantile in value):
            raise ValueError("must be between 0 and 1")
        return value

    @field_validator("spread_share")
    @classmethod
    def _is_part(cls, value: Fraction | None) -> Fraction | None:
        if value is not None and not Fraction(1, 1000) <= value <= Fraction(9, 10):
            raise ValueError("must be between 0.001 and 0.9")
        return value

    @field_validator("epsilon")
    @classmethod
    def _costs(cls, value: Fraction, info: Any) -> Fraction:
        is_count = _is_public_count(info)
        if value < 0 or (value == 0 and not is_count):
            raise ValueError(f"must be {'0 or more' if is_count else 'greater than 0'}")
        return Fraction(0) if is_count else value

    @field_validator("delta")
    @classmethod
    def _costs_too(cls, value: Fraction, info: Any) -> Fraction:
        return Fraction(0) if _is_public_count(info) else value

    @field_validator("algorithm", "statistic", "relation")
    @classmethod
    def _built(cls, value: str, info: Any) -> str:
        built = {"algorithm": ALGORITHMS, "statistic": STATISTICS, "relation": (VALUES, ADD_REMOVE)}[info.field_name]
        if value in built:
            return value
        raise ValueError(f"{value!r} does not exist; this version has: {', '.join(built)}")

    @field_validator("range")
    @classmethod
    def _of_predicates(cls, value: Any, info: Any) -> Any:
        if value != TRUTH and isinstance(info.data.get("value"), Predicate):
            raise ValueError("must be [0, 1], or left out: a predicate is 1 where it holds and 0 where not")
        return value

    @field_validator("groups")
    @classmethod
    def _are_different(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (len(set(value)) < len(value) or "" in value):
            raise ValueError("must be different keys, none of them empty")
        return value

    @model_validator(mode="after")
    def _counts_all(self) -> "MetricSection":
        if self.statistic == "count" and self.relation == VALUES and isinstance(self.value, Predicate):
            raise ValueError("value of a count is no predicate, for a count is public; use statistic sum")
        return self

    @model_validator(mode="after")
    def _of_its_kind(self) -> "MetricSection":
        if self.protects_presence and "max_gap" in self.model_fields_set:
            raise ValueError("max_gap is for relation values: under add-remove no group rests; remove it")
        self.kind.check(self)
        return self

    @property
    def kind(self) -> Kind:
        return kind_of(self)

    @property
    def protects_presence(self) -> bool:
        return self.relation == ADD_REMOVE

    @property
    def finds_keys(self) -> bool:
        """Whether keys that nobody declared are found privately."""
        return self.protects_presence and self.group is not None and self.groups is None

    @property
    def privacy_unit(self) -> Unit:
        if self.unit == USER_SLOT:
            return Unit(USER_SLOT, self.slot)
        return replace(parse_unit(self.unit), of_a_user=self.max_events_per_user)

    @property
    def terms(self) -> Terms:
        return self._terms

    @property
    def reading(self) -> int:
        return self._terms.reading

    @property
    def median(self) -> int:
        return self._terms.median

    @property
    def decay_or_none(self) -> DecaySection:
        """The decay; of kind `none` where there is none."""
        return self.decay or DecaySection(kind="none")

    @property
    def cadence(self) -> int | None:
        """The length of a tick, step or slot; None for a release per contribution."""
        return self.every if isinstance(self.every, int) else self.step or self.slot

    @property
    def cell_limit(self) -> int:
        """K, the cells of a unit that count in a slot."""
        return self.max_cells or 1

    @property
    def slot_limit(self) -> int:
        """S, the slots of a unit that count."""
        return self.max_slots or 1

    @property
    def contribution_limit(self) -> int:
        """The samples of a unit that count."""
        return 1 if self.max_contributions is None else self.max_contributions

    @property
    def clamps(self) -> bool:
        return self.kind.is_clamped(self)

    of, forgets, cap = privacy_unit, decay_or_none, contribution_limit

    @property
    def expected_releases(self) -> int | None:
        """The releases expected of a group, as far as the configuration says."""
        if self.cadence is not None:
            horizon = self._duration if self.horizon is None else self.horizon
            return None if horizon is None else max(1, horizon // self.cadence)
        return (self.users or UNKNOWN_USERS) * self.contribution_limit

    @property
    def _duration(self) -> int | None:
        return None if self.start is None or self.end is None else self.end - self.start

    @property
    def values(self) -> tuple[str, ...]:
        """The fields with the coordinates, or the predicate's text: what values are called."""
        if isinstance(self.value, Predicate):
            return (self.value.text,)
        return (self.value,) if isinstance(self.value, str) else self.value or ()

    @property
    def value_fields(self) -> tuple[str, ...]:
        """The fields of the event that are protected."""
        return self.value.fields if isinstance(self.value, Predicate) else self.values

    @property
    def numeric_fields(self) -> tuple[str, ...]:
        """Those of them that hold numbers."""
        return self.value.numbers if isinstance(self.value, Predicate) else self.values

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The range of each coordinate."""
        if self.range is None:
            return ()
        return for_each("range", self.range, len(self.values), is_list=isinstance(self.range[0], tuple))

    @property
    def priors(self) -> tuple[Fraction | None, ...]:
        """The number of each coordinate; None where there is none, or few users choose it."""
        return (None,) * len(self.values) if self.prior == FEW_USERS else self._of_each("prior")

    @property
    def sigmas(self) -> tuple[Fraction | None, ...]:
        return self._of_each("sigma")

    def _of_each(self, key: str) -> tuple[Fraction | None, ...]:
        value, count = getattr(self, key), len(self.values)
        return (None,) * count if value is None else for_each(key, value, count, is_list=isinstance(value, tuple))

    def paths(self) -> dict[str, str]:
        """The fields of the event that are pattern, by role."""
        roles = {"user": self.user, "time": self.time, "group": self.group}
        if self.cell is not None:
            roles |= {"latitude": self.cell.lat, "longitude": self.cell.lon}
        return {role: path for role, path in roles.items() if path is not None}
