"""`[[metric]]` of the configuration: one private statistic of one topic, its defaults and what is refused."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self

from pydantic import PrivateAttr, field_validator, model_validator

from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.rules import NotAMultiple
from shoal.mechanisms.parts.unit import USER_SLOT
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.adapter import metric_of
from shoal.models.config.forms import ALGORITHMS, STATISTICS
from shoal.models.config.metric_keys import MetricKeys
from shoal.models.config.section import epsilon_within_floats, positive_span, span
from shoal.models.config.unit import parse_unit
from shoal.models.predicates import Predicate, is_predicate
from shoal.models.times import EARLIEST, LATEST, iso

TRUTH = (Fraction(0), Fraction(1))  # the range of predicates
RENAMED = {
    "horizon": "life, and its default is 365d",
    "step": "every",
    "max_groups_per_user": "max_groups",
    "max_cells": "max_groups",
}
FORMER = {
    ("statistic", "slot-mean"): 'is now "mean", with a slot',
    ("statistic", "slot-mean-variance"): 'is now "variance", with a slot',
    ("statistic", "slot-distribution"): 'is now "distribution", with a slot',
    ("statistic", "mean-variance"): 'is now "variance"',
    ("algorithm", "two-sided"): f"is the only one of relation {ADD_REMOVE}; remove it",
}


def _is_public_count(info: Any) -> bool:
    """Whether it is a count of what is public, which costs nothing."""
    return (info.data.get("statistic"), info.data.get("relation", VALUES)) == ("count", VALUES)


class MetricSection(MetricKeys):
    """`[[metric]]`: one private statistic of one topic."""

    _parts: Metric = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, given: Any) -> Any:
        """Complete what a predicate, or a public count, need not say: its range, its epsilon."""
        if not isinstance(given, dict):
            return given
        for old, new in RENAMED.items():
            if old in given:
                raise ValueError(f"{old} is now {new}")
        value = given.get("value")
        truth = {"range": TRUTH} if isinstance(value, str) and is_predicate(value) else {}
        is_public = (given.get("statistic"), given.get("relation", VALUES)) == ("count", VALUES)
        return truth | ({"epsilon": 0} if is_public else {}) | given

    @field_validator("every", "slot")
    @classmethod
    def _cadence(cls, value: int | str | None) -> int | str | None:
        return positive_span(value) if isinstance(value, int) else value

    @field_validator("lateness", "max_ahead")
    @classmethod
    def _distance(cls, value: int | None) -> int | None:
        return None if value is None else span(value)

    @field_validator("unit")
    @classmethod
    def _exists(cls, value: str | None) -> str | None:
        return value if value in (None, USER_SLOT) else parse_unit(value).name

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
    def _built(cls, value: str | None, info: Any) -> str | None:
        if (former := FORMER.get((info.field_name, value or ""))) is not None:
            raise ValueError(f"{value} {former}")
        built = {"algorithm": ALGORITHMS, "statistic": STATISTICS, "relation": (VALUES, ADD_REMOVE)}[info.field_name]
        if value is None or value in built:
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
        if not isinstance(self.value, Predicate):
            return self
        if self.relation == VALUES and self.statistic == "count":
            raise ValueError("value of a count is no predicate, for a count is public; use statistic sum")
        if self.relation == ADD_REMOVE and self.statistic in ("count", "users"):
            raise ValueError(
                f"value of statistic {self.statistic} is no predicate, for it counts all; for how many records a "
                "predicate holds, use statistic sum"
            )
        return self

    @model_validator(mode="after")
    def _of_its_kind(self) -> "MetricSection":
        if self.value is None and self.range is not None and isinstance(self.range[0], tuple):
            raise ValueError("range is a list of ranges, one for each value, and there is no value; remove it")
        try:
            self._parts = metric_of(self)
        except NotAMultiple as error:
            near = [iso(time).removesuffix("T00:00:00Z") for time in error.nearest if EARLIEST <= time < LATEST]
            raise ValueError(f"{error}; use {' or '.join(map(repr, near))}") from None
        if self.cell is not None:
            self.cell.check_names(self.groups or ())
        return self

    @property
    def parts(self) -> Metric:
        """The metric as typed parts."""
        return self._parts

    def in_epoch(self, epoch: int) -> "MetricSection":
        """Copy of the metric as registered in this epoch of its topic's clocks, which the ledger knows."""
        other = self.model_copy()
        other._parts = metric_of(other, epoch, is_checked=False)
        return other

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with other keys; rules between parts are skipped, and a key that the form lacks raises ValueError."""
        copied = super().model_copy(update=update, deep=deep)
        if update:
            copied._parts = metric_of(copied, self.parts.source.epoch, is_checked=False)
        return copied
