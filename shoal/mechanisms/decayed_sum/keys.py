"""What a metric's keys say of a decayed sum, and what is refused."""

from shoal.mechanisms.spec import Spec
from shoal.mechanisms.stepped import keys


def takes(spec: Spec) -> bool:
    """Whether it is a decayed sum; a mean is one with a decay or a step."""
    return spec.statistic in ("sum", "count") or (
        spec.statistic == "mean" and (spec.step is not None or spec.decay is not None)
    )


def check(spec: Spec) -> None:
    """Refuse keys that are missing, not for a decayed sum, or contradict one another."""
    keys.check(spec)
    if spec.clamp and spec.statistic != "mean":
        raise ValueError(f"clamp is for means; a {spec.statistic} is never clamped; remove it")
    if spec.simultaneous is not None and spec.statistic == "count":
        raise ValueError("simultaneous is for noise intervals, and a count is exact; remove it")


def is_clamped(spec: Spec) -> bool:
    """Whether what is published is clamped, which only means are."""
    return spec.statistic == "mean" and keys.clamps(spec)
