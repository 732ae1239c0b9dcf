"""Priors that few users choose, over a huge range and over a small one, and users for them."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest

from shoal.mechanisms.continual_mean.given_prior import GivenPrior
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.selection.few_users_point import PointChoice
from shoal.mechanisms.statistic import Activation, Contribution, Estimate
from tests.mechanisms.mechanism_cases import KEY, by_tick, mean, play_ticks

Few = type[GivenPrior]
ALL: list[Few] = [Wishful, SingleTree, MultiTree]
every = pytest.mark.parametrize("cls", ALL)
MILLION = 10**6
WIDE = Grid(Fraction(-MILLION), Fraction(MILLION), 1 << 24)


def few_users(cls: Few, **more: Any) -> GivenPrior:
    """The algorithm over a million on either side of 0; values scatter by 5."""
    given: dict[str, Any] = {"grid": WIDE, "epsilon": Fraction(4), "delta": Fraction(1, 10**6), "sigma": Fraction(5)}
    return cls(**(given | {"max_contributions": 16, "users": 200} | more))


def small(cls: Few, **more: Any) -> GivenPrior:
    """The algorithm over [-1, 3] in eight steps, for four users who choose."""
    given: dict[str, Any] = {"m": 4, "steps": 8, "users": 2, "epsilon": Fraction(700), "delta": Fraction(1, 1000)}
    made = mean(cls, prior=None, **(given | more))
    assert isinstance(made, GivenPrior)
    return made


def sent_by(parameters: GivenPrior, values: Sequence[Sequence[float]]) -> list[Contribution]:
    """What bound sends if in each tick each user has one sample."""
    clip, bounder = parameters.sample_grid.clip, parameters.bounder()
    accounts, sent = [0] * len(values), []
    for at in range(len(values[0])):
        for user, own in enumerate(values):
            accounts[user], block = bounder.add(accounts[user], clip(own[at]))
            if block:
                sent.append(Contribution(at, f"{user:032x}", *block[:4]))
    return sorted(sent)


def crowd(users: int, each: int, centre: float, seed: int = 1) -> list[list[float]]:
    drawn = random.Random(seed)
    return [[drawn.gauss(centre, 5) for _ in range(each)] for _ in range(users)]


def run(
    parameters: GivenPrior, values: Sequence[Sequence[float]], key: bytes = KEY
) -> tuple[list[Estimate | None], list[tuple[int, Activation]]]:
    """The releases and activations of all ticks."""
    return play_ticks(parameters.releaser(key, b""), by_tick(sent_by(parameters, values)))


# ---------------------------------------------------------------- who chooses, and what of


@contextmanager
def overheard(point: int | None = 0) -> Iterator[list[tuple[PointChoice, list[int]]]]:
    """Every choice and its numbers; what is chosen is this point."""
    calls: list[tuple[PointChoice, list[int]]] = []

    def choose(choice: PointChoice, numbers: Sequence[int], words: Iterator[int]) -> int | None:
        calls.append((choice, list(numbers)))
        return point

    with patch.object(PointChoice, "choose", choose):
        yield calls
