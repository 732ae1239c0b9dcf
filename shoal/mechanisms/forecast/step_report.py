"""The plan of what is released at every step: algorithms, caps and lengths compared, and the cost of half the error.

Noise is that of the very mechanism, to the digits that a release states; what is left out follows from the workload.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

from shoal.mechanisms import life
from shoal.mechanisms.forecast.axis import Axis, Trial
from shoal.mechanisms.forecast.comparison import Comparison, Cost, Outlook, more_epsilon, with_time_as_life
from shoal.mechanisms.forecast.groups import which_users
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.forecast.plan import SECTION, Noise, cap_of, cap_words, workload_words
from shoal.mechanisms.forecast.point import OVER_TIME, Point, as_json
from shoal.mechanisms.forecast.step_prospect import breadth, least_weights, weights
from shoal.mechanisms.forecast.step_workload import StepForecast, StepSource, typical
from shoal.mechanisms.forecast.table import MARK, Column, Line, Row, Section, Table
from shoal.mechanisms.linear.decay_words import as_keys, length_of
from shoal.mechanisms.linear.rules import OF_VALUES, patent_has
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts import at
from shoal.mechanisms.parts.by import Algorithm, Patent, Sharp
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Mean, PublicCount, Sum, Variance
from shoal.mechanisms.parts.unit import PERSON
from shoal.mechanisms.parts.variants import with_algorithm, with_decay, with_life, with_samples
from shoal.mechanisms.privacy import lower_bounds
from shoal.mechanisms.words import duration, exact_duration, number, percent, samples
from shoal.mechanisms.workload import Stated

LENGTHS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))  # times the configured one
MOST_WINDOWS = 9  # lengths of any window that are shown
BY_HAND = "by hand*"
FADING = (
    at.HalfLife | at.Exponential | at.Polynomial | at.Forward | at.Table | at.Formula
)  # by which samples weigh less than one
MUCH = 0.05  # of the samples: leaving out more is worth a word
ASKED_OFTEN = "a window that is asked for often is better released by a metric of its own"
TIMELESS = OVER_TIME[2:]  # numbers of a release of no certain time


class StepReport(Comparison):
    """The plan of a sum, count, decayed mean or variance."""

    rules = OF_VALUES

    def __init__(self, metric: Metric, workload: Stated | Observed, coordinate: int = 0) -> None:
        self.metric, self.private = metric, not isinstance(workload, Observed)
        self.source: StepSource = StepSource.of(metric, workload)
        self.work = self.source.over.work
        self.users, self.of_a_unit = self.work.users, self.work.samples_per_unit
        self.counts = isinstance(metric.of, PublicCount)  # exactly, without an epsilon

    @classmethod
    def final_noise(cls, metric: Metric, users: int) -> Noise:
        """The noise of the last release as configured; a count has none.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        report = cls(metric, Stated(users, None, None))
        return report._beside(report.source.final(metric))

    def noise(self) -> Noise:
        return self._beside(self.configured.points[-1] if self.configured.points else None)

    def _beside(self, last: Point | None) -> Noise:
        """The noise beside what values lie in, or beside a sum's expected size, which is one value at least."""
        statistic = LinearStatistic.of(self.metric)
        if last is None or statistic.is_exact:
            return Noise(None, 0.0)
        wide = breadth(statistic)
        if wide is None:
            beside = max(float(statistic.grid.high - statistic.grid.low), last.samples * self.size)
            return Noise(last.noise_sd, beside, "sum itself")
        what = "largest possible variance" if isinstance(self.metric.of, Variance) else "range"
        return Noise(last.noise_sd, wide, what)

    @property
    def size(self) -> float:
        """The expected size of a value, whatever its sign."""
        return typical(self.metric, self.work.spread)

    # ---------------------------------------------------------------- what is compared

    def algorithms(self) -> Axis:
        """Every algorithm that has the decay; a count has none to choose from."""
        values = [Sharp, Patent] if patent_has(self._steps.decay) else [Sharp]
        return Axis("algorithm", [type(self.metric.by)] if self.counts else values, _with_algorithm, self.rules)

    @cached_property
    def best(self) -> Outlook:
        """The outlook of least noise, in the long run if there is one, else at the end.

        Raises:
            ValueError: sharp refuses the settings.
        """
        if self.outlooks[0].refused is not None:
            raise ValueError(self.outlooks[0].refused)
        return min((outlook for outlook in self.outlooks if outlook.refused is None), key=_noise_of)

    @cached_property
    def statistic(self) -> LinearStatistic:
        """The statistic with the best algorithm."""
        return LinearStatistic.of(self.best.metric)

    @cached_property
    def by_hand(self) -> Outlook | None:
        """The outlook with a draw of noise for each step; None: there is no noise."""
        return None if self.counts else self.source.by_hand(self.metric).outlook()

    @cached_property
    def advised(self) -> Metric:
        return with_time_as_life(self.tuned, self.metric.every.span(self.work.steps))

    @cached_property
    def others(self) -> Sequence[Trial]:
        """Shorter and longer windows or half-lives, with the release of the long run."""
        steps = self._steps
        decays = [] if self.counts else [_as_long(steps.decay, steps.length, factor) for factor in LENGTHS]
        axis = Axis("decay", [decay for decay in dict.fromkeys(decays) if decay is not None], with_decay, self.rules)
        return list(axis.tried(self.best.metric, self._in_the_long_run))

    def _in_the_long_run(self, metric: Metric) -> Point:
        return cast(Point, self.source.forecast(metric).long_run())  # what has a length forgets

    @cached_property
    def halving(self) -> Mapping[str, Cost | None]:
        """The least factor of epsilon that halves the error, with the advised cap or a larger one."""
        larger = [cap for cap, *_ in self.caps if cap >= self.advised.samples] or [self.advised.samples]

        def of_factor(factor: float) -> Iterator[tuple[Point, float | None, int]]:
            for cap in larger:
                metric = more_epsilon(with_samples(self.advised, cap), factor)
                yield self.source.final(metric), float(metric.budget.epsilon), metric.samples

        return {"epsilon": self.halved(self.outcome.error, of_factor) if self.outcome.noise_sd else None}

    @cached_property
    def limit(self) -> lower_bounds.Limit | None:
        """The error that no pure epsilon-DP method stays below if these units come evenly, in units of the values.

        None for what no theorem here is about, and where there are too few units.
        """
        metric, work = self.metric, self.work
        if not isinstance(metric.of, Sum | Mean) or metric.budget.delta:
            return None
        each = max(1, min(metric.samples, math.floor(work.samples_per_unit)))  # samples of a unit that count, at least
        units = max(1, math.floor(work.users * work.samples_per_user / max(each, work.samples_per_unit)))
        sums, decay = self.statistic.decayed[0], self.statistic.decay
        limit = lower_bounds.decayed(
            least_weights(sums, decay), epsilon=float(metric.budget.epsilon), units=units, steps=work.steps
        )
        if limit is None:
            return None
        moved = each * float(self.statistic.grid.high - self.statistic.grid.low)
        if isinstance(metric.of, Mean):
            rate = self.source.over.flow(metric).rates()[0]
            a_step = max(each * math.ceil(units / work.steps), math.ceil(rate))
            moved /= a_step * weights(sums, decay, work.steps, work.steps)
        return limit._replace(error=limit.error * moved)

    @property
    def _steps(self) -> at.Steps:
        """Length of a step, and decay, of the metric."""
        return expect(self.metric.at, at.Steps)

    # ---------------------------------------------------------------- words

    def workload(self) -> str:
        work, metric = self.work, self.metric
        over = self._steps.length.span(work.steps)
        text = workload_words(
            f"{work.users:,} users{which_users(metric, self.groups)}", work.samples_per_user, over, work.pattern
        )
        period = metric.unit.period
        return text if period is None else f"{text}; {number(work.samples_per_unit)} of a {metric.unit.words()}"

    def _settings(self) -> Iterator[str]:
        yield "" if self.counts else f"{self.advised.by.name} ({self.best.mechanism})"
        yield cap_words(self.advised).removeprefix(", ")

    def _remarks(self) -> Iterator[str]:
        last, metric = self.best.points[-1], self.metric
        if self.counts:
            yield "A count is exact and costs no epsilon: who contributes when is public under relation values."
        else:
            decayed = ", decayed" if isinstance(self._steps.decay, FADING) else ""
            q = metric.by.bars.simultaneous
            together = "" if q is None else f", in {q:,} releases together"
            yield (
                f"Noise is {self._units()}; the last release is a {metric.statistic} of "
                f"{samples(last.samples)}{decayed}. 95 %: what its noise stays within{together}. Error: its "
                "noise, and the bias expected of what is left out."
            )
            if self.best.long_run is not None:
                yield "Long run: all releases long after the beginning, if users always are as many."
            yield from life.remarks(metric)
            yield "* a Laplace draw for each step: a yardstick, no algorithm."
        if metric.place is not None and not metric.unit.is_event and self.private:
            here = "here all are in one." if self.groups is None else "here they come evenly."
            yield f"All groups share the samples that count of a {metric.unit.words()}; {here}"
        yield from self.refusals()

    def _units(self) -> str:
        """What planned noise is measured in."""
        name = self.metric.names[0]
        if isinstance(self.metric.of, Variance):
            return f"in units of {name} squared, for a mean half way from the middle of the range to one of its ends"
        return f"in units of {name}"

    def advice(self) -> Iterator[str]:
        yield from self.errors(self._of_the_sum())
        cost, limit, last = self.halving["epsilon"], self.limit, self.best.points[-1]
        if self.counts:
            yield "its cap costs nothing: choose one that nobody reaches"
        elif cost is None:
            yield "more epsilon cannot halve it: what is left out stays left out"
        else:
            yield f"half of it would take: {cost.words(f'epsilon {number(cost.amount)}', self.advised)}"
        if limit is not None:
            yield (
                f"no method that is pure epsilon-DP keeps {limit.releases:,} releases within ± {number(limit.error)} "
                "with probability 2/3, whatever order these units come in (Bolot et al., theorem 7)"
            )
        if last.left_out <= MUCH:
            return
        of_a_sum = f", {number(abs(last.bias))} of the sum" if isinstance(self.metric.of, Sum) else ""
        yield f"as configured, {percent(last.left_out)} of the samples in the last release are left out{of_a_sum}"
        if self.metric.unit == PERSON:
            yield "who gave max_contributions samples never counts again; unit user-week renews it, but guarantees less"

    def _of_the_sum(self) -> str:
        """The error as a part of the expected sum, for sums alone."""
        last = self.outcome
        there = last.samples / (1 - last.left_out) * self.size if last.left_out < 1 else 0.0
        if not isinstance(self.metric.of, Sum) or not there or math.isinf(last.error):
            return ""
        return f", {percent(last.error / there)} of a sum of {number(there)}"

    # ---------------------------------------------------------------- tables

    def sections(self) -> Iterator[Section]:
        yield self._algorithms()
        whose = "" if self.metric.unit.period is None else f" of a {self.metric.unit.words()}"
        yield self.by_cap(f"max_contributions{whose}, at the end")
        yield self._lengths()
        yield self._windows()

    def _algorithms(self) -> Section:
        def amount(point: Point) -> str:
            return number(point.samples if self.counts else point.noise_sd)

        shown, first = self.times(self.best.points), self.best.points[0]
        shown = shown if shown[0][1] is first else [(1, first), *shown]
        named = [(str(outlook.metric.by.name), outlook) for outlook in self.outlooks]
        hand = [] if self.by_hand is None else [(BY_HAND, self.by_hand)]
        title = "samples that count" if self.counts else "noise (standard deviation)"
        by = Column("made by", 6, is_text=True), lambda outlook: "" if outlook is self.by_hand else outlook.mechanism
        later = Column("long run"), lambda outlook: amount(outlook.long_run) if outlook.long_run else "grows"
        half = Column("95 %", 5), lambda outlook: _interval(outlook.points[-1])
        after = [later, half, *self.at_the_end]
        return self.over_time(title, [*named, *hand], amount, [by], shown, after, self._remarks())

    def _lengths(self) -> Section:
        has_window = isinstance(self._steps.decay, at.Window | at.Updates)
        what, many = ("window", "windows") if has_window else ("half-life", "half-lives")
        of_sum = [Column("of sum")] if isinstance(self.metric.of, Sum) else []
        columns = [
            Column(what, is_text=True), Column("mechanism", 1, is_text=True), Column("samples"), Column("noise"),
            *of_sum, MARK,
        ]  # fmt: skip
        rows = []
        for decay, metric, point in self.others:
            made, there = LinearStatistic.of(metric).mechanism, point.samples * self.size
            cells = {
                "mechanism": made,
                "of sum": percent((point.noise_sd or 0) / there) if there else "-",
                MARK.head: "configured" if decay == self._steps.decay else "",
            }
            fields = {"length": length_of(metric), "mechanism": made}
            rows.append(Row(length_of(metric), fields, point, cells=cells))
        title = f"other {many}, with {self.best.metric.by.name} in the long run"
        return Section.of("by_length", title, columns, rows, TIMELESS)

    def _windows(self) -> Section:
        """The noise of windows told afterwards, with each algorithm: of all-windows alone."""
        metric, steps, length = self.metric, self.work.steps, self._steps.length
        ahead: dict[str, StepForecast] = {}
        if isinstance(self._steps.decay, at.AllWindows) and not self.counts:
            ahead = {
                outlook.metric.by.name: self.source.forecast(outlook.metric)
                for outlook in self.outlooks
                if not outlook.refused
            } | {"per-step": self.source.by_hand(metric)}
        powers = [1 << k for k in range(steps.bit_length()) if 1 << k < steps]
        counts = [*powers[:: max(1, math.ceil(len(powers) / (MOST_WINDOWS - 1)))], steps] if ahead else []
        lines, fields = [], []
        for count in counts:
            noise = {name: forecast.ahead.window(count) for name, forecast in ahead.items()}
            lines.append(Line([duration(length.span(count)), *map(number, noise.values())]))
            fields.append({"steps": count, "seconds": length.span(count) / 1e6, "noise_sd": noise})
        columns = [Column("window", is_text=True), *map(Column, ahead)]
        return Section("by_window", Table("noise of windows told afterwards", columns, lines, [ASKED_OFTEN]), fields)

    # ---------------------------------------------------------------- for programs

    def fields(self) -> dict[str, Any]:
        metric, work, length = self.metric, self.work, self._steps.length
        return {
            "delta": float(metric.budget.delta),
            "unit": metric.unit.name,
            "max_contributions": cap_of(metric),
            "step": exact_duration(length.microseconds),
            "decay": as_keys(self._steps.decay),
            "workload": {
                **as_json(work, ("users", "samples_per_user", "samples_per_unit")),
                "over": length.span(work.steps) / 1e6,
                "steps": work.steps,
                "pattern": work.pattern,
                "spread": float(work.spread),
            },
            "algorithms": SECTION,
            "by_hand": self.by_hand and {**self._outlook(self.by_hand), "algorithm": None},
            "recommended": {
                "algorithm": self.advised.by.name,
                "mechanism": self.best.mechanism,
                "max_contributions": cap_of(self.advised),
                **dict(self.missing()),
                "outcome": self.outcome.fields(),
            },
            "by_max_contributions": SECTION,
            "by_length": SECTION,
            "by_window": SECTION,
            **self.costs(),
            "lower_bound": self.limit and self.limit._asdict(),
        }

    def fields_of(self, outlook: Outlook) -> dict[str, Any]:
        return {"configured": outlook is self.configured, **self._outlook(outlook)}

    @staticmethod
    def _outlook(outlook: Outlook) -> dict[str, Any]:
        return {
            "algorithm": outlook.metric.by.name,
            "mechanism": outlook.mechanism,
            "refused": outlook.refused,
            "over_time": [point.fields() for point in outlook.points],
            "long_run": outlook.long_run and outlook.long_run.fields(TIMELESS),
        }


