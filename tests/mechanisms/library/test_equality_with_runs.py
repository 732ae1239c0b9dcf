"""The library releases what `shoal run` does: the same key, parameters and samples, the same numbers."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms import (
    DecayedStatistic,
    Estimate,
    Exponential,
    FewUsersMean,
    Forward,
    Key,
    KeySelection,
    PresenceStatistic,
    SharpMean,
    SlotMean,
    Undecayed,
    Window,
)
from shoal.mechanisms.library import keys as keys_module
from shoal.models.config.file import Config
from shoal.stream.topic import plan_topic
from tests.privacy.attended import present
from tests.stream.simulation import SECRET, config, event, run_file
from tests.support.effort import examples

TICK = 10  # seconds
FIRST = 10  # tick, at which the streams of presence begin
LAST = FIRST + 9
RANGE: dict[str, Any] = {"low": 0, "high": 1, "grid": 16}
CAPPED: dict[str, Any] = {**RANGE, "max_contributions": 3}
HALF = Fraction(1, 2)
STATISTIC = SharpMean | DecayedStatistic | SlotMean | FewUsersMean | PresenceStatistic


class Sample(NamedTuple):
    tick: int
    user: str
    value: float
    group: str


class Case(NamedTuple):
    """A statistic of the library, and what a configuration says of the same."""

    statistic: STATISTIC
    keys: dict[str, Any]


def of_values(made: STATISTIC, **keys: Any) -> Case:
    stepped = {"every": None, "users": None, "algorithm": None, "failure": None, "max_contributions": 3}
    return Case(made, stepped | keys)


MEAN = {"algorithm": "sharp", "failure": None, "max_contributions": 3, "every": "10s"}
SLOT = {"slot": "10s", "every": None, "users": None, "algorithm": None, "failure": None, "max_contributions": 3}
DELTA = Fraction(1, 1000)

CASES = {
    "the mean": Case(
        SharpMean(epsilon=1000, users=4, horizon=50, **CAPPED), MEAN | {"epsilon": 1000, "life": "500s"}
    ),
    "means of groups": Case(
        SharpMean(epsilon=3000, max_groups=2, **CAPPED),
        MEAN | {"epsilon": 3000, "users": None, "group": "g", "max_groups": 2, "life": "3650s"},
    ),
    "a mean of many samples each": Case(
        SharpMean(epsilon=1000, users=4, **RANGE, max_contributions=64),
        MEAN | {"epsilon": 1000, "max_contributions": 64, "life": "3650s"}
    ),
    "a mean of windows": of_values(
        DecayedStatistic(statistic="mean", decay=Window(3), epsilon=1, **CAPPED),
        statistic="mean", every="10s", decay={"kind": "window", "length": "30s"},
    ),
    "sums of groups that fade": of_values(
        DecayedStatistic(statistic="sum", decay=Exponential.half_life(2), epsilon=1, max_groups=1, **CAPPED),
        statistic="sum", every="10s", decay={"kind": "exponential", "half_life": "20s"}, group="g",
    ),
    "a sum with Gaussian noise": of_values(
        DecayedStatistic(statistic="sum", decay=Window(400), epsilon=1, delta=DELTA, **CAPPED),
        statistic="sum", every="10s", decay={"kind": "window", "length": "4000s"}, delta=DELTA,
    ),
    "a mean by forward decay": of_values(
        DecayedStatistic(statistic="mean", decay=Forward(Fraction(2), 10), epsilon=1, **CAPPED),
        statistic="mean", every="10s", decay={"kind": "forward", "exponent": 2}, life="100s",
    ),
    "the mean of each slot": Case(SlotMean(epsilon=1, **CAPPED), SLOT | {"statistic": "mean"}),
    "means of cells": Case(
        SlotMean(epsilon=1, max_groups=2, algorithm="levy", **CAPPED),
        SLOT | {"statistic": "mean", "group": "g", "max_groups": 2, "algorithm": "levy"},
    ),
    "few users": Case(
        FewUsersMean(epsilon=2000, delta=DELTA, sigma=HALF, **CAPPED),
        SLOT | {"statistic": "mean", "algorithm": "few-users", "delta": DELTA, "sigma": HALF, "epsilon": 2000},
    ),
    "a count of presence": Case(
        PresenceStatistic(statistic="count", epsilon=1, max_contributions=3, decay=Undecayed(10)),
        {"relation": "add-remove", "statistic": "count", "value": None, "range": None},
    ),
    "users of each tick": Case(
        PresenceStatistic(statistic="users", epsilon=1, max_contributions=3, decay=Window(1), groups=("a", "b")),
        {
            "relation": "add-remove", "statistic": "users", "value": None, "range": None, "group": "g",
            "groups": ["a", "b"], "decay": {"kind": "window", "length": "10s"},
        },
    ),
    "a mean of presence": Case(
        PresenceStatistic(statistic="mean", epsilon=20, decay=Undecayed(10), **CAPPED),
        {"relation": "add-remove", "epsilon": 20},
    ),
    "sums of groups that are found": Case(
        PresenceStatistic(
            statistic="sum", decay=Undecayed(10), epsilon=8,
            selection=KeySelection(epsilon=8, delta=HALF, horizon=10, keys=2, ends=True),
            **CAPPED,
        ),
        {
            "relation": "add-remove", "statistic": "sum", "group": "g", "epsilon": 16, "delta": HALF,
            "selection": {"epsilon": 8}, "max_groups": 2,
        },
    ),
    "users of groups that are found": Case(
        PresenceStatistic(
            statistic="users", decay=Undecayed(10), epsilon=8,
            selection=KeySelection(epsilon=8, delta=HALF, horizon=10, keys=2, ends=True),
            max_contributions=2,
        ),
        {
            "relation": "add-remove", "statistic": "users", "value": None, "range": None, "group": "g", "epsilon": 16,
            "delta": HALF, "selection": {"epsilon": 8}, "max_contributions": 2, "max_groups": 2,
        },
    ),
}  # fmt: skip

samples = st.lists(
    st.builds(
        Sample,
        tick=st.integers(FIRST, LAST),
        user=st.sampled_from(["ann", "ben", "cem", "dan", "eve"]),
        value=st.floats(-1, 2).map(lambda x: round(x, 3)),
        group=st.sampled_from("ab"),
    ),
    min_size=1,
    max_size=60,
).map(lambda found: sorted(found, key=lambda sample: sample.tick))


def configured(keys: dict[str, Any]) -> Config:
    return present(keys) if "relation" in keys else config(keys)


def of_run(cfg: Config, fed: list[Sample]) -> list[dict[str, Any]]:
    """What `shoal run` releases, in order."""
    lines = [event(one.user, one.value, one.tick * TICK + 1, g=one.group) for one in fed]
    return [orjson.loads(release) for release in run_file(cfg, lines)]


def of_library(statistic: STATISTIC, key: Key, fed: list[Sample]) -> Iterator[tuple[int, str, Estimate]]:
    """What the library does."""
    grouped = any(getattr(statistic, name, None) for name in ("max_groups", "groups", "selection"))
    valued = getattr(statistic, "low", None) is not None
    stream = statistic.open(key, first=FIRST)
    waiting = list(fed)
    last = LAST if isinstance(statistic, PresenceStatistic) else waiting[-1].tick
    for tick in range(FIRST, last + 1):
        while waiting and waiting[0].tick == tick:
            one = waiting.pop(0)
            stream.add(one.user, one.value if valued else None, one.group if grouped else None)
        for group, estimate in stream.close().items():
            yield tick, group, estimate


@pytest.mark.parametrize("name", CASES)
@examples(60)
@given(fed=samples)
def test_the_library_releases_what_a_run_does(name: str, fed: list[Sample]) -> None:
    # given a metric, and the key of its version
    statistic, keys = CASES[name]
    cfg = configured(keys)
    (metric,) = plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1).metrics
    key = Key.of_metric(SECRET, metric.parts.name, metric.parts.version, metric.digest)
    keys_module._RELEASED.clear()  # an example stands for a process of its own
    # when the same samples go into a run and into the library
    expected = of_run(cfg, fed)
    made = list(of_library(statistic, key, fed))
    # then the same numbers come out, and cost the same
    assert [(one["value"], one["noise_sd"], one["low"], one["high"]) for one in expected] == [
        (estimate.value, estimate.noise_sd, estimate.low, estimate.high) for _, _, estimate in made
    ]
    assert [one.get("group") or "" for one in expected] == [group for _, group, _ in made]
    for one, (_, _, estimate) in zip(expected, made, strict=True):
        assert {**estimate.counts, **estimate.details}.items() <= one.items()
    loss = statistic.loss
    assert (loss.epsilon, loss.delta) == (metric.parts.budget.epsilon, metric.parts.budget.delta)
