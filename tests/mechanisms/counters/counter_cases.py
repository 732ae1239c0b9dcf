"""What the tests of the counters share: small trees of every class, and the linear map that a counter really is."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from inspect import signature
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.counters.blue import BlueTree, GrowingBlue
from shoal.mechanisms.counters.complete_tree import Draw, Draws
from shoal.mechanisms.counters.counter import Counter, Tree
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.statistic import Releaser
from tests.mechanisms.mechanism_cases import KEY, classes, epoch_key
from tests.support.cover import run_all, without

Name = tuple[bytes, int]  # of a draw: subkey, index
Make = Callable[[int, Fraction], Tree]  # (width, epsilon) -> the tree


class Case(NamedTuple):
    """A tree, and how many elements reach past its capacity and over several epochs."""

    name: str
    make: Make
    length: int

    def tree(self, width: int = 1, epsilon: Fraction | int = 1) -> Any:
        return self.make(width, Fraction(epsilon))

    def counter(self, width: int = 1, epsilon: Fraction | int = 1) -> Counter:
        return self.make(width, Fraction(epsilon)).counter(epoch_key)


def binary(capacity: int) -> Make:
    return lambda width, epsilon: BinaryTree(capacity, width, epsilon)


def blue(arity: int, levels: int) -> Make:
    return lambda width, epsilon: BlueTree(width, epsilon, arity, levels)


def growing(arity: int, horizon: int | None = None) -> Make:
    return lambda width, epsilon: GrowingBlue(width, epsilon, arity=arity, horizon=horizon)


# Small trees of each class; a class of trees that has none fails test_every_counter_of_the_package_is_here.
CASES: dict[type, list[Case]] = {
    BinaryTree: [Case(f"binary-{n}", binary(n), 3 * n + 20) for n in (1, 2, 3, 4, 7, 8, 12)],
    BlueTree: [
        Case(f"blue-{k}-{levels}", blue(k, levels), length)
        for k, levels, length in ((2, 1, 5), (2, 2, 9), (5, 2, 18), (3, 3, 29), (2, 4, 27), (2, 6, 70))
    ],
    GrowingBlue: [
        Case("growing-2", growing(2), 33),
        Case("growing-3", growing(3), 44),
        Case("growing-2-horizon-5", growing(2, horizon=5), 30),
        Case("growing-3-horizon-20", growing(3, horizon=20), 60),
    ],
}


# For laws that several classes inherit: an example that fails one of them is tried on the others, too.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors])


class CasesOf:
    """Tests whose `case` is each of the cases, `typical` the last of each class, `best` what chooses a class's tree."""

    cases: dict[type, list[Case]]

    @classmethod
    def named(cls, fixture: str) -> dict[str, Any]:
        """Values of one of the three parameters, by their ids."""
        if fixture == "case":
            return {case.name: case for cases in cls.cases.values() for case in cases}
        if fixture == "typical":
            return {kind.__name__: cases[-1] for kind, cases in cls.cases.items()}
        return {kind.__name__: kind.best for kind in cls.cases if hasattr(kind, "best")}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        for fixture in PARAMETERS.intersection(metafunc.fixturenames):
            named = self.named(fixture)
            metafunc.parametrize(fixture, list(named.values()), ids=list(named))


PARAMETERS = {"case", "typical", "best"}


def over_cases(law: Callable[..., None]) -> Callable[..., None]:
    """Run a law for all cases of its class as one item (tests/support/cover.py); ids of such laws are not named."""
    (fixture,) = PARAMETERS.intersection(signature(law).parameters)

    def looped(self: CasesOf, **fixtures: Any) -> None:
        cases = {name: {fixture: value} for name, value in self.named(fixture).items()}
        run_all(partial(law, self), cases, **fixtures)

    return without(looped, law, {fixture})


