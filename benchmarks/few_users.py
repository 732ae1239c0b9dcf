"""Few users with values of several coordinates: error, users needed, corrupt users, rounds, what neighbours can tell.

    python -m benchmarks.few_users [--quick] [--out DIR]

Prints tables; a full run writes benchmarks/results/few-users.json and few-users.md.
"""

import argparse
import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from operator import add
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import figures
from benchmarks.page import Page, number, verdict
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.cell import CellParameters, Draws
from shoal.mechanisms.slot.means import few_users_ball
from shoal.mechanisms.slot.means.few_users import Part
from shoal.mechanisms.slot.means.few_users_ball import BallChoice, near_to
from shoal.mechanisms.slot.means.few_users_values import choice_of, is_enough, kappa, part_of

DIMENSIONS = (1, 2, 8, 32)
SAMPLES = (50, 200, 800)  # m
RADIUS = 10.0  # r: the root of the sum of all coordinates' variances
HIGH, STEPS = 65.0, 1 << 20
TRUTH = 30.0  # in every coordinate
DELTA, FAILURE = Fraction(1, 10**6), Fraction(1, 100)
USERS = 100
CELLS = 10  # whose users' samples are drawn; each is released many times
PAIRS = 2000
SLOPE = 0.1  # by which an exponent may be off
TITLE = "Few users with values of several coordinates"
RULES = """\
Measured with `make bench-few-users`; the figures are those of [few-users.json](few-users.json). Each user has m samples
of a normal law around 30 in every coordinate, in a range of 0 to 65, with variances that add up to r² = 10² over all d
coordinates; `sigma` says so. delta is 1e-6, failure 1/100. Distances are Euclidean. With d = 1 it is the mechanism of
several coordinates all the same; a metric of one value has another sampler, and its users needed are half as many.
"""


@dataclass(frozen=True)
class Row:
    """One kind of cell."""

    coordinates: int
    users: int
    samples: int
    corrupt: int
    lies: str  # alike, apart, or none
    epsilon: float
    draws: int
    none: int  # without an answer
    most: float  # the bound on its probability
    middle: float  # distance of an answer from the true mean
    farthest: float
    radius: float  # R + r0
    outside: int  # answers beyond it
    rounds: float
    seconds: float  # of processor time, per release

    @property
    def ratio(self) -> float:
        """The middle distance over r sqrt(d / m)."""
        return self.middle / (RADIUS * math.sqrt(self.coordinates / self.samples))


@dataclass(frozen=True)
class Report:
    """All parts."""

    errors: Sequence[Row]
    corrupt: Sequence[Row]
    needed: dict[str, dict[str, int]]  # by epsilon and coordinates
    largest: float  # hockey-stick divergence over delta
    pairs: int
    seconds: float


def parameters(coordinates: int, epsilon: str) -> CellParameters:
    """Of a cell."""
    grid = Grid(Fraction(0), Fraction(HIGH), STEPS)
    sigma = Fraction(RADIUS / math.sqrt(coordinates))
    return CellParameters(
        grid=grid, epsilon=Fraction(epsilon), delta=DELTA, failure=FAILURE, axes=((grid, sigma),) * coordinates
    )


def measure(coordinates: int, samples: int, epsilon: str, draws: int, corrupt: int = 0, lies: str = "none") -> Row:
    """Releases of cells whose users have independent samples, but for the corrupt ones."""
    of = parameters(coordinates, epsilon)
    part = part_of([samples] * USERS, of)
    choice = choice_of(part, of)
    rng = np.random.default_rng([coordinates, samples, corrupt])
    cells = [_points(rng, coordinates, samples, corrupt, lies) for _ in range(CELLS)]
    truth, distances = [TRUTH] * coordinates, []
    begin = time.process_time()
    with patch.object(few_users_ball, "near_to", wraps=near_to) as proposed:
        for index in range(draws):
            drawn = Draws(bytes(32), f"{coordinates} {samples} {epsilon} {lies}".encode(), index)
            point = choice.choose(cells[index % CELLS], drawn.subkey("few-users-ball"), drawn.words("few-users"))
            if point is not None:
                distances.append(math.dist([at / STEPS * HIGH for at in point], truth))
    seconds, radius = time.process_time() - begin, (choice.radius + part.reach) / STEPS * HIGH
    return Row(
        coordinates, USERS, samples, corrupt, lies, float(of.epsilon), draws, draws - len(distances),
        choice.none_at_most(kappa(part.users, part.reach, choice.radius, coordinates)),
        float(np.median(distances)) if distances else math.nan, max(distances, default=math.nan), radius,
        sum(far > radius for far in distances), proposed.call_count / draws, seconds / draws,
    )  # fmt: skip


