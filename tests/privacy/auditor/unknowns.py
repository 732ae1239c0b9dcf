"""Draws of noise as unknowns: each is 0, or what the auditor sets, and is known by its name and scale."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from shoal.mechanisms.noise.cube import CubeNoise
from shoal.mechanisms.noise.gaussian import DiscreteGaussian
from shoal.mechanisms.noise.laplace import DiscreteLaplace

MOST = 100  # unknowns of one configuration: each costs a run


class TooManyUnknowns(Exception):
    """The configuration draws too much noise to be audited in reasonable time."""


class Law(NamedTuple):
    """How an unknown is distributed: discrete Laplace of this scale, or discrete Gaussian of this variance.

    Unknowns of one cube are a vector, whose probability its largest coordinate decides.
    """

    gaussian: bool
    scale: Fraction
    cube: bytes | None = None


class Unknowns:
    """All draws of noise of a configuration, in the order in which they were first asked for."""

    def __init__(self, most: float = MOST) -> None:
        self._most = most
        self.laws: list[Law] = []
        self.given: dict[int, int] = {}  # values of unknowns; of all others 0
        self._numbers: dict[tuple[bytes, int], int] = {}

    def drawn(self, subkey: bytes, index: int, law: Law) -> int:
        """The value of a draw, which is one unknown whenever it is asked for.

        Raises:
            TooManyUnknowns: there are more than the auditor can try.
        """
        number = self._numbers.setdefault((subkey, index), len(self.laws))
        if number == len(self.laws):
            if number >= self._most:
                raise TooManyUnknowns
            self.laws.append(law)
        assert self.laws[number] == law, "two draws of different laws share a name"
        return self.given.get(number, 0)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """In place of all noise."""

        def laplace(noise: Any, index: int) -> int:
            return self.drawn(noise._bits._subkey, index, Law(False, Fraction(noise.scale)))

        def gaussian(noise: Any, index: int) -> int:
            return self.drawn(noise._bits._subkey, index, Law(True, Fraction(noise.sigma2)))

        def cube(noise: Any, coordinate: int) -> int:
            subkey = noise._bits._subkey
            return self.drawn(subkey, coordinate, Law(False, Fraction(noise.scale), subkey))

        def block(noise: Any, start: int, count: int) -> Any:
            return np.array([noise.draw(index) for index in range(start, start + count)], dtype=np.object_)

        with (
            patch.object(DiscreteLaplace, "draw", laplace),
            patch.object(DiscreteLaplace, "draw_block", block),
            patch.object(CubeNoise, "draw", cube),
            patch.object(DiscreteGaussian, "draw", gaussian),
            patch.object(DiscreteGaussian, "draw_block", block),
        ):
            yield
