"""The plan of a mean: algorithms, caps and cadences compared, and what half the error would cost."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shoal.mechanisms import life
from shoal.mechanisms.continual_mean.planning.comparison import MeanComparison, Source, chosen_by_few, has_prior
from shoal.mechanisms.continual_mean.planning.observed import ObservedMean
from shoal.mechanisms.continual_mean.planning.source import USEFUL, one_mean, width_of
from shoal.mechanisms.continual_mean.planning.stated import StatedMean
from shoal.mechanisms.group_outlook import SPREAD, which_users
from shoal.mechanisms.observed import Observed
from shoal.mechanisms.outlook import Outlook, by_cap, of_algorithm, refusals, times
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import Events, PerKey
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.plan import Column, Line, Noise, Plan, Table, head, marks
from shoal.mechanisms.privacy import lower_bounds
from shoal.mechanisms.words import cadence, duration, exact_text, number, percent, samples
from shoal.mechanisms.workload import Stated

SAME = 1.02  # likely noises whose ratio is less are one
TUNED = "recommended: of those with 30 releases or more, the finest that costs at most a quarter more error"


def plans(
    metric: Metric, workload: Stated | Observed, advance: Callable[[float], None] = lambda part: None
) -> list[Plan]:
    """The plans of all coordinates; `advance` is told what part of the work is done.

    Raises:
        ValueError: no algorithm can do with these settings.
    """
    count = len(metric.names)
    of = [lambda part, done=done: advance((done + part) / count) for done in range(count)]
    return [MeanReport.of(metric, at, _source(metric, at, workload), of[at]).plan(workload) for at in range(count)]


def final_noise(metric: Metric, users: int) -> Noise:
    """The noise of a late release of the coordinate where it is widest in proportion, scaled to the first one.

    Raises:
        ValueError: the mechanism refuses the settings.
    """
    worst, width = 0.0, width_of(metric, 0)
    for coordinate in range(len(metric.names)):
        last = StatedMean.of(metric, coordinate, Stated(users, None, None)).final(metric)
        worst = max(worst, (last.noise_sd or 0.0) / width_of(metric, coordinate))
    return Noise(worst * width, width)


def _source(metric: Metric, coordinate: int, workload: Stated | Observed) -> Source:
    if isinstance(workload, Observed):
        return ObservedMean.of(metric, coordinate, workload)
    return StatedMean.of(metric, coordinate, workload)


class MeanReport(MeanComparison):
    """Plan of a mean: title, tables, advice and JSON of a comparison."""

    def plan(self, workload: Stated | Observed) -> Plan:
        metric, about = self.metric, self.source.about(self.metric)
        observed = isinstance(workload, Observed)
        configured = of_algorithm(self.outlooks, metric.by.name)
        noise_sd = configured.looks[-1].noise_sd if configured.looks else None
        return Plan(
            metric, self._title(), self._workload(private=not observed), about.users,
            [self._algorithms(private=not observed), *self._caps(), self._cadences()],
            self.recommended(), list(self._advice(private=not observed)), self._fields(private=not observed),
            Noise(noise_sd, width_of(metric, self.coordinate)), not observed,
        )  # fmt: skip

    @property
    def _width(self) -> float:
        return width_of(self.metric, self.coordinate)

    def _missing(self) -> Iterator[tuple[str, Any]]:
        """The recommended settings that the configuration lacks."""
        if self.metric.by.users is None and self.advised.by.users is not None:
            yield "users", self.advised.by.users
        if life.stated_life(self.metric) is None and (advised := life.stated_life(self.advised)) is not None:
            yield "life", duration(advised)

    # ---------------------------------------------------------------- words

    def _title(self) -> str:
        metric = self.metric
        low, high = map(float, metric.ranges[self.coordinate])
        keys = expect(metric.hides.limits, PerKey, Events).keys
        groups = f", {keys} groups of a user share it" if keys > 1 else ""
        fields = f" for {len(metric.names)} values" if len(metric.names) > 1 else ""
        delta = f", delta {exact_text(metric.budget.delta)}" if metric.budget.delta else ""
        return (
            f"{metric.name}: mean of {metric.names[self.coordinate]} in {low:g} .. {high:g}, epsilon "
            f"{exact_text(metric.budget.epsilon)}{delta}{fields}{groups}, {_cap(metric)}, a release every "
            f"{_every(metric.length)}"
        )

    def _workload(self, *, private: bool) -> str:
        about, sigma = self.source.about(self.metric), self.metric.by.sigma(self.coordinate)
        over = "" if about.over is None else f" over {duration(about.over)}"
        group = which_users(self.metric, self.groups)
        users = f"{about.users:,} users{group} with {samples(about.samples)} each{over}"
        if self.metric.unit.is_event:
            users = f"{about.users:,} events{group}{over}"
        if not private:
            return f"{users}, from the file"
        part = about.spread or 0
        law = "anywhere in the range" if part == 1 else f"in the middle {percent(part)} of the range"
        law = law if sigma is None else f"with a sigma of {float(sigma):g}"
        pattern = "on average, a few users with most" if about.pattern == "skewed" else "at constant rates"
        return f"{users}, {pattern}; values {law}"

    def recommended(self) -> str:
        advised = self.advised
        text = f"{advised.by.name}, {_cap(advised)}, every {_every(advised.length)}"
        return text + "".join(f", {name} {value}" for name, value in self._missing())

    def _remarks(self, *, private: bool) -> Iterator[str]:
        kind = "expected of what is left out" if private else "measured"
        sampling = self.source.about(self.metric).sampling_error
        yield (
            f"error: at the end, noise and the bias {kind}; useful: a noise interval narrower than "
            f"{number(float(USEFUL) * self._width)}, a quarter of the range. The mean of all samples itself is good to "
            f"{number(sampling)}, if they are independent."
        )
        if self.metric.budget.delta and not chosen_by_few(self.metric):
            yield _kinds(self.outlooks, self.coordinate)
        yield from life.remarks(self.metric)
        yield "-: nothing is released, or the middle of the range, which says nothing."
        if self.metric.place is not None and self.groups is None:
            yield SPREAD
        if any(map(_needs_prior, self.outlooks)):
            yield f"* needs a prior{self._prior}"
        for outlook in self.outlooks:
            if outlook.likely is not None and outlook.likely[1] > SAME * outlook.likely[0]:
                low, high = map(number, outlook.likely)
                yield (
                    f"{outlook.metric.by.name} chooses what to clip to privately, once: shown is the median. At the "
                    f"end its noise is between {low} and {high} in four of five cases."
                )
        yield from refusals(self.outlooks)

    @property
    def _prior(self) -> str:
        """Where the prior of those who need one comes from."""
        if chosen_by_few(self.metric):
            return ", which few users choose: until then nothing is released."
        return "." if has_prior(self.metric) else ", which this configuration lacks."

    def _advice(self, *, private: bool) -> Iterator[str]:
        configured = of_algorithm(self.outlooks, self.metric.by.name)
        yield f"error at the end: {number(self.outcome.error)}; as configured, {number(configured.error)}"
        if self.groups is not None:
            yield from self.groups.words()
        if self.best.useful is None:
            yield "nothing useful comes of it in this time: more users, more epsilon or a narrower range are needed"
        whom = "events" if self.metric.unit.is_event else "users"
        units = {"epsilon": "epsilon {}", "users": f"{{}} {whom}", "time": "{}"}
        ways = []
        for what, cost in self.halving.items():
            if cost is not None and cost.amount is not None:
                amount = duration(round(cost.amount * 1e6)) if what == "time" else number(cost.amount)
                ways.append(cost.words(units[what].format(amount), self.best.metric.samples))
        yield f"half the error would take: {', or '.join(ways)}" if ways else "half the error cannot be had this way"
        if private and self.halving["time"] is None and ways:
            yield "more time alone would not do it: who has given max_contributions samples adds nothing more"
        yield from self._limit()

    def _limit(self) -> Iterator[str]:
        private, chance = map(number, self._limits)
        if self.metric.budget.delta:
            yield f"by chance no method comes within {chance} of the mean of the law that values follow"
            return
        yield (
            f"no method that is epsilon-DP comes within {private} of the mean of the law that values follow with "
            f"probability 2/3, whatever that law; by chance none comes within {chance} (George et al., section 5)"
        )

    @property
    def _limits(self) -> tuple[float, float]:
        """The error that no method stays below, and that by chance; with a sigma for a range as wide as two of it."""
        sigma = self.metric.by.sigma(self.coordinate)
        width = self._width if sigma is None else min(self._width, 2 * float(sigma))
        private, chance = lower_bounds.mean(self.source.about(self.metric).sizes, float(self.metric.budget.epsilon))
        return private * width, chance * width

    # ---------------------------------------------------------------- tables

    def _algorithms(self, *, private: bool) -> Table:
        shown = times(next(outlook.looks for outlook in self.outlooks if outlook.looks))
        columns = [
            Column("algorithm", is_text=True), *(Column(look.when(), rank) for rank, look in shown),
            Column("left out"), Column("error"), Column("useful from"),
        ]  # fmt: skip
        lines = [
            Line(list(self._line(outlook, [look.part for _, look in shown])), is_bold=outlook is self.best)
            for outlook in self.outlooks
        ]
        return Table("noise (standard deviation)", columns, lines, list(self._remarks(private=private)))

    def _line(self, outlook: Outlook, parts: Sequence[float]) -> Iterator[str]:
        yield _starred(outlook)
        if not outlook.looks:
            yield from (*["-"] * (len(parts) + 2), "refused")
            return
        for part in parts:
            look = min(outlook.looks, key=lambda look, part=part: abs(math.log(look.part / part)))  # type: ignore[misc]
            yield number(look.noise_sd if look.samples else None)
        last = outlook.looks[-1]
        yield from (percent(last.left_out), number(last.error))
        yield "never" if outlook.useful is None else outlook.useful.when()

    def _caps(self) -> Iterator[Table]:
        """The caps that were tried, if any."""
        if self.caps:
            title = f"max_contributions, with {self.best.metric.by.name}"
            yield by_cap(title, self.caps, self.metric, self.advised.samples)

    def _cadences(self) -> Table:
        columns = [
            Column("every", is_text=True), Column("left out", 1), Column("noise"), Column("error"), Column("", 0, True),
        ]  # fmt: skip
        lines = []
        for length, look in self.cadences:
            is_advised = length == self.advised.length
            mark = marks((length == self.metric.length, "configured"), (is_advised, "recommended"))
            amounts = percent(look.left_out), number(look.noise_sd), number(look.error)
            lines.append(Line([_every(length), *amounts, mark], is_advised))
        settings = f"{self.best.metric.by.name} and {_cap(self.advised)}"
        return Table(f"cadence, with {settings}", columns, lines, [TUNED])

    # ---------------------------------------------------------------- for programs

    def _fields(self, *, private: bool) -> dict[str, Any]:
        metric, about = self.metric, self.source.about(self.metric)
        return {
            **head(metric, self.coordinate, private=private),
            **self._with_delta(),
            "max_contributions": metric.samples,
            "every": _every(metric.length),
            "workload": {
                "users": about.users,
                "samples_per_user": about.samples,
                "over": about.over and about.over / 1e6,
                "pattern": about.pattern,
                "spread": about.spread,
                "sampling_error": about.sampling_error,
            },
            "algorithms": [self._outlook(outlook) for outlook in self.outlooks],
            "recommended": {
                "algorithm": self.advised.by.name,
                "max_contributions": self.advised.samples,
                "every": _every(self.advised.length),
                **dict(self._missing()),
                "outcome": self.outcome.fields(),
            },
            "by_max_contributions": [{"max_contributions": cap, **look.fields()} for cap, look in self.caps],
            "by_cadence": [{"every": _every(length), **look.fields()} for length, look in self.cadences],
            "half_the_error": {what: cost and cost.fields(what) for what, cost in self.halving.items()},
            "groups": self.groups and self.groups.fields(),
            "lower_bound": dict(zip(("error", "by_chance"), self._limits, strict=True)),
        }

    def _with_delta(self) -> dict[str, Any]:
        """The delta and the kind of noise that the metric has as configured, where there is a delta."""
        configured = of_algorithm(self.outlooks, self.metric.by.name)
        if not self.metric.budget.delta or not configured.looks:
            return {}
        return {
            "delta": float(self.metric.budget.delta),
            "mechanism": one_mean(self.metric, self.coordinate).noise_kind,
        }

    def _outlook(self, outlook: Outlook) -> dict[str, Any]:
        return {
            "algorithm": outlook.metric.by.name,
            "configured": outlook.metric.by.name == self.metric.by.name,
            "needs_prior": _needs_prior(outlook),
            "refused": outlook.refused,
            "first_useful": outlook.useful and outlook.useful.fields(),
            "last_noise_sd_likely": outlook.likely and list(outlook.likely),
            "over_time": [look.fields() for look in outlook.looks],
        }


def _kinds(outlooks: Sequence[Outlook], coordinate: int) -> str:
    """The noise that each algorithm has with this delta."""
    kinds = {
        outlook.metric.by.name: one_mean(outlook.metric, coordinate).noise_kind for outlook in outlooks if outlook.looks
    }
    each = ", ".join(f"{kind} for {name}" for name, kind in kinds.items())
    return f"noise, of the kind with less at the last release expected: {each}"


def _every(length: Even | None) -> str:
    return cadence(None if length is None else length.microseconds)


def _cap(metric: Metric) -> str:
    return "unit event" if metric.unit.is_event else f"max_contributions {metric.samples}"


def _starred(outlook: Outlook) -> str:
    name = str(outlook.metric.by.name)
    return name + "*" if _needs_prior(outlook) else name


def _needs_prior(outlook: Outlook) -> bool:
    return has_prior(outlook.metric)
