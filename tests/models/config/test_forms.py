"""Names of statistics and algorithms, each once, and the defaults that a statistic has of its own."""

from shoal.models.config.forms import ALGORITHMS, ALL, STATISTICS, defaults_of


def test_names_are_listed_once():
    assert STATISTICS == (
        "mean", "sum", "count", "slot-mean", "slot-mean-variance", "slot-distribution", "variance", "users",
        "mean-variance", "distribution",
    )  # fmt: skip
    assert len(set(ALGORITHMS)) == len(ALGORITHMS)
    assert set(ALGORITHMS) == {algorithm.name for form in ALL for algorithm in form.algorithms}


def test_a_key_has_another_default_where_its_statistic_says_so():
    assert defaults_of("count") == {"epsilon": 0}
    assert defaults_of("variance") == {"grid": 65536}
    assert defaults_of("slot-mean") == {"unit": "user-slot", "algorithm": "best"}
    assert defaults_of("mean") == defaults_of("sum") == defaults_of("median") == defaults_of(["mean"]) == {}
    assert defaults_of("mean", ["values"]) == {}
    assert defaults_of("mean", "add-remove") == {"algorithm": "two-sided"}
    assert defaults_of("slot-mean-variance", "add-remove") == {
        "unit": "user-slot", "algorithm": "two-sided", "grid": 65536,
    }  # fmt: skip
