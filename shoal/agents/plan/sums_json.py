"""A plan of a sum, count or decayed mean for programs."""

from typing import Any

from shoal.agents.plan.mean import Look
from shoal.agents.plan.mean_view import groups_as_json, look_as_json
from shoal.agents.plan.observed import NOT_PRIVATE
from shoal.agents.plan.sums import StepOutlook, StepPlan
from shoal.agents.plan.sums_view import length, missing
from shoal.models.config.durations import format_duration


def as_json(plan: StepPlan) -> dict[str, Any]:
    """All of a plan."""
    section, work = plan.section, plan.workload
    decay = {name: _plain(name, value) for name, value in section.forgets if value is not None}
    return {
        "metric": section.name,
        "field": section.values[0] if section.values else None,
        "statistic": section.statistic,
        "private": plan.private,
        **({} if plan.private else {"warning": NOT_PRIVATE}),
        "range": [float(end) for end in section.ranges[0]] if section.ranges else None,
        "epsilon": float(section.epsilon),
        "delta": float(section.delta),
        "unit": section.unit,
        "max_contributions": section.max_contributions,
        "step": format_duration(section.cadence or 0),
        "decay": decay,
        "workload": {
            "users": work.users,
            "samples_per_user": work.samples,
            "samples_per_unit": work.of_a_unit,
            "over": work.over / 1e6,
            "steps": work.steps,
            "pattern": work.pattern,
            "spread": float(work.spread),
        },
        "algorithms": [
            {"configured": one.section.algorithm == section.algorithm, **_outlook(one)} for one in plan.outlooks
        ],
        "by_hand": plan.by_hand and _outlook(plan.by_hand) | {"algorithm": None},
        "recommended": {
            "algorithm": plan.advised.algorithm,
            "mechanism": plan.best.mechanism,
            "max_contributions": plan.advised.max_contributions,
            **dict(missing(plan)),
            "outcome": look_as_json(plan.outcome),
        },
        "by_max_contributions": [{"max_contributions": cap, **look_as_json(look)} for cap, look in plan.caps],
        "by_length": [
            {"length": length(one.section), "mechanism": one.mechanism, **_long_run(one.look)} for one in plan.lengths
        ],
        "by_window": [
            {"steps": steps, "seconds": steps * (section.cadence or 0) / 1e6, "noise_sd": noise}
            for steps, noise in plan.windows
        ],
        "half_the_error": {
            "epsilon": plan.halving
            and {
                "factor": plan.halving.factor,
                "epsilon": plan.halving.amount,
                "max_contributions": plan.halving.max_contributions,
            }
        },
        "groups": groups_as_json(plan.groups),
    }


def _plain(name: str, value: Any) -> Any:
    if name in ("length", "half_life"):
        return format_duration(value)
    return value if name == "kind" else float(value)


def _outlook(one: StepOutlook) -> dict[str, Any]:
    return {
        "algorithm": one.section.algorithm,
        "mechanism": one.mechanism,
        "refused": one.refused,
        "over_time": [look_as_json(look) for look in one.looks],
        "long_run": one.long_run and _long_run(one.long_run),
    }


def _long_run(look: Look) -> dict[str, Any]:
    return {name: value for name, value in look_as_json(look).items() if name not in ("part", "seconds")}
