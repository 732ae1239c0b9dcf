"""What a metric's keys say of statistics that protect presence, and what is refused."""

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.mechanisms.linear.came import PARTS
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.selection.upper_end import Ladder, UpperEnd
from shoal.mechanisms.sums.decays import Exponential, Undecayed, Window
from shoal.models.config.file import Config
from shoal.models.config.forms import STATISTICS
from tests.support.cover import in_a_loop

METRIC: dict[str, Any] = {
    "name": "m", "topic": "t", "user": "u", "time": "at", "relation": "add-remove", "every": "1h",
    "start": "2026-01-01", "epsilon": 1, "max_contributions": 4,
}  # fmt: skip
VALUE: dict[str, Any] = {"value": "x", "range": (0, 10)}
FOUND = {"group": "g", "delta": "0.01", "life": "90d"}
WITHIN = {"kind": "window", "length": "1h"}


def metric(**given: Any) -> Any:
    metric = {key: value for key, value in (METRIC | given).items() if value is not None}
    (section,) = Config.model_validate({"privacy": {"epsilon": 9, "delta": "0.1"}, "metric": [metric]}).metric
    return section


def test_the_statistics_that_a_refusal_names_exist() -> None:
    with pytest.raises(ValidationError, match="choose one of: ") as refused:
        metric(statistic="sum", slot="1h", every=None, **VALUE)
    told = refused.value.errors()[0]["msg"].rpartition("choose one of: ")[2].split(", ")
    assert told == ["mean", "variance", "distribution"]
    for name in told:
        assert metric(statistic=name, every=None, slot="1h", **VALUE).statistic == name
    for name in STATISTICS:
        given = VALUE if name not in {"count", "users"} else {}
        assert metric(statistic=name, **given).statistic == name


def made(**given: Any) -> Any:
    section = metric(**given)
    return LinearStatistic.of(section.parts)


