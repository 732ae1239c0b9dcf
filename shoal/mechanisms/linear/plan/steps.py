"""The plan of what is released at every step: algorithms, caps and lengths compared, and the cost of half the error.

Noise is that of the very mechanism, to the digits that a release states; what is left out follows from the workload.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from shoal.mechanisms import life
from shoal.mechanisms.group_outlook import SPREAD, which_users
from shoal.mechanisms.linear.decay_words import as_keys, forgetting, length_of
from shoal.mechanisms.linear.plan.comparison import Comparison, Forecasts, typical
from shoal.mechanisms.linear.plan.forecast import breadth
from shoal.mechanisms.linear.plan.workload import Source, Steady, StepsOfFile
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.observed import Observed
from shoal.mechanisms.outlook import Look, Outlook, by_cap, cap_of, of_algorithm, refusals, times
from shoal.mechanisms.parts import at
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Sum, Variance
from shoal.mechanisms.parts.unit import PERSON
from shoal.mechanisms.plan import Column, Line, Noise, Plan, Table, budget_words, head
from shoal.mechanisms.words import duration, exact_duration, number, percent, samples
from shoal.mechanisms.workload import Stated

BY_HAND = "by hand*"
FADING = (
    at.HalfLife | at.Exponential | at.Polynomial | at.Forward | at.Table | at.Formula
)  # by which samples weigh less than one
MUCH = 0.05  # of the samples: leaving out more is worth a word
ASKED_OFTEN = "a window that is asked for often is better released by a metric of its own"


def plans(metric: Metric, workload: Stated | Observed, advance: Callable[[float], None]) -> list[Plan]:
    """The plan of the metric; `advance` is told what part of the work is done.

    Raises:
        ValueError: the mechanism refuses the settings, or a file has too many steps.
    """
    source: Source = StepsOfFile.of(metric, workload) if isinstance(workload, Observed) else Steady.of(metric, workload)
    return [Report.of(metric, Forecasts(source), advance).plan(workload)]


def final_noise(metric: Metric, users: int) -> Noise:
    """The noise of the last release as configured; a count has none.

    Raises:
        ValueError: the mechanism refuses the settings.
    """
    last = Forecasts(Steady.of(metric, Stated(users, None, None))).final(metric)
    return _noise(LinearStatistic.of(metric), last, typical(metric, Fraction(1)))


def _noise(statistic: LinearStatistic, last: Look | None, size: float) -> Noise:
    """The noise beside what values lie in, or beside a sum's expected size, which is one value at least."""
    if last is None or statistic.is_exact:
        return Noise(None, 0.0)
    wide = breadth(statistic)
    if wide is None:
        beside = max(float(statistic.grid.high - statistic.grid.low), last.samples * size)
        return Noise(last.noise_sd, beside, "sum itself")
    return Noise(last.noise_sd, wide, "largest possible variance" if statistic.statistic is Variance else "range")


