"""Decays by name: how much a step weighs at each age, and the mechanism that releases such sums best.

`sharp` is the mechanism of least mean variance, `patent` the one of Bolot et al. Both are functions of public
parameters alone; each release records which mechanism made it. A public count is never noised: `counts` of a mechanism
gives it the same weights.

=============== ====================================== ============================== ==================================
decay           a step of age a weighs                 patent                         sharp: the best of
=============== ====================================== ============================== ==================================
Undecayed       1                                      none                           growing BLUE counter
Window          1 for a < length, else 0               WindowSum                      per-step, BLUE trees, hats, root
AllWindows      1 for a < any length, told afterwards  AllWindowSum                   growing BLUE counter, differences
Exponential     alpha**a                               ExponentialSum                 per-step, BLUE trees, hats
Polynomial      (a + 1)**-exponent                     PolynomialSum                  per-step, BLUE trees
Listed          weights[a]                             TableWindows                   per-step, BLUE trees
Forward         ((t - a) / t)**exponent at step t      none                           per-step, growing BLUE trees
=============== ====================================== ============================== ==================================
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from shoal.mechanisms import check
from shoal.mechanisms.error_bars import COVERAGE, six_digits
from shoal.mechanisms.sums import gaussian_window
from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.exponentials import Exponentials, half_life_alpha
from shoal.mechanisms.sums.forward import ForwardSum
from shoal.mechanisms.sums.gaussian_window import RootWindow
from shoal.mechanisms.sums.patent.all_window_sum import AllWindowSum
from shoal.mechanisms.sums.patent.exponential_sum import ExponentialSum
from shoal.mechanisms.sums.patent.polynomial_sum import PolynomialSum
from shoal.mechanisms.sums.patent.table_windows import TableWindows
from shoal.mechanisms.sums.patent.window_sum import DyadicWindow
from shoal.mechanisms.sums.powers import Powers
from shoal.mechanisms.sums.running import Last, Part, RunningSum, every_step
from shoal.mechanisms.sums.sums import DecayedSum
from shoal.mechanisms.sums.table import TableSum
from shoal.mechanisms.sums.weights import Weights
from shoal.mechanisms.sums.window import WindowSum

ZERO = Fraction(0)
ERROR = Fraction(1, 5)  # of the patent's weights, where they share windows
HORIZON = 10_000_000  # steps that polynomial decays are right for
ZETA = Fraction(5, 4)  # the power of a node's height with which the patent's noise grows, for any window


class Decay(Protocol):
    """A rule by which the weight of a step falls as time goes on."""

    def patent(self, width: int, epsilon: Fraction) -> DecayedSum:
        """The sum by the mechanism of Bolot et al."""
        ...

    def sharp(self, width: int, epsilon: Fraction, delta: Fraction = ZERO) -> DecayedSum:
        """The sum of least mean variance; with a delta it may have Gaussian noise and be (epsilon, delta)-DP."""
        ...


class AnyWindow(DecayedSum, Protocol):
    """A sum whose releases tell the sum over any window: `all_windows.answer`, without state or key.

    Its summers have `released`, the numbers that the last step published, which `parts` names by step and index.
    """

    def parts(self, end: int, length: int, last: Last = every_step) -> tuple[Part, ...]:
        """The published numbers that add up to the sum over the last `length` of steps 1 .. end; `last` skips steps."""
        ...

    def window_variance(self, end: int, length: int, last: Last = every_step) -> float: ...

    def window_quantile(self, end: int, length: int, last: Last = every_step, coverage: float = COVERAGE) -> float:
        """The bound below which the size of that noise stays with probability `coverage`."""
        ...


@dataclass(frozen=True)
class Undecayed:
    """Every step since the beginning counts in full.

    Shapes   no weights: 1 at every age
    Units    horizon: steps expected, which tunes accuracy alone
    Raises   ValueError, when it is used: a horizon that is not above 0
    Source   shoal/mechanisms/sums/running.py; docs/proofs/decay.md

    >>> Undecayed(horizon=1000).sharp(1, Fraction(1)).mechanism
    'blue'
    """

    horizon: int | None = None  # steps expected; tunes accuracy alone

    def patent(self, width: int, epsilon: Fraction) -> DecayedSum:
        """Always raises ValueError: Bolot et al. have no such mechanism."""
        raise ValueError("the patent has no mechanism for a sum without decay: use the sharp one")

    def sharp(self, width: int, epsilon: Fraction, delta: Fraction = ZERO) -> RunningSum:
        return RunningSum(width, epsilon, self.horizon)


@dataclass(frozen=True)
class Window:
    """Only the last `length` steps count, or of updates the last so many in which anything came.

    Shapes   weights: 1 at ages below `length`, else 0
    Units    length: steps
    Raises   TypeError, ValueError, when it is used: a length that is no int, or not above 0
    Source   shoal/mechanisms/sums/window.py, gaussian_window.py; docs/proofs/decay.md

    >>> Window(4096).sharp(1, Fraction(1)).mechanism, Window(4096).patent(1, Fraction(1)).mechanism
    ('hats', 'patent')
    """

    length: int
    of_updates: bool = False  # steps without a sample take no part, as if they had not been

    def patent(self, width: int, epsilon: Fraction) -> DyadicWindow:
        return DyadicWindow(width, epsilon, self.length)

    def sharp(self, width: int, epsilon: Fraction, delta: Fraction = ZERO) -> WindowSum | RootWindow:
        """Never worse than the patent's, whose nodes the binary trees have too, nor than one draw per step."""
        pure = WindowSum.best(self.length, width=width, epsilon=epsilon)
        if delta and self.length <= gaussian_window.LARGEST:
            gaussian = RootWindow(width, epsilon, delta, self.length)
            if six_digits(gaussian.mean_variance) < six_digits(pure.mean_variance):
                return gaussian
        return pure


