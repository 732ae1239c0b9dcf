"""Rules between the parts of sums of samples: each raises ValueError with the key, the fault and the remedy."""

from fractions import Fraction

from shoal.mechanisms.linear.decay import in_steps
from shoal.mechanisms.moments import check_grid
from shoal.mechanisms.parts import at as times
from shoal.mechanisms.parts.at import Slots, Steps
from shoal.mechanisms.parts.by import Algorithm, Patent, Sharp, TwoSided
from shoal.mechanisms.parts.hides import AddRemove
from shoal.mechanisms.parts.metric import Budget
from shoal.mechanisms.parts.of import Mean, Of, PublicCount, Sum, Users, Variance
from shoal.mechanisms.parts.per import Per, found_of
from shoal.mechanisms.parts.rules import Rule, life, start_and_end

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
            raise ValueError(f"decay {key} is not a multiple of every; choose one that is")
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


# -------------------------------------------------------------------- relation add-remove


def hidden_decay(at: Steps) -> None:
    """Refuse all windows, and windows of updates, which reveal when a unit contributes."""
    if isinstance(at.decay, times.AllWindows):
        raise ValueError("decay all-windows is for relation values; use a window, or a metric for each")
    if isinstance(at.decay, times.Updates):
        raise ValueError("decay updates tells in which steps anything came; give the window a length")


def users(of: Of, at: Steps, hides: AddRemove) -> None:
    """Refuse decays of `users` other than none and a window of one step, and units whose period a step cuts."""
    if not isinstance(of, Users) or at.decay == times.Undecayed():
        return
    if at.decay != times.Window(at.length.microseconds):
        raise ValueError("decay of users is none, for all so far, or a window as long as every, for those of each step")
    if not at.length.divides(hides.unit.period or 0):
        raise ValueError(
            f"unit {hides.unit.name} begins or ends within a step, and whether a user counts there once more would "
            "depend on another unit of theirs; choose a unit whose period is a multiple of every, or a shorter one"
        )


def finding(per: Per, at: Steps | Slots, hides: AddRemove, budget: Budget) -> None:
    """Refuse a delta that nothing uses, and keys to be found without delta, epsilon or an expected number of steps."""
    if found_of(per) is None:
        if budget.delta and isinstance(at, Slots):
            raise ValueError("delta must be 0: it is for cells that nobody declared; remove it")
        if budget.delta and not isinstance(at, Slots) and not isinstance(at.decay, times.Window):
            raise ValueError("delta must be 0: only windows have Gaussian noise, and all keys are declared")
        return
    if not budget.delta:
        what = "cells that nobody declared are shown once enough units are there"
        if isinstance(at, Steps):
            what = "keys that nobody declared are shown once enough units have them"
        raise ValueError(f"delta must be above 0, for {what}; or declare them: groups = [...]")
    if budget.select >= budget.epsilon:
        raise ValueError(
            "selection takes all of epsilon, and leaves nothing for what is released; give it a smaller one"
        )
    if isinstance(at, Steps) and at.life is None and hides.end is None:
        raise ValueError("life is missing; add it, or end: keys that nobody declared need it")


def clip(of: Of, per: Per, by: TwoSided, budget: Budget) -> None:
    """Refuse a private choice of the range where there is no upper end to choose, and one that takes all of epsilon."""
    if not isinstance(of, Mean | Sum) or of.clip is None:
        if by.users is not None:
            raise ValueError("users is not for relation add-remove without a clip; remove it")
        return
    if not of.values.fields.is_number:
        raise ValueError("clip chooses the range of a mean or sum of numbers, and this metric has none; remove it")
    if isinstance(of, Sum) and of.values.ranges[0][0]:
        raise ValueError(
            "clip of a sum needs a range that begins at 0, for its upper end is chosen; let range begin at 0"
        )
    if budget.delta and found_of(per) is None:
        raise ValueError("delta must be 0 with a clip, whose windows have Laplace noise; remove it")
    if budget.left <= 0:
        raise ValueError(
            "clip takes all of epsilon that is left, and leaves nothing for what is released; give it less"
        )


OF_VALUES: tuple[Rule, ...] = (decay_of_algorithm, delta, life, variance, intervals)
OF_PRESENCE: tuple[Rule, ...] = (start_and_end, hidden_decay, decay_of_algorithm, users, finding, clip)
OF_SLOTS: tuple[Rule, ...] = (start_and_end, finding)
