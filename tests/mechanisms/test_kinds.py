"""Each metric is of one kind, by the classes of its parts."""

from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.slot.statistic import Slotted
from tests.golden.configurations import CASES
from tests.golden.driver import config_of


def test_every_kind_has_a_golden_metric_and_makes_its_own_mechanism():
    found: set[object] = set()
    for case in CASES:
        for section in config_of(case).metric:
            kind = kind_of(section.parts)
            found.add(kind)
            assert kind.apart == (kind is Slotted), "losses of slots add up"
    assert found == {LinearSlots, LinearStatistic, Slotted, ContinualMean}
