"""One cell of one slot: what a mechanism gets, and what it gives.

Of every user in the cell a mechanism gets the samples as grid indices, in the order in which they came; users come in
the order of their pseudonyms. How many samples each user has is pattern, hence public: a mechanism may branch on it,
and on nothing else that has not been charged for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from shoal.mechanisms.error_bars import COVERAGE, Law, OfCube
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.cube import CubeNoise
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.statistic import Estimate, holding

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
    coordinates: int = 1  # of the value that this is one coordinate of, with a share of epsilon (means/several.py)

    @property
    def lone_epsilon(self) -> Fraction:
        """The epsilon with which Laplace noise of one number alone is as large as a coordinate's, on average.

        >>> unit = Grid(Fraction(0), Fraction(1), 100)
        >>> [str(CellParameters(grid=unit, epsilon=Fraction(1, d), coordinates=d).lone_epsilon) for d in (1, 2, 3)]
        ['1', '2/3', '1/2']
        """
        return self.epsilon * Fraction(2 * self.coordinates, self.coordinates + 1)

    def law(self, scale: Fraction) -> Law:
        """The law of noise (`Draws.noise_for`) that this share of epsilon allows at this scale."""
        return ((scale, 1),) if self.coordinates == 1 else OfCube(self.coordinates, scale / self.coordinates)


def cell_estimate(
    value: Any, noise_sd: Any, low: Any, high: Any, samples: int, error: Any, mechanism: str
) -> Estimate:  # fmt: skip
    """The estimate that is published for a cell.

    `error` is the worst expected error over all values, of what is left out and of noise, or None if there is no bound.
    `mechanism` names what was done; it is a function of public counts.
    """
    low, high = holding(value, low, high)
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

    def noise_for(self, purpose: str, scale: Fraction) -> int:
        """The noise of a number that a user moves by no more than `scale` times the epsilon spent on it."""
        return self.laplace(purpose, scale)

    def each(self, coordinates: int) -> "list[OneOfSeveral]":
        """The draws of each of several coordinates."""
        cubes: dict[str, CubeNoise] = {}
        return [OneOfSeveral(self, axis, coordinates, cubes) for axis in range(coordinates)]


class OneOfSeveral(Draws):
    """The randomness of one coordinate: words of its own, and its number of noise that all coordinates have in common.

    The share of epsilon that one coordinate spends at a scale all of them do, d times as much together. So one draw of
    a cube is made for all, of scale / d.

    >>> both = Draws(bytes(32), b"cell", 7).each(2)
    >>> [one.noise_for("sum", Fraction(20)) for one in both], both[0].subkey("bin") == both[1].subkey("bin")
    ([43, 6], False)
    """

    __slots__ = ("_axis", "_coordinates", "_cubes", "_whole")

    def __init__(self, whole: Draws, axis: int, coordinates: int, cubes: dict[str, CubeNoise]) -> None:
        super().__init__(whole._key, whole._cell, whole._slot)
        self._whole, self._axis, self._coordinates, self._cubes = whole, axis, coordinates, cubes

    def subkey(self, purpose: str, part: int = 0) -> bytes:
        return derive(self._key, self._cell, purpose, "slot", part, 1 + self._axis, self._slot)

    def noise_for(self, purpose: str, scale: Fraction) -> int:
        """The coordinate's number.

        Raises:
            ValueError: another coordinate asked for another scale, so that one draw cannot be for both.
        """
        each = scale / self._coordinates
        cube = self._cubes.get(purpose)
        if cube is None:
            cube = self._cubes[purpose] = CubeNoise(self._coordinates, each, self._whole.subkey(purpose))
        if cube.scale != each:
            raise ValueError(f"coordinates have noise of different scales: {cube.scale} and {each}")
        return cube.draw(self._axis)


Release = Callable[[Users, CellParameters, Draws], Estimate]
Prediction = Callable[[Counts, CellParameters], float]


class Algorithm(NamedTuple):
    """The function that makes a cell's release of its samples, and the one that predicts its error from counts."""

    release: Release
    predicted_error: Prediction
