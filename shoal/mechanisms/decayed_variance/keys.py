"""What a metric's keys say of a variance, and what is refused."""

from shoal.mechanisms.moments import check_grid
from shoal.mechanisms.spec import Spec
from shoal.mechanisms.stepped import keys


def check(spec: Spec) -> None:
    """Refuse keys that are missing, not for a variance, or contradict one another."""
    keys.check(spec)
    if spec.delta != 0:
        raise ValueError("delta must be 0: a variance is pure differential privacy")
    if spec.decay_or_none.kind == "all-windows":
        raise ValueError("decay all-windows is for sums, counts and means; use a window, or a metric for each sum")
    check_grid(spec.grid, "variance")
