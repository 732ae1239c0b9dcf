"""Bounding of slots under relation add-remove: the samples that count, what they send, and how cells are found."""

from dataclasses import replace
from fractions import Fraction

from shoal.mechanisms.accounts import Site
from shoal.mechanisms.bins.shares import bin_of
from shoal.mechanisms.grid import Grid, grid_of
from shoal.mechanisms.linear.bounding import limit_of
from shoal.mechanisms.overall_accounts import Blocks, OverallAccounts, blocks_of
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Distribution
from shoal.mechanisms.parts.per import found_of
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from shoal.mechanisms.statistic import PART_BITS, PART_MASK, Block, Bounder, new_block


def selection_of(metric: Metric) -> FirstCrossing | None:
    """Mechanism that finds the cells of a slot; None if all are declared, or there is one."""
    return finding(metric, metric.budget.select) if found_of(metric.per) else None


def finding(metric: Metric, epsilon: Fraction) -> FirstCrossing:
    """Mechanism that finds the cells of a slot with a share of epsilon, by one comparison per cell.

    A unit of one slot is more likely to be in its first cell than in a later one, and weighs most there. Of a longer
    unit all count alike: what is later in its day is not less worth finding.
    """
    found = found_of(metric.per)
    count = 1 if found is None else found.keys
    is_slot = metric.unit.period == metric.every.microseconds
    weights, unit = falling(count) if is_slot else ((1,) * count, count)
    return FirstCrossing(epsilon, metric.budget.delta, 1, weights, unit, ends=True)


def accounts_of(metric: Metric, bounder: Bounder, site: Site) -> OverallAccounts:
    """Accounts of a metric with slots."""
    selection, what = selection_of(metric), metric.of
    limit = replace(limit_of(metric, metric.samples, selection), anew=selection is not None)
    blocks = bin_blocks(what.bins, grid_of(what.values)) if isinstance(what, Distribution) else blocks_of(bounder)
    return OverallAccounts(limit, blocks, site)


def bin_blocks(bins: int, grid: Grid) -> Blocks:
    """Blocks of a sample that say no more than its bin."""

    def blocks(number: int, value: int) -> tuple[Block, ...]:
        place = bin_of(value, bins, grid)
        return (new_block((number, 1 + (place >> PART_BITS), 1, 0, place & PART_MASK)),)

    return blocks
