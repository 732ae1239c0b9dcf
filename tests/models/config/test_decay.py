"""Decays whose weights a configuration lists, by a table or a formula."""

from fractions import Fraction
from pathlib import Path

import orjson
import pytest

from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.sums.decays import AllWindows, Decay, Forward, Listed, Polynomial
from shoal.mechanisms.sums.weights import Weights
from shoal.models.config.file import load
from shoal.models.errors import ConfigError
from shoal.stream.parameters import parameters_of
from tests.support.cover import in_a_loop

METRIC = """
[privacy]
epsilon = 4
[[metric]]
name = "spend"
topic = "sales"
user = "who"
value = "amount"
statistic = "sum"
range = [0, 10]
epsilon = 1
max_contributions = 4
every = "1h"
"""
HALVES = Weights(tuple(2**k for k in range(11, -1, -1)), 2**11)


def said(folder: Path, decay: str, *changes: tuple[str, str]) -> Path:
    text = METRIC + f"decay = {{ kind = {decay} }}\n"
    for before, after in changes:
        text = text.replace(before, after)
    (folder / "shoal.toml").write_text(text)
    return folder / "shoal.toml"


def test_weights_are_exact_and_part_of_what_is_registered(tmp_path: Path) -> None:
    config = load(said(tmp_path, '"table", weights = [1, 0.1, "1/30"]'))
    (metric,) = config.metric
    assert metric.decay is not None
    assert metric.decay.weights == (Fraction(1), Fraction(1, 10), Fraction(1, 30))
    text = orjson.loads(parameters_of(config, metric.parts))
    assert text["at"]["decay"] == {"kind": "table", "weights": ["1", "1/10", "1/30"]}
    mechanism = statistic_of(metric.parts)
    assert isinstance(mechanism, LinearStatistic)
    assert (mechanism.sums.denominator, mechanism.rest) == (30, 1_000_000)


def test_a_group_does_not_rest_while_its_list_holds_anything(tmp_path: Path) -> None:
    (metric,) = load(
        said(tmp_path, '"formula", weight = "0.5^i", horizon = "12h"', ("every =", "max_gap = 3\nevery ="))
    ).metric
    mechanism = statistic_of(metric.parts)
    assert isinstance(mechanism, LinearStatistic)
    assert mechanism.rest == 12


@in_a_loop
@pytest.mark.parametrize(
    ("decay", "made"),
    [
        ('"polynomial", exponent = 2', Polynomial(Fraction(2), 10_000_000, Fraction(1, 5))),
        ('"polynomial", exponent = 2, error = 0.5, horizon = "10h"', Polynomial(Fraction(2), 10, Fraction(1, 2))),
        ('"all-windows"', AllWindows(None, Fraction(5, 4))),
        ('"all-windows", zeta = 2', AllWindows(None, Fraction(2))),
        ('"table", weights = [1, 0.5], error = 0.1', Listed(Weights((2, 1), 2), Fraction(1, 10))),
        ('"formula", weight = "0.5^i", horizon = "12h", error = 0.3', Listed(HALVES, Fraction(3, 10))),
    ],
)
def test_what_the_paper_leaves_free_may_be_chosen(tmp_path: Path, decay: str, made: Decay) -> None:
    (metric,) = load(said(tmp_path, decay, ("every =", 'algorithm = "patent"\nevery ='))).metric
    mechanism = statistic_of(metric.parts)
    assert isinstance(mechanism, LinearStatistic)
    assert mechanism.decay == made
    assert mechanism.sums == made.patent(mechanism.sums.width, Fraction(1))


@pytest.mark.parametrize(("more", "steps"), [("", 8760), ('life = "2h"\n', 2)])
def test_forward_decay_has_the_life_of_a_sum_that_does_not_forget(tmp_path: Path, more: str, steps: int) -> None:
    (metric,) = load(said(tmp_path, '"forward", exponent = 1.5', ("every =", more + "every ="))).metric
    mechanism = statistic_of(metric.parts)
    assert isinstance(mechanism, LinearStatistic)
    assert mechanism.decay == Forward(Fraction(3, 2), steps)


def test_a_horizon_of_polynomial_weights_is_for_sharp_too(tmp_path: Path) -> None:
    (metric,) = load(said(tmp_path, '"polynomial", exponent = 0.5, horizon = "1000h"')).metric
    mechanism = statistic_of(metric.parts)
    assert isinstance(mechanism, LinearStatistic)
    assert mechanism.decay == Polynomial(Fraction(1, 2), 1000)


@in_a_loop
@pytest.mark.parametrize(
    ("decay", "changes", "refusal"),
    [
        ('"polynomial", exponent = 2, error = 0.5', (), "decay error is for algorithm patent; remove it"),
        ('"all-windows", zeta = 2', (), "decay zeta is for algorithm patent; remove it"),
        ('"all-windows", zeta = 1', (), "zeta must be greater than 1"),
        ('"polynomial", exponent = 2, error = 0.001', (), "error must lie between 0.01 and 1"),
        ('"polynomial", error = 0.5', (), "decay of kind polynomial needs exponent"),
        ('"window", length = "1d", error = 0.5', (), "error is not for a decay of kind window; remove it"),
        ('"forward"', (), "decay of kind forward needs exponent"),
        ('"forward", exponent = 17', (), "exponent must lie between 1/4 and 16, not 17"),
        ('"forward", exponent = 2, horizon = "1d"', (), "horizon is not for a decay of kind forward; remove it"),
        (
            '"forward", exponent = 2',
            (("every =", 'algorithm = "patent"\nevery ='),),
            "the patent has no mechanism for forward decay; use sharp",
        ),
        ('"table"', (), "decay of kind table needs weights"),
        ('"table", weights = [1], length = "1d"', (), "length is not for a decay of kind table; remove it"),
        ('"table", weights = [0.5, 0.6]', (), "decay weight of age 1 rises; weights lie in [0, 1] and never rise"),
        ('"table", weights = []', (), "decay weights must be a list of 1 to 4096, one for each age in steps"),
        ('"formula", weight = "1/(1+i)"', (), "decay of kind formula needs weight and horizon"),
        ('"formula", weight = "1/(1+i)", horizon = "90m"', (), "decay horizon is not a multiple of every; choose one"),
        ('"formula", weight = "1/(1+i)", horizon = "1d"', (), "decay weight at the horizon is still 0.0417, and older"),
        ('"formula", weight = "1/(1+", horizon = "1d"', (), "decay character 6: a value is missing before the end"),
        ('"window", weight = "i"', (), "weight is not for a decay of kind window; remove it"),
    ],
)
def test_what_is_refused(tmp_path: Path, decay: str, changes: tuple[tuple[str, str], ...], refusal: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(said(tmp_path, decay, *changes))
    assert refusal in str(refused.value)
