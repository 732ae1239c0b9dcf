"""Registered parameters, as they are read: of each metric what its configuration says, and which keys changed."""

from typing import Any

import orjson

from shoal.models.config.metric import MetricSection
from shoal.models.parameters import (
    clock_in,
    differing,
    is_by_period,
    length_in,
    pattern_in,
    person_in,
    time_in,
    topic_in,
    values_in,
)
from shoal.stream.parameters import canonical

HOUR = 3_600_000_000  # microseconds
VALUES: dict[str, Any] = {"name": "m", "topic": "t", "user": "u", "value": "x", "range": (0, 1), "epsilon": 1}
MEAN = VALUES | {"statistic": "mean", "every": "1h", "max_per_group": 3, "group": "g"}
SLOT = VALUES | {"statistic": "mean", "slot": "2h", "max_contributions": 3, "time": "at"}
SUM = VALUES | {"statistic": "sum", "every": "1h", "max_contributions": 3, "value": "x > 1 and y < 2", "range": (0, 1)}
FOUND = SUM | {
    "relation": "add-remove", "start": "2026-01-01", "group": "g", "delta": "1e-6", "life": "30d", "value": "x",
}  # fmt: skip


def said(metric: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in metric.items() if value is not None}
    found: dict[str, Any] = orjson.loads(orjson.dumps(canonical(MetricSection.model_validate(given).parts)))
    return found


def changed(before: dict[str, Any], **keys: Any) -> list[str]:
    return differing(*(orjson.dumps(said(one)).decode() for one in (before, before | keys)))


def test_what_is_read_is_what_the_configuration_said() -> None:
    assert (topic_in(said(MEAN)), clock_in(said(MEAN)), person_in(said(MEAN))) == ("t", ("t", 0), {"t": "u"})
    assert (values_in(said(MEAN)), values_in(said(SUM))) == (["x"], ["x", "y"])
    assert (pattern_in(said(MEAN)), pattern_in(said(SLOT))) == (["u", "g"], ["u", "at"])
    assert [(is_by_period(said(one)), time_in(said(one))) for one in (MEAN, SLOT)] == [(False, None), (True, "at")]
    assert values_in(said(SUM | {"statistic": "count", "value": None, "range": None})) == []
    assert person_in(said(SUM | {"unit": "event", "max_contributions": None})) == {}
    assert [length_in(said(one)) for one in (MEAN, SLOT, SUM)] == [None, 2 * HOUR, None]
    assert length_in(said(SUM | {"decay": {"kind": "window", "length": "3h"}})) == 3 * HOUR
    assert length_in(said(SUM | {"decay": {"kind": "exponential", "half_life": "3h"}})) is None


def test_changed_parameters_are_named_by_their_keys() -> None:
    assert changed(MEAN, max_per_group=4) == ["max_per_group"]
    assert changed(SUM, max_contributions=4) == ["max_contributions"]
    assert changed(FOUND, epsilon=2) == ["epsilon"]  # of which finding keys has a share
    assert changed(FOUND, selection={"epsilon": "0.3"}) == ["selection"]
    assert changed(SLOT, contribution_cap=2) == ["contribution_cap"]
    assert changed(MEAN, group="h", user="v") == ["group", "user"]
