"""The inputs: events of people as arrays, in the order of time. Numpy's generator makes inputs and nothing else."""

import csv
import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.agents.demo.shop.purchases import FILE as PURCHASES
from shoal.mechanisms.grid import Grid
from shoal.models.times import time_of_text

STEPS = 1 << 20
DAY = 86_400_000_000  # microseconds
SIZES = ((65536, 8), (8192, 64), (1024, 1024), (4096, 4096))
QUICK_SIZES = ((8192, 8), (1024, 64))

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Draw = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class Cadence:
    """How often there is a release."""

    name: str
    every: int | None  # microseconds; None: at each contribution


@dataclass(frozen=True)
class Input:
    """Events, first to last. The same for every algorithm, clipping to the range and cap included."""

    name: str
    about: str
    grid: Grid
    users: int  # n, as configured
    cap: int  # m
    user: NDArray[np.int32]  # 0, 1, ...
    value: NDArray[np.int32]  # grid steps: clipped to the range
    sums: Floats  # of the values as they are, after each event
    time: Ints  # microseconds since the first event's day, ascending
    daily: int  # microseconds between two releases of the third cadence
    mean: float | None = None  # of the law that the samples are drawn from

    @property
    def count(self) -> int:
        """How many events."""
        return len(self.user)

    @property
    def width(self) -> float:
        """Of the range."""
        return float(self.grid.high - self.grid.low)

    @property
    def middle(self) -> float:
        """Of the range: what stands for a release before there is one."""
        return float(self.grid.high + self.grid.low) / 2

    def truth(self, events: Ints) -> Floats:
        """The mean of all events so far, none clipped or left out, after so many."""
        found: Floats = self.sums[events - 1] / events
        return found

    @cached_property
    def cadences(self) -> tuple[Cadence, ...]:
        """Each contribution, 32 releases, and 365 or one a day."""
        span = int(self.time[-1]) + 1
        releases = -(-span // self.daily)
        return (
            Cadence("every contribution", None),
            Cadence("32 releases", -(-span // 32)),
            Cadence(f"{releases} releases", self.daily),
        )

    def ends(self, every: int) -> Ints:
        """How many events there are up to the end of each tick."""
        last = int(self.time[-1]) // every
        return np.searchsorted(self.time, np.arange(1, last + 2) * every)


def on_grid(grid: Grid, values: Floats) -> NDArray[np.int32]:
    """What `grid.clip` makes of each value.

    >>> on_grid(Grid(Fraction(0), Fraction(200), 2**20), np.array([-3.0, 100.0, 1e400])).tolist()
    [0, 524288, 1048576]
    """
    steps = (values - float(grid.low)) * float(grid.steps / (grid.high - grid.low))
    return (np.clip(steps, 0, grid.steps) + 0.5).astype(np.int32)


def lomax(draw: np.random.Generator, count: int) -> Floats:
    """15 times a Lomax variable with exponent 2.5, at most 1000: the mean is 9.98, the median 4.8."""
    return np.minimum(15 * draw.pareto(2.5, count), 1000)


LAWS: dict[str, tuple[str, int, float, Draw]] = {  # title, end of the range from 0, mean, draws
    "bernoulli": ("Bernoulli(0.3)", 1, 0.3, lambda draw, count: (draw.random(count) < 0.3).astype(np.float64)),
    "rare": ("Bernoulli(0.03)", 1, 0.03, lambda draw, count: (draw.random(count) < 0.03).astype(np.float64)),
    "beta": ("Beta(2, 5)", 1, 2 / 7, lambda draw, count: draw.beta(2, 5, count)),
    "heavy": ("Lomax in [0, 1000]", 1000, 10 * (1 - (1 + 1000 / 15) ** -1.5), lomax),
}


def iid(law: str, users: int, samples: int, seed: int = 1) -> Input:
    """All samples from one law, in random order: one event a second, 365 days of equal length."""
    title, high, mean, sample = LAWS[law]
    draw = np.random.default_rng([seed, users, samples])
    user = np.repeat(np.arange(users, dtype=np.int32), samples)
    draw.shuffle(user)
    values = sample(draw, len(user))
    grid = Grid(Fraction(0), Fraction(high), STEPS)
    about = f"{title}, {users:,} users with {samples:,} samples each"
    return every_second(f"{law}-{users}-{samples}", about, grid, user, values, users=users, cap=samples, mean=mean)


def every_second(name: str, about: str, grid: Grid, user: NDArray[np.int32], values: Floats, **known: Any) -> Input:
    """Events one second apart, with 365 releases, by users and their values."""
    time = np.arange(len(user)) * 1_000_000
    return Input(
        name=name,
        about=about,
        grid=grid,
        user=user,
        value=on_grid(grid, values),
        sums=np.cumsum(values),
        time=time,
        daily=-(-(int(time[-1]) + 1) // 365),
        **known,
    )


def unalike(users: int = 4037, events: int = 327_346, cap: int = 64, seed: int = 1) -> Input:
    """Users who differ: means of sd 38, samples of sd 43 around them, numbers of samples with a long tail."""
    draw = np.random.default_rng([seed, users, events])
    activity = draw.lognormal(0, 0.6, users)
    user = draw.choice(users, events, p=activity / activity.sum()).astype(np.int32)
    centre = draw.normal(440, 38, users)
    values = np.clip(draw.normal(centre[user], 43), 0, 700)
    grid = Grid(Fraction(0), Fraction(700), STEPS)
    about = f"{events:,} events of {users:,} users who differ (sd 38 between, 43 within), range [0, 700], m = {cap}"
    return every_second("unalike", about, grid, user, values, users=users, cap=cap)


def purchases(high: int, cap: int = 64) -> Input:
    """The purchases that the demo streams; a release a day."""
    rows = list(read(PURCHASES, "customer", "amount", "at"))
    return of_rows(
        f"purchases-{high}",
        f"the purchase history of the demo, range [0, {high:,}] dollars, m = {cap}",
        rows,
        (Fraction(0), Fraction(high)),
        users=25_000,
        cap=cap,
        daily=DAY,
    )


def of_rows(
    name: str,
    about: str,
    rows: list[tuple[str, float, int]],
    bounds: tuple[Fraction, Fraction],
    *,
    users: int | None = None,
    cap: int = 64,
    daily: int | None = None,
) -> Input:
    """Any (user, value, time) rows; they are put in the order of time."""
    rows = sorted(rows, key=lambda row: row[2])
    names, user = np.unique([row[0] for row in rows], return_inverse=True)
    values = np.array([row[1] for row in rows])
    time = np.array([row[2] for row in rows], dtype=np.int64)
    time -= time[0] // DAY * DAY if daily else time[0]
    grid = Grid(*bounds, STEPS)
    return Input(
        name=name,
        about=about,
        grid=grid,
        users=len(names) if users is None else users,
        cap=cap,
        user=user.astype(np.int32),
        value=on_grid(grid, values),
        sums=np.cumsum(values),
        time=time,
        daily=daily or -(-(int(time[-1]) + 1) // 365),
    )


def read(path: Path, user: str, value: str, time: str) -> Iterator[tuple[str, float, int]]:
    """Rows of a CSV file with a header, plain or gzipped. Rows without a number or a time are left out."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            at = moment(row[time])
            try:
                number = float(row[value])
            except ValueError:
                continue
            if at is not None and np.isfinite(number):
                yield row[user], number, at


def moment(text: str) -> int | None:
    """Microseconds since the epoch, of ISO 8601, or of a number of seconds or (from 1e11) milliseconds.

    >>> moment("1970-01-02"), moment("1.5"), moment("1e11"), moment("soon")
    (86400000000, 1500000, 100000000000000, None)
    """
    try:
        number = float(text)
    except ValueError:
        return time_of_text(text)
    return round(number * (1_000 if number >= 1e11 else 1_000_000))


def of_csv(path: Path, user: str, value: str, time: str, bounds: tuple[str, str] | None, cap: int) -> Input:
    """A file that somebody brings; without a range, the one its values have, which is no public range."""
    rows = list(read(path, user, value, time))
    if not rows:
        raise SystemExit(f"{path}: no row has a number in {value!r} and a time in {time!r}")
    values = [row[1] for row in rows]
    low, high = map(Fraction, bounds or (str(min(values)), str(max(values))))
    known = "" if bounds else " (taken from the values: give --range)"
    about = f"{path.name}: {len(rows):,} events, range [{float(low):g}, {float(high):g}]{known}, m = {cap}"
    return of_rows("csv", about, rows, (low, high), cap=cap)


def standard(*, quick: bool) -> Iterator[Input]:
    """All inputs, one at a time: the largest take a gigabyte."""
    sizes = QUICK_SIZES if quick else SIZES
    for law in LAWS:
        for users, samples in sizes[::2] if law == "rare" else sizes:
            yield iid(law, users, samples)
    yield purchases(200)
    yield purchases(1500)
    yield unalike(events=60_000) if quick else unalike()