def _with_algorithm(metric: Metric, algorithm: type[Algorithm]) -> Metric:
    """The metric under an algorithm: the patent has neither delta nor life, others no bound on what sums may miss."""
    if algorithm is not Patent:
        decay = expect(metric.at, at.Steps).decay
        if isinstance(decay, at.Polynomial | at.Table | at.Formula):
            decay = replace(decay, error=None)
        elif isinstance(decay, at.AllWindows):
            decay = replace(decay, zeta=None)
        return with_decay(with_algorithm(metric, algorithm), decay)
    pure = replace(metric, budget=replace(metric.budget, delta=Fraction(0)))
    return with_life(with_algorithm(pure, Patent), None)


def _as_long(decay: at.Decay, step: Even, factor: Fraction) -> at.Decay | None:
    """The decay `factor` times as long, a window in whole steps; None of a decay without a length."""
    match decay:
        case at.Window():
            return at.Window(step.span(max(1, round(step.fits(decay.length) * factor))))
        case at.HalfLife():
            return at.HalfLife(max(1, round(decay.length * factor)))
        case at.Exponential():
            return decay if factor == 1 else at.Exponential(_root(decay.alpha, factor))
        case _:
            return None


def _root(alpha: Fraction, factor: Fraction) -> Fraction:
    """The alpha of a half-life that is `factor` times as long."""
    exact = Fraction(float(alpha) ** float(1 / factor)).limit_denominator(10**9)
    return exact if 0 < exact < 1 else alpha


def _noise_of(outlook: Outlook) -> float:
    """The noise that algorithms are compared by: in the long run if there is one, else at the end."""
    noise = (outlook.long_run or outlook.points[-1]).noise_sd
    return math.inf if noise is None else noise


def _interval(last: Point) -> str:
    return f"± {number(last.half)}" if last.half else "-"
