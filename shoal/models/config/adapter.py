"""Adapter from the keys of `[[metric]]` to the typed parts of a metric.

Complaints come in this order: single keys (pydantic), the form, the keys that it lacks, each part, rules between parts.
"""

from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from shoal.mechanisms.bins.shares import BINS, QUANTILES
from shoal.mechanisms.continual_mean import WITH_PRIOR
from shoal.mechanisms.moments import GRID, check_grid
from shoal.mechanisms.parts import at, by, hides, of, per
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Budget, Metric, Source
from shoal.mechanisms.parts.rules import apply, names_of
from shoal.mechanisms.parts.unit import PERSON, USER_SLOT, Unit
from shoal.mechanisms.spec import FEW_USERS, VALUES
from shoal.models.config import shares
from shoal.models.config.ahead import ahead_by_default
from shoal.models.config.forms import (
    CELLS,
    HIDDEN,
    HIDDEN_CELLS,
    IN_ALL,
    MEAN,
    OF_MEANS,
    Form,
    form_of,
    has_no_values,
    refuse,
)
from shoal.models.config.metric_keys import MetricKeys
from shoal.models.config.per_coordinate import for_each
from shoal.models.config.unit import parse_unit
from shoal.models.predicates import Predicate

MOST_BINS_OF_STEPS = 1 << 10  # of a distribution of every step
MOST_FOUND = 64  # keys of a unit where keys are found
STEPS = 1 << 20  # of a grid that is not given
REST = 1_000_000  # silent steps that stop a group's releases
NO_CLIP = "clip chooses the range of a mean or sum of numbers, and this metric has none; remove it"


def metric_of(keys: MetricKeys, epoch: int = 0, *, is_checked: bool = True) -> Metric:
    """Parse the keys of a metric into its parts; `epoch`: restarts of its topic's clocks before it was registered.

    `is_checked=False` skips the rules between parts; missing and misplaced keys are still refused.

    Raises:
        NotAMultiple: a start or end lies between two steps or slots.
        ValueError: keys are missing, not for this metric, or contradict one another.
    """
    form = form_of(keys)
    form.refuse_lacking(keys)
    unit = unit_of(keys, form)
    _refuse_unit(keys, form, unit)
    limits, times = _limits(keys, form, unit), _at(keys, form)
    algorithm = form.algorithm_of(keys)
    statistic, place = _of(keys, form, algorithm), _per(keys, form)
    metric = Metric(
        keys.name, keys.version, _source(keys, times, epoch), statistic, place, times, _hides(keys, form, unit, limits),
        _by(keys, form, algorithm), _budget(keys, statistic, place),
    )  # fmt: skip
    if is_checked:
        apply(form.rules, metric)
    return metric


def _source(keys: MetricKeys, times: at.At, epoch: int) -> Source:
    length = None if isinstance(times, at.EachContribution) else times.length
    ahead = ahead_by_default(length) if keys.max_ahead is None else keys.max_ahead
    return Source(keys.topic, keys.user, keys.time, keys.lateness, keys.late, ahead, epoch)


# ---------------------------------------------------------------- hides


def unit_of(keys: MetricKeys, form: Form) -> Unit:
    """Unit of privacy of a metric."""
    name = keys.unit or (USER_SLOT if form.is_slotted else PERSON.name)
    if name == USER_SLOT:
        return Unit(USER_SLOT, keys.slot)
    return replace(parse_unit(name), of_a_user=keys.max_events_per_user)


def _refuse_unit(keys: MetricKeys, form: Form, unit: Unit) -> None:
    if form.is_slotted:
        if unit.is_event:
            raise ValueError(f"unit event is not for statistics per slot; use {USER_SLOT}, or a coarser one")
        if unit.period is not None and unit.period % (keys.slot or 1):
            raise ValueError(f"unit {unit.name} is not a whole number of slots; choose one that is, or {USER_SLOT}")
    elif keys.unit == USER_SLOT:
        raise ValueError(f"unit {USER_SLOT} is for statistics per slot; add slot, or choose another unit")
    if form is MEAN and unit.period is not None:
        raise ValueError(f"unit {keys.unit!r} is not built for means without a decay; they have: user, event")