@dataclass(frozen=True)
class AllWindows:
    """The sum over any number of last steps, which is named afterwards."""

    horizon: int | None = None  # steps expected; tunes accuracy alone
    zeta: Fraction = ZETA  # of the patent's budgets

    def patent(self, width: int, epsilon: Fraction) -> AnyWindow:
        return AllWindowSum(width, epsilon, self.zeta)

    def sharp(self, width: int, epsilon: Fraction, delta: Fraction = ZERO) -> AnyWindow:
        """Differences between releases of a growing counter."""
        return RunningSum(width, epsilon, self.horizon)


@dataclass(frozen=True)
class Exponential:
    """A step weighs alpha times as much as the next one.

    Shapes   weights: alpha**age
    Units    alpha: between 0 and 1, per step; `half_life`: steps
    Raises   TypeError: a float; ValueError: an alpha that is not between 0 and 1
    Source   shoal/mechanisms/sums/exponentials.py; docs/proofs/decay.md

    >>> Exponential.half_life(Fraction(24)).alpha < Fraction(9716, 10000)
    True
    """

    alpha: Fraction

    def __post_init__(self) -> None:
        check.probability(alpha=self.alpha)

    @classmethod
    def half_life(cls, steps: Fraction | int) -> "Exponential":
        """A step weighs half as much as the one that many steps later."""
        return cls(half_life_alpha(steps))

    def patent(self, width: int, epsilon: Fraction) -> ExponentialSum:
        return ExponentialSum(width, epsilon, self.alpha)

    def sharp(self, width: int, epsilon: Fraction, delta: Fraction = ZERO) -> DecayedSteps:
        """Noised steps; the patent's nodes were better for no alpha."""
        return DecayedSteps.best(Exponentials.exponential(self.alpha), width=width, epsilon=epsilon)


@dataclass(frozen=True)
class Polynomial:
    """A step of age a weighs (a + 1)**-exponent, up to ages of `horizon`.

    Shapes   weights: (age + 1)**-exponent, to a relative 1e-6 up to the horizon
    Units    exponent: above 0; horizon: steps
    Raises   TypeError, ValueError, when it is used: a float, or an exponent that is not above 0
    Source   shoal/mechanisms/sums/exponentials.py; docs/proofs/decay.md

    >>> Polynomial(Fraction(3, 2)).sharp(1, Fraction(1)).variance(100) < 9
    True
    """

    exponent: Fraction
    horizon: int = HORIZON
    error: Fraction = ERROR

    def patent(self, width: int, epsilon: Fraction) -> PolynomialSum:
        return PolynomialSum(width, epsilon, self.exponent, self.error, self.horizon)

    def sharp(self, width: int, epsilon: Fraction, delta: Fraction = ZERO) -> DecayedSteps:
        decay = Exponentials.polynomial(self.exponent, self.horizon)
        return DecayedSteps.best(decay, width=width, epsilon=epsilon)


@dataclass(frozen=True)
class Listed:
    """A step of each age weighs what a list says, and older ones nothing."""

    weights: Weights
    error: Fraction = ERROR

    @property
    def length(self) -> int:
        return self.weights.length

    def patent(self, width: int, epsilon: Fraction) -> TableWindows:
        return TableWindows(width, epsilon, self.weights, self.error)

    def sharp(self, width: int, epsilon: Fraction, delta: Fraction = ZERO) -> TableSum:
        return TableSum.best(self.weights, width=width, epsilon=epsilon)


@dataclass(frozen=True)
class Forward:
    """Step i weighs (i / t)**exponent at step t: the newest 1, and the ratio of any two never changes.

    Shapes   weights: (step / t)**exponent
    Units    exponent: above 0; horizon: steps expected, which tunes accuracy alone
    Raises   TypeError, ValueError: a float, or an exponent that is not above 0
    Source   shoal/mechanisms/sums/forward.py; docs/proofs/decay.md

    >>> Forward(Fraction(2)).sharp(1, Fraction(1)).mechanism, Forward(Fraction(8), 20).sharp(1, Fraction(1)).mechanism
    ('blue', 'per-step')
    """

    exponent: Fraction
    horizon: int | None = None  # steps expected; tunes accuracy alone

    def __post_init__(self) -> None:
        _ = self.powers  # what it refuses, it refuses now

    @property
    def powers(self) -> Powers:
        return Powers(self.exponent)

    def patent(self, width: int, epsilon: Fraction) -> DecayedSum:
        """Always raises ValueError: Bolot et al. have no such mechanism."""
        raise ValueError("the patent has no mechanism for forward decay: use the sharp one")

    def sharp(self, width: int, epsilon: Fraction, delta: Fraction = ZERO) -> ForwardSum:
        return ForwardSum.best(self.powers, width=width, epsilon=epsilon, horizon=self.horizon)
