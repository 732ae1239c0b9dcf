"""The text that a metric is registered under is that of its parts: equal texts if and only if they are equal."""

from collections.abc import Hashable, Iterator, Mapping
from random import Random
from typing import Any

import orjson
from pydantic import ValidationError

from shoal.mechanisms.life import life_of, uses_life
from shoal.mechanisms.parts.at import Steps, Ticks
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.variants import with_life
from shoal.models.config.metric import MetricSection
from shoal.stream.parameters import PARTS, canonical
from tests.models.config.test_adapter import FORMS, OTHER, USUAL
from tests.support.effort import tries

# Values that are near to others: of the same kind, of the same number, or a default that is written out.
NEAR: Mapping[str, tuple[Any, ...]] = {
    "decay": (
        {"kind": "none"}, {"kind": "window", "updates": 7}, {"kind": "all-windows"},
        {"kind": "exponential", "alpha": "1/2"}, {"kind": "exponential", "half_life": "1d"},
        {"kind": "polynomial", "exponent": 2}, {"kind": "polynomial", "exponent": 2, "horizon": "10000000d"},
        {"kind": "table", "weights": [1]}, {"kind": "formula", "weight": "0.1^i", "horizon": "30d"},
    ),
    "unit": ("user-24h", "user-slot", "user-hour", "user-1h", "user-60m"), "life": ("365d",), "end": ("2026-04-01",),
    "value": ("v > 3.0", "v>3", "not v <= 3", "v == 'w'", ["w", "v"]), "range": ([0, "100"], [["0", 100]] * 2),
    "group": (None,), "groups": (["x", "y"], ["y", "x"]), "max_per_group": (None,), "max_contributions": (1,),
    "algorithm": (None, "sharp", "best", "single-tree", "multi-tree"), "clip": ("auto", {"share": "0.01"}),
    "selection": ({"epsilon": "0.2"}, {}), "epsilon": ("1", "0.5"), "delta": ("0.000001",), "max_gap": (1_000_000,),
    "failure": ("0.001",), "max_groups": (1,), "max_slots": (1,), "contribution_cap": ("median", 1), "late": ("fold",),
    "sigma": ([2, 3],), "prior": ([4, 3],), "quantiles": (["1/2", "1/3"], ["1/3", "1/2"]), "max_ahead": ("1h",),
}  # fmt: skip
VALUES = {key: (*values, *NEAR.get(key, ())) for key, values in OTHER.items()}


def accepted(count: int) -> Iterator[Metric]:
    """Metrics of the valid ones among `count` random configurations, each a base with up to two keys changed."""
    for seed in range(count):
        random = Random(seed)
        keys = USUAL | random.choice(list(FORMS.values()))
        for key in random.sample(sorted(VALUES), random.randrange(3)):
            keys[key] = random.choice(VALUES[key])
        try:
            section = MetricSection.model_validate({key: value for key, value in keys.items() if value is not None})
        except ValidationError:
            continue
        yield section.in_epoch(random.randrange(2)).parts


def exactly(metric: Metric) -> Hashable:
    """All parts, with what units do not compare, and with the life that counters are made for."""
    if uses_life(metric) and isinstance(metric.at, Ticks | Steps):
        metric = with_life(metric, life_of(metric))
    return (*(getattr(metric, part) for part in PARTS), metric.unit.name, metric.unit.of_a_user)


def test_two_metrics_have_one_text_if_and_only_if_their_parts_are_equal() -> None:
    texts: dict[Hashable, str] = {}
    metrics: dict[str, Hashable] = {}
    count = 0
    for metric in accepted(tries(4000)):
        count += 1
        text, parts = orjson.dumps(canonical(metric), option=orjson.OPT_SORT_KEYS).decode(), exactly(metric)
        assert texts.setdefault(parts, text) == text, metric
        assert metrics.setdefault(text, parts) == parts, text
    # many differ, and many are equal
    assert tries(4000) / 30 < len(texts) < count * 0.9
