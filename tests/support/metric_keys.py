"""Tables of `[[metric]]` as tests build them, from usual keys of which not every metric has all."""

from collections.abc import Mapping
from typing import Any


def with_usual(metric: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The metric with the usual keys that it does not say, but for those of values if its statistic has none."""
    lacks = ("range", "grid") if metric.get("statistic") in ("count", "users") else ()
    return limited({key: value for key, value in usual.items() if key not in lacks} | dict(metric))


def limited(metric: Mapping[str, Any]) -> dict[str, Any]:
    """The metric with `max_contributions` moved to `max_per_group` where each group has a limit of its own.

    It has one in a mean without a decay and in a statistic per slot, under relation values; a `max_per_group` that is
    there stays.
    """
    has_groups = metric.get("group") is not None or metric.get("cell") is not None
    is_per_slot = metric.get("slot") is not None and metric.get("relation", "values") == "values"
    if not has_groups or not (is_per_slot or is_continual_mean(metric)):
        return dict(metric)
    most = metric.get("max_contributions")
    others = {key: value for key, value in metric.items() if key != "max_contributions"}
    return others if most is None else {"max_per_group": most} | others


def is_continual_mean(metric: Mapping[str, Any]) -> bool:
    """Whether it is a mean without a decay under relation values, of all samples so far."""
    is_mean = metric.get("statistic", "mean") == "mean" and metric.get("relation", "values") == "values"
    return is_mean and metric.get("slot") is None and metric.get("decay") is None