def _points(rng: np.random.Generator, coordinates: int, samples: int, corrupt: int, lies: str) -> list[tuple[int, ...]]:
    """The users' means on the grid; corrupt users report an end of all ranges, or any place."""
    good = rng.normal(TRUTH, RADIUS / math.sqrt(coordinates), (USERS - corrupt, samples, coordinates))
    means = np.clip(good, 0, HIGH).mean(axis=1)
    bad = np.full((corrupt, coordinates), HIGH) if lies == "alike" else rng.uniform(0, HIGH, (corrupt, coordinates))
    return [tuple(map(round, point)) for point in (np.concatenate([means, bad]) / HIGH * STEPS).tolist()]


def users_needed(coordinates: int, epsilon: str) -> int:
    """The number of users from which on a part is enough for an answer; their reach is many steps."""
    of, users = parameters(coordinates, epsilon), 1
    while not is_enough(Part(1, users, STEPS), of):
        users += 1
    return users


# -------------------------------------------------------------------- neighbours


def audit(pairs: int) -> float:
    """The largest hockey-stick divergence over delta; all outcomes of both laws are enumerated."""
    rng, largest = random.Random(13), 0.0
    for _ in range(pairs):
        coordinates = rng.choice((1, 2, 3))
        count, radius = rng.randint(1, 12), rng.randint(1, 5 if coordinates < 3 else 2)
        epsilon, delta = rng.choice(("0.1", "0.5", "1", "2", "5")), rng.choice(("0.000001", "0.001", "0.1"))
        points = [tuple(rng.randint(0, 2 * radius + 1) for _ in range(coordinates)) for _ in range(count)]
        moved = tuple(rng.choice((rng.randint(0, 2 * radius + 1), 10**6)) for _ in range(coordinates))
        choice = BallChoice(count, radius, Fraction(epsilon), Fraction(delta), coordinates)
        one, other = _law(choice, points), _law(choice, [moved, *points[1:]])
        lost = max(_hockey_stick(one, other, float(epsilon)), _hockey_stick(other, one, float(epsilon)))
        largest = max(largest, lost / float(delta))
    return largest


def _law(choice: BallChoice, points: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...] | None, float]:
    """By the definition: counted point by point."""
    each, limit = range(-choice.radius, choice.radius + 1), choice.radius**2
    ball = [point for point in product(each, repeat=choice.coordinates) if sum(x * x for x in point) <= limit]
    near = Counter(tuple(map(add, at, offset)) for at in points for offset in ball)
    weights: dict[tuple[int, ...] | None, float] = {
        point: math.exp(float(choice.rate) * min(count, choice.cap)) for point, count in near.items()
    }
    weights[None] = float(choice.garbage * len(ball))
    total = math.fsum(weights.values())
    return {point: weight / total for point, weight in weights.items()}


def _hockey_stick(
    one: dict[tuple[int, ...] | None, float], other: dict[tuple[int, ...] | None, float], epsilon: float
) -> float:
    return math.fsum(max(0.0, p - math.exp(epsilon) * other.get(point, 0.0)) for point, p in one.items())


# -------------------------------------------------------------------- what is told


def run(*, quick: bool) -> Report:
    """Measure everything."""
    begin, draws = time.process_time(), 20 if quick else 400
    errors = [measure(d, m, "1", draws) for d in DIMENSIONS for m in SAMPLES]
    corrupt = [measure(d, 200, "8", draws, 49, lies) for d in DIMENSIONS for lies in ("alike", "apart")]
    needed = {epsilon: {str(d): users_needed(d, epsilon) for d in DIMENSIONS} for epsilon in ("1", "0.25")}
    pairs = 50 if quick else PAIRS
    return Report(errors, corrupt, needed, audit(pairs), pairs, time.process_time() - begin)