def _limits(keys: MetricKeys, form: Form, unit: Unit) -> hides.Limits:
    if unit.is_event:
        refuse(keys, ("max_contributions", "max_per_group"), "is not for unit event, which protects one event")
        refuse(keys, ("max_groups",), "is not for unit event: an event is in one group")
        return hides.Events(keys.max_events_per_user)
    refuse(keys, ("max_events_per_user",), "is for unit event; other units have max_contributions")
    samples, groups = _samples(keys, form), keys.max_groups or 1
    if form is CELLS:
        return _per_cell(keys, unit, samples, groups)
    return hides.PerKey(samples, groups) if form is MEAN else hides.Overall(samples, groups)


def _samples(keys: MetricKeys, form: Form) -> int:
    """The most samples of a unit: in each group where groups share epsilon, else in all."""
    has_groups = keys.group is not None or keys.cell is not None
    if form in (MEAN, CELLS) and has_groups:
        right, wrong = "max_per_group", "max_contributions"
        why = "limits all groups together, and here each has a limit of its own"
    else:
        right, wrong = "max_contributions", "max_per_group"
        here = "here one limit is for all groups together" if has_groups else "there is no group"
        why = f"limits each group, and {here}"
    refuse(keys, (wrong,), why, remedy=f"; use {right}")
    found: int | None = getattr(keys, right)
    if found is None:
        raise ValueError(f"{right} is missing; add it")
    return found


def _per_cell(keys: MetricKeys, unit: Unit, samples: int, groups: int) -> hides.PerCell:
    if unit.period == keys.slot:
        if keys.max_slots not in (None, 1):
            raise ValueError("max_slots is for units longer than a slot; remove it")
    elif keys.max_slots is None:
        raise ValueError(
            f"max_slots is missing: unit {unit.name} has many slots, and each has a share of epsilon; add it"
        )
    elif unit.period is not None and keys.slot is not None and keys.max_slots > unit.period // keys.slot:
        raise ValueError(f"max_slots: a {unit.name} has {unit.period // keys.slot} slots; use so many at most")
    return hides.PerCell(samples, groups, keys.max_slots or 1, keys.across_cells or "chop-user")


def _hides(keys: MetricKeys, form: Form, unit: Unit, limits: hides.Limits) -> hides.Hides:
    if not form.is_hidden:
        return hides.ValuesOf(unit, limits)
    if keys.start is None:
        what = "slot" if form.is_slotted else "step"
        raise ValueError(f"start is missing; add it: the time at which the first {what} begins, such as 2026-01-01")
    return hides.AddRemove(unit, limits, keys.start, keys.end)


# ---------------------------------------------------------------- at and per


def _at(keys: MetricKeys, form: Form) -> at.At:
    if form.is_slotted:
        return at.Slots(Even(keys.slot or 1))
    if keys.every is None:
        raise ValueError("every is missing; add it")
    if form is not MEAN:
        if keys.every == "contribution":
            whose = f"is for relation {VALUES}" if form.is_hidden else OF_MEANS
            raise ValueError(f'every = "contribution" {whose}; use a duration')
        decay = at.Undecayed() if keys.decay is None else keys.decay.part()
        return at.Steps(Even(keys.every), decay, None if form.is_hidden else keys.max_gap or REST, keys.life)
    if keys.every != "contribution":
        return at.Ticks(Even(keys.every), keys.life)
    if keys.life is not None:
        raise ValueError("life needs a cadence in event time; a release per contribution uses users; remove it")
    return at.EachContribution()


