"""Single numbers with noise: each release costs what the parameters say, and all of them together the sum."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from shoal.mechanisms import check
from shoal.mechanisms.error_bars import noise_quantile
from shoal.mechanisms.library.keys import Key, Transcript
from shoal.mechanisms.noise import gaussian, laplace
from shoal.mechanisms.privacy.accounting import Concentrated, Loss
from shoal.mechanisms.privacy.zcdp import gaussian_sigma2

EXACT = int | Fraction


@dataclass(frozen=True, kw_only=True)
class LaplaceMechanism:
    """Integers with discrete Laplace noise: pure epsilon-DP each, of an L1 sensitivity that you vouch for.

    Shapes   `open(key)`, then `release(x)`: an int in, an int out, with new noise each time
    Units    sensitivity: the most that one unit changes x, in the units of x; epsilon is spent by every release. Of
             real numbers release multiples of a step that is public
    Raises   TypeError: a float, where floats would decide privacy; ValueError: a parameter that is not above 0;
             KeyReused: the key has released other numbers
    Source   Canonne, Kamath and Steinke (2020), Algorithms 1 and 2; docs/proofs/keyed-noise.md

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import Key, LaplaceMechanism
    >>> orders = LaplaceMechanism(epsilon=Fraction(1, 2), sensitivity=1)
    >>> orders.loss, round(orders.noise_sd, 2)
    (Loss(epsilon=Fraction(1, 2), delta=Fraction(0, 1)), 2.8)
    >>> stream = orders.open(Key(bytes(range(32))).named("orders"))
    >>> stream.release(120), stream.release(120)
    (117, 119)
    """

    epsilon: EXACT
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, sensitivity=self.sensitivity)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, in the units of x."""
        return self.sensitivity / Fraction(self.epsilon)

    @property
    def loss(self) -> Loss:
        """The cost of one release to one unit."""
        return Loss(Fraction(self.epsilon))

    @property
    def variance(self) -> float:
        """Variance of the noise, exact but for the rounding of floats."""
        return laplace.variance(self.scale)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise."""
        return math.sqrt(self.variance)

    @property
    def noise_quantile(self) -> float:
        """What the size of the noise stays below with probability 0.95."""
        return noise_quantile(((self.scale, 1),))

    def open(self, key: Key) -> "NumberStream":
        """Numbers to be released under a key."""
        secret = key._of_stream(("laplace", *exactly(self.epsilon), self.sensitivity))
        return NumberStream(laplace.DiscreteLaplace(self.scale, secret), Transcript(secret))


@dataclass(frozen=True, kw_only=True)
class GaussianMechanism:
    """Integers with discrete Gaussian noise: rho-zCDP each, of an L2 sensitivity that you vouch for.

    Shapes   `open(key)`, then `release(x)`: an int in, an int out, with new noise each time; of a vector release its
             coordinates one after the other, for one rho
    Units    sensitivity: the most that one unit changes x, of a vector the root of summed squares, whose square is
             rounded up; rho is spent by every release of x, or of all of the vector
    Raises   TypeError: a float, where floats would decide privacy; ValueError: a parameter that is not above 0;
             KeyReused: the key has released other numbers
    Source   Canonne, Kamath and Steinke (2020), Algorithm 3; docs/proofs/discrete-gaussian.md

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import GaussianMechanism, Key, largest_rho
    >>> orders = GaussianMechanism(rho=largest_rho(1, Fraction(1, 10**6)), sensitivity=1)
    >>> round(orders.noise_sd, 2), round(float(orders.rho), 4)
    (4.53, 0.0244)
    >>> orders.open(Key(bytes(range(32))).named("orders")).release(120)
    118
    """

    rho: EXACT
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check.positive(rho=self.rho, sensitivity=self.sensitivity)

    @property
    def sigma2(self) -> Fraction:
        """The sigma2 of the noise, in squares of the units of x."""
        return gaussian_sigma2(self.sensitivity**2, Fraction(self.rho))

    @property
    def loss(self) -> Concentrated:
        """The cost of one release to one unit; `loss.loss(delta)` converts it."""
        return Concentrated(Fraction(self.rho))

    @property
    def variance(self) -> float:
        """Variance of the noise, exact but for the rounding of floats."""
        return gaussian.variance(self.sigma2)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise."""
        return math.sqrt(self.variance)

    def open(self, key: Key) -> "NumberStream":
        """Numbers to be released under a key."""
        secret = key._of_stream(("gaussian", *exactly(self.rho), self.sensitivity))
        return NumberStream(gaussian.DiscreteGaussian(self.sigma2, secret), Transcript(secret))


class NumberStream:
    """Numbers that are released one by one, as `LaplaceMechanism.open` and `GaussianMechanism.open` make it.

    Shapes   `release(x)`: an int in, an int out
    Units    those of x
    Raises   TypeError: x is no int; KeyReused: the key has released other numbers
    Source   the mechanism's

    >>> from shoal.mechanisms import Key, LaplaceMechanism, NumberStream
    >>> stream: NumberStream = LaplaceMechanism(epsilon=1).open(Key(bytes(range(32))).named("one"))
    >>> stream.release(10), stream.released
    (11, 1)
    """

    def __init__(self, noise: laplace.DiscreteLaplace | gaussian.DiscreteGaussian, transcript: Transcript) -> None:
        self._noise, self._transcript = noise, transcript
        self.released = 0  # numbers so far: each has cost what the mechanism says

    def release(self, x: int) -> int:
        """The number with new noise."""
        whole(x=x)
        self._transcript.note(x)
        self._transcript.release()
        self.released += 1
        return x + self._noise.draw(self.released - 1)


def whole(**values: int) -> None:
    """Refuse what is no integer: a step of the grid is 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}: release multiples of a public step")


def around(released: float, quantile: Callable[[int], float], t: int) -> tuple[float, float]:
    """The interval around release t.

    Raises:
        ValueError: there is none yet.
    """
    if not t:
        raise ValueError("nothing was released yet; add an element first")
    return released - quantile(t), released + quantile(t)


def exact(**values: EXACT) -> Fraction:
    """The one value as a Fraction; a float would be rounded, and rounding decides privacy."""
    check.exact(values)
    return Fraction(next(iter(values.values())))


def exactly(*values: EXACT) -> tuple[str, ...]:
    """Exact numbers as the names of keys spell them: equal ones alike."""
    return tuple(str(Fraction(value)) for value in values)