def counter_classes(package: ModuleType) -> tuple[set[type], set[type]]:
    """The classes of trees of a package, but for abstract bases, and the classes of counters that they make."""
    trees = {
        cls
        for cls in classes(package)
        if hasattr(cls, "counter") and hasattr(cls, "nodes_of") and not cls.__subclasses__() and cls is not Tree
    }
    return trees, {cls for cls in classes(package) if hasattr(cls, "noise") and hasattr(cls, "tree")} - {Counter}


class Injected:
    """Draws that a test chooses: 0, but for those named."""

    def __init__(self) -> None:
        self.values: dict[Name, int] = {}
        self.scales: dict[bytes, set[Fraction]] = {}
        self.asked: dict[Name, None] = {}

    def draw(self, subkey: bytes, index: int) -> int:
        self.asked[subkey, index] = None
        return self.values.get((subkey, index), 0)

    @contextmanager
    def instead(self) -> Iterator[None]:
        """While this is open, every draw is one of these."""

        real = laplace.DiscreteLaplace.__init__

        def init(noise: laplace.DiscreteLaplace, scale: Fraction | int, subkey: bytes) -> None:
            real(noise, scale, subkey)
            self.scales.setdefault(subkey, set()).add(Fraction(scale))

        def draw(noise: laplace.DiscreteLaplace, index: int) -> int:
            return self.draw(noise._bits._subkey, index)

        def draw_block(noise: laplace.DiscreteLaplace, start: int, count: int) -> Any:
            return np.array([draw(noise, start + i) for i in range(count)], dtype=np.object_)

        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(laplace.DiscreteLaplace, "__init__", init)
            monkeypatch.setattr(laplace.DiscreteLaplace, "draw", draw)
            monkeypatch.setattr(laplace.DiscreteLaplace, "draw_block", draw_block)
            yield


_UNIT = 10**60  # so large that a coefficient shows in the rounded noise


class Linear(NamedTuple):
    """What a counter is: L by draw and release, the scale of each draw, and R as the tree states it."""

    names: list[Name]
    scales: list[Fraction]
    noise: list[list[Fraction]]  # L: a row per release
    nodes: list[list[int]]  # R: a row per draw


def linear(case: Case, width: int = 1, epsilon: Fraction | int = 1) -> Linear:
    """The map, found by asking for all releases with one draw set and the others 0."""
    injected, releases = Injected(), range(1, case.length + 1)
    with injected.instead():
        counter = case.counter(width, epsilon)
        assert [counter.noise(t) for t in releases] == [0] * case.length
        names, columns = list(injected.asked), []
        for name in names:
            injected.values = {name: _UNIT}
            counter = case.counter(width, epsilon)
            columns.append([Fraction(counter.noise(t), _UNIT).limit_denominator(10**20) for t in releases])
    (scales,) = zip(*(injected.scales[subkey] for subkey, _ in names), strict=True)  # a subkey has one scale
    held = [{(epoch_key(epoch), index) for epoch, index in case.tree().nodes_of(t)} for t in releases]
    nodes = [[int(name in names_of) for names_of in held] for name in names]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Linear(names, list(scales), rows, nodes)


def noise_in_release(parameters: MeanParameters, releaser: Releaser) -> float:
    """Standard deviation of the draws in the next release, found one by one; 0 where it has none."""
    head, kept, drawn = releaser.head(), list(releaser.kept.values()), Injected()

    def release() -> float:
        """Of a fresh object with the same state, all of whose draws go into the one release."""
        fresh = parameters.releaser(KEY, b"")
        fresh.restore(head, kept)
        again = fresh.estimate()
        return again.value if again is not None and again.value is not None else 0.0

    with drawn.instead():
        quiet, parts = release(), []
        for subkey, index in list(drawn.asked):
            drawn.values = {(subkey, index): 10**30}
            (scale,) = drawn.scales[subkey]
            parts.append(((release() - quiet) / 1e30) ** 2 * laplace.variance(scale))
    return math.sqrt(math.fsum(parts))


def given(draws: Draws) -> Draw:
    """These draws, as a tree asks for them."""
    return lambda first, count: draws[first : first + count]
