"""What the tests of two-sided statistics share: one of every kind, streams of samples, and the exact statistic."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.sides import hidden_sides
from shoal.mechanisms.linear.statistic import ONE, LinearReleaser, LinearStatistic
from shoal.mechanisms.statistic import Contribution, Estimate
from shoal.mechanisms.sums.decays import Decay, Exponential, Forward, Listed, Polynomial, Undecayed, Window
from shoal.mechanisms.sums.formula import formula_weights
from shoal.mechanisms.sums.weights import Weights
from shoal.models.config import forms

KEY = b"k" * 32
STEPS = 8
SURE = Fraction(10**15)  # an epsilon without noise
RANGE = Fraction(-1), Fraction(3)
TABLE = Weights.of([Fraction(2, 3), Fraction(1, 2), Fraction(1, 7)])
FORMULA = formula_weights("exp(-i)", 8)
DECAYS: dict[Decay, Callable[[int, int], float]] = {  # the weight of step s at step t, both counted from 0
    Undecayed(): lambda s, t: 1.0,
    Undecayed(6): lambda s, t: 1.0,
    Forward(Fraction(2)): lambda s, t: ((s + 1) / (t + 1)) ** 2,
    Window(1): lambda s, t: float(t == s),
    Window(3): lambda s, t: float(t - s < 3),
    Window(64): lambda s, t: float(t - s < 64),
    Exponential(Fraction(9, 10)): lambda s, t: 0.9 ** (t - s),
    Polynomial(Fraction(3, 2), 1000): lambda s, t: (t - s + 1) ** -1.5,
    Listed(TABLE): lambda s, t: TABLE.weight(t - s),
    Listed(FORMULA): lambda s, t: FORMULA.weight(t - s),
}
NAMES: tuple[str, ...] = ("mean", "sum", "count", "users", "variance", "distribution")
BINS = 4


def two_sided(
    statistic: str, decay: Decay, *, epsilon: Fraction | int = 1, steps: int = STEPS,
    ends: tuple[Fraction, Fraction] = RANGE, m: int = 5, **more: Any,
) -> LinearStatistic:  # fmt: skip
    grid = ONE if statistic in ("count", "users") else Grid(*ends, steps)
    if statistic == "distribution":
        grid = Grid(*ends, max(steps, 2))
        more = {"quantiles": (Fraction(1, 2),)} | more
    bins = more.pop("bins", min(BINS, grid.steps))
    cls: Any = forms.HIDDEN.statistics[statistic]
    grid, sides = hidden_sides(cls, grid, bins)
    return LinearStatistic(
        statistic=cls, sides=sides, decay=decay, epsilon=Fraction(epsilon), max_contributions=m, grid=grid, **more
    )


def contribution(of: LinearStatistic, samples: Sequence[int], age: int = 0) -> Contribution:
    """What bound sends of samples, which are grid indices, summed."""
    if of.packing is not None:
        return Contribution(
            age, "", 0, 0, len(samples), of.packing.unpack(sum(of.packing.pack([i]) for i in samples), 0)
        )
    return Contribution(
        age, "", 0, 0, len(samples), sum(samples) if len(of.sides.noised) > 1 or of.statistic.name == "sum" else 0
    )


def step(of: LinearStatistic, releaser: LinearReleaser, samples: Sequence[int]) -> Estimate:
    """A step with these samples."""
    if samples:
        assert releaser.add(contribution(of, samples)) == ()
    assert releaser.close() == ()
    return releaser.estimate()


def exact(of: LinearStatistic, weighted: Sequence[tuple[float, int]]) -> tuple[float, Any]:
    """The decayed number of samples, and the statistic of samples with these weights."""
    n = sum(weight for weight, _ in weighted)
    low, width = float(of.grid.low), float(of.grid.high - of.grid.low)
    values = [(weight, low + width * i / of.grid.steps) for weight, i in weighted]
    total = sum(weight * x for weight, x in values)
    if of.statistic.name in ("count", "users"):
        return n, n
    if of.statistic.name == "sum":
        return n, total
    if of.statistic.name == "mean":
        return n, total / n if n else None
    if of.statistic.name == "distribution":
        return n, {"histogram": shares_of(of, weighted) if n else None}
    mean = total / n if n else None
    variance = None if mean is None else sum(weight * (x - mean) ** 2 for weight, x in values) / n
    return n, {"mean": mean, "variance": variance}


def shares_of(of: LinearStatistic, weighted: Sequence[tuple[float, int]]) -> list[float]:
    """The decayed share of samples in each bin."""
    sides: Any = of.sides
    bins = [0.0] * sides.tree.bins
    for weight, i in weighted:
        bins[min(i * len(bins) // of.grid.steps, len(bins) - 1)] += weight
    return [each / sum(bins) for each in bins]