def _per(keys: MetricKeys, form: Form) -> per.Per:
    if keys.cell is not None and keys.group is not None:
        raise ValueError("cell and group both say where an event belongs; keep one")
    place: per.Field | per.Hexagons | None = None if keys.group is None else per.Field(keys.group)
    if keys.cell is not None:
        place = per.Hexagons(keys.cell.h3, keys.cell.lat, keys.cell.lon)
    if place is None:
        what = "cells: add cell or group" if form.is_slotted else "a group: add one"
        refuse(keys, ("groups", "selection", "max_groups", "across_cells"), f"needs {what}", remedy=", or remove it")
        return per.One(keys.min_users or 1)
    if not form.is_hidden:
        return per.Keys(place, per.Public(), keys.min_users or 1)
    if keys.groups is None:
        if (keys.max_groups or 1) > MOST_FOUND:
            raise ValueError(f"max_groups is at most {MOST_FOUND} where keys are found; use fewer, or declare groups")
        return per.Keys(place, per.Found(keys.max_groups or 1))
    if form.is_slotted:
        refuse(keys, ("max_groups",), f"is for cells that nobody declared: {IN_ALL}")
    what = "cells" if form.is_slotted else "keys"
    refuse(keys, ("selection",), f"is for {what} that nobody declared, and groups declares them")
    return per.Keys(place, per.Declared(keys.groups))


# ---------------------------------------------------------------- of


def fields_of(value: str | Predicate | tuple[str, ...] | None) -> of.Fields | None:
    """The fields that the key `value` names; None if it names none."""
    if value is None:
        return None
    if isinstance(value, Predicate):
        return of.Fields((value.text,), value)
    return of.Fields((value,) if isinstance(value, str) else value)


def _of(keys: MetricKeys, form: Form, algorithm: type[by.Algorithm]) -> of.Of:
    cls, found = form.statistics[keys.statistic], fields_of(keys.value)
    count = 1 if found is None else len(found.names)
    if count > 1:
        _refuse_several(keys, form)
    if has_no_values(cls):
        if keys.clip is not None:
            raise ValueError(NO_CLIP)
        return cls(found)  # type: ignore[no-any-return]
    if found is None or keys.range is None:
        raise ValueError(f"{'value' if found is None else 'range'} is missing; add it")
    ranges: tuple[of.Range, ...] = for_each("range", keys.range, count, is_list=isinstance(keys.range[0], tuple))
    is_coarse = cls is of.Variance and form is not CELLS
    values = of.Values(found, ranges, keys.grid or (GRID if is_coarse else STEPS))
    clamp = algorithm.clamps if keys.clamp is None else keys.clamp
    if cls is of.Distribution:
        return _distribution(keys, form, values, clamp)
    if cls is of.Sum:
        _refuse_clamp(keys)
        return of.Sum(values, _clip(keys))
    if cls is of.Mean:
        return of.Mean(values, clamp, _clip(keys))
    if keys.clip is not None:
        raise ValueError(NO_CLIP)
    if form.is_hidden:
        check_grid(values.grid, keys.statistic)
    return cls(values, clamp)  # type: ignore[no-any-return]


def _refuse_several(keys: MetricKeys, form: Form) -> None:
    if form.is_hidden:
        raise ValueError("several values are for relation values; use a metric for each")
    if form not in (MEAN, CELLS):
        raise ValueError("several values are for means without a decay; use a metric for each")
    if form.statistics[keys.statistic] is not of.Mean:
        raise ValueError(f"several values are for means, not for a {keys.statistic} per slot; use a metric for each")


def _refuse_clamp(keys: MetricKeys) -> None:
    if keys.clamp is not None:
        raise ValueError(f"clamp is for means; a {keys.statistic} is never clamped; remove it")


def _clip(keys: MetricKeys) -> of.Clip | None:
    if keys.clip is None:
        return None
    if keys.clip.share is not None:
        return of.Clip(keys.clip.share)
    epsilon = keys.epsilon * shares.CLIP if keys.clip.epsilon is None else keys.clip.epsilon
    return of.Clip(shares.above(keys.users, epsilon))


def _distribution(keys: MetricKeys, form: Form, values: of.Values, clamp: bool) -> of.Distribution:
    bins = BINS if keys.bins is None else keys.bins
    if form is HIDDEN:
        _refuse_clamp(keys)
        if keys.clip is not None:
            raise ValueError(NO_CLIP)
        if not values.fields.is_number:
            raise ValueError("value is a predicate, which is true or false: take its mean in place of a distribution")
        if bins > MOST_BINS_OF_STEPS:
            most = MOST_BINS_OF_STEPS
            raise ValueError(f"bins are at most {most}, as each has a counter of its own in every key; use fewer")
    if form is HIDDEN_CELLS and keys.clamp is not None:
        raise ValueError("clamp is for means: shares lie within 0 and 1 anyway; remove it")
    if values.grid < bins:
        raise ValueError("bins are more than the grid has steps; use fewer, or a finer grid")
    quantiles = QUANTILES if keys.quantiles is None else keys.quantiles
    return of.Distribution(values, bins, quantiles, clamp)