def slopes(rows: Sequence[Row]) -> tuple[float, float]:
    """The exponents of d and of m in the middle distance, fitted."""
    design = [[1.0, math.log(row.coordinates), math.log(row.samples)] for row in rows]
    fitted = np.linalg.lstsq(np.array(design), np.log([row.middle for row in rows]), rcond=None)[0]
    return float(fitted[1]), float(fitted[2])


def _targets(report: Report) -> Iterator[tuple[str, str, str, str]]:
    by_d, by_m = slopes(report.errors)
    yield "error, as d grows", f"like d to 1/2, ± {SLOPE}", f"to {by_d:.2f}", verdict(abs(by_d - 0.5) <= SLOPE)
    yield "error, as m grows", f"like m to -1/2, ± {SLOPE}", f"to {by_m:.2f}", verdict(abs(by_m + 0.5) <= SLOPE)
    needed = report.needed["1"]
    yield (
        "users needed", "32 coordinates take no more than a fifth more than 2", f"{needed['2']} and {needed['32']}",
        verdict(needed["32"] <= 1.2 * needed["2"]),
    )  # fmt: skip
    lost = sum(row.outside + row.none for row in report.corrupt)
    tried = sum(row.draws for row in report.corrupt)
    share = report.corrupt[0].corrupt / USERS
    yield (
        f"{share:.0%} of the users corrupt", "an answer within R + r0 but for 1 in 100",
        f"{tried - lost:,} of {tried:,}", verdict(lost <= 0.01 * tried),
    )  # fmt: skip
    yield (
        "hockey-stick divergence", "at most delta", f"at most {report.largest:.6f} delta, {report.pairs:,} pairs",
        verdict(report.largest <= 1 + 1e-9),
    )  # fmt: skip


def _rows(rows: Sequence[Row]) -> str:
    cells = [
        (row.coordinates, row.samples, f"{row.corrupt} {row.lies}" if row.corrupt else "", f"{row.epsilon:g}",
         f"{row.none} of {row.draws}", number(row.most), number(row.middle), f"{row.ratio:.2f}", number(row.radius),
         row.outside, f"{row.rounds:.1f}", f"{row.seconds * 1000:.1f}")
        for row in rows
    ]  # fmt: skip
    header = ("d", "m", "corrupt", "epsilon", "no answer", "bound", "middle distance", "over r√(d/m)", "R + r0",
              "beyond", "proposals", "ms")  # fmt: skip
    return figures.table(header, cells)


def from_json(known: dict[str, Any]) -> Report:
    """What a run kept."""
    errors, corrupt = ([Row(**row) for row in known[part]] for part in ("errors", "corrupt"))
    return Report(errors, corrupt, known["needed"], known["largest"], known["pairs"], known["seconds"])


def tables(report: Report) -> str:
    """All of them."""
    needed = [(epsilon, *by_d.values()) for epsilon, by_d in report.needed.items()]
    parts = [
        figures.table(("what", "target", "found", ""), list(_targets(report))),
        f"## Error\n\n{USERS} users. *Bound* is that on no answer, for users as far apart as they may be.",
        _rows(report.errors),
        "## Users needed",
        figures.table(("epsilon", *(f"d = {d}" for d in DIMENSIONS)), needed),
        "## Corrupt users\n\nThey all report 65 in every coordinate (alike), or each some place of its own (apart).",
        _rows(report.corrupt),
    ]
    return "\n\n".join(parts)


def page(report: Report) -> Page:
    """The page; it has no picture."""
    effort = f"{report.seconds:.0f} s of processor time"
    return Page("few-users", TITLE, RULES, tables(report), effort, asdict(report), lambda folder: None)


def main(given: Sequence[str] | None = None) -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few draws; nothing is kept without --out")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON and Markdown into this folder")
    chosen = parser.parse_args(given)
    page(run(quick=chosen.quick)).publish(chosen.out, keep=not chosen.quick)


if __name__ == "__main__":
    main()
