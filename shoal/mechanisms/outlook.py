"""How settings of a metric are compared: what its releases would be like under each of them, over time.

A `Look` is a release to come. An `Outlook` is a metric under some settings, as a few looks over time. What the plans of
several statistics have in common is here: which caps and factors are tried, and how looks are tabled.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from shoal.mechanisms.parts.hides import Events
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.variants import with_epsilon
from shoal.mechanisms.plan import Column, Line, Table, marks
from shoal.mechanisms.words import duration, number, percent

LOOKS = 40  # at most
CLOSE = 1.02  # errors that differ by less are the same
HALVING = tuple(tuple(2 ** (i + k / 4) for k in range(1, 5)) for i in range(8))  # factors to try, by doubling
MOST_CAP = 1 << 20
TIMES = (1.0, 1 / 12, 1 / 3, 1 / 50, 2 / 3)  # parts of the time that get a column, the most welcome first


@dataclass(frozen=True, slots=True)
class Look:
    """A release to come; numbers in units of the range, None where nothing is released."""

    part: float  # of the time, or of the events of a file
    at: int | None  # microseconds since the start, where that is known
    samples: float  # that count; decayed ones are parts of one
    noise_sd: float | None
    half_interval: float | None
    left_out: float  # part of the samples
    bias: float  # expected from what is left out; of values, measured

    @property
    def error(self) -> float:
        """Noise and bias together; infinite where nothing is released."""
        return math.inf if self.noise_sd is None else math.hypot(self.noise_sd, self.bias)

    def fields(self) -> dict[str, Any]:
        return {
            "part": self.part,
            "seconds": self.at if self.at is None else self.at / 1e6,
            "samples": self.samples,
            "noise_sd": self.noise_sd,
            "half_interval": self.half_interval,
            "left_out": self.left_out,
            "bias": self.bias,
            "error": finite(self.error),
        }

    def when(self) -> str:
        """The time since the start, or the part of the whole, in words."""
        return f"{100 * self.part:.3g} %" if self.at is None else duration(self.at)


@dataclass(frozen=True, slots=True)
class Outlook:
    """A metric under some settings, over time."""

    metric: Metric
    looks: tuple[Look, ...]
    mechanism: str = ""
    useful: Look | None = None  # the first useful release
    long_run: Look | None = None  # None: there is none, as noise grows
    refused: str | None = None  # why these settings cannot be
    likely: tuple[float, float] | None = None  # what the last noise_sd lies between in four of five cases, if drawn

    @property
    def error(self) -> float:
        """The error of the last look; infinite if there is none."""
        return self.looks[-1].error if self.looks else math.inf


class Cost(NamedTuple):
    """The least change that halves the error."""

    factor: float
    amount: float | None  # epsilon, users, or seconds if they are known
    max_contributions: int

    def fields(self, what: str) -> dict[str, Any]:
        return {"factor": self.factor, what: self.amount, "max_contributions": self.max_contributions}

    def words(self, amount: str, cap: int) -> str:
        """The cost in words; `cap` is the one that goes without saying."""
        more = "" if self.max_contributions == cap else f" and max_contributions {self.max_contributions}"
        return f"{amount}{more} (x {self.factor:.3g})"


def finite(value: float) -> float | None:
    """The number as JSON has it; None for infinity."""
    return None if math.isinf(value) else value


def spaced(ticks: int) -> list[int]:
    """At most 40 of 1 .. ticks: half of them equally far apart, half of them in equal ratios."""
    if ticks <= LOOKS:
        return list(range(1, ticks + 1))
    half = LOOKS // 2
    equal = {ticks * i // half for i in range(1, half + 1)}
    return sorted(equal | {max(1, round(ticks ** (i / half))) for i in range(half)})


def caps(metric: Metric, samples: float) -> list[int]:
    """The caps to try: powers of two up to four times a user's samples, and the configured cap."""
    most = max(metric.samples, min(MOST_CAP, math.ceil(4 * samples)))
    return sorted({*(1 << level for level in range(most.bit_length())), metric.samples})


def cap_of(metric: Metric) -> int | None:
    """The samples of a unit that count; None for unit event, whose units are single samples."""
    return None if isinstance(metric.hides.limits, Events) else metric.samples


def smallest(tried: Sequence[tuple[int, Look]]) -> int:
    """The smallest cap whose error is next to the least."""
    least = min(look.error for _, look in tried)
    return next(cap for cap, look in tried if look.error <= CLOSE * least)


def halved(error: float, of_factor: Callable[[float], Iterator[tuple[Look, float | None, int]]]) -> Cost | None:
    """The least factor tried at which the error is half of what it is; None if none will do.

    Of a doubling the last factor is tried first: if it will not do, neither will those before it.
    `of_factor` gives the looks at the end, with the amount and the cap that each would take.

    >>> halved(math.inf, lambda factor: iter(())) is None
    True
    """
    if math.isinf(error):
        return None

    def cost(factor: float) -> Cost | None:
        costs = (
            Cost(factor, amount, cap) for look, amount, cap in of_factor(factor) if look.error <= error / 2 * CLOSE
        )
        return next(costs, None)

    for factors in HALVING:
        last = cost(factors[-1])
        if last is not None:
            return next(filter(None, map(cost, factors[:-1])), last)
    return None


def more_epsilon(metric: Metric, factor: float) -> Metric:
    """The metric with `factor` times its epsilon."""
    return with_epsilon(metric, metric.budget.epsilon * Fraction(factor).limit_denominator(1 << 20))


def refusals(outlooks: Sequence[Outlook]) -> Iterator[str]:
    """A sentence for each algorithm that refuses the settings."""
    for outlook in outlooks:
        if outlook.refused is not None:
            yield f"{outlook.metric.by.name} is refused: {outlook.refused}"


def of_algorithm(outlooks: Sequence[Outlook], name: str) -> Outlook:
    """The outlook under the algorithm of this name."""
    return next(outlook for outlook in outlooks if outlook.metric.by.name == name)


# -------------------------------------------------------------------- tables


def times(looks: Sequence[Look]) -> list[tuple[int, Look]]:
    """The looks that get a column, ascending, each with its rank: the last one stays, however little room there is."""
    ranks: dict[float, int] = {}
    for rank, part in enumerate(TIMES):
        nearest = min(looks, key=lambda look: abs(math.log(look.part / part)))
        ranks.setdefault(nearest.part, rank)
    return [(ranks[look.part], look) for look in looks if look.part in ranks]


def by_cap(
    title: str, tried: Sequence[tuple[int, Look]], metric: Metric, advised: int, remarks: Sequence[str] = ()
) -> Table:
    """The table of caps: what each leaves out, and its noise, bias and error."""
    columns = [
        Column("m"),
        Column("left out"),
        Column("noise", 1),
        Column("bias", 1),
        Column("error"),
        Column("", 0, True),
    ]
    lines = [
        Line(
            [
                str(cap),
                *_amounts(look),
                marks((cap == metric.samples, "configured"), (cap == advised, "recommended")),
            ],
            is_bold=cap == advised,
        )
        for cap, look in tried
    ]
    return Table(title, columns, lines, remarks)


def _amounts(look: Look) -> list[str]:
    return [percent(look.left_out), number(look.noise_sd), number(abs(look.bias)), number(look.error)]
