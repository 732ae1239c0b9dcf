"""What the tests of the sharp mean with sigma share: parameters over [-1, 3], and runs with every call overheard."""

import json
from collections.abc import Container, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

import pytest

from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.continual_mean.subgaussian.releaser import SubgaussianReleaser
from shoal.mechanisms.selection import exponential
from shoal.mechanisms.statistic import Activation, Estimate
from tests.mechanisms.mechanism_cases import KEY, Sample, contributions, mean


class Call(NamedTuple):
    """A private choice: what it was made from, and how sharply."""

    costs: list[int]
    rate: Fraction


class Run(NamedTuple):
    """What a stream brings about."""

    calls: list[Call]
    elements: list[int]  # that entered the counter, tick by tick
    estimates: list[Estimate | None]
    activations: list[tuple[int, Activation]]
    releaser: SubgaussianReleaser


def subgaussian(**more: Any) -> Subgaussian:
    """The algorithm over [-1, 3], with a sigma of 1/2 where none is given."""
    parameters = mean(Subgaussian, **({"sigma": Fraction(1, 2)} | more))
    assert isinstance(parameters, Subgaussian)
    return parameters


def run(
    parameters: Subgaussian, samples: Iterable[Sample], chosen: int | None = None, restarts: Container[int] = ()
) -> Run:
    """A release after each tick, with the centre that was chosen if one is given."""
    calls: list[Call] = []
    choose = exponential.choose

    def overheard(costs: Sequence[int], rate: Fraction, words: Iterator[int]) -> int:
        calls.append(Call(list(costs), rate))
        return choose(costs, rate, words) if chosen is None else min(chosen, len(costs) - 1)

    releaser = parameters.releaser(KEY, b"")
    found = Run(calls, [], [], [], releaser)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(exponential, "choose", overheard)
        for tick, rows in groupby(contributions(parameters, samples), lambda row: row.effective):
            for row in rows:
                assert releaser.add(row) == ()
            found.activations.extend((tick, one) for one in releaser.close())
            found.estimates.append(releaser.estimate())
            found.elements.append(releaser._total - sum(found.elements))
            if tick in restarts:
                head, kept = releaser.head(), list(releaser.kept.values())
                releaser = parameters.releaser(KEY, b"")
                releaser.restore(json.loads(json.dumps(head)), kept)
    return found._replace(releaser=releaser)
