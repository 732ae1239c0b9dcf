"""The cap "optimal" against "median", by the exact worst-case error, over random numbers of samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.places.arms import parameters
from shoal.mechanisms.slot import cap as caps
from shoal.mechanisms.slot.means import clipping
from shoal.mechanisms.slot.means.linear import array_averaging, packed
from shoal.mechanisms.slot.worst_error import mean_error

MOST = 150  # users
FORMULA, PACKED, RELEASED = (
    "full arrays, the paper's formula",
    "packed arrays, scan alone",
    "array-averaging as released",
)
LAWS = ("equal", "geometric", "Pareto, tail 1.1", "Pareto, tail 0.6", "half with one sample", "one has nearly all")


@dataclass(frozen=True)
class Row:
    """Optimal's worst-case error over the median's, one epsilon, all count vectors."""

    what: str
    epsilon: float
    vectors: int
    better: int
    worse: int
    middle: float  # of the quotients
    least: float
    most: float


def count_vectors(number: int) -> Iterator[list[int]]:
    """Random numbers of samples, by six laws in turn."""
    rng = np.random.default_rng(11)
    for place in range(number):
        users, size = int(rng.integers(1, MOST)), float(rng.uniform(1, 60))
        drawn = np.array(_drawn(place % len(LAWS), users, size, rng), dtype=np.float64)
        yield np.maximum(1, np.rint(np.minimum(drawn, 20_000))).astype(np.int64).tolist()


def _drawn(law: int, users: int, size: float, rng: np.random.Generator) -> Sequence[float] | np.ndarray:
    if law == 0:
        return [size] * users
    if law == 1:
        return rng.geometric(1 / size, users)
    if law in (2, 3):
        return size * (1 - rng.random(users)) ** (-1 / (1.1 if law == 2 else 0.6))
    if law == 4:
        return np.where(rng.random(users) < 0.5, 1, rng.geometric(1 / (20 * size), users))
    return [100 * size * users, *rng.geometric(1 / size, users - 1)]


def measure(number: int, epsilons: Sequence[Fraction], cells: Sequence[Sequence[int]]) -> list[Row]:
    """On random counts, and on those of the cells."""
    found = []
    vectors = [*cells, *count_vectors(number)]
    for epsilon in epsilons:
        quotients: list[tuple[Fraction, Fraction, Fraction]] = [_quotients(one, epsilon) for one in vectors]
        for name, of in zip((FORMULA, PACKED, RELEASED), zip(*quotients, strict=True), strict=True):
            values = sorted(of)
            found.append(Row(
                name, float(epsilon), len(values), sum(one < 1 for one in values), sum(one > 1 for one in values),
                float(values[len(values) // 2]), float(values[0]), float(values[-1]),
            ))  # fmt: skip
    return found


def _quotients(counts: Sequence[int], epsilon: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Exactly: of E(m) for full arrays; of packed arrays with the cap of that scan; of what is released."""
    of = parameters(epsilon)
    optimal, median = caps.contribution_cap(counts, of), caps.median(counts)
    by_formula = [
        mean_error(sum(min(count, cap) for count in counts), cap, sum(counts), epsilon) for cap in (optimal, median)
    ]
    of_arrays = [packed(tuple(counts), cap).error(counts, 0, epsilon) for cap in (optimal, median)]
    released = array_averaging(counts, of).error(counts, 0, epsilon)
    return by_formula[0] / by_formula[1], of_arrays[0] / of_arrays[1], released / of_arrays[1]


@dataclass(frozen=True)
class Sharpest:
    """K sqrt(m), which the clipping algorithms make greatest: at its best over that at the median."""

    vectors: int
    worse: int
    middle: float
    most: float


def sharpest(number: int) -> Sharpest:
    """The quotient is 1 at least, for full arrays."""
    found = []
    for counts in count_vectors(number):
        of = {cap: Fraction(kept**2, cap) for cap, kept in caps.candidates(counts)}
        found.append(float(of[clipping.sharpest_cap(counts)] / of[caps.median(counts)]) ** 0.5)
    found.sort()
    return Sharpest(len(found), sum(one < 1 for one in found), found[len(found) // 2], found[-1])
