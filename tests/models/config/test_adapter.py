"""Keys become parts: a default written out is the same metric, and a key that is accepted is not dropped."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.mechanisms.parts import at, by, hides, of, per
from shoal.mechanisms.parts.metric import Metric
from shoal.models.config.metric import MetricSection
from shoal.models.config.metric_keys import MetricKeys
from tests.support.cover import in_a_loop

Keys = dict[str, Any]
USUAL: Keys = {"name": "a", "topic": "t", "user": "u", "epsilon": 1, "max_contributions": 4}
VALUE: Keys = {"value": "v", "range": [0, 100]}
TICKS: Keys = {"statistic": "mean", "every": "1d", "users": 100, **VALUE}
STEPS: Keys = {"statistic": "sum", "every": "1d", **VALUE}
IN_GROUPS: Keys = {"group": "g", "max_contributions": None, "max_per_group": 4}
SLOTS: Keys = {"statistic": "mean", "slot": "1h", **IN_GROUPS, **VALUE}
HIDDEN: Keys = {"relation": "add-remove", "start": "2026-01-01"}
HIDDEN_STEPS: Keys = HIDDEN | STEPS
HIDDEN_SLOTS: Keys = HIDDEN | {"statistic": "distribution", "slot": "1h", **VALUE}
FOUND: Keys = HIDDEN_STEPS | {"group": "g", "delta": "1e-6", "life": "90d"}
FORMS = {
    "ticks": TICKS, "steps": STEPS, "slots": SLOTS, "hidden steps": HIDDEN_STEPS, "hidden slots": HIDDEN_SLOTS,
    "found keys": FOUND, "count": {"statistic": "count", "every": "1d"},
    "users": HIDDEN | {"statistic": "users", "every": "1d"},
    "variance": STEPS | {"statistic": "variance"}, "blocks": TICKS | {"algorithm": "multi-tree", "prior": 3},
    "ticks in groups": TICKS | IN_GROUPS, "a mean of steps": STEPS | {"statistic": "mean", "decay": {"kind": "none"}},
    "one slot": SLOTS | {"group": None, "max_contributions": 4, "max_per_group": None},
    "clipped": HIDDEN_STEPS | {"clip": "auto"}, "distribution": HIDDEN_STEPS | {"statistic": "distribution"},
}  # fmt: skip


def parts_of(keys: Keys) -> Metric:
    given = {key: value for key, value in (USUAL | dict(keys)).items() if value is not None}
    return MetricSection.model_validate(given).parts


DEFAULTS: tuple[tuple[str, Keys, Keys], ...] = (
    ("a clamp of sharp", TICKS, {"clamp": True}),
    ("no clamp of naive", TICKS | {"algorithm": "naive"}, {"clamp": False}),
    ("a clamp of best", SLOTS, {"clamp": True}),
    ("no clamp of levy", SLOTS | {"algorithm": "levy"}, {"clamp": False}),
    ("one cell", SLOTS, {"max_groups": 1, "across_cells": "chop-user"}),
    ("the best cap", SLOTS, {"contribution_cap": "optimal"}),
    ("no courtesy", SLOTS, {"min_users": 1}),
    ("bins", HIDDEN_SLOTS, {"bins": 64, "quantiles": ["0.05", "0.25", "0.5", "0.75", "0.95"]}),
    ("a fifth finds keys", FOUND, {"selection": {"epsilon": "0.2"}, "max_groups": 1}),
    ("a clip", HIDDEN_STEPS | {"clip": "auto"}, {"clip": {"epsilon": "0.2", "crossing": "0.02", "share": "0.01"}}),
    ("no decay", STEPS, {"decay": {"kind": "none"}}),
    ("a day ahead at most", STEPS, {"max_ahead": "1h", "lateness": "0s", "late": "fold"}),
)


@in_a_loop
@pytest.mark.parametrize(("keys", "default"), [row[1:] for row in DEFAULTS], ids=[row[0] for row in DEFAULTS])
def test_a_default_written_out_is_the_same_metric(keys: Keys, default: Keys) -> None:
    assert parts_of(keys | default) == parts_of(keys)


OTHER: Mapping[str, tuple[Any, ...]] = {
    "name": ("b",), "topic": ("other",), "user": ("who",), "version": (2,), "time": ("at",), "lateness": ("5m",),
    "late": ("drop",), "max_ahead": ("2d",), "value": ("w", "v > 3", ["v", "w"]), "range": ([0, 10], [[0, 1], [0, 2]]),
    "grid": (64, 1 << 16), "clamp": (True, False), "bins": (16,), "quantiles": (["1/3"],), "clip": ({"share": "1/10"},),
    "group": ("h",), "cell": ({"h3": 8, "lat": "y", "lon": "x"},), "groups": (["x"],), "min_users": (5,),
    "selection": ({"epsilon": "1/4"},), "every": ("2d", "12h", "contribution"), "slot": ("30m",),
    "decay": ({"kind": "window", "length": "7d"}, {"kind": "forward", "exponent": 2}), "max_gap": (7,), "life": ("9d",),
    "unit": ("user", "user-day", "event"), "max_contributions": (5, None), "max_per_group": (5,),
    "max_groups": (2, 3), "max_events_per_user": (3,), "max_slots": (2,), "across_cells": ("split",),
    "end": ("2027-01-01",), "start": ("2026-01-02",), "relation": ("add-remove",),
    "statistic": ("mean", "sum", "users", "variance"),
    "algorithm": ("naive", "full", "patent", "baseline", "few-users"), "users": (50,), "prior": (4, "few-users"),
    "sigma": (2,), "failure": ("0.1",), "simultaneous": (5,), "withheld": (True,), "contribution_cap": (2,),
    "spread_share": ("1/10",), "epsilon": (2,), "delta": ("1e-5",),
}  # fmt: skip
# Keys that are accepted and have no effect, by class of a part: spellings of the same metric.
WITHOUT_EFFECT: Mapping[type, set[str]] = {of.PublicCount: {"epsilon", "delta"}}
# Values that are the default of some forms.
ALREADY: Keys = {"clamp": (True, False), "unit": ("user",), "grid": (1 << 16,)}


def test_every_key_can_be_changed() -> None:
    assert OTHER.keys() == MetricKeys.model_fields.keys()


@in_a_loop
@pytest.mark.parametrize("form", FORMS)
def test_an_accepted_key_is_in_a_part(form: str) -> None:
    """One key more, or another value: the metric is another one, or is refused."""
    keys, usual = FORMS[form], parts_of(FORMS[form])
    ignored = WITHOUT_EFFECT.get(type(usual.of), set())
    for key, values in OTHER.items():
        for value in values:
            try:
                changed = parts_of(keys | {key: value})
            except ValidationError:
                continue
            is_default = (USUAL | keys).get(key) == value or value in ALREADY.get(key, ())
            if not is_default and key not in ignored:
                assert changed != usual, f"{key} = {value!r} is accepted and dropped"


@in_a_loop
@pytest.mark.parametrize(
    ("keys", "part"),
    [
        (TICKS, at.Ticks),
        (TICKS | {"every": "contribution"}, at.EachContribution),
        (STEPS, at.Steps),
        (SLOTS, at.Slots),
        (SLOTS, by.Best),
        (SLOTS | {"unit": "user", "max_slots": 3}, hides.PerCell),
        (TICKS | {"unit": "event", "max_contributions": None}, hides.Events),
        (HIDDEN_STEPS, hides.AddRemove),
        (HIDDEN_STEPS | {"statistic": "count", "value": None, "range": None}, of.Count),
        (TICKS | {"decay": {"kind": "none"}}, at.Steps),
        (TICKS | IN_GROUPS, hides.PerKey),
        (STEPS | {"group": "g", "max_groups": 2}, hides.Overall),
        (FOUND, per.Found),
    ],
)
def test_a_metric_has_the_part(keys: Keys, part: type) -> None:
    metric = parts_of(keys)
    parts = (metric.of, metric.at, metric.by, metric.hides, metric.hides.limits, getattr(metric.per, "known", None))
    assert part in map(type, parts)