class Report(Comparison):
    """Plan of a decayed sum: title, tables, advice and JSON of a comparison."""

    def plan(self, workload: Stated | Observed) -> Plan:
        private = not isinstance(workload, Observed)
        configured = of_algorithm(self.outlooks, self.metric.by.name)
        return Plan(
            self.metric, self._title(), self._workload(private=private), self.source.work.users,
            list(self._tables(private=private)), self._recommended(), list(self._advice()),
            self._fields(private=private),
            _noise(self.statistic, configured.looks[-1] if configured.looks else None, self._size), private,
        )  # fmt: skip

    @property
    def _size(self) -> float:
        """The expected size of a value, whatever its sign."""
        return typical(self.metric, self.source.work.spread)

    @property
    def _named(self) -> list[tuple[str, Outlook]]:
        hand = [] if self.by_hand is None else [(BY_HAND, self.by_hand)]
        return [*((outlook.metric.by.name, outlook) for outlook in self.outlooks), *hand]

    def _missing(self) -> Iterator[tuple[str, Any]]:
        """The recommended settings that the configuration lacks."""
        if life.stated_life(self.metric) is None and (advised := life.stated_life(self.advised)) is not None:
            yield "life", duration(advised)

    @property
    def _steps(self) -> at.Steps:
        """Length of a step, and decay, of the metric."""
        return expect(self.metric.at, at.Steps)

    @property
    def _has_window(self) -> bool:
        return isinstance(self._steps.decay, at.Window | at.Updates)

    # ---------------------------------------------------------------- words

    def _title(self) -> str:
        metric = self.metric
        what = f" of {metric.names[0]}" if metric.names else ""
        within = " in {:g} .. {:g}".format(*map(float, metric.ranges[0])) if metric.ranges and self.by_hand else ""
        cap = "" if metric.unit.is_event else f", max_contributions {metric.samples}"
        return (
            f"{metric.name}: {metric.statistic}{what}{within} {forgetting(self._steps.decay)}, every "
            f"{duration(self._steps.length.microseconds)}, {budget_words(metric)}{cap}"
        )

    def _workload(self, *, private: bool) -> str:
        work, metric = self.source.work, self.metric
        group = which_users(metric, self.groups)
        over = duration(self._steps.length.span(work.steps))
        text = f"{work.users:,} users{group} with {samples(work.samples)} each over {over}"
        if metric.unit.period is not None:
            text += f", {number(work.of_a_unit)} of a {metric.unit.words()}"
        if not private:
            return f"{text}, from the file"
        return f"{text}, {'on average, a few users with most' if work.pattern == 'skewed' else 'at constant rates'}"

    def _recommended(self) -> str:
        advised = self.advised
        how = "" if self.by_hand is None else f"{advised.by.name} ({self.best.mechanism})"
        cap = "" if advised.unit.is_event else f"max_contributions {advised.samples}"
        return ", ".join(part for part in (how, cap, *(f"{name} {value}" for name, value in self._missing())) if part)

    def _remarks(self, *, private: bool) -> Iterator[str]:
        last, metric = self.best.looks[-1], self.metric
        if self.by_hand is None:
            yield "A count is exact and costs no epsilon: who contributes when is public under relation values."
        else:
            decayed = ", decayed" if isinstance(self._steps.decay, FADING) else ""
            yield (
                f"Noise is {self._units()}; the last release is a {metric.statistic} of "
                f"{samples(last.samples)}{decayed}. 95 %: what its noise stays within{self._together()}. Error: its "
                "noise, and the bias expected of what is left out."
            )
            if self.best.long_run is not None:
                yield "Long run: all releases long after the beginning, if users always are as many."
            yield from life.remarks(metric)
            yield "* a Laplace draw for each step: a yardstick, no algorithm."
        if metric.place is not None and not metric.unit.is_event and private:
            here = "here all are in one." if self.groups is None else "here they come evenly."
            yield f"All groups share the samples that count of a {metric.unit.words()}; {here}"
        if metric.place is not None and self.groups is None:
            yield SPREAD
        yield from refusals(self.outlooks)

    def _units(self) -> str:
        """What planned noise is measured in."""
        name = self.metric.names[0]
        if isinstance(self.metric.of, Variance):
            return f"in units of {name} squared, for a mean half way from the middle of the range to one of its ends"
        return f"in units of {name}"

    def _together(self) -> str:
        q = self.metric.by.bars.simultaneous
        return "" if q is None else f", in {q:,} releases together"

    def _advice(self) -> Iterator[str]:
        configured = of_algorithm(self.outlooks, self.metric.by.name)
        before = number(configured.looks[-1].error) if configured.looks else "refused"
        yield f"error at the end: {number(self.outcome.error)}{self._of_the_sum()}; as configured, {before}"
        if self.groups is not None:
            yield from self.groups.words()
        if self.by_hand is None:
            yield "its cap costs nothing: choose one that nobody reaches"
        elif self.halving is None:
            yield "more epsilon cannot halve it: what is left out stays left out"
        else:
            cost = self.halving.words(f"epsilon {number(self.halving.amount)}", self.advised.samples)
            yield f"half of it would take: {cost}"
        limit = self.limit
        if limit is not None:
            yield (
                f"no method that is pure epsilon-DP keeps {limit.releases:,} releases within ± {number(limit.error)} "
                "with probability 2/3, whatever order these units come in (Bolot et al., theorem 7)"
            )
        last = self.best.looks[-1]
        if last.left_out <= MUCH:
            return
        of_a_sum = f", {number(abs(last.bias))} of the sum" if isinstance(self.metric.of, Sum) else ""
        yield f"as configured, {percent(last.left_out)} of the samples in the last release are left out{of_a_sum}"
        if self.metric.unit == PERSON:
            yield "who gave max_contributions samples never counts again; unit user-week renews it, but guarantees less"

    def _of_the_sum(self) -> str:
        """The error as a part of the expected sum, for sums alone."""
        look = self.outcome
        there = look.samples / (1 - look.left_out) * self._size if look.left_out < 1 else 0.0
        if not isinstance(self.metric.of, Sum) or not there or math.isinf(look.error):
            return ""
        return f", {percent(look.error / there)} of a sum of {number(there)}"

    # ---------------------------------------------------------------- tables

    def _tables(self, *, private: bool) -> Iterator[Table]:
        yield self._algorithms(private=private)
        whose = "" if self.metric.unit.period is None else f" of a {self.metric.unit.words()}"
        if self.caps:
            yield by_cap(f"max_contributions{whose}, at the end", self.caps, self.metric, self.advised.samples)
        if self.lengths:
            yield self._other_lengths()
        if self.windows:
            names = list(self.windows[0][1])
            lines = [
                Line([duration(self._steps.length.span(steps)), *(number(noise[name]) for name in names)])
                for steps, noise in self.windows
            ]
            columns = [Column("window", is_text=True), *map(Column, names)]
            yield Table("noise of windows told afterwards", columns, lines, [ASKED_OFTEN])

    def _algorithms(self, *, private: bool) -> Table:
        counts = self.by_hand is None
        looks = self.best.looks
        shown = times(looks)
        if shown[0][1] is not looks[0]:
            shown = [(1, looks[0]), *shown]
        columns = [
            Column("algorithm", is_text=True), Column("made by", 6, is_text=True),
            *(Column(look.when(), rank) for rank, look in shown), Column("long run"), Column("95 %", 5),
            Column("left out"), Column("error"),
        ]  # fmt: skip
        title = "samples that count" if counts else "noise (standard deviation)"
        lines = [
            Line(list(self._line(name, outlook, [look.part for _, look in shown])), outlook is self.best)
            for name, outlook in self._named
        ]
        return Table(title, columns, lines, list(self._remarks(private=private)))

    def _line(self, name: str, outlook: Outlook, parts: list[float]) -> Iterator[str]:
        def amount(look: Look) -> str:
            return number(look.samples if self.by_hand is None else look.noise_sd)

        yield name
        yield "" if name == BY_HAND else outlook.mechanism
        if not outlook.looks:
            yield from (*["-"] * (len(parts) + 3), "refused")
            return
        by_part, last = {look.part: look for look in outlook.looks}, outlook.looks[-1]
        yield from (amount(by_part[part]) for part in parts)
        yield "grows" if outlook.long_run is None else amount(outlook.long_run)
        yield f"± {number(last.half_interval)}" if last.half_interval else "-"
        yield from (percent(last.left_out), number(last.error))

    def _other_lengths(self) -> Table:
        what, many = ("window", "windows") if self._has_window else ("half-life", "half-lives")
        sums = isinstance(self.metric.of, Sum)
        columns = [
            Column(what, is_text=True), Column("mechanism", 1, is_text=True), Column("samples"), Column("noise"),
            *([Column("of sum")] if sums else []), Column("", is_text=True),
        ]  # fmt: skip
        lines = []
        for factor, metric, mechanism, look in self.lengths:
            there = look.samples * self._size
            part = percent((look.noise_sd or 0) / there) if there else "-"
            cells = [
                length_of(metric),
                mechanism,
                number(look.samples),
                number(look.noise_sd),
                *([part] if sums else []),
            ]
            lines.append(Line([*cells, "configured" if factor == 1 else ""]))
        return Table(f"other {many}, with {self.best.metric.by.name} in the long run", columns, lines)

    # ---------------------------------------------------------------- for programs

    def _fields(self, *, private: bool) -> dict[str, Any]:
        metric, work, length = self.metric, self.source.work, self._steps.length
        return {
            **head(metric, 0, private=private),
            "delta": float(metric.budget.delta),
            "unit": metric.unit.name,
            "max_contributions": cap_of(metric),
            "step": exact_duration(length.microseconds),
            "decay": as_keys(self._steps.decay),
            "workload": {
                "users": work.users,
                "samples_per_user": work.samples,
                "samples_per_unit": work.of_a_unit,
                "over": length.span(work.steps) / 1e6,
                "steps": work.steps,
                "pattern": work.pattern,
                "spread": float(work.spread),
            },
            "algorithms": [
                {"configured": outlook.metric.by.name == metric.by.name, **_outlook(outlook)}
                for outlook in self.outlooks
            ],
            "by_hand": self.by_hand and _outlook(self.by_hand) | {"algorithm": None},
            "recommended": {
                "algorithm": self.advised.by.name,
                "mechanism": self.best.mechanism,
                "max_contributions": cap_of(self.advised),
                **dict(self._missing()),
                "outcome": self.outcome.fields(),
            },
            "by_max_contributions": [{"max_contributions": cap, **look.fields()} for cap, look in self.caps],
            "by_length": [
                {"length": length_of(other), "mechanism": mechanism, **_timeless(look)}
                for _, other, mechanism, look in self.lengths
            ],
            "by_window": [
                {"steps": steps, "seconds": length.span(steps) / 1e6, "noise_sd": noise}
                for steps, noise in self.windows
            ],
            "half_the_error": {"epsilon": self.halving and self.halving.fields("epsilon")},
            "groups": self.groups and self.groups.fields(),
            "lower_bound": self.limit and self.limit._asdict(),
        }


def _outlook(outlook: Outlook) -> dict[str, Any]:
    return {
        "algorithm": outlook.metric.by.name,
        "mechanism": outlook.mechanism,
        "refused": outlook.refused,
        "over_time": [look.fields() for look in outlook.looks],
        "long_run": outlook.long_run and _timeless(outlook.long_run),
    }


def _timeless(look: Look) -> dict[str, Any]:
    return {name: value for name, value in look.fields().items() if name not in ("part", "seconds")}
