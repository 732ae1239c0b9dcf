"""Private choices, forced to one outcome, which no value decides, and what it costs to tell two worlds by it.

candidates      of the exponential mechanism: the most that the logarithm of a candidate's probability differs
point of balls  of "few users": epsilon where the numbers differ, and delta, which is checked by summing the law up
crossing        of units over a threshold, after which a clip range is chosen: its tick's probability, summed over rho
sums of a tree  of a distribution, noised: the distance of the exact sums over their scales
sum of a centre of what deviations are from, noised: likewise
last release    of sharp, which octaves are clipped around: free, as it is a release that was charged
"""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from operator import add
from typing import Any, Protocol
from unittest.mock import patch

from shoal.mechanisms.continual_mean.sharp.releaser import SharpReleaser
from shoal.mechanisms.selection import exact_quantile, exponential, few_users_point, median, upper_end
from shoal.mechanisms.slot import distribution
from shoal.mechanisms.slot.means import deviations, few_users_ball, quantile

REST = 30.0  # exp(-30): the chance of a larger rho than those that are summed up
NONE_IN = 10  # one in so many points is none


class Choice(Protocol):
    """One choice in one world."""

    def told(self, other: Any) -> tuple[float, float]:
        """The epsilon and delta by which it tells this world from another."""
        ...


@dataclass(frozen=True)
class Candidates:
    """The law of an exponential mechanism: logarithms of probabilities."""

    logs: list[float]

    def told(self, other: "Candidates") -> tuple[float, float]:
        """The most that an outcome's probability changes."""
        return max(abs(one - two) for one, two in zip(self.logs, other.logs, strict=True)), 0.0

    def concentrated(self, other: "Candidates") -> float:
        """The rho of its zCDP: an eighth of the squared range of the logarithms of ratios."""
        ratios = [one - two for one, two in zip(self.logs, other.logs, strict=True)]
        return (max(ratios) - min(ratios)) ** 2 / 8


@dataclass(frozen=True)
class Point:
    """A point near numbers, or none."""

    choice: Any
    numbers: list[Any]

    def told(self, other: "Point") -> tuple[float, float]:
        """What it declares, if the numbers differ; the law itself must keep to it."""
        if self.numbers == other.numbers:
            return 0.0, 0.0
        assert self.choice == other.choice
        epsilon, delta = float(self.choice.epsilon), float(self.choice.delta)
        beyond = max(self._beyond(other, epsilon), other._beyond(self, epsilon))
        assert beyond <= delta * (1 + 1e-6), f"a point tells more: {beyond} beyond epsilon, delta is {delta}"
        return epsilon, delta

    def _beyond(self, other: "Point", epsilon: float) -> float:
        """The probability by which this law goes beyond e^epsilon times the other."""
        mine, theirs = self._law(), other._law()
        allowed = {point: math.exp(epsilon + log) for point, log in theirs.items()}
        return sum(max(0.0, math.exp(log) - allowed.get(point, 0.0)) for point, log in mine.items())

    def _law(self) -> dict[Any, float]:
        logs: dict[int | None, float] = {None: math.log(self.choice.garbage * self.choice.ball)}
        for stretch in few_users_point.stretches(self.numbers, self.choice.radius):
            near = float(self.choice.rate) * stretch.near
            logs |= dict.fromkeys(range(stretch.start, stretch.start + stretch.points), near)
        whole = _log_sum(logs.values())
        return {point: log - whole for point, log in logs.items()}


class PointOfValues(Point):
    """A point near points of several coordinates, or none."""

    def _law(self) -> dict[Any, float]:
        choice, limit = self.choice, self.choice.radius**2
        each = range(-choice.radius, choice.radius + 1)
        ball = [at for at in product(each, repeat=choice.coordinates) if sum(x * x for x in at) <= limit]
        near = Counter(tuple(map(add, at, offset)) for at in self.numbers for offset in ball)
        cap = math.ceil(Fraction(51, 100) * choice.numbers)
        logs: dict[Any, float] = {point: float(choice.rate) * min(count, cap) for point, count in near.items()}
        logs[None] = math.log(choice.garbage * len(ball))
        whole = _log_sum(logs.values())
        return {point: log - whole for point, log in logs.items()}


