"""One cell of one slot: what a mechanism gets, and what it gives.

Of every user in the cell a mechanism gets the samples as grid indices, in the order in which they came; users come in
the order of their pseudonyms. How many samples each user has is pattern, hence public: a mechanism may branch on it,
and on nothing else that has not been charged for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from shoal.mechanisms.error_bars import COVERAGE
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.statistic import Estimate

# Of each user the grid indices of its samples, in the order of arrival; of several coordinates each is a list with one
# for each.
Users = Sequence[Sequence[Any]]
Counts = Sequence[int]  # of each user the number of samples
Cap = int | Literal["median", "optimal"]
Axis = tuple[Grid, Fraction | None]  # of one of several coordinates, with its sigma


@dataclass(frozen=True, kw_only=True)
class CellParameters:
    """All public parameters of a cell except its counts."""

    grid: Grid  # of several coordinates that of the one whose error is predicted
    epsilon: Fraction  # of this cell in this slot
    delta: Fraction = Fraction(0)
    cap: Cap = "optimal"  # m_UB: samples of a user that count
    dropped: int = 0  # samples of the cell that were left out before, of users in too many cells: they bias it
    failure: Fraction = Fraction(1, 1000)  # probability that an accuracy bound does not hold
    spread_share: Fraction | None = None  # the part of epsilon with which `best` may first find centre and spread
    sigma: Fraction | None = None  # a user's samples are sigma-subgaussian; None: known is the range alone
    bins: int = 64  # of a distribution
    quantiles: tuple[Fraction, ...] = ()  # of a distribution
    clamps: bool = True  # to what is possible
    axes: tuple[Axis, ...] = ()  # of a value of several coordinates, all with as many steps
    coverage: float = COVERAGE  # of a noise interval


def cell_estimate(
    value: Any, noise_sd: Any, low: Any, high: Any, samples: int, error: Any, mechanism: str
) -> Estimate:  # fmt: skip
    """The estimate that is published for a cell.

    `error` is the worst expected error over all values, of what is left out and of noise, or None if there is no bound.
    `mechanism` names what was done; it is a function of public counts.
    """
    return Estimate(value, noise_sd, low, high, {"samples": samples}, {"mechanism": mechanism, "error": error})


class Draws:
    """The randomness of one cell in one slot, with a subkey for each purpose.

    >>> draws = Draws(bytes(32), b"cell", 7)
    >>> draws.laplace("sum", Fraction(10)) == Draws(bytes(32), b"cell", 7).laplace("sum", Fraction(10))
    True
    """

    __slots__ = ("_cell", "_key", "_slot")

    def __init__(self, key: bytes, cell: bytes, slot: int) -> None:
        self._key, self._cell, self._slot = key, cell, slot

    def subkey(self, purpose: str, part: int = 0) -> bytes:
        """The subkey of a purpose; part 0, 1, ... where it needs several."""
        return derive(self._key, self._cell, purpose, "slot", part, 0, self._slot)

    def words(self, purpose: str, part: int = 0) -> Iterator[int]:
        """64-bit words without end, for one draw of any sampler."""
        return Bits(self.subkey(purpose, part)).draw(0)

    def laplace(self, purpose: str, scale: Fraction, part: int = 0) -> int:
        return DiscreteLaplace(scale, self.subkey(purpose, part)).draw(0)


Release = Callable[[Users, CellParameters, Draws], Estimate]
Prediction = Callable[[Counts, CellParameters], float]


class Algorithm(NamedTuple):
    """The function that makes a cell's release of its samples, and the one that predicts its error from counts."""

    release: Release
    predicted_error: Prediction
