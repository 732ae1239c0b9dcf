"""The plan of what is released at every step: algorithms, caps and lengths compared, and the cost of half the error.

Noise is that of the very mechanism, to the digits that a release states; what is left out follows from the workload.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.mechanisms import life
from shoal.mechanisms.group_outlook import SPREAD, which_users
from shoal.mechanisms.observed import Observed
from shoal.mechanisms.outlook import HIGHEST, Look, Outlook, by_cap, cap_panel, of_algorithm, refusals, times
from shoal.mechanisms.plan import Column, Curve, Line, Marks, Noise, Panel, Plan, Spec, Table, head
from shoal.mechanisms.stepped.comparison import Comparison, Forecasts, typical
from shoal.mechanisms.stepped.keys import LISTED
from shoal.mechanisms.stepped.statistic import PlannedStatistic
from shoal.mechanisms.stepped.workload import Source, Steady, Steps
from shoal.mechanisms.words import duration, exact_duration, exact_text, number, percent, samples
from shoal.mechanisms.workload import Stated

BY_HAND = "by hand*"
HAND = "by hand"  # the colour of the yardstick
FADING = ("exponential", "polynomial", "forward", *LISTED)  # decays by which samples weigh less than one
MUCH = 0.05  # of the samples: leaving out more is worth a word
ASKED_OFTEN = "a window that is asked for often is better released by a metric of its own"


@dataclass(frozen=True)
class Planner:
    """The planner of one such statistic."""

    of: Callable[[Spec], PlannedStatistic]  # what a metric's keys ask for

    def plans(
        self, spec: Spec, workload: Stated | Observed, advance: Callable[[float], None] = lambda part: None
    ) -> list[Plan]:
        """The plan of the metric; `advance` is told what part of the work is done.

        Raises:
            ValueError: the mechanism refuses the settings, or a file has too many steps.
        """
        source: Source = Steps.of(spec, workload) if isinstance(workload, Observed) else Steady.of(spec, workload)
        return [Report.of(spec, Forecasts(source, self.of), advance).plan(workload)]

    def final_noise(self, spec: Spec, users: int) -> Noise:
        """The noise of the last release as configured; a count has none.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        last = Forecasts(Steady.of(spec, Stated(users, None, None)), self.of).final(spec)
        return _noise(self.of(spec), last, typical(spec, Fraction(1)))


def _noise(statistic: PlannedStatistic, last: Look | None, size: float) -> Noise:
    """The noise beside what values lie in, or beside a sum's expected size, which is one value at least."""
    if last is None or statistic.is_exact:
        return Noise(None, 0.0)
    breadth = statistic.breadth()
    if breadth is None:
        beside = max(float(statistic.grid.high - statistic.grid.low), last.samples * size)
        return Noise(last.noise_sd, beside, "sum itself")
    return Noise(last.noise_sd, breadth, statistic.ends)