@dataclass(frozen=True)
class Sums:
    """Exact sums of a tree's nodes, before noise of their level's scale."""

    scales: list[Fraction]
    levels: list[list[int]]

    def told(self, other: "Sums") -> tuple[float, float]:
        """The distance, each level's over its scale."""
        assert self.scales == other.scales
        moved = 0.0
        for scale, mine, theirs in zip(self.scales, self.levels, other.levels, strict=True):
            moved += sum(abs(one - two) for one, two in zip(mine, theirs, strict=True)) / float(scale)
        return moved, 0.0


@dataclass
class Crossing:
    """When a clip range is chosen: how many units there were at each tick until it was, or to the end."""

    end: upper_end.UpperEnd
    units: list[int] = field(default_factory=list)
    is_over: bool = False

    def told(self, other: "Crossing") -> tuple[float, float]:
        """What this tick's probability changes by."""
        assert (self.end, self.is_over, len(self.units)) == (other.end, other.is_over, len(other.units))
        return abs(self._log() - other._log()), 0.0

    def _log(self) -> float:
        """By the definition: a draw of rho, and one at each tick."""
        rate, logs = float(self.end.crossing), []
        for rho in range(math.ceil(REST / rate)):
            exponents = [-rate * max(0, self.end.needed + rho - units) for units in self.units]
            last = exponents.pop() if self.is_over else 0.0
            if all(exponents):  # else it is over before
                logs.append(last - rate * rho + sum(math.log(-math.expm1(exponent)) for exponent in exponents))
        return _log_sum(logs)


