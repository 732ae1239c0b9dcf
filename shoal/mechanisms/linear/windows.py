"""Any window of a sum that does not forget, from what its steps have released: post-processing."""

import math
from collections.abc import Callable
from typing import NamedTuple

from shoal.mechanisms.error_bars import six_digits
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.of import PublicCount
from shoal.mechanisms.statistic import Estimate
from shoal.mechanisms.sums.decays import AnyWindow
from shoal.mechanisms.sums.patent.all_window_sum import AllWindowSum, answer
from shoal.mechanisms.sums.running import Last, RunningSum

EXACT = (0.0, 0.0)  # error bars


class Step(NamedTuple):
    """The numbers that a step of a sum that does not forget has published, for windows."""

    samples: int  # since the beginning
    nodes: tuple[int, ...]


def sums_of_windows(statistic: LinearStatistic) -> AnyWindow | None:
    """The decayed sum if its releases tell the sum over any window, else None."""
    return statistic.sums if isinstance(statistic.sums, RunningSum | AllWindowSum) else None


def window(
    statistic: LinearStatistic, end: int, length: int, last: Last, released: Callable[[int], Step]
) -> Estimate | None:
    """The sum, count or mean over the last `length` of the steps 1 .. end, from releases alone.

    Raises:
        ValueError: the decay has no such windows.
    """
    sums = sums_of_windows(statistic)
    if sums is None:
        raise ValueError("only sums that do not forget tell windows afterwards")
    ends = [released(t).samples if t else 0 for t in (last(end), last(end - length))]
    samples = ends[0] - ends[1]
    if statistic.statistic is PublicCount:
        return statistic.estimate((samples,), EXACT, {})
    noisy = answer(sums.parts(end, length, last), lambda t: released(t).nodes)
    sd = six_digits(math.sqrt(sums.window_variance(end, length, last)))
    half = sums.window_quantile(end, length, last, statistic.coverage)
    bars = statistic.grid.width_value(sd), statistic.grid.width_value(half)
    return statistic.estimate((samples, noisy), bars, {})
