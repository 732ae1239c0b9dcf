"""The public grid: values are integers 0 .. steps from the moment they enter, so sums and sensitivities are exact.

Sensitivity  a value moves by at most `steps` grid steps, whatever it was before it was clipped
Source       Mironov (2012) for what happens without one
"""

import sys
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms import check
from shoal.mechanisms.parts.of import Values

LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Grid:
    """`steps` equal steps over [low, high]; the end points are grid points.

    >>> grid = Grid(Fraction(0), Fraction(200), 2**20)
    >>> grid.clip(-3), grid.clip(100), grid.clip(10**400), grid.clip(float("-inf"))
    (0, 524288, 1048576, 0)
    """

    low: Fraction
    high: Fraction
    steps: int
    _low: float = field(init=False, repr=False, compare=False)
    _per_unit: float = field(init=False, repr=False, compare=False)
    _affine: tuple[int, int, int] = field(init=False, repr=False, compare=False)  # index i is (a + b i) / c

    def __post_init__(self) -> None:
        check.positive(steps=self.steps)
        check.exact({"low": self.low, "high": self.high})
        if self.low >= self.high:
            raise ValueError(f"low must be less than high, not {self.low} and {self.high}")
        try:
            low, per_unit = float(self.low), float(self.steps / (self.high - self.low))
        except OverflowError:
            per_unit = 0.0
        if not 1e-290 < per_unit < 1e290:  # so that neither the product below nor its rounding is undefined
            raise ValueError("low and high are too far apart, too large or too close for numbers with 64 bits")
        object.__setattr__(self, "_low", low)
        object.__setattr__(self, "_per_unit", per_unit)
        denominator = self.low.denominator * self.high.denominator * self.steps
        lowest, width = self.low * denominator, (self.high - self.low) * denominator // self.steps
        object.__setattr__(self, "_affine", (int(lowest), width, denominator))

    def clip(self, x: int | float) -> int:
        """Nearest grid index, clipped to 0 .. steps. Any int, any float but nan.

        Floats may pick the neighbouring index where x lies half way between two; the result is an integer in
        0 .. steps whatever they do, and the guarantee needs no more.
        """
        try:
            y = (x - self._low) * self._per_unit
        except OverflowError:  # an int beyond every float
            return self.steps if x > 0 else 0
        if y <= 0:
            return 0
        if y >= self.steps:
            return self.steps
        return int(y + 0.5)

    @property
    def scale(self) -> tuple[float, float]:
        """The low end, and steps per unit, by which values are clipped."""
        return self._low, self._per_unit

    @property
    def squares(self) -> "Grid":
        """The grid of squared differences.

        >>> Grid(Fraction(-1), Fraction(4), 100).squares
        Grid(low=Fraction(0, 1), high=Fraction(25, 1), steps=10000)
        """
        return _squares(self)

    def mean_value(self, total: Fraction | int, samples: int) -> float:
        """The mean of samples whose grid indices sum to `total`; exact, rounded once.

        >>> Grid(Fraction(-1), Fraction(1), 4).mean_value(5, 2)
        0.25
        """
        lowest, width, denominator = self._affine
        exact, parts = total.as_integer_ratio()
        return _rounded(lowest * parts * samples + width * exact, denominator * parts * samples)

    def sum_value(self, total: int, samples: int, parts: int = 1) -> float:
        """The sum of samples whose grid indices sum to `total`, both counted in 1 / `parts`; exact, rounded once.

        >>> Grid(Fraction(-1), Fraction(1), 4).sum_value(5, 2)
        0.5
        """
        lowest, width, denominator = self._affine
        return _rounded(lowest * samples + width * total, denominator * parts)

    def width_value(self, steps: Fraction | int | float) -> float:
        """The width of `steps` grid steps in units of the range.

        >>> Grid(Fraction(-1), Fraction(1), 4).width_value(2)
        1.0
        """
        return width_of(self.step, steps)

    @property
    def step(self) -> tuple[int, int]:
        """The width of a step as numerator and denominator, not reduced."""
        return self._affine[1:]


@lru_cache(maxsize=1 << 8)
def _squares(grid: Grid) -> Grid:
    return Grid(Fraction(0), (grid.high - grid.low) ** 2, grid.steps**2)


def width_of(step: tuple[int, int], steps: Fraction | int | float) -> float:
    """The width of so many steps; exact, rounded once."""
    exact, parts = steps.as_integer_ratio()
    return _rounded(step[0] * exact, step[1] * parts)


def _rounded(numerator: int, denominator: int) -> float:
    """The float nearest to the quotient; the largest one where noise over a tiny epsilon goes beyond all of them."""
    try:
        return numerator / denominator
    except OverflowError:
        return LARGEST if numerator > 0 else -LARGEST


def grids_of(values: Values) -> tuple[Grid, ...]:
    """Grids of a value's coordinates, in order."""
    return tuple(Grid(low, high, values.grid) for low, high in values.ranges)


def grid_of(values: Values) -> Grid:
    """Grid of a value's first coordinate."""
    return grids_of(values)[0]
