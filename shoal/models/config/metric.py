"""`[[metric]]` of the configuration: one private statistic of one topic, its defaults and what is refused."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from pydantic import PrivateAttr, field_validator, model_validator

from shoal.mechanisms import life
from shoal.mechanisms.kinds import ALGORITHMS, STATISTICS, Kind, defaults_of, kind_of
from shoal.mechanisms.rules import NotAMultiple
from shoal.mechanisms.spec import ADD_REMOVE, FEW_USERS, USER_SLOT, VALUES
from shoal.models.config.decay import DecaySection
from shoal.models.config.metric_keys import MetricKeys
from shoal.models.config.per_coordinate import Range, for_each
from shoal.models.config.section import epsilon_within_floats, positive_span, span
from shoal.models.config.terms import Terms
from shoal.models.config.unit import Unit, parse_unit
from shoal.models.predicates import Predicate, is_predicate
from shoal.models.times import EARLIEST, LATEST, iso

TRUTH = (Fraction(0), Fraction(1))  # the range of predicates
# Microseconds. A clock that is fast by a minute is common, and one by a day would close a day of a daily metric.
LEAST_AHEAD, MOST_AHEAD = 5 * 60 * 10**6, 60 * 60 * 10**6


def _is_public_count(info: Any) -> bool:
    """Whether it is a count of what is public, which costs nothing."""
    return (info.data.get("statistic"), info.data.get("relation", VALUES)) == ("count", VALUES)


class MetricSection(MetricKeys):
    """`[[metric]]`: one private statistic of one topic."""

    _terms: Terms = PrivateAttr(default=Terms())  # not said in the file: `Config.under` sets those of the ledger

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, given: Any) -> Any:
        """Complete the keys that a statistic, or a predicate, has defaults for: a count needs no epsilon."""
        if not isinstance(given, dict):
            return given
        if "horizon" in given:
            raise ValueError("horizon is now life, and its default is 365d")
        value = given.get("value")
        truth = {"range": TRUTH} if isinstance(value, str) and is_predicate(value) else {}
        return truth | defaults_of(given.get("statistic"), given.get("relation", VALUES)) | given

    @field_validator("every", "step", "slot")
    @classmethod
    def _cadence(cls, value: int | str | None) -> int | str | None:
        return positive_span(value) if isinstance(value, int) else value

    @field_validator("lateness", "max_ahead")
    @classmethod
    def _distance(cls, value: int | None) -> int | None:
        return None if value is None else span(value)

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
        return Fraction(0) if is_count else epsilon_within_floats(value)

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
        if not self.values and self.range is not None and isinstance(self.range[0], tuple):
            raise ValueError("range is a list of ranges, one for each value, and there is no value; remove it")
        try:
            self.kind.check(self)
        except NotAMultiple as error:
            near = [iso(time).removesuffix("T00:00:00Z") for time in error.nearest if EARLIEST <= time < LATEST]
            raise ValueError(f"{error}; use {' or '.join(map(repr, near))}") from None
        if self.cell is not None:
            self.cell.check_names(self.groups or ())
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
        return self.protects_presence and self.groups is None and (self.group or self.cell) is not None

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
    def epoch(self) -> int:
        return self._terms.epoch

    @property
    def decay_or_none(self) -> DecaySection:
        """The decay; of kind `none` where there is none."""
        return self.decay or DecaySection(kind="none")

    @property
    def cadence(self) -> int | None:
        """The length of a tick, step or slot; None for a release per contribution."""
        return self.every if isinstance(self.every, int) else self.step or self.slot

    @property
    def ahead_limit(self) -> int:
        """Microseconds by which a time may be ahead of its record's timestamp."""
        return self.default_ahead if self.max_ahead is None else self.max_ahead

    @property
    def default_ahead(self) -> int:
        """`ahead_limit` in microseconds of a metric whose file does not set `max_ahead`."""
        return min(max(self.cadence or 0, LEAST_AHEAD), MOST_AHEAD)

    @property
    def expects_times_ahead(self) -> bool:
        """Whether `max_ahead` is set above its default, as for bookings."""
        return self.ahead_limit > self.default_ahead

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
    def expected_releases(self) -> int:
        """Releases expected of a group over the metric's life."""
        return life.expected_releases(self)

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