@dataclass
class Choices:
    """All choices of one world, forced by a seed that the worlds share."""

    seed: int
    made: list[Choice] = field(default_factory=list)
    _releases: int = 0
    _crossings: list[Crossing] = field(default_factory=list)

    def _outcome(self, below: int) -> int:
        return random.Random(f"{self.seed}/{len(self.made)}").randrange(below)

    def candidates(self, logs: Sequence[float]) -> int:
        """The forced candidate of a law, whose weights are given by their logarithms."""
        whole, outcome = _log_sum(logs), self._outcome(len(logs))
        self.made.append(Candidates([log - whole for log in logs]))
        return outcome

    def point(self, choice: few_users_point.PointChoice, numbers: Sequence[int]) -> int | None:
        """The forced point, sometimes none."""
        outcome = self._outcome(NONE_IN * 1025)
        self.made.append(Point(choice, sorted(numbers)))
        return outcome // NONE_IN if outcome % NONE_IN else None

    def point_of_values(self, choice: few_users_ball.BallChoice, points: Sequence[Sequence[int]]) -> list[int] | None:
        """The forced point of several coordinates, sometimes none."""
        outcome = self._outcome(NONE_IN * 1025)
        self.made.append(PointOfValues(choice, sorted(map(tuple, points))))
        return [outcome // NONE_IN + axis for axis in range(choice.coordinates)] if outcome % NONE_IN else None

    def sums(self, scales: Sequence[Fraction], levels: list[list[int]], whole: int) -> list[list[int]]:
        """Forced noised sums."""
        drawn = random.Random(f"{self.seed}/{len(self.made)}")
        self.made.append(Sums(list(scales), levels))
        return [[drawn.randrange(whole + 1) for _ in level] for level in levels]

    def crossing(self, end: upper_end.UpperEnd) -> int:
        """The number of a key's crossing, in place of its rho."""
        self._crossings.append(Crossing(end))
        self.made.append(self._crossings[-1])
        return len(self._crossings) - 1

    def is_due(self, number: int, units: int) -> bool:
        """Whether it is forced to be at this tick."""
        crossing = self._crossings[number]
        crossing.units.append(units)
        crossing.is_over = random.Random(f"{self.seed}/{number}/{len(crossing.units)}").random() < 0.5
        return crossing.is_over

    def last_release(self, steps: int) -> Fraction:
        """A forced release, in grid steps."""
        self._releases += 1
        return Fraction(random.Random(f"{self.seed}/mu/{self._releases}").randrange(8 * steps + 1), 8)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """In place of all private choices."""

        def choose(costs: Sequence[int], rate: Fraction, words: Iterator[int]) -> int:
            return self.candidates([-float(rate * cost) for cost in costs])

        def choose_cell(values: Sequence[int], cells: int, q: Fraction, epsilon: Fraction, words: Iterator[int]) -> int:
            wanted, logs = q * len(values), [0.0] * cells
            for run in exact_quantile.runs(values, cells):
                cost = float(abs(exact_quantile.nearest(run, wanted) - wanted))
                logs[run.start : run.start + run.cells] = [-float(epsilon) / 2 * cost] * run.cells
            return self.candidates(logs)

        def point(choice: few_users_point.PointChoice, numbers: Sequence[int], words: Iterator[int]) -> int | None:
            return self.point(choice, numbers)

        def point_of_values(
            choice: few_users_ball.BallChoice, points: Sequence[Sequence[int]], subkey: bytes, words: Iterator[int]
        ) -> list[int] | None:
            return self.point_of_values(choice, points)

        def noised(tree: Any, bins: Sequence[int], scales: Sequence[Fraction], draws: Any) -> list[list[int]]:
            return self.sums(scales, [list(map(int, level)) for level in tree.sums(bins)], int(sum(bins)))

        def noised_sum(total: int, scale: Fraction, draws: Any) -> int:
            ((noisy,),) = self.sums([scale], [[total]], int(20 * scale))
            return noisy

        def rho(end: upper_end.UpperEnd, words: Iterator[int]) -> int:
            return self.crossing(end)

        def is_due(end: upper_end.UpperEnd, units: int, rho: int, words: Iterator[int]) -> bool:
            return self.is_due(rho, units)

        last_release = SharpReleaser._last_release

        def forced_release(releaser: SharpReleaser) -> Fraction:
            last_release(releaser)  # it draws noise, which may be drawn nowhere else
            return self.last_release(releaser._mean.grid.steps)

        with (
            patch.object(exponential, "choose", choose),
            patch.object(median, "choose", choose),
            patch.object(upper_end.UpperEnd, "rho", rho),
            patch.object(upper_end.UpperEnd, "is_due", is_due),
            patch.object(quantile, "choose", choose_cell),
            patch.object(few_users_point.PointChoice, "choose", point),
            patch.object(few_users_ball.BallChoice, "choose", point_of_values),
            patch.object(distribution, "noised_sums", noised),
            patch.object(deviations, "noised_sum", noised_sum),
            patch.object(SharpReleaser, "_last_release", forced_release),
        ):
            yield


def told(first: Sequence[Choice], second: Sequence[Choice]) -> tuple[float, float]:
    """The epsilon and delta by which all choices together tell one world from the other."""
    assert [type(one) for one in first] == [type(one) for one in second], "the worlds make different choices"
    found = [one.told(other) for one, other in zip(first, second, strict=True)]
    return sum(epsilon for epsilon, _ in found), sum(delta for _, delta in found)


def concentrated(first: Sequence[Choice], second: Sequence[Choice]) -> float:
    """The rho by which all choices together tell one world from the other; only candidates have one."""
    return sum(
        one.concentrated(two) if isinstance(one, Candidates) and isinstance(two, Candidates) else math.inf
        for one, two in zip(first, second, strict=True)
    )


def _log_sum(logs: Any) -> float:
    logs = list(logs)
    most = max(logs)
    return float(most + math.log(sum(math.exp(log - most) for log in logs)))
