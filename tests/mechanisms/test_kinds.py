"""Each metric is of one kind, and no kind is asked twice what it is."""

from itertools import product
from types import SimpleNamespace

import pytest

from shoal.mechanisms.kinds import ALGORITHMS, KINDS, STATISTICS, defaults_of, kind_of
from tests.support.cover import in_a_loop


@in_a_loop
@pytest.mark.parametrize("relation", ["values", "add-remove"])
@pytest.mark.parametrize(("statistic", "step", "decay"), list(product(STATISTICS, (None, 1), (None, "window"))))
def test_every_metric_is_of_one_kind(relation, statistic, step, decay):
    spec = SimpleNamespace(relation=relation, statistic=statistic, step=step, decay=decay)
    takers = [kind for kind in KINDS if kind.relation == relation and kind.takes(spec)]
    if statistic in ("users", "mean-variance", "distribution") and relation == "values":
        assert not takers
        with pytest.raises(ValueError, match=f"statistic {statistic} is for relation add-remove; say so"):
            kind_of(spec)
        return
    assert takers == [kind_of(spec)]
    assert statistic in takers[0].statistics or relation == "add-remove"  # whose one kind refuses it


def test_names_are_listed_once_and_the_oldest_come_first():
    assert STATISTICS == (
        "mean", "sum", "count", "slot-mean", "slot-mean-variance", "slot-distribution", "variance", "users",
        "mean-variance", "distribution",
    )  # fmt: skip
    assert len(set(ALGORITHMS)) == len(ALGORITHMS)
    assert set(ALGORITHMS) == {name for kind in KINDS for name in kind.algorithms}


def test_a_key_has_another_default_where_its_statistic_says_so():
    assert defaults_of("count") == {"epsilon": 0}
    assert defaults_of("variance") == {"grid": 65536}
    assert defaults_of("slot-mean") == {"unit": "user-slot", "algorithm": "best"}
    assert defaults_of("mean") == defaults_of("sum") == defaults_of("median") == defaults_of(["mean"]) == {}
