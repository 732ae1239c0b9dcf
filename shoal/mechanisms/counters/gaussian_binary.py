"""Binary counter with Gaussian noise, over elements of which each unit has a few.

Guarantee    rho-zCDP for all releases together; inputs may react to them (docs/proofs/binary-counter.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         `elements` elements, wherever they lie, each of which moves by at most `steps` grid steps
Sensitivity  L2: steps * sqrt(m * (min(1, m) + min(2, m) + ... + min(2**(h - 1), m))) over the nodes of all trees, with
             m = elements; exact for m = 1, and never above steps * m * sqrt(h), what m elements in one place would move
Noise        discrete Gaussian, sigma2 = sensitivity**2 / (2 rho), on every node; a function of key and node
Capacity     as that of a binary counter
Variance     of release t, in squared grid steps: nodes(t) * sigma2
Source       binary.py; Bun and Steinke (2016) for rho
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms import check
from shoal.mechanisms.counters.binary import BinaryCounter, Fenwick
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.error_bars import Normal
from shoal.mechanisms.noise import gaussian
from shoal.mechanisms.noise.batch import Sampler
from shoal.mechanisms.privacy.zcdp import gaussian_sigma2


@dataclass(frozen=True)
class GaussianBinaryTree(Fenwick):
    """All public parameters of a binary counter with Gaussian noise.

    >>> tree = GaussianBinaryTree(capacity=1000, steps=1, elements=4, rho=Fraction(1, 40))
    >>> tree.height, tree.squared_sensitivity, tree.sigma2
    (10, 140, Fraction(2800, 1))
    """

    capacity: int  # elements expected
    steps: int  # grid steps that one element can move
    elements: int  # of a unit
    rho: Fraction  # charged once, for the life of the metric version

    def __post_init__(self) -> None:
        check.positive(capacity=self.capacity, steps=self.steps, elements=self.elements, rho=self.rho)

    @cached_property
    def squared_sensitivity(self) -> int:
        """The square of the most that one unit changes all nodes together in L2, in squared grid steps.

        A node of level i holds min(2**i, m) of a unit's m elements at most, and the nodes of a level are disjoint.
        """
        held = sum(min(1 << level, self.elements) for level in range(self.height))
        return self.steps**2 * self.elements * held

    @cached_property
    def sigma2(self) -> Fraction:
        """The sigma2 of the noise on every node."""
        return gaussian_sigma2(self.squared_sensitivity, self.rho)

    def variance(self, t: int) -> float:
        """Variance of release t, for planning and error bars."""
        return self.nodes(t) * gaussian.variance(self.sigma2)

    def scales(self, t: int) -> Normal:
        """The law of the noise of release t."""
        return Normal(self.variance(t))

    def sampler(self, subkey: bytes) -> Sampler:
        return gaussian.DiscreteGaussian(self.sigma2, subkey)

    def counter(self, subkey: Subkeys) -> "BinaryCounter[GaussianBinaryTree]":
        return BinaryCounter(self, subkey)
