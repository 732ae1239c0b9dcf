"""The plan of a mean: algorithms, caps and cadences compared, and what half the error would cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from shoal.mechanisms import life
from shoal.mechanisms.continual_mean import MEANS, OF_EVENTS, ON_BLOCKS, WITH_DELTA, WITH_PRIOR, WITH_SIGMA
from shoal.mechanisms.continual_mean.rules import RULES
from shoal.mechanisms.forecast.axis import Axis, Trial
from shoal.mechanisms.forecast.comparison import Comparison, Cost, Outlook, with_time_as_life
from shoal.mechanisms.forecast.groups import which_users
from shoal.mechanisms.forecast.mean_source import USEFUL, one_mean, width_of
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.forecast.observed_mean import ObservedMean
from shoal.mechanisms.forecast.plan import SECTION, Noise, cap_words, every_of, workload_words
from shoal.mechanisms.forecast.point import Point, as_json
from shoal.mechanisms.forecast.stated_mean import StatedMean
from shoal.mechanisms.forecast.table import MARK, Column, Row, Section
from shoal.mechanisms.parts.at import EachContribution, Ticks
from shoal.mechanisms.parts.by import Algorithm, AroundPrior, FewUsersPrior, Sharp
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import Events, PerKey
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.variants import with_algorithm, with_life, with_users
from shoal.mechanisms.privacy import lower_bounds
from shoal.mechanisms.words import duration, number, percent
from shoal.mechanisms.workload import Stated

CADENCES = tuple(Even(60_000_000 * minutes) for minutes in (1, 10, 60, 360, 1440, 10_080, 43_200))
FEWEST, MANY = 4, 30  # releases of a cadence that is considered; of one that is recommended
FREQUENT = 1.25  # what a finer cadence may cost in error
IN_NUMBERS = "users", "samples_per_user", "over", "pattern", "spread", "sampling_error"  # of a workload
SAME = 1.02  # likely noises whose ratio is less are one
TUNED = "recommended: of those with 30 releases or more, the finest that costs at most a quarter more error"


class MeanReport(Comparison):
    """The plan of one coordinate of a mean without a decay."""

    rules = RULES

    def __init__(self, metric: Metric, workload: Stated | Observed, coordinate: int = 0) -> None:
        self.metric, self.coordinate, self.private = metric, coordinate, not isinstance(workload, Observed)
        self.source: StatedMean | ObservedMean = (
            ObservedMean.of(metric, coordinate, workload)
            if isinstance(workload, Observed)
            else StatedMean.of(metric, coordinate, workload)
        )
        self.about = self.source.about(metric)
        self.users, self.of_a_unit = self.about.users, self.about.samples_per_user

    @classmethod
    def final_noise(cls, metric: Metric, users: int) -> Noise:
        """The noise of a late release of the coordinate where it is widest in proportion, scaled to the first one.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        worst, width = 0.0, width_of(metric, 0)
        for coordinate in range(len(metric.names)):
            last = StatedMean.of(metric, coordinate, Stated(users, None, None)).final(metric)
            worst = max(worst, (last.noise_sd or 0.0) / width_of(metric, coordinate))
        return Noise(worst * width, width)

    def noise(self) -> Noise:
        points = self.configured.points
        return Noise(points[-1].noise_sd if points else None, self._width)

    @property
    def _width(self) -> float:
        return width_of(self.metric, self.coordinate)

    # ---------------------------------------------------------------- what is compared

    def algorithms(self) -> Axis:
        """Every algorithm that the metric's values and delta allow, with the users or prior that it needs."""
        metric = self.metric
        with_delta = WITH_PRIOR if chosen_by_few(metric) else WITH_DELTA
        with_sigma = WITH_SIGMA if len(metric.names) == 1 else ON_BLOCKS
        has_sigma = any(metric.by.sigma(coordinate) is not None for coordinate in range(len(metric.names)))
        values = [
            algorithm
            for algorithm in (OF_EVENTS if metric.unit.is_event else MEANS)
            if (not has_sigma or algorithm in with_sigma) and (not metric.budget.delta or algorithm in with_delta)
        ]
        return Axis("algorithm", values, self._with_algorithm, self.rules)

    def _with_algorithm(self, metric: Metric, algorithm: type[Algorithm]) -> Metric:
        """The metric under an algorithm, with the users or prior that it needs, and without a life that it lacks."""
        given: dict[str, Any] = {} if algorithm is Sharp else {"users": metric.by.users or self.users}
        if algorithm in WITH_PRIOR and not has_prior(metric):
            given["priors"] = tuple((low + high) / 2 for low, high in metric.ranges)
        other = with_algorithm(metric, algorithm, **given)
        return other if algorithm is Sharp or life.stated_life(other) is None else with_life(other, None)

    @cached_property
    def best(self) -> Outlook:
        """The outlook of least error at the end; those that need a prior only if the configuration has one.

        Raises:
            ValueError: no algorithm can do with these settings.
        """
        usable = [outlook for outlook in self.outlooks if outlook.refused is None]
        possible = [outlook for outlook in usable if has_prior(self.metric) or not has_prior(outlook.metric)]
        if not possible:
            raise ValueError(self.outlooks[-1].refused)
        return min(possible, key=lambda outlook: outlook.error)

    @cached_property
    def others(self) -> Sequence[Trial]:
        """The configured cadence and usual ones with at least a few releases, the finest first."""
        over, length = self.about.over, self.metric.length
        usual = {other for other in CADENCES if over is not None and other.span(FEWEST) <= over}
        lengths = [*sorted(usual | {length})] if length else [None, *sorted(usual)]
        axis = Axis("every", lengths, lambda metric, length: with_cadence(metric, length, over), self.rules)
        return list(axis.tried(self.tuned, self.source.final))

    @cached_property
    def advised(self) -> Metric:
        """All settings with expected users, and with the time of the plan as life where a default was taken."""
        tuned = with_time_as_life(finest(self.others, self.about.over).metric, self.about.over)
        return with_users(tuned, self.metric.by.users or self.users)

    @cached_property
    def halving(self) -> Mapping[str, Cost | None]:
        return {what: self.halved(self.best.error, self._scaled(what)) for what in ("epsilon", "users", "time")}

    def _scaled(self, what: str) -> Any:
        def of_factor(factor: float) -> Iterator[tuple[Point, float | None, int]]:
            for scaled, metric in self.source.scaled(self.best.metric, what, factor):
                about = scaled.about(metric)
                time = about.over and about.over / 1e6
                amounts = {"epsilon": float(metric.budget.epsilon), "users": about.users, "time": time}
                yield scaled.final(metric), amounts[what], metric.samples

        return of_factor

    def missing(self) -> Iterator[tuple[str, Any]]:
        if self.metric.by.users is None and self.advised.by.users is not None:
            yield "users", self.advised.by.users
        yield from super().missing()

    @property
    def _limits(self) -> tuple[float, float]:
        """The error that no method stays below, and that by chance; with a sigma for a range as wide as two of it."""
        sigma = self.metric.by.sigma(self.coordinate)
        width = self._width if sigma is None else min(self._width, 2 * float(sigma))
        private, chance = lower_bounds.mean(self.about.sizes, float(self.metric.budget.epsilon))
        return private * width, chance * width

    # ---------------------------------------------------------------- words

    def title(self) -> str:
        count, keys = len(self.metric.names), expect(self.metric.hides.limits, PerKey, Events).keys
        values = f"; {count} values share epsilon" if count > 1 else ""
        return f"{super().title()}{values}" + (f"; {keys} groups of a user share it" if keys > 1 else "")

    def workload(self) -> str:
        about, sigma = self.about, self.metric.by.sigma(self.coordinate)
        what, each = ("events", None) if self.metric.unit.is_event else ("users", about.samples_per_user)
        who = f"{about.users:,} {what}{which_users(self.metric, self.groups)}"
        text = workload_words(who, each, about.over, about.pattern)
        if about.spread is None:  # from a file
            return text
        law = "anywhere in the range" if about.spread == 1 else f"in the middle {percent(about.spread)} of the range"
        return f"{text}; values {law if sigma is None else f'with a sigma of {float(sigma):g}'}"

    def _settings(self) -> Iterator[str]:
        yield self.advised.by.name
        yield cap_words(self.advised).removeprefix(", ")
        yield f"every {every_of(self.advised.length)}"

    def _remarks(self) -> Iterator[str]:
        kind = "expected of what is left out" if self.private else "measured"
        yield (
            f"error: at the end, noise and the bias {kind}; useful: a noise interval narrower than "
            f"{number(float(USEFUL) * self._width)}, a quarter of the range. The mean of all samples itself is good to "
            f"{number(self.about.sampling_error)}, if they are independent."
        )
        if self.metric.budget.delta and not chosen_by_few(self.metric):
            kinds = (
                f"{one_mean(outlook.metric, self.coordinate).noise_kind} for {outlook.metric.by.name}"
                for outlook in self.outlooks
                if outlook.points
            )
            yield f"noise, of the kind with less at the last release expected: {', '.join(kinds)}"
        yield from life.remarks(self.metric)
        yield "-: nothing is released, or the middle of the range, which says nothing."
        if any(has_prior(outlook.metric) for outlook in self.outlooks):
            yield f"* needs a prior{self._prior}"
        for outlook in self.outlooks:
            if outlook.likely is not None and outlook.likely[1] > SAME * outlook.likely[0]:
                low, high = map(number, outlook.likely)
                yield (
                    f"{outlook.metric.by.name} chooses what to clip to privately, once: shown is the median. At the "
                    f"end its noise is between {low} and {high} in four of five cases."
                )
        yield from self.refusals()

    @property
    def _prior(self) -> str:
        """Where the prior of those who need one comes from."""
        if chosen_by_few(self.metric):
            return ", which few users choose: until then nothing is released."
        return "." if has_prior(self.metric) else ", which this configuration lacks."

    def advice(self) -> Iterator[str]:
        yield from self.errors()
        if self.best.useful is None:
            yield "nothing useful comes of it in this time: more users, more epsilon or a narrower range are needed"
        units = {"epsilon": "epsilon {}", "users": "{} " + ("events" if self.metric.unit.is_event else "users")}
        ways = []
        for what, cost in self.halving.items():
            if cost is not None and cost.amount is not None:
                amount = duration(round(cost.amount * 1e6)) if what == "time" else number(cost.amount)
                ways.append(cost.words(units.get(what, "{}").format(amount), self.best.metric))
        yield f"half the error would take: {', or '.join(ways)}" if ways else "half the error cannot be had this way"
        if self.private and self.halving["time"] is None and ways:
            yield f"more time alone would not do it: who has given {self.metric.cap_key} samples adds nothing more"
        private, chance = map(number, self._limits)
        if self.metric.budget.delta:
            yield f"by chance no method comes within {chance} of the mean of the law that values follow"
            return
        yield (
            f"no method that is epsilon-DP comes within {private} of the mean of the law that values follow with "
            f"probability 2/3, whatever that law; by chance none comes within {chance} (George et al., section 5)"
        )

    # ---------------------------------------------------------------- tables

    def sections(self) -> Iterator[Section]:
        yield self._algorithms()
        yield self.by_cap(f"{self.metric.cap_key}, with {self.best.metric.by.name}")
        columns = [
            Column("every", is_text=True), Column("left out", 1), Column("noise"), Column("error"), MARK,
        ]  # fmt: skip
        rows = [
            Row(every_of(length), {"every": every_of(length)}, point,
                *self.marked(length, self.metric.length, self.advised.length))
            for length, _, point in self.others
        ]  # fmt: skip
        settings = f"{self.best.metric.by.name}{cap_words(self.advised)}"
        yield Section.of("by_cadence", f"cadence, with {settings}", columns, rows, remarks=[TUNED])

    def _algorithms(self) -> Section:
        def amount(point: Point) -> str:
            return number(point.noise_sd if point.samples else None)

        def useful(outlook: Outlook) -> str:
            return "never" if outlook.useful is None else outlook.useful.when()

        named = [(f"{outlook.metric.by.name}{'*' * has_prior(outlook.metric)}", outlook) for outlook in self.outlooks]
        shown = self.times(next(outlook.points for outlook in self.outlooks if outlook.points))
        after = [*self.at_the_end, (Column("useful from"), useful)]
        return self.over_time("noise (standard deviation)", named, amount, [], shown, after, self._remarks())

    # ---------------------------------------------------------------- for programs

    def fields(self) -> dict[str, Any]:
        metric, about = self.metric, self.about
        return {
            **self._with_delta(),
            "max_contributions": metric.samples,
            "every": every_of(metric.length),
            "workload": as_json(about, IN_NUMBERS) | {"over": about.over and about.over / 1e6},
            "algorithms": SECTION,
            "recommended": {
                "algorithm": self.advised.by.name,
                "max_contributions": self.advised.samples,
                "every": every_of(self.advised.length),
                **dict(self.missing()),
                "outcome": self.outcome.fields(),
            },
            "by_max_contributions": SECTION,
            "by_cadence": SECTION,
            **self.costs(),
            "lower_bound": dict(zip(("error", "by_chance"), self._limits, strict=True)),
        }

    def _with_delta(self) -> dict[str, Any]:
        """The delta and the kind of noise that the metric has as configured, where there is a delta."""
        if not self.metric.budget.delta or not self.configured.points:
            return {}
        mechanism = one_mean(self.metric, self.coordinate).noise_kind
        return {"delta": float(self.metric.budget.delta), "mechanism": mechanism}

    def fields_of(self, outlook: Outlook) -> dict[str, Any]:
        return {
            "algorithm": outlook.metric.by.name,
            "configured": outlook is self.configured,
            "needs_prior": has_prior(outlook.metric),
            "refused": outlook.refused,
            "first_useful": outlook.useful and outlook.useful.fields(),
            "last_noise_sd_likely": outlook.likely and list(outlook.likely),
            "over_time": [point.fields() for point in outlook.points],
        }


def has_prior(metric: Metric) -> bool:
    """Whether the metric's algorithm clips around a prior, given or chosen by few users."""
    return isinstance(metric.by, AroundPrior)


def chosen_by_few(metric: Metric) -> bool:
    """Whether few users choose the prior."""
    return isinstance(metric.by, AroundPrior) and isinstance(metric.by.priors, FewUsersPrior)


def with_cadence(metric: Metric, length: Even | None, over: int | None) -> Metric:
    """The metric with another cadence, and then with the time of the plan as its life, unless a life is stated."""
    if length == metric.length:
        return metric
    at = EachContribution() if length is None else Ticks(length, life.stated_life(metric))
    return with_time_as_life(replace(metric, at=at), over)


def finest(tried: Sequence[Trial], over: int | None) -> Trial:
    """The finest of the cadences with many releases that costs no more than a quarter in error."""
    often = [
        trial for trial in tried if trial.value is None or (over is not None and trial.value.span(MANY) <= over)
    ] or tried
    least = min(trial.point.error for trial in often)
    return next(trial for trial in often if trial.point.error <= FREQUENT * least)
