"""Errors per cell: all algorithms on the same values, and `best` against the best of them in hindsight."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from benchmarks.places.arms import ARMS, NAMES, Arm, Deviates, arm_of, parameters, real_error, true_mean
from benchmarks.places.inputs import HIGH, Cell
from shoal.mechanisms.slot.cell import Draws
from shoal.mechanisms.slot.means import best, deviations

EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5))
SHARE = Fraction(3, 10)  # spread_share
NEAR = 1.1  # the target: best's error over that of the best choice in hindsight
MOST_FAR, MOST_LOSS = 2, 1.05  # and with a share: cells surely beyond it, and the geometric mean of all ratios
BEST, SHARED, DEVIATIONS = "best", "best, spread_share", "deviations"
REAL = 2  # releases per arm that the expectations are held against
KEY = bytes(range(32))


@dataclass(frozen=True)
class Row:
    """A cell at one epsilon. Errors are mean absolute ones in km/h, over `draws` draws; ± standard errors."""

    kind: str
    name: str
    users: int
    samples: int
    epsilon: float
    errors: dict[str, float]  # of each algorithm with each cap, as "levy, median"
    deviations: dict[str, float]  # their standard errors
    taken: str  # by best
    least: str  # in hindsight
    ratio: float
    deviation: float  # of the ratio: both are measured on the same values
    draws: int
    shared_taken: str  # by best with a spread_share
    shared_error: float
    shared_ratio: float  # its error over that of the least, which is a fixed choice without a share
    shared_deviation: float

    def of(self, name: str) -> float:
        """The error of an algorithm as it is configured without a cap."""
        if name == SHARED:
            return self.shared_error
        return self.errors[self.taken if name == BEST else label(name, "optimal")]

    @property
    def is_near(self) -> bool:
        """Within ten per cent."""
        return self.ratio <= NEAR

    @property
    def is_surely_far(self) -> bool:
        """Even two standard errors lower it would not be near."""
        return self.ratio - 2 * self.deviation > NEAR

    @property
    def shared(self) -> "Row":
        """The row as it is with a spread_share."""
        return replace(
            self, taken=self.shared_taken, ratio=self.shared_ratio, deviation=self.shared_deviation,
        )  # fmt: skip


@dataclass(frozen=True)
class Check:
    """Real releases against expectations: the mean of their quotients."""

    releases: int
    ratio: float
    deviation: float


def label(name: str, cap: object) -> str:
    """What an arm is called: the baseline has one cap here."""
    return name if name == "baseline" else f"{name}, {cap}"


LABELS = tuple(label(*arm) for arm in ARMS)


def draws_of(cell: Cell, most: int) -> int:
    """Fewer where draws take long; a hundred users take as many as 10 ms."""
    return max(8, min(most, round(most * 100 / (len(cell.counts) + cell.samples / 200))))


def measure(cells: Sequence[Cell], draws: int, epsilons: Sequence[Fraction] = EPSILONS) -> tuple[list[Row], Check]:
    """Every cell at every epsilon with so many draws at most, and how far releases agree with the expectations."""
    rows: list[Row] = []
    quotients: list[float] = []
    for cell in cells:
        for epsilon in epsilons:
            found = _errors(cell, epsilon, draws_of(cell, draws))
            rows.append(_row(cell, epsilon, found))
            quotients += _real(cell, epsilon, found)
    check = Check(len(quotients), float(np.mean(quotients)), float(np.std(quotients) / math.sqrt(len(quotients))))
    return rows, check


def _draws(cell: Cell, epsilon: Fraction, number: int) -> Draws:
    return Draws(KEY, f"{cell.name}, {epsilon}".encode(), number)


def _errors(cell: Cell, epsilon: Fraction, draws: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Of each draw, of each arm."""
    arms: list[Arm] = [arm_of(name, cap, cell.counts, epsilon) for name, cap in ARMS]
    arms.append(Deviates(parameters(epsilon, share=SHARE)))
    found = np.empty((draws, len(arms)))
    for number in range(draws):
        users, of = cell.values(number), _draws(cell, epsilon, number)
        found[number] = [arm.error(users, of) for arm in arms]
    return found


def _row(cell: Cell, epsilon: Fraction, found: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Row:
    fixed, labels = found[:, : len(LABELS)], (*LABELS, DEVIATIONS)
    means, root = fixed.mean(axis=0), math.sqrt(len(found))
    least = int(means.argmin())

    def taken(share: Fraction | None) -> tuple[str, float, float, float]:
        """What best takes, its error, that over the least, and the standard error of this ratio."""
        choice = best.chosen(cell.counts, parameters(epsilon, share=share))
        name = DEVIATIONS if choice.name == DEVIATIONS else label(choice.name, choice.cap)
        of = found[:, labels.index(name)]
        error = float(means[labels.index(name)] if name in LABELS else of.mean())
        ratio = error / float(means[least])
        return name, error, ratio, float(np.std(of - ratio * found[:, least]) / root / means[least])

    name, _, ratio, deviation = taken(None)
    deviations = fixed.std(axis=0) / root
    return Row(
        cell.kind, cell.name, len(cell.counts), cell.samples, float(epsilon),
        dict(zip(LABELS, means.tolist(), strict=True)), dict(zip(LABELS, deviations.tolist(), strict=True)),
        name, LABELS[least], ratio, deviation, len(found), *taken(SHARE),
    )  # fmt: skip


def _real(cell: Cell, epsilon: Fraction, found: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Iterator[float]:
    """The same values and draws, by `release`: its error over the expected one of that draw."""
    for number in range(min(REAL, len(found))):
        users, of = cell.values(number), _draws(cell, epsilon, number)
        for (name, cap), expected in zip(ARMS, found[number, : len(ARMS)].tolist(), strict=True):
            yield real_error(name, cap, users, epsilon, of) / expected
        drawn = deviations.release(users, parameters(epsilon, share=SHARE), of)
        yield abs(float(drawn.value) - HIGH * true_mean(users)) / float(found[number, -1])


def shares(rows: Sequence[Row]) -> tuple[float, float, float, int]:
    """Of these rows: share that is near, median and largest ratio, how many are surely far."""
    ratios = sorted(row.ratio for row in rows)
    near = sum(row.is_near for row in rows) / len(rows)
    return near, ratios[len(ratios) // 2], ratios[-1], sum(row.is_surely_far for row in rows)


def losses(rows: Sequence[Row], name: str) -> tuple[float, float, float]:
    """Of an algorithm in all cells: share within ten per cent of the least error; geometric mean ratio; largest."""
    ratios = np.array([row.of(name) / row.errors[row.least] for row in rows])
    return float((ratios <= NEAR).mean()), float(np.exp(np.log(ratios).mean())), float(ratios.max())


ALGORITHMS = (BEST, SHARED, *NAMES)