class Report(Comparison):
    """The words, tables and pictures of a comparison."""

    def plan(self, workload: Stated | Observed) -> Plan:
        private = not isinstance(workload, Observed)
        configured = of_algorithm(self.outlooks, self.spec.algorithm)
        return Plan(
            self.spec, self._title(), self._workload(private=private), self.source.work.users,
            list(self._tables(private=private)), self._recommended(), list(self._advice()),
            self._fields(private=private),
            _noise(self.statistic, configured.looks[-1] if configured.looks else None, self._size), private,
            list(self._panels()),
        )  # fmt: skip

    @property
    def _size(self) -> float:
        """The expected size of a value, whatever its sign."""
        return typical(self.spec, self.source.work.spread)

    @property
    def _named(self) -> list[tuple[str, Outlook]]:
        hand = [] if self.by_hand is None else [(BY_HAND, self.by_hand)]
        return [*((outlook.spec.algorithm, outlook) for outlook in self.outlooks), *hand]

    def _missing(self) -> Iterator[tuple[str, Any]]:
        """The recommended settings that the configuration lacks."""
        if self.spec.life is None and self.advised.life is not None:
            yield "life", duration(self.advised.life)

    # ---------------------------------------------------------------- words

    def _title(self) -> str:
        spec = self.spec
        what = f" of {spec.values[0]}" if spec.values else ""
        within = " in {:g} .. {:g}".format(*map(float, spec.ranges[0])) if spec.ranges and self.by_hand else ""
        delta = f", delta {exact_text(spec.delta)}" if spec.delta else ""
        cap = "" if spec.max_contributions is None else f", max_contributions {spec.max_contributions}"
        return (
            f"{spec.name}: {spec.statistic}{what}{within} {_forgetting(spec)}, every {duration(spec.cadence)}, epsilon "
            f"{exact_text(spec.epsilon)}{delta} of each {spec.privacy_unit.words()}{cap}"
        )

    def _workload(self, *, private: bool) -> str:
        work, spec = self.source.work, self.spec
        group = which_users(spec, self.groups)
        over = duration(work.steps * spec.cadence)
        text = f"{work.users:,} users{group} with {samples(work.samples)} each over {over}"
        if spec.privacy_unit.period is not None:
            text += f", {number(work.of_a_unit)} of a {spec.privacy_unit.words()}"
        if not private:
            return f"{text}, from the file"
        return f"{text}, {'on average, a few users with most' if work.pattern == 'skewed' else 'at constant rates'}"

    def _recommended(self) -> str:
        advised = self.advised
        how = "" if self.by_hand is None else f"{advised.algorithm} ({self.best.mechanism})"
        cap = "" if advised.max_contributions is None else f"max_contributions {advised.max_contributions}"
        return ", ".join(part for part in (how, cap, *(f"{name} {value}" for name, value in self._missing())) if part)

    def _remarks(self, *, private: bool) -> Iterator[str]:
        last, spec = self.best.looks[-1], self.spec
        if self.by_hand is None:
            yield "A count is exact and costs no epsilon: who contributes when is public under relation values."
        else:
            decayed = ", decayed" if spec.decay_or_none.kind in FADING else ""
            yield (
                f"Noise is {self.statistic.noise_words(spec.values[0])}; the last release is a {spec.statistic} of "
                f"{samples(last.samples)}{decayed}. 95 %: what its noise stays within{self._together()}. Error: its "
                "noise, and the bias expected of what is left out."
            )
            if self.best.long_run is not None:
                yield "Long run: all releases long after the beginning, if users always are as many."
            yield from life.remarks(spec)
            yield "* a Laplace draw for each step: a yardstick, no algorithm."
        if spec.group is not None and not spec.privacy_unit.is_event and private:
            here = "here all are in one." if self.groups is None else "here they come evenly."
            yield f"All groups share the samples that count of a {spec.privacy_unit.words()}; {here}"
        if spec.group is not None and self.groups is None:
            yield SPREAD
        yield from refusals(self.outlooks)

    def _together(self) -> str:
        q = self.spec.simultaneous
        return "" if q is None else f", in {q:,} releases together"

    def _advice(self) -> Iterator[str]:
        configured = of_algorithm(self.outlooks, self.spec.algorithm)
        before = number(configured.looks[-1].error) if configured.looks else "refused"
        yield f"error at the end: {number(self.outcome.error)}{self._of_the_sum()}; as configured, {before}"
        if self.groups is not None:
            yield from self.groups.words()
        if self.by_hand is None:
            yield "its cap costs nothing: choose one that nobody reaches"
        elif self.halving is None:
            yield "more epsilon cannot halve it: what is left out stays left out"
        else:
            cost = self.halving.words(f"epsilon {number(self.halving.amount)}", self.advised.contribution_limit)
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
        of_a_sum = f", {number(abs(last.bias))} of the sum" if self.spec.statistic == "sum" else ""
        yield f"as configured, {percent(last.left_out)} of the samples in the last release are left out{of_a_sum}"
        if self.spec.unit == "user":
            yield "who gave max_contributions samples never counts again; unit user-week renews it, but guarantees less"

    def _of_the_sum(self) -> str:
        """The error as a part of the expected sum, for sums alone."""
        look = self.outcome
        there = look.samples / (1 - look.left_out) * self._size if look.left_out < 1 else 0.0
        if self.spec.statistic != "sum" or not there or math.isinf(look.error):
            return ""
        return f", {percent(look.error / there)} of a sum of {number(there)}"

    # ---------------------------------------------------------------- tables

    def _tables(self, *, private: bool) -> Iterator[Table]:
        yield self._algorithms(private=private)
        whose = "" if self.spec.privacy_unit.period is None else f" of a {self.spec.privacy_unit.words()}"
        if self.caps:
            yield by_cap(f"max_contributions{whose}, at the end", self.caps, self.spec, self.advised.contribution_limit)
        if self.lengths:
            yield self._other_lengths()
        if self.windows:
            names = list(self.windows[0][1])
            lines = [
                Line([duration(steps * self.spec.cadence), *(number(noise[name]) for name in names)])
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
        what, many = ("window", "windows") if self.spec.decay_or_none.kind == "window" else ("half-life", "half-lives")
        sums = self.spec.statistic == "sum"
        columns = [
            Column(what, is_text=True), Column("mechanism", 1, is_text=True), Column("samples"), Column("noise"),
            *([Column("of sum")] if sums else []), Column("", is_text=True),
        ]  # fmt: skip
        lines = []
        for factor, spec, mechanism, look in self.lengths:
            there = look.samples * self._size
            part = percent((look.noise_sd or 0) / there) if there else "-"
            cells = [_length(spec), mechanism, number(look.samples), number(look.noise_sd), *([part] if sums else [])]
            lines.append(Line([*cells, "configured" if factor == 1 else ""]))
        return Table(f"other {many}, with {self.best.spec.algorithm} in the long run", columns, lines)

    # ---------------------------------------------------------------- pictures

    def _panels(self) -> Iterator[Panel]:
        breadth = self.statistic.breadth()
        width = math.inf if breadth is None else breadth
        if self.by_hand is None:
            yield self._counts()
            return
        yield self._noise_over_time(width)
        if self.windows:
            yield self._noise_of_windows(width)
        elif self.caps:
            yield cap_panel(self.caps, self.best.spec.algorithm, self.advised.contribution_limit, width)
        elif self.lengths:
            yield self._noise_by_length(width)

    def _noise_over_time(self, width: float) -> Panel:
        curves = []
        for name, outlook in self._named:
            points = [(look.at or 0, look.noise_sd) for look in outlook.looks if look.noise_sd]
            colour = HAND if name == BY_HAND else name
            if points:
                curves.append(Curve(name.removesuffix("*"), points, colour, outlook is self.best, name == BY_HAND))
        below = "since the start; by hand: a Laplace draw for each step"
        return Panel("noise of a release (standard deviation)", below, curves, most=HIGHEST * width)

    def _counts(self) -> Panel:
        looks = self.best.looks
        curves = [
            Curve("counted", [(look.at or 0, look.samples) for look in looks], "sharp", is_best=True),
            Curve("all", [(look.at or 0, look.samples - look.bias) for look in looks], "patent"),
        ]
        below = "since the start; between the lines: beyond max_contributions"
        return Panel("samples in a release; it is exact", below, curves, is_linear=True)

    def _noise_of_windows(self, width: float) -> Panel:
        curves = []
        for name in self.windows[0][1]:
            points = [(steps * self.spec.cadence, noise[name] or 0.0) for steps, noise in self.windows]
            is_hand = name == "per-step"
            shown = HAND if is_hand else name
            curves.append(Curve(shown, points, shown, name == self.best.spec.algorithm, is_hand))
        most, title = HIGHEST * width, "noise of a window told afterwards"
        return Panel(title, "length of the window", curves, most=most, names_ends=False)

    def _noise_by_length(self, width: float) -> Panel:
        points = [(float(factor), look.noise_sd or 0.0) for factor, _, _, look in self.lengths]
        ring = next((point for point in points if point[0] == 1), None)
        algorithm, kind = (
            self.best.spec.algorithm,
            "window" if self.spec.decay_or_none.kind == "window" else "half-life",
        )
        return Panel(
            f"noise in the long run by {kind}", "ring: configured", [Curve("", points, algorithm, True, ring=ring)],
            Marks([x for x, _ in points], [_length(spec) for _, spec, _, _ in self.lengths]), most=HIGHEST * width,
            names_ends=False,
        )  # fmt: skip

    # ---------------------------------------------------------------- for programs

    def _fields(self, *, private: bool) -> dict[str, Any]:
        spec, work, cadence = self.spec, self.source.work, self.spec.cadence
        return {
            **head(spec, 0, private=private),
            "delta": float(spec.delta),
            "unit": spec.unit,
            "max_contributions": spec.max_contributions,
            "step": exact_duration(cadence),
            "decay": {name: _plain(name, value) for name, value in spec.decay_or_none if value is not None},
            "workload": {
                "users": work.users,
                "samples_per_user": work.samples,
                "samples_per_unit": work.of_a_unit,
                "over": work.steps * cadence / 1e6,
                "steps": work.steps,
                "pattern": work.pattern,
                "spread": float(work.spread),
            },
            "algorithms": [
                {"configured": outlook.spec.algorithm == spec.algorithm, **_outlook(outlook)}
                for outlook in self.outlooks
            ],
            "by_hand": self.by_hand and _outlook(self.by_hand) | {"algorithm": None},
            "recommended": {
                "algorithm": self.advised.algorithm,
                "mechanism": self.best.mechanism,
                "max_contributions": self.advised.max_contributions,
                **dict(self._missing()),
                "outcome": self.outcome.fields(),
            },
            "by_max_contributions": [{"max_contributions": cap, **look.fields()} for cap, look in self.caps],
            "by_length": [
                {"length": _length(other), "mechanism": mechanism, **_timeless(look)}
                for _, other, mechanism, look in self.lengths
            ],
            "by_window": [
                {"steps": steps, "seconds": steps * cadence / 1e6, "noise_sd": noise} for steps, noise in self.windows
            ],
            "half_the_error": {"epsilon": self.halving and self.halving.fields("epsilon")},
            "groups": self.groups and self.groups.fields(),
            "lower_bound": self.limit and self.limit._asdict(),
        }


def _plain(name: str, value: Any) -> Any:
    if name in ("length", "half_life", "horizon"):
        return exact_duration(value)
    if name == "weights":
        return list(map(float, value))
    return value if name in ("kind", "weight", "updates") else float(value)


def _outlook(outlook: Outlook) -> dict[str, Any]:
    return {
        "algorithm": outlook.spec.algorithm,
        "mechanism": outlook.mechanism,
        "refused": outlook.refused,
        "over_time": [look.fields() for look in outlook.looks],
        "long_run": outlook.long_run and _timeless(outlook.long_run),
    }


def _timeless(look: Look) -> dict[str, Any]:
    return {name: value for name, value in look.fields().items() if name not in ("part", "seconds")}


def _length(spec: Spec) -> str:
    """The length of a window, or the half-life or alpha that stands for one."""
    span = spec.decay_or_none.length or spec.decay_or_none.half_life
    return f"alpha {float(spec.decay_or_none.alpha or 0):.4g}" if span is None else duration(span)


def _forgetting(spec: Spec) -> str:
    decay = spec.decay_or_none
    return {
        "none": "since the beginning",
        "window": f"over the last {decay.updates} updates"
        if decay.updates
        else f"over the last {duration(decay.length or 0)}",
        "all-windows": "over any last steps",
        "exponential": f"with a half-life of {_length(spec)}" if decay.half_life else f"with {_length(spec)}",
        "polynomial": f"with weights (age + 1)^-{float(decay.exponent or 0):g}",
        "forward": f"with weights (step / newest step)^{float(decay.exponent or 0):g}",
        "table": f"with {len(decay.weights or ())} weights",
        "formula": f"with weights {decay.weight}, i being the age",
    }[str(decay.kind)]
