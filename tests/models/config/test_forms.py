"""Names of statistics and algorithms, each once, and what a metric has that says nothing of it."""

from fractions import Fraction

import pytest

from shoal.mechanisms.parts.at import Steps
from shoal.models.config.forms import ALGORITHMS, ALL, STATISTICS
from tests.models.config.test_adapter import HIDDEN_SLOTS, HIDDEN_STEPS, SLOTS, STEPS, TICKS, Keys, parts_of
from tests.support.cover import in_a_loop

VARIANCE: Keys = {"statistic": "variance"}


def test_names_are_listed_once() -> None:
    assert STATISTICS == ("mean", "sum", "count", "variance", "distribution", "users")
    assert len(set(ALGORITHMS)) == len(ALGORITHMS)
    assert set(ALGORITHMS) == {algorithm.name for form in ALL if not form.is_hidden for algorithm in form.algorithms}


@in_a_loop
@pytest.mark.parametrize(
    ("keys", "unit", "algorithm", "grid"),
    [
        (TICKS, "user", "sharp", 1 << 20),
        (STEPS, "user", "sharp", 1 << 20),
        (STEPS | VARIANCE, "user", "sharp", 1 << 16),
        (SLOTS, "user-slot", "best", 1 << 20),
        (SLOTS | VARIANCE, "user-slot", "best", 1 << 20),
        (HIDDEN_STEPS, "user", "two-sided", 1 << 20),
        (HIDDEN_STEPS | VARIANCE, "user", "two-sided", 1 << 16),
        (HIDDEN_SLOTS, "user-slot", "two-sided", 1 << 20),
        (HIDDEN_SLOTS | VARIANCE, "user-slot", "two-sided", 1 << 16),
    ],
)
def test_unit_algorithm_and_grid_follow_from_the_form(keys: Keys, unit: str, algorithm: str, grid: int) -> None:
    metric = parts_of(keys)
    assert (metric.unit.name, metric.by.name) == (unit, algorithm)
    assert metric.of.values.grid == grid  # type: ignore[union-attr]


def test_a_count_costs_nothing_and_groups_rest_under_relation_values_alone() -> None:
    count = parts_of({"statistic": "count", "every": "1d", "epsilon": None})
    assert count.budget.epsilon == Fraction(0)
    assert isinstance(count.at, Steps)
    assert count.at.rest == 1_000_000
    hidden = parts_of(HIDDEN_STEPS).at
    assert isinstance(hidden, Steps)
    assert hidden.rest is None
