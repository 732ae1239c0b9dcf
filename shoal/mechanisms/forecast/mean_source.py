"""The common part of the plans of a mean over a workload given by hand and over a file."""

from fractions import Fraction
from typing import NamedTuple

from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.forecast.point import Point
from shoal.mechanisms.parts.metric import Metric

USEFUL = Fraction(1, 4)  # of the range: a release is useful if its noise interval is narrower


class About(NamedTuple):
    """A workload in numbers; the names are those of JSON."""

    users: int
    samples_per_user: float  # on average
    over: int | None  # microseconds
    pattern: str
    spread: float | None  # part of the range that values are assumed to lie in; None: they are those of a file
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


def is_useful(point: Point, width: float) -> bool:
    """Whether the noise interval is narrower than a quarter of the range, and something counts."""
    return bool(point.samples) and point.half is not None and 2 * point.half < USEFUL * width