@in_a_loop
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"statistic": "mean"}, "value is missing"),
        ({"statistic": "mean-variance", **VALUE}, 'mean-variance is now "variance"'),
        ({"statistic": "mean", "algorithm": "sharp", **VALUE}, "algorithm is for relation values: add-remove has one"),
        ({"statistic": "mean", "algorithm": "two-sided", **VALUE}, "two-sided is the only one of relation add-remove"),
        ({"statistic": "mean", "every": None, **VALUE}, "every is missing"),
        ({"statistic": "mean", "every": "contribution", **VALUE}, 'every = "contribution" is for relation values'),
        ({"statistic": "mean", "step": "1h", **VALUE}, "step is now every"),
        ({"statistic": "mean", "max_gap": 9, **VALUE}, "max_gap is for sums, counts, variances and means with a decay"),
        ({"statistic": "count", "range": (0, 1)}, "range does nothing for statistic count, which has no values"),
        ({"statistic": "users", "grid": 9}, "grid does nothing for statistic users, which has no values"),
        ({"statistic": "count", "clamp": True}, "clamp does nothing for statistic count, which has no values"),
        ({"statistic": "count", "max_groups": 2}, "max_groups needs a group: add one, or remove it"),
        ({"statistic": "count", "max_per_group": 4}, "max_per_group limits each group, and there is no group"),
        ({"statistic": "count", "group": "g", "groups": ["a"], "max_per_group": 4}, "one limit is for all groups"),
        ({"statistic": "count", "selection": {"keys": 2}, **FOUND}, "keys is now max_groups"),
        ({"statistic": "count", "max_groups_per_user": 2, **FOUND}, "max_groups_per_user is now max_groups"),
        ({"statistic": "count", "max_groups": 65, **FOUND}, "max_groups is at most 64 where keys are found; use fewer"),
        ({"statistic": "users", "value": "x > 3"}, "for how many records a predicate holds, use statistic sum"),
        ({"statistic": "mean", "withheld": True, **VALUE}, "withheld is not for relation add-remove"),
        ({"statistic": "sum", "clamp": True, **VALUE}, "clamp is for means; a sum is never clamped"),
        ({"statistic": "variance", "grid": 2**17, **VALUE}, "grid of a variance is at most 65536"),
        ({"statistic": "distribution", "value": "x > 3", "range": None}, "range is missing|value is a predicate"),
        ({"statistic": "distribution", "bins": 2000, **VALUE}, "bins are at most 1024"),
        ({"statistic": "distribution", "grid": 9, **VALUE}, "bins are more than the grid has steps"),
        ({"statistic": "distribution", "clamp": True, **VALUE}, "clamp is for means; a distribution is never clamped"),
        ({"statistic": "sum", "quantiles": ["0.5"], **VALUE}, "quantiles is for statistic distribution"),
        ({"statistic": "mean", "value": ["x", "y"], "range": [(0, 1), (0, 1)]}, "several values"),
        ({"statistic": "mean", "decay": {"kind": "all-windows"}, **VALUE}, "decay all-windows is for relation values"),
        ({"statistic": "mean", "decay": {"kind": "window", "updates": 3}, **VALUE}, "decay updates tells"),
        ({"statistic": "mean", "decay": {"kind": "window", "length": "90m"}, **VALUE}, "not a multiple of every"),
        ({"statistic": "users", "decay": {"kind": "window", "length": "2h"}}, "decay of users is none"),
        ({"statistic": "users", "decay": {"kind": "exponential", "alpha": "0.5"}}, "decay of users is none"),
        ({"statistic": "users", "decay": WITHIN, "unit": "user-30m"}, "unit user-30m begins or ends within a step"),
        ({"statistic": "users", "decay": WITHIN, "unit": "user-90m"}, "a multiple of every, or a shorter one"),
        ({"statistic": "count", "delta": "0.01"}, "delta must be 0: only windows have Gaussian noise"),
        ({"statistic": "sum", "value": "x", "range": (999, 1000), "grid": 8}, "raise grid"),
        ({"statistic": "mean", "users": 9, **VALUE}, "users is not for relation add-remove without a clip"),
        ({"statistic": "count", "clip": "auto"}, "clip chooses the range of a mean or sum of numbers"),
        ({"statistic": "variance", "clip": "auto", **VALUE}, "clip chooses the range of a mean or sum of numbers"),
        ({"statistic": "mean", "value": "x > 3", "clip": "auto"}, "clip chooses the range of a mean or sum of numbers"),
        ({"statistic": "sum", "value": "x", "range": (-1, 1), "clip": "auto"}, "clip of a sum needs a range"),
        ({"statistic": "mean", "delta": "0.01", "clip": "auto", "decay": {"kind": "window", "length": "2h"}, **VALUE},
         "delta must be 0 with a clip"),
        ({"statistic": "mean", "clip": {"epsilon": "0.98"}, **VALUE}, "clip takes all of epsilon that is left"),
        ({"statistic": "mean", "clip": {"share": "0.51"}, **VALUE}, "must be 0.5 at most"),
        ({"statistic": "mean", "clip": "always", **VALUE}, "clip"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        made(**given)


def test_what_a_clip_says_and_what_is_left_for_the_counters() -> None:
    auto = made(statistic="mean", clip="auto", **VALUE)
    assert auto.clip == UpperEnd(Ladder(2**20), Fraction(1, 5), Fraction(1, 50), Fraction(1, 100))
    assert (auto.epsilon, auto.clip.needed) == (Fraction(78, 100), 10_000)
    few = made(statistic="mean", clip="auto", users=4000, **VALUE)
    assert (few.clip.share, few.clip.needed) == (Fraction(1, 20), 2000)
    assert made(statistic="mean", clip="auto", users=10, **VALUE).clip.share == Fraction(1, 20)
    own = {"epsilon": "0.2", "crossing": "0.1", "share": "0.5"}
    given = made(statistic="sum", clip=own, delta="1e-9", group="g", life="9h", **VALUE)
    assert (given.clip.needed, given.clip.cost, given.epsilon) == (200, Fraction(3, 10), Fraction(1, 2))
    assert given.bounder().parts == PARTS
    # the digest has all that was chosen
    assert len({tuple(one.chosen()) for one in (auto, few, given, made(statistic="mean", **VALUE))}) == 4


def test_what_the_keys_say() -> None:
    mean = made(statistic="mean", **VALUE)
    assert (mean.decay, mean.clamps, mean.grid.steps) == (Undecayed(8760), True, 2**20)
    assert not made(statistic="mean", clamp=False, **VALUE).clamps
    both = made(statistic="variance", **VALUE)
    assert (both.grid.steps, both.clamps) == (2**16, True)
    assert made(statistic="users", group="g", groups=["a"], max_groups=3).sums.width == 3
    named = made(statistic="users", decay={"kind": "none"}, max_groups=3, group="g", groups=["a"])
    assert named.sums.width == 3
    for unit in ("user", "user-1h", "user-2h", "event"):
        cap = None if unit == "event" else 4
        assert made(statistic="users", decay=WITHIN, unit=unit, max_contributions=cap).decay == Window(1)
    parts = made(statistic="distribution", **VALUE)
    assert (parts.sides.tree.bins, parts.quantiles[2], len(parts.sides.noised)) == (64, Fraction(1, 2), 72)
    few = made(statistic="distribution", bins=5, quantiles=["1/3"], **VALUE)
    assert (few.sides.tree.bins, few.quantiles, few.sums.width) == (5, (Fraction(1, 3),), 4)
    assert few.chosen() != parts.chosen()
    halves = made(statistic="mean", decay={"kind": "exponential", "half_life": "2h"}, **VALUE)
    assert halves.decay == Exponential.half_life(Fraction(2))
    # a delta is the noise's where all keys are declared, and else that of finding keys
    window = {"kind": "window", "length": "1024h"}
    assert made(statistic="count", delta="0.01", decay=window).mechanism == "square-root"
    found = made(statistic="count", delta="0.01", decay=window, group="g", life="1000h")
    assert (found.delta, found.mechanism, found.epsilon) == (0, "hats", Fraction(4, 5))
