"""Bounding under relation add-remove: the samples that count, what they send, and how keys and ranges are chosen."""

from dataclasses import replace

from shoal.mechanisms.accounts import Site
from shoal.mechanisms.life import expected_releases
from shoal.mechanisms.linear.came import NEWCOMERS, NUMBERS_AT, SAMPLES_AT
from shoal.mechanisms.overall_accounts import Blocks, Limit, Once, OverallAccounts, accounts_of_values, blocks_of
from shoal.mechanisms.parts.at import Steps, Undecayed
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import AddRemove, Events, Overall
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Mean, Sum, Users
from shoal.mechanisms.parts.per import Declared, Keys, found_of
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from shoal.mechanisms.selection.upper_end import Ladder, UpperEnd
from shoal.mechanisms.statistic import Block, Bounder, new_block


def clip_of(metric: Metric) -> UpperEnd | None:
    """Mechanism that chooses each key's clip range; None if the range is given."""
    if not isinstance(metric.of, Mean | Sum) or metric.of.clip is None:
        return None
    budget = metric.budget
    return UpperEnd(Ladder(metric.of.values.grid), budget.clip, budget.crossing, metric.of.clip.share)


def declared_of(metric: Metric) -> tuple[str, ...] | None:
    """Keys that the configuration lists; None if there are no keys, or they are found."""
    known = metric.per.known if isinstance(metric.per, Keys) else None
    return known.names if isinstance(known, Declared) else None


def selection_of(metric: Metric) -> FirstCrossing | None:
    """Mechanism that finds keys; None if all are declared, or there are none."""
    found = found_of(metric.per)
    if found is None:
        return None
    hides = expect(metric.hides, AddRemove)
    weights, unit = falling(found.keys)
    budget = metric.budget
    if hides.end is None:
        return FirstCrossing(budget.select, budget.delta, expected_releases(metric), weights, unit)
    length = metric.every
    steps = length.index(hides.end) - length.index(hides.start)
    return FirstCrossing(budget.select, budget.delta, steps, weights, unit, ends=True)


def once(metric: Metric) -> Once | None:
    """Period in which statistic `users` counts a unit once: "key" (all time) or "step"; None for other statistics."""
    if not isinstance(metric.of, Users):
        return None
    return "key" if expect(metric.at, Steps).decay == Undecayed() else "step"


def unit_samples(metric: Metric) -> int:
    """The most samples of a unit that count, over all keys together."""
    limits = expect(metric.hides.limits, Overall, Events)
    return limits.keys if once(metric) == "key" else limits.samples


def accounts_of(metric: Metric, bounder: Bounder, site: Site) -> OverallAccounts:
    """Accounts of a metric with steps."""
    if not metric.protects_presence:
        return accounts_of_values(metric, bounder, site)
    clip, how_often, samples = clip_of(metric), once(metric), unit_samples(metric)
    limit = limit_of(metric, samples, selection_of(metric))
    limit = replace(limit, once=how_often, keys=samples if how_often == "key" else limit.keys)
    return OverallAccounts(limit, blocks_of(bounder) if clip is None else rung_blocks(clip.ladder), site)


def limit_of(metric: Metric, samples: int, selection: FirstCrossing | None) -> Limit:
    """Limit to the first `samples` samples of a unit between start and end, in declared keys or in all."""
    declared, hides = declared_of(metric), expect(metric.hides, AddRemove)
    weights = () if selection is None else selection.weights
    return Limit(
        samples=None if metric.unit.is_event else samples,
        keys=len(weights),
        period=metric.unit.length,
        start=hides.start,
        end=hides.end,
        declared=None if declared is None else frozenset(declared),
        newcomers=newcomers(weights),
        step=metric.every,
    )


def newcomers(weights: tuple[int, ...]) -> tuple[Block, ...]:
    """Blocks that say that a unit is new in its first, second, ... key, one for each weight."""
    return tuple(new_block((number, 0, 1, weight, NEWCOMERS)) for number, weight in enumerate(weights, 1))


def rung_blocks(ladder: Ladder) -> Blocks:
    """Blocks of a sample in a key whose clip range is still to be chosen.

    A sample is sent with the lowest rung that it is not above; the first one once more, as the unit's number. So a unit
    gives one number, to one key.
    """

    def blocks(number: int, value: int) -> tuple[Block, ...]:
        rung = ladder.rung_of(value)
        counted = new_block((number, 0, 1, value, SAMPLES_AT + rung))
        if number == 1:
            return counted, new_block((number, 0, 1, 0, NUMBERS_AT + rung))
        return (counted,)

    return blocks
