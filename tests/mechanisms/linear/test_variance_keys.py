"""What a metric's keys say of a variance, and what is refused."""

from fractions import Fraction

import pytest
from pydantic import ValidationError

from shoal.mechanisms.forecast.step_prospect import breadth
from shoal.mechanisms.life import expected_releases
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.sums.decays import Undecayed, Window
from tests.stream.simulation import config
from tests.support.cover import in_a_loop

VARIANCE = {"statistic": "variance", "every": "5s"}
WINDOW = {"kind": "window", "length": "15s"}


def test_a_variance_is_made_as_its_keys_say():
    (metric,) = config(VARIANCE | {"decay": WINDOW, "range": (-1, 3), "grid": None, "max_gap": 7}).metric
    mechanism = LinearStatistic.of(metric.parts)
    assert mechanism.decay == Window(3)
    assert [mechanism.grid.low, mechanism.grid.high, mechanism.grid.steps] == [-1, 3, 65536]
    assert [mechanism.epsilon, mechanism.max_contributions, mechanism.max_gap] == [1, 8, 7]
    assert (mechanism.clamps, breadth(mechanism), breadth(mechanism, Fraction(1, 2))) == (True, 4.0, 1.0)


def test_without_a_decay_it_is_that_since_the_beginning_and_patent_clamps_if_asked():
    (metric,) = config(VARIANCE).metric
    assert LinearStatistic.of(metric.parts).decay == Undecayed(expected_releases(metric.parts))
    patent = VARIANCE | {"decay": WINDOW, "algorithm": "patent"}
    assert [LinearStatistic.of(config(patent | more).metric[0].parts).clamps for more in ({}, {"clamp": True})] == [
        False,
        True,
    ]


@in_a_loop
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"decay": {"kind": "all-windows"}}, "decay all-windows is for sums, counts and means"),
        ({"decay": WINDOW, "delta": "1e-6"}, "delta must be 0: a variance is pure differential privacy"),
        ({"grid": 1 << 17}, "grid of a variance is at most 65536"),
        ({"every": "contribution"}, 'every = "contribution" is for means without a decay; use a duration'),
        ({"max_per_group": 9}, "max_per_group limits each group, and there is no group; use max_contributions"),
        ({"every": None}, "every is missing"),
        ({"range": None}, "range is missing"),
        ({"algorithm": "naive"}, "naive is not for a variance of every step; use one of: sharp, patent"),
        ({"algorithm": "patent"}, "the patent has no mechanism without a decay"),
    ],
)
def test_what_is_not_for_a_variance_is_refused(keys, said):
    with pytest.raises(ValidationError, match=said):
        config(VARIANCE | keys)
