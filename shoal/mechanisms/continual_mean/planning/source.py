"""The common part of the plans of a mean over a workload given by hand and over a file."""

from fractions import Fraction
from typing import NamedTuple

from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.outlook import Look
from shoal.mechanisms.parts.metric import Metric

USEFUL = Fraction(1, 4)  # of the range: a release is useful if its noise interval is narrower


class About(NamedTuple):
    """A workload in numbers."""

    users: int
    samples: float  # of a user, on average
    over: int | None  # microseconds
    pattern: str
    spread: float | None  # part of the range that values are assumed to lie in
    sampling_error: float  # how far the mean of all samples is from that of the law, if samples are independent
    sizes: tuple[tuple[float, int], ...]  # users, and samples of each, at most


def one_mean(metric: Metric, coordinate: int) -> MeanParameters:
    """The mechanism of one coordinate.

    Raises:
        ValueError: it refuses the settings.
    """
    mean = ContinualMean.mean(metric)
    return mean.parts[coordinate] if isinstance(mean, Coordinates) else mean


def width_of(metric: Metric, coordinate: int) -> float:
    """The width of a coordinate's range."""
    low, high = metric.ranges[coordinate]
    return float(high - low)


def is_useful(look: Look, width: float) -> bool:
    """Whether the noise interval is narrower than a quarter of the range, and something counts."""
    return bool(look.samples) and look.half_interval is not None and 2 * look.half_interval < USEFUL * width
