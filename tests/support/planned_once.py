"""Plans of stated workloads, made once by the planners themselves: most tests print one as text and as JSON."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from shoal.agents.plan.planners import PLANNERS, Planner
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.forecast.plan import Noise, Plan
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.workload import Stated


class Once:
    """A planner that keeps what it has planned, by the metric's settings and the workload."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._made: dict[Any, Any] = {}

    def plans(self, metric: Metric, workload: Stated | Observed, advance: Callable[[float], None]) -> list[Plan]:
        if isinstance(workload, Observed):  # each plan of events draws a key of its own
            return self._planner.plans(metric, workload, advance)
        made = self._once((repr(metric), workload), lambda: self._planner.plans(metric, workload, advance))
        return list(cast(list[Plan], made))

    def final_noise(self, metric: Metric, users: int) -> Noise:
        return cast(Noise, self._once((repr(metric), users), lambda: self._planner.final_noise(metric, users)))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


@contextmanager
def planned_once() -> Iterator[None]:
    """Keep the plans of all planners within the block."""
    with pytest.MonkeyPatch.context() as patch:
        for kind, planner in PLANNERS.items():
            patch.setitem(cast(dict[Any, Any], PLANNERS), kind, Once(planner))
        yield
