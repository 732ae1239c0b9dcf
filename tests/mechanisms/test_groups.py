"""Groups that are computed each by itself: what a level of one of them holds can be read."""

from fractions import Fraction

import pytest

from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.groups import EachAlone
from shoal.mechanisms.statistic import Contribution

KEY = b"k" * 32


def test_a_level_of_a_group_is_that_of_its_releaser():
    mean = Full(grid=Grid(Fraction(0), Fraction(1), 16), epsilon=Fraction(1), max_contributions=4, users=6)
    groups = EachAlone(lambda group: mean.releaser(KEY, group))
    list(groups.close(0, [("a", [Contribution(0, "0" * 32, 1, 0, 1, 9)])]))
    assert groups.level("a", 0) == {"elements": 1, "total": 9, "waiting": 1}  # kept for the next level
    assert [groups.level("a", level) for level in (-1, len(mean.levels))] == [None, None]
    untouched = groups.level("b", 0)
    assert untouched is not None
    assert untouched["elements"] == 0


def test_groups_that_hide_none_refuse_a_state_that_has_hidden_ones() -> None:
    mean = Full(grid=Grid(Fraction(0), Fraction(1), 16), epsilon=Fraction(1), max_contributions=4, users=6)
    groups = EachAlone(lambda group: mean.releaser(KEY, group))
    assert list(groups.hidden_changes()) == []
    with pytest.raises(ValueError, match="the state has hidden groups"):
        groups.restore_hidden("a", None, [1])
