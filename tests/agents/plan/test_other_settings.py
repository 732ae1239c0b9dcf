"""A plan tries other settings of a metric: none of them has a key that the metric's form lacks, whatever it says."""

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.plan.observed import observed
from shoal.agents.plan.planners import PLANNERS
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.workload import Stated
from shoal.models.config.file import Config
from tests.models.config.test_adapter import FORMS, HIDDEN_STEPS, STEPS, USUAL
from tests.support.cover import in_a_loop

DECAYED = STEPS | {"statistic": "mean", "decay": {"kind": "window", "length": "7d"}}
METRICS: dict[str, dict[str, Any]] = {
    **FORMS,
    "a clamped mean with a decay": DECAYED | {"clamp": True},
    "a clamped variance": STEPS | {"statistic": "variance", "clamp": True},
    "single events whose presence is hidden": HIDDEN_STEPS | {"unit": "event", "max_contributions": None},
}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "events.jsonl"
    lines = (
        {"u": f"user {n % 9}", "g": "ab"[n % 2], "v": n % 100, "time": f"2026-01-{1 + n // 9:02}T{n % 24:02}:00:00Z"}
        for n in range(90)
    )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in sorted(lines, key=lambda line: str(line["time"]))))
    return path


@in_a_loop
@pytest.mark.parametrize("name", METRICS)
def test_every_form_is_planned_for_numbers_and_for_a_file(events: Path, name: str) -> None:
    keys = {key: value for key, value in (USUAL | METRICS[name] | {"time": "time"}).items() if value is not None}
    config = Config.model_validate({"privacy": {"key_file": "key", "epsilon": 9, "delta": "0.1"}, "metric": [keys]})
    (metric,) = config.metrics
    planner = PLANNERS[kind_of(metric)]
    workloads: list[Stated | Observed] = [Stated(20, 3, None)]
    if not metric.protects_presence:  # which a plan from events would tell
        workloads.append(observed(config, metric, str(events), lambda count: None))
    for workload in workloads:
        plans = planner.plans(metric, workload, lambda part: None)
        assert len(plans) == max(1, len(metric.names))


def test_an_algorithm_that_the_rules_refuse_is_not_recommended() -> None:
    """Sharp has no sums of several values over a tick, as a mean of events needs."""
    values = {"value": ["v", "w"], "range": [[0, 100], [0, 1]], "statistic": "mean", "every": "1d", "users": 9}
    keys = {**USUAL, **METRICS["ticks"], **values, "algorithm": "naive", "unit": "event", "max_contributions": None}
    kept = {key: value for key, value in keys.items() if value is not None}
    (metric,) = Config.model_validate({"privacy": {"key_file": "key", "epsilon": 9}, "metric": [kept]}).metrics
    plan, _ = PLANNERS[kind_of(metric)].plans(metric, Stated(2000, 3, None), lambda part: None)
    refused = {one["algorithm"]: one["refused"] for one in plan.fields["algorithms"]}
    assert "sharp has no sums of several values over a tick" in refused["sharp"]
    assert refused["naive"] is None
    assert plan.fields["recommended"]["algorithm"] == "naive"