# ---------------------------------------------------------------- by and budget


def _by(keys: MetricKeys, form: Form, algorithm: type[by.Algorithm]) -> by.Algorithm:
    given: dict[str, Any] = {
        "bars": by.Bars(keys.failure, keys.simultaneous),
        "users": keys.users,
        "withheld": bool(keys.withheld),
    }
    takes = {field.name for field in fields(algorithm)}
    if form is MEAN:
        given |= _assumptions(keys, algorithm, takes)
    if form is CELLS:
        given |= _assumptions_of_cells(keys, form, algorithm)
        given["cap"] = "optimal" if keys.contribution_cap is None else keys.contribution_cap
    return algorithm(**{name: value for name, value in given.items() if name in takes})


def _assumptions(keys: MetricKeys, algorithm: type[by.Algorithm], takes: set[str]) -> dict[str, Any]:
    if keys.prior is None and "priors" in takes:
        raise ValueError(f"prior is missing: {algorithm.name} clips around it; add it, or use full")
    if keys.prior is not None and "priors" not in takes:
        raise ValueError(f"prior is not for {algorithm.name}; remove it, or use one of: {names_of(WITH_PRIOR)}")
    if keys.sigma is not None and "sigmas" not in takes:
        raise ValueError(f"sigma is for algorithms on blocks, and sharp; {algorithm.name} needs a range of the values")
    return {"priors": by.FewUsersPrior() if keys.prior == FEW_USERS else numbers_of(keys, "prior"),
            "sigmas": numbers_of(keys, "sigma")}  # fmt: skip


def numbers_of(keys: MetricKeys, key: str) -> tuple[Fraction | None, ...]:
    """The numbers of `prior` or `sigma`, one for each coordinate; None where the key is not given.

    Raises:
        ValueError: there are more or fewer than coordinates.
    """
    value, found = getattr(keys, key), fields_of(keys.value)
    count = 0 if found is None else len(found.names)
    return (None,) * count if value is None else for_each(key, value, count, is_list=isinstance(value, tuple))


def _assumptions_of_cells(keys: MetricKeys, form: Form, algorithm: type[by.Algorithm]) -> dict[str, Any]:
    is_best_mean = algorithm is by.Best and form.statistics[keys.statistic] is of.Mean
    if keys.prior is not None and keys.prior != FEW_USERS:
        raise ValueError(f'prior of a statistic per slot is "{FEW_USERS}", or none')
    if keys.prior is not None and not is_best_mean:
        raise ValueError(f'prior = "{FEW_USERS}" is for a mean per slot with algorithm best; remove it')
    if keys.sigma is not None and keys.prior is None and algorithm is not by.FewUsers:
        raise ValueError("sigma of a statistic per slot is for few-users; remove it")
    if keys.spread_share is not None and not is_best_mean:
        raise ValueError("spread_share is for a mean per slot with algorithm best, which has a choice; remove it")
    prior = None if keys.prior is None else by.FewUsersPrior()
    return {"prior": prior, "spread_share": keys.spread_share, "sigmas": numbers_of(keys, "sigma")}


def _budget(keys: MetricKeys, statistic: of.Of, place: per.Per) -> Budget:
    select = clip = crossing = Fraction(0)
    if isinstance(place, per.Keys) and isinstance(place.known, per.Found):
        share = shares.SELECTION if keys.slot is None else shares.SLOT_SELECTION
        stated = None if keys.selection is None else keys.selection.epsilon
        select = keys.epsilon * share if stated is None else stated
    if keys.clip is not None:
        clip = keys.epsilon * shares.CLIP if keys.clip.epsilon is None else keys.clip.epsilon
        crossing = keys.epsilon * shares.CROSSING if keys.clip.crossing is None else keys.clip.crossing
    return Budget(keys.epsilon, keys.delta, select, clip, crossing)
