"""What the tests of the mechanisms share: small streams, and a recorder of every draw of noise."""

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import shoal.mechanisms
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.statistic import Activation, Block, Contribution, Estimate, Releaser

KEY = bytes(range(32))


class Sample(NamedTuple):
    """One accepted event: when it counts, whose it is, and how many steps it lies above the range's low end."""

    effective: int
    unit: str
    value: int


def modules(package: ModuleType = shoal.mechanisms) -> Iterator[ModuleType]:
    """Every module of the package."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(module.name)


def unproved(package: ModuleType) -> list[str]:
    """The modules of a package that promise a guarantee and link no note that proves it, or one that is not there."""
    root, found = Path(__file__).parents[2], []
    for module in modules(package):
        text = module.__doc__ or ""
        links = re.findall(r"docs/proofs/[a-z-]+\.md", text)
        if not all((root / link).is_file() for link in links) or ("Guarantee" in text and not links):
            found.append(module.__name__)
    return found


def classes(package: ModuleType = shoal.mechanisms) -> list[type]:
    """Every class that the package defines."""
    found = {
        value
        for module in modules(package)
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    return sorted(found, key=lambda cls: (cls.__module__, cls.__qualname__))


def means() -> list[type[MeanParameters]]:
    """Every mean algorithm of the package: what no other class in it derives from."""
    found = [cls for cls in classes() if issubclass(cls, MeanParameters)]
    return [cls for cls in found if not any(cls in other.__bases__ for other in found)]


def subgaussian(cls: type[MeanParameters]) -> type[MeanParameters]:
    """The algorithm for data with sigma = 1/2 (of the [-1, 3] below)."""
    sigma: Any = dataclasses.field(default=Fraction(1, 2))
    made = dataclasses.make_dataclass(
        f"Subgaussian{cls.__name__}", [("sigma", Fraction, sigma)], bases=(cls,), frozen=True, kw_only=True
    )
    made.name = f"{cls.name}, sigma"  # type: ignore[attr-defined]
    return made


def few_users(cls: type[MeanParameters]) -> type[MeanParameters]:
    """The algorithm with a prior that few users choose, for data with sigma = 1/2."""
    defaults = {"prior": None, "delta": Fraction(1, 1000), "sigma": Fraction(1, 2)}
    fields = [(name, Any, dataclasses.field(default=value)) for name, value in defaults.items()]
    made = dataclasses.make_dataclass(f"FewUsers{cls.__name__}", fields, bases=(cls,), frozen=True, kw_only=True)
    made.name, made.chooses = f"{cls.name}, few users", True  # type: ignore[attr-defined]
    return made


def has(cls: type[MeanParameters], parameter: str) -> bool:
    """Whether the algorithm has such a parameter."""
    return parameter in {field.name for field in dataclasses.fields(cls)}


def mean(
    cls: type[MeanParameters],
    *,
    epsilon: Fraction = Fraction(1),
    m: int = 16,
    users: int = 8,
    steps: int = 1 << 20,
    groups: int = 1,
    failure: Fraction = Fraction(1, 1000),
    **more: Any,
) -> MeanParameters:
    """An algorithm over [-1, 3]; around the prior 1/2 if it wants one, and chooses none."""
    if has(cls, "prior") and not getattr(cls, "chooses", False):
        more = {"prior": Fraction(1, 2)} | more
    return cls(
        grid=Grid(Fraction(-1), Fraction(3), steps),
        epsilon=epsilon,
        max_contributions=m,
        users=users,
        groups=groups,
        failure=failure,
        **more,
    )


def contributions(parameters: MeanParameters, samples: Iterable[Sample]) -> list[Contribution]:
    """What bound sends for these samples, in canonical order."""
    return sorted(Contribution(at, unit, *block[:4]) for at, unit, block in _closed(parameters, samples))


def merged(parameters: MeanParameters, samples: Iterable[Sample]) -> list[Contribution]:
    """The same contributions as bound sends them for a tick: blocks with a part are summed over units."""
    alone: list[Contribution] = []
    partials: dict[tuple[int, int, int], Contribution] = {}
    for at, unit, block in _closed(parameters, samples):
        if block.part is None:
            alone.append(Contribution(at, unit, *block[:4]))
            continue
        place = at, block.part, block.level
        old = partials.get(place, Contribution(at, "", block.part, block.level, 0, 0))
        partials[place] = old._replace(samples=old.samples + block.samples, total=old.total + block.total)
    return sorted([*alone, *partials.values()])


def lowest(parameters: MeanParameters) -> int:
    """Where the range begins on the grid of samples."""
    return (parameters.sample_grid.steps - parameters.grid.steps) // 2


def _closed(parameters: MeanParameters, samples: Iterable[Sample]) -> Iterator[tuple[int, str, Block]]:
    bounder, start = parameters.bounder(), lowest(parameters)
    accounts: dict[str, int] = {}
    for sample in samples:
        accounts[sample.unit], block = bounder.add(accounts.get(sample.unit, 0), start + sample.value)
        if block:
            yield sample.effective, sample.unit, block


def play(
    releaser: Releaser, sent: Iterable[Contribution]
) -> tuple[list[Estimate | None], list[tuple[int, Activation]]]:
    """A release after each contribution, and at which contribution what activated."""
    return play_ticks(releaser, ([contribution] for contribution in sent))


def play_ticks(
    releaser: Releaser, ticks: Iterable[Iterable[Contribution]]
) -> tuple[list[Estimate | None], list[tuple[int, Activation]]]:
    """A release after each tick, and in which tick what activated."""
    estimates, activations = [], []
    for at, tick in enumerate(ticks):
        activations += [(at, activation) for contribution in tick for activation in releaser.add(contribution)]
        activations += [(at, activation) for activation in releaser.close()]
        estimates.append(releaser.estimate())
    return estimates, activations


def by_tick(sent: Iterable[Contribution]) -> list[list[Contribution]]:
    """Contributions of one effective time are of one tick here."""
    return [list(tick) for _, tick in groupby(sent, key=lambda contribution: contribution.effective)]


def knows(estimate: Estimate | None) -> bool:
    """Whether the release rests on any sample: before that, it is the same whatever came."""
    return estimate is not None and estimate.samples > 0


class Draws:
    """Records each draw of discrete Laplace noise: by whom, which index, what came out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: dict[tuple[bytes, int], int] = {}
        self.scales: dict[bytes, Fraction] = {}
        real_init, real_draw = laplace.DiscreteLaplace.__init__, laplace.DiscreteLaplace.draw

        def init(noise: laplace.DiscreteLaplace, scale: Fraction | int, subkey: bytes) -> None:
            real_init(noise, scale, subkey)
            self.scales[subkey] = Fraction(scale)

        def draw(noise: laplace.DiscreteLaplace, index: int) -> int:
            value = real_draw(noise, index)
            self.seen[noise._bits._subkey, index] = value
            return value

        monkeypatch.setattr(laplace.DiscreteLaplace, "__init__", init)
        monkeypatch.setattr(laplace.DiscreteLaplace, "draw", draw)


def epoch_key(epoch: int) -> bytes:
    """A subkey per epoch for counters that stand alone."""
    return derive(KEY, "epoch", epoch)


def chi_square(observed: Sequence[int], expected: Sequence[float]) -> float:
    """Pearson's statistic, as standard deviations above its mean (about normal for many cells)."""
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    freedom = len(observed) - 1
    return float((statistic - freedom) / (2 * freedom) ** 0.5)


def json_able(state: Any) -> bool:
    """Ints, strings and lists all the way down."""
    if isinstance(state, list):
        return all(json_able(item) for item in state)
    return type(state) in (int, str)
