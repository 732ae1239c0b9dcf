"""Few users: how often there is no release, how far a release lies, and what neighbours can be told apart by."""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.places.inputs import HIGH, SPEEDS, STEPS, Users, grid_steps
from shoal.mechanisms.selection.few_users_point import PointChoice, stretches, users_needed
from shoal.mechanisms.slot.cell import CellParameters, Draws
from shoal.mechanisms.slot.means import few_users

KEY = bytes(range(3, 35))
FAILURE = Fraction(1, 100)
SAMPLES = 200  # of each user
LAW = (30.0, 10.0)
# Users, epsilon, delta, corrupt ones; few enough users that there sometimes is no release.
CASES = (
    (8, "2", "0.001", 0), (10, "2", "0.001", 0), (12, "2", "0.001", 0), (12, "2", "0.0001", 0), (14, "2", "0.00001", 0),
    (24, "1", "0.0001", 0), (30, "1", "0.0001", 0), (6, "5", "0.00001", 0), (7, "5", "0.00001", 0),
    (14, "2", "0.001", 4), (19, "2", "0.001", 9), (51, "1", "0.001", 25), (100, "2", "0.00001", 49),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One kind of cell. Probabilities of no release; distances in km/h."""

    users: int
    corrupt: int
    epsilon: float
    delta: float
    draws: int
    none: float  # measured
    law: float  # by the law of the mechanism, mean over the same cells
    most: float  # by the bound of `predicted_error`, of users who are all near
    needed: int  # users for a failure of FAILURE
    radius: float  # R + r0
    farthest: float  # of all releases from the true mean
    middle: float
    outside: int  # releases further than R + r0
    outside_law: float  # the probability of that, by the bound

    @property
    def deviation(self) -> float:
        """Of `none`, by its law."""
        return math.sqrt(self.law * (1 - self.law) / self.draws)

    @property
    def agrees(self) -> bool:
        """Within three standard errors, and a draw; and below the bound, which is for users who are all near."""
        near = abs(self.none - self.law) <= 3 * self.deviation + 1 / self.draws
        return near and (self.corrupt > 0 or self.law <= self.most * (1 + 1e-9))


@dataclass(frozen=True)
class Audit:
    """Exact laws of random pairs of neighbours: the largest hockey-stick divergence over delta."""

    pairs: int
    largest: float
    above_half: int  # pairs that need more than half of delta


def measure(draws: int) -> list[Row]:
    """All kinds of cells."""
    return [_row(*case, draws) for case in CASES]


def users_of(count: int, corrupt: int, number: int) -> Users:
    """Corrupt users report the end of the range, the others independent samples."""
    rng = np.random.default_rng([9, count, corrupt, number])
    good = grid_steps(rng.normal(*LAW, (count - corrupt) * SAMPLES))
    bad = [[STEPS] * SAMPLES for _ in range(corrupt)]
    return bad + [good[first : first + SAMPLES] for first in range(0, len(good), SAMPLES)]


def _row(count: int, epsilon: str, delta: str, corrupt: int, draws: int) -> Row:
    of = CellParameters(grid=SPEEDS, epsilon=Fraction(epsilon), delta=Fraction(delta), failure=FAILURE)
    counts = [SAMPLES] * count
    part = few_users.part_for_point(counts, of)
    choice, reach = few_users.point_choice(part, of, of.epsilon), part.reach
    truth, laws, distances = LAW[0] / HIGH * STEPS, [], []
    cells = [users_of(count, corrupt, number) for number in range(20)]
    means = [[round(sum(user) / len(user)) for user in users] for users in cells]
    odds = [none_law(choice, of_cell) for of_cell in means]
    for number in range(draws):
        place = number % len(cells)
        laws.append(odds[place])
        found = few_users.release(cells[place], of, Draws(KEY, f"{count} {corrupt} {epsilon} {delta}".encode(), number))
        if found.value is not None:
            distances.append(abs(float(found.value) - LAW[0]))
    radius = (choice.radius + reach) / STEPS * HIGH
    outside = [outside_law(choice, of_cell, truth, choice.radius + reach) for of_cell in means]
    return Row(
        count, corrupt, float(of.epsilon), float(of.delta), draws, 1 - len(distances) / draws, float(np.mean(laws)),
        few_users.no_release(part, of, of.epsilon), users_needed(of.epsilon, of.delta, FAILURE), radius,
        max(distances, default=0.0), float(np.median(distances)) if distances else 0.0,
        sum(one > radius for one in distances), float(np.mean(outside)),
    )  # fmt: skip


def _weights(choice: PointChoice, means: Sequence[int]) -> Iterator[tuple[int, int, float]]:
    """Of each stretch: start, points, and their common weight over that of a point near all."""
    for stretch in stretches(sorted(means), choice.radius):
        yield stretch.start, stretch.points, math.exp(float(choice.rate) * (stretch.near - choice.numbers))


def none_law(choice: PointChoice, means: Sequence[int]) -> float:
    """The exact probability of no release."""
    none = choice.garbage * choice.ball * math.exp(-float(choice.rate) * choice.numbers)
    return none / (none + math.fsum(points * weight for _, points, weight in _weights(choice, means)))


def outside_law(choice: PointChoice, means: Sequence[int], truth: float, radius: int) -> float:
    """The exact probability of a release further than `radius` from the truth."""
    none = choice.garbage * choice.ball * math.exp(-float(choice.rate) * choice.numbers)
    inside = outside = 0.0
    for start, points, weight in _weights(choice, means):
        least, most = max(start, math.ceil(truth - radius)), min(start + points - 1, math.floor(truth + radius))
        within = max(0, most - least + 1)
        inside, outside = inside + within * weight, outside + (points - within) * weight
    return outside / (none + inside + outside)


def audit(pairs: int) -> Audit:
    """All outcomes of both laws are enumerated; one number goes anywhere, how many there are is the same."""
    rng, used = random.Random(13), []
    for _ in range(pairs):
        count, radius = rng.randint(1, 12), rng.randint(0, 8)
        epsilon, delta = rng.choice(("0.1", "0.5", "1", "2", "5")), rng.choice(("0.000001", "0.001", "0.1"))
        numbers = [rng.randint(0, 3 * radius + 3) for _ in range(count)]
        neighbour = [rng.choice((rng.randint(0, 3 * radius + 3), 10**6)), *numbers[1:]]
        choice = PointChoice(numbers=count, radius=radius, epsilon=Fraction(epsilon), delta=Fraction(delta))
        one, other = _law(choice, numbers), _law(choice, neighbour)
        lost = max(_hockey_stick(one, other, float(epsilon)), _hockey_stick(other, one, float(epsilon)))
        used.append(lost / float(delta))
    return Audit(pairs, max(used), sum(part > 0.5 for part in used))


def _law(choice: PointChoice, numbers: Sequence[int]) -> dict[int | None, float]:
    """By the definition: counted point by point."""
    near = Counter(point for one in numbers for point in range(one - choice.radius, one + choice.radius + 1))
    found: dict[int | None, float] = {point: math.exp(float(choice.rate) * count) for point, count in near.items()}
    found[None] = float(choice.garbage * choice.ball)
    total = math.fsum(found.values())
    return {point: weight / total for point, weight in found.items()}


def _hockey_stick(one: dict[int | None, float], other: dict[int | None, float], epsilon: float) -> float:
    return math.fsum(max(0.0, p - math.exp(epsilon) * other.get(point, 0.0)) for point, p in one.items())
