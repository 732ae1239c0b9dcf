"""The plan under relation add-remove: the noise of counts and values over time, for stated workloads alone.

Noise is that of the very mechanism; how many samples there will be follows from the workload. Nothing is planned from
real records: what a plan shows of them would tell who is there.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.mechanisms import life
from shoal.mechanisms.bins.tree import even_tree
from shoal.mechanisms.linear import bounding
from shoal.mechanisms.linear.distribution import mean_sd
from shoal.mechanisms.linear.estimates import LEAST_COUNT
from shoal.mechanisms.linear.plan.comparison import typical
from shoal.mechanisms.linear.plan.workload import Steady
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.linear.words import count_sd, people, releases, side_sd
from shoal.mechanisms.observed import Observed
from shoal.mechanisms.outlook import cap_of
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Count, Distribution, Mean, MeanVariance, Sum, Users
from shoal.mechanisms.parts.variants import with_samples
from shoal.mechanisms.plan import Column, Line, Noise, Plan, Table, budget_words, head, quotient_noise
from shoal.mechanisms.words import duration, exact_duration, number, percent, samples
from shoal.mechanisms.workload import Stated, bias

PARTS = (1 / 16, 1 / 4, 1)  # of the time
FACTORS = (1 / 4, 1 / 2, 1, 2, 4)  # of max_contributions
NO_EVENTS = (
    "a plan from events would tell who is there, which relation add-remove hides; state the workload instead: --users, "
    "--samples, --over"
)
MEANS = Mean | MeanVariance
QUOTIENTS = MEANS | Distribution
MIDDLE = math.sqrt(0.5)  # of a mean in the middle of its range, beside one at an end


@dataclass(frozen=True, slots=True)
class Look:
    """A release to come, of a key with all the users of the workload that are in one."""

    at: int  # microseconds since start
    samples: float  # that count
    there: float  # of all users
    count_sd: float | None
    noise_sd: float | None  # None: too few samples to release a mean
    bias: float  # that what is left out may be expected to cause

    def fields(self) -> dict[str, Any]:
        return {
            "seconds": self.at / 1e6,
            "samples": self.samples,
            "left_out": self.left_out,
            "count_sd": self.count_sd,
            "noise_sd": self.noise_sd,
            "error": None if self.noise_sd is None else self.error,
        }

    @property
    def error(self) -> float:
        """Noise and bias together; infinite where nothing is released."""
        return math.inf if self.noise_sd is None else math.hypot(self.noise_sd, self.bias)

    @property
    def left_out(self) -> float:
        return max(0.0, 1 - self.samples / self.there) if self.there else 0.0


def look(metric: Metric, steady: Steady, t: int) -> Look:
    """Release t under these settings."""
    statistic = LinearStatistic.of(metric)
    counted, there = steady.flow(metric).samples(statistic.decayed[0], statistic.decay, t)
    noise_sd = _noise_sd(metric, side_sd(metric, statistic.decayed, t), len(statistic.decayed), counted)
    left_out = max(0.0, there - counted)
    if isinstance(metric.of, QUOTIENTS):
        missing = bias(left_out / there if there else 0.0, _extent(metric))
    else:
        missing = left_out * _size(metric)
    return Look(metric.every.span(t), counted, there, count_sd(metric, statistic.decayed, t), noise_sd, missing)


def _noise_sd(metric: Metric, side: float, sides: int, counted: float) -> float | None:
    if isinstance(metric.of, Count | Users):
        return side
    if isinstance(metric.of, Sum):
        return side * max(map(abs, map(float, metric.ranges[0])))
    if isinstance(metric.of, Distribution):
        tree = even_tree(metric.of.bins)
        node = side * len(tree.shape)  # of whose levels each has a part of every sample
        is_enough = counted >= LEAST_COUNT * node * tree.total_variance**0.5
        return node * mean_sd(tree) / counted if is_enough else None
    is_enough = counted >= LEAST_COUNT * side * sides**0.5
    return _extent(metric) * MIDDLE * side / counted if is_enough else None


def _extent(metric: Metric) -> float:
    """Between the ends of what a quotient may be: of a distribution that of shares."""
    if isinstance(metric.of, Distribution):
        return 1.0
    low, high = map(float, metric.ranges[0])
    return high - low


def final_noise(metric: Metric, users: int) -> Noise:
    """The noise of the last release, if this many users contribute.

    Raises:
        ValueError: the mechanism refuses the settings.
    """
    steady = Steady.of(metric, Stated(users, None, None))
    last = look(metric, steady, releases(metric))
    if isinstance(metric.of, QUOTIENTS):
        return quotient_noise(metric, math.inf if last.noise_sd is None else last.noise_sd, _extent(metric))
    return Noise(last.noise_sd, max(1.0, last.samples * _size(metric)), f"{metric.statistic} itself")


def _size(metric: Metric) -> float:
    """The expected size of what a sample adds to a count or a sum."""
    return 1.0 if isinstance(metric.of, Count | Users) else typical(metric, Fraction(1))


def plans(
    metric: Metric, workload: Stated | Observed, advance: Callable[[float], None] = lambda part: None
) -> list[Plan]:
    """The plan of a metric.

    Raises:
        ValueError: the mechanism refuses the settings, or the workload is a file.
    """
    if isinstance(workload, Observed):
        raise ValueError(NO_EVENTS)
    steady = Steady.of(metric, workload)
    users = steady.work.users
    looks = [look(metric, steady, max(1, round(part * steady.work.steps))) for part in PARTS]
    by_cap = list(_by_cap(metric, steady))
    return [
        Plan(
            metric, _title(metric), _workload(metric, steady), users, [*_tables(metric, looks, by_cap)],
            f"max_contributions {_best(by_cap)}", list(_advice(metric, looks[-1], users)),
            _fields(metric, steady, looks, by_cap),
            final_noise(metric, users),
        )
    ]  # fmt: skip


def _by_cap(metric: Metric, steady: Steady) -> Iterator[tuple[int, Look]]:
    if metric.unit.is_event:  # which is one sample
        yield 1, look(metric, steady, steady.work.steps)
        return
    caps = sorted({max(1, round(metric.samples * factor)) for factor in FACTORS})
    for cap in caps:
        yield cap, look(with_samples(metric, cap), steady, steady.work.steps)


def _best(by_cap: list[tuple[int, Look]]) -> int:
    """The cap of the least error; of equal ones the largest, which leaves out least."""
    return min(reversed(by_cap), key=lambda pair: pair[1].error)[0]


def _title(metric: Metric) -> str:
    what = f" of {metric.names[0]}" if metric.names else ""
    return (
        f"{metric.name}: {metric.statistic}{what}, every {duration(metric.every.microseconds)}, relation "
        f"add-remove, {budget_words(metric)}, max_contributions {metric.samples}"
    )


def _workload(metric: Metric, steady: Steady) -> str:
    work = steady.work
    key = " in one key" if metric.place is not None else ""
    over = duration(metric.every.span(work.steps))
    pattern = "on average, a few users with most" if work.pattern == "skewed" else "at constant rates"
    return f"{work.users:,} users{key} with {samples(work.samples)} each over {over}, {pattern}"


def _tables(metric: Metric, looks: list[Look], by_cap: list[tuple[int, Look]]) -> Iterator[Table]:
    is_count = isinstance(metric.of, Count | Users)  # whose value is the count: one column says its noise
    what = [Column("samples"), *([] if is_count else [Column("noise of count")]), Column("noise of value")]
    lines = [Line([duration(each.at), *_cells(each, is_count)]) for each in looks]
    remarks = [
        "Noise is its standard deviation. The number of samples is not public: the count is released with noise."
    ]
    remarks += life.remarks(metric)
    if isinstance(metric.of, MEANS):
        remarks.append(
            "A mean in the middle of its range has this noise, one at an end of it 1.41 times as much. It is released "
            f"from where the count is {LEAST_COUNT} times its noise; - stands for none."
        )
    if isinstance(metric.of, Distribution):
        remarks.append(
            "The noise of the value is that of the distribution function, in parts of one, of values spread evenly. It "
            f"is released from where the count is {LEAST_COUNT} times its noise; - stands for none."
        )
    yield Table("releases", [Column("after", is_text=True), *what], lines, remarks)
    if (clip := bounding.clip_of(metric)) is not None:
        remarks.append(
            f"Noise of the value is that of all of range. From about {clip.needed:,} users on a key has a clip range, "
            "and so much less noise as that is narrower; before, nothing is released of it."
        )
    columns = [Column("cap"), *what, Column("left out"), Column("error")]
    rows = [
        Line([str(cap), *_cells(at, is_count), percent(at.left_out), number(at.error)], cap == metric.samples)
        for cap, at in by_cap
    ]
    remarks = ["Error: noise of the value, and what may be expected of the samples that are left out."]
    yield Table("max_contributions, at the end; bold: as configured", columns, rows, remarks)


def _cells(look: Look, is_count: bool) -> list[str]:
    return [number(look.samples), *([] if is_count else [number(look.count_sd)]), number(look.noise_sd)]


def _advice(metric: Metric, last: Look, users: int) -> Iterator[str]:
    selection = bounding.selection_of(metric)
    if selection is not None:
        yield (
            f"a key is shown once about {people(selection, 1)} units have come to it: keys that are known should be "
            "declared, groups = [...], which needs neither delta nor any share of epsilon"
        )
    if (clip := bounding.clip_of(metric)) is not None and clip.needed > users:
        yield (
            f"a clip range is chosen once about {clip.needed:,} users have come to a key, more than there are; declare "
            "users, raise clip.share or clip.epsilon, or give the range that values have"
        )
    if last.noise_sd is None:
        what = f"a {'mean' if isinstance(metric.of, MEANS) else metric.statistic}"
        yield f"at the end there are too few samples to release {what}: it needs more users, or more epsilon"
    if isinstance(metric.of, Sum) and len(LinearStatistic.of(metric).decayed) == 1 and float(metric.ranges[0][0]) > 0:
        yield "let the range of a sum begin at 0: that somebody comes moves it by all of the range's larger end anyway"


def _fields(metric: Metric, steady: Steady, looks: list[Look], by_cap: list[tuple[int, Look]]) -> dict[str, Any]:
    selection, clip, work = bounding.selection_of(metric), bounding.clip_of(metric), steady.work
    return {
        **head(metric, 0, private=True),
        "delta": float(metric.budget.delta),
        "unit": metric.unit.name,
        "relation": metric.hides.relation,
        "max_contributions": cap_of(metric),
        "step": exact_duration(metric.every.microseconds),
        "workload": {
            "users": work.users, "samples_per_user": work.samples, "over": metric.every.span(work.steps) / 1e6,
            "steps": work.steps,
        },
        "over_time": [each.fields() for each in looks],
        "recommended": {"max_contributions": _best(by_cap)},
        "by_max_contributions": [{"max_contributions": cap, **each.fields()} for cap, each in by_cap],
        "units_to_show_a_key": None if selection is None else people(selection, 1),
        **({} if clip is None else {"units_to_clip": clip.needed}),
    }  # fmt: skip
