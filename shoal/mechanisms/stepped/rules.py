"""Rules between the parts of decayed sums: each raises ValueError with the key, the fault and the remedy."""

from fractions import Fraction

from shoal.mechanisms.moments import check_grid
from shoal.mechanisms.parts import at as times
from shoal.mechanisms.parts.at import Steps
from shoal.mechanisms.parts.by import Algorithm, Patent, Sharp
from shoal.mechanisms.parts.metric import Budget
from shoal.mechanisms.parts.of import Of, PublicCount, Variance
from shoal.mechanisms.parts.rules import Rule, life
from shoal.mechanisms.stepped.decay import in_steps

NOT_OF_PATENT = {times.Undecayed: "without a decay", times.Forward: "for forward decay"}


def decay_of_algorithm(at: Steps, by: Algorithm) -> None:
    """Refuse a decay that its algorithm does not have, lengths between two steps, and weights that no sum can have."""
    decay = at.decay
    if isinstance(by, Patent) and not patent_has(decay):
        if type(decay) in NOT_OF_PATENT:
            raise ValueError(f"the patent has no mechanism {NOT_OF_PATENT[type(decay)]}; use sharp")
        raise ValueError("the patent's bound needs an exponent above 1; use sharp, or a larger exponent")
    for key in ("length", "horizon"):
        length = None if isinstance(decay, times.HalfLife) else getattr(decay, key, None)
        if length is not None and not at.length.divides(length):
            raise ValueError(f"decay {key} is not a multiple of step; choose one that is")
    for key in () if isinstance(by, Patent) else ("error", "zeta"):
        if getattr(decay, key, None) is not None:
            raise ValueError(f"decay {key} is for algorithm patent; remove it")
    if isinstance(decay, times.Table | times.Formula | times.Forward):
        in_steps(decay, at.length, 1)  # weights are refused here


def patent_has(decay: times.Decay) -> bool:
    """Whether Bolot et al. have a mechanism for the decay."""
    if isinstance(decay, times.Polynomial):
        return decay.exponent > 1
    return type(decay) not in NOT_OF_PATENT


def delta(by: Algorithm, budget: Budget) -> None:
    """Refuse a delta for the patent, which is pure."""
    if not isinstance(by, Sharp) and budget.delta:
        raise ValueError(f"delta must be 0: {by.name} is pure differential privacy")


def variance(of: Of, at: Steps, budget: Budget) -> None:
    """Refuse a delta, all windows and a fine grid for a variance, whose sums are of squares."""
    if not isinstance(of, Variance):
        return
    if budget.delta != Fraction(0):
        raise ValueError("delta must be 0: a variance is pure differential privacy")
    if isinstance(at.decay, times.AllWindows):
        raise ValueError("decay all-windows is for sums, counts and means; use a window, or a metric for each sum")
    check_grid(of.values.grid, "variance")


def intervals(of: Of, by: Algorithm) -> None:
    """Refuse noise intervals of a count, which is exact."""
    if isinstance(of, PublicCount) and by.bars.simultaneous is not None:
        raise ValueError("simultaneous is for noise intervals, and a count is exact; remove it")


RULES: tuple[Rule, ...] = (decay_of_algorithm, delta, life, variance, intervals)
