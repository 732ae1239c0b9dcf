"""Means with a delta: what all calls and counters cost together, which noise is chosen, and how large it is."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from shoal.agents.guarantee import guarantee
from shoal.agents.people import part_of
from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp, gaussian
from shoal.mechanisms.continual_mean.sharp.cap import Beginning
from shoal.mechanisms.continual_mean.sharp.releaser import SharpReleaser
from shoal.mechanisms.continual_mean.statistic import ALGORITHMS
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.counters.gaussian_binary import GaussianBinaryTree
from shoal.mechanisms.counters.growing_root import GrowingRoot
from shoal.mechanisms.forecast.mean_report import MeanReport
from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.privacy.zcdp import largest_rho, smallest_epsilon
from shoal.mechanisms.selection import clip_range
from shoal.mechanisms.statistic import Contribution, Estimate
from shoal.mechanisms.workload import Stated
from shoal.models.config.metric import MetricSection
from shoal.models.config.unit import parse_unit
from tests.mechanisms.continual_mean.sharp.test_sharp_breaches import (
    ALIKE,
    STEPS,
    VALUES,
    begin_at_once,
    every_case,
    run,
    sharp,
    spent,
    stream,
)
from tests.mechanisms.mechanism_cases import KEY, mean
from tests.support.cover import in_a_loop
from tests.support.effort import tries
from tests.support.metric_keys import limited

ONE, TINY = Fraction(1), Fraction(1, 10**6)
LAPLACE, GAUSSIAN = {"mechanism": "laplace"}, {"mechanism": "gaussian"}
both = pytest.mark.parametrize("algorithm", ["sharp", "naive"])


def metric(count: int = 1, **more: Any) -> MetricSection:
    """A mean of so many coordinates, with a delta."""
    usual: dict[str, Any] = {
        "name": "m", "topic": "t", "user": "u", "statistic": "mean", "every": "1d", "users": 1000, "epsilon": 1,
        "max_contributions": 16, "delta": "1e-6", "life": "365d", "value": "x", "range": (0, 1),
    }  # fmt: skip
    if count > 1:
        usual |= {"value": [f"x{number}" for number in range(count)], "range": [[0, 1]] * count}
    if more.get("algorithm", "sharp") != "sharp":
        more |= {"life": None}
    return MetricSection.model_validate({key: one for key, one in limited(usual | more).items() if one is not None})


def parts(section: MetricSection) -> tuple[MeanParameters, ...]:
    made = statistic_of(section.parts)
    assert isinstance(made, Coordinates | MeanParameters)
    return made.parts if isinstance(made, Coordinates) else (made,)


class TestCost:
    """The cost of everything that is published."""

    @in_a_loop
    @every_case
    def test_calls_and_counter_of_a_group_cost_rho_together(
        self, m: int, how: str, cap: int, choices: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of neighbours, as in the pure case; a call of epsilon is an exponential mechanism: epsilon**2 / 8."""
        pure = sharp(m)
        parameters = mean(Sharp, m=m, users=6, steps=STEPS, rho=Fraction(10**5), noise_kind="gaussian")
        assert isinstance(parameters, Sharp)
        assert parameters.shape == pure.shape
        begin_at_once(monkeypatch, how, cap)
        monkeypatch.setattr(SharpReleaser, "_last_release", lambda _: Fraction(STEPS, 2))
        monkeypatch.setattr(clip_range, "widening", lambda *_, **__: ONE)
        runs = [run(parameters, stream(m, values), choices) for values in VALUES]
        tree = runs[0].releaser._counter.tree
        assert isinstance(tree, GrowingRoot)
        worst = 0
        for one, other in combinations(runs, 2):
            assert one.releaser._counter.tree == other.releaser._counter.tree
            assert [call.rate for call in one.calls] == [call.rate for call in other.calls]
            worst = max(worst, sum(abs(x - y) for x, y in zip(one.elements, other.elements, strict=True)))
        assert tree.width * Fraction(1, 4) < worst <= tree.width
        calls = spent(runs[0].calls)
        assert len(calls) == ((2 + parameters.shape.octaves - 1 if how == ALIKE else 2) if choices else 0)
        assert sum((one**2 / 8 for one in calls), tree.rho) == parameters.group_rho
        # what is charged for a call is its own pure epsilon
        assert sum(one.epsilon for _, one in runs[0].activations) == sum(calls)

    @in_a_loop
    @pytest.mark.parametrize("rho", [Fraction(1, 10**60), Fraction(1, 40), Fraction(10**9)])
    @pytest.mark.parametrize("m", [1, 16, 64, 1000, 1 << 20, 1 << 31])
    def test_calls_take_a_small_part_of_any_rho(self, rho: Fraction, m: int) -> None:
        parameters = mean(Sharp, m=m, rho=rho, steps=1 << 10, groups=3)
        assert isinstance(parameters, Sharp)
        longs = [Beginning(m, 0, number, alike=alike) for number in (1, 10**6) for alike in (False, True)]
        for beginning in (Beginning(m, 9, 0, alike=False), Beginning(m, 0, 0, alike=False), *longs):
            left = parameters.counter_rho(rho / 3, beginning)
            assert rho / 3 * Fraction(3, 4) < left <= rho / 3
            assert parameters.counter_share(beginning) ** 2 <= left / (rho / 3)
            tree = parameters.counter(5, beginning)
            assert (tree.width, getattr(tree, "rho", None)) == (5, left)

    @in_a_loop
    @both
    @pytest.mark.parametrize("groups", [1, 7])
    @pytest.mark.parametrize("count", [1, 2, 5, 32])
    def test_all_groups_and_coordinates_cost_what_epsilon_and_delta_allow(
        self, algorithm: str, groups: int, count: int
    ) -> None:
        section = metric(count, algorithm=algorithm, group="g", max_groups=groups)
        made, allowed = parts(section), largest_rho(ONE, TINY)
        assert len(made) == count
        each = [part.group_rho for part in made]
        assert all(each)
        assert sum(rho * groups for rho in each if rho is not None) == allowed == statistic_of(section.parts).rho
        assert smallest_epsilon(allowed, TINY) <= 1
        # and so it is for people together
        assert part_of(parse_unit("user"), section.parts).rho == allowed

    @pytest.mark.parametrize("costs", [((0, 3, 5), (2, 1, 5)), ((0, 9), (2, 7)), ((4, 4, 4, 4), (4, 2, 6, 4))])
    @pytest.mark.slow
    def test_the_law_of_a_call_and_a_counter_keeps_to_epsilon_and_delta(self, costs: Any) -> None:
        """Hockey-stick divergence of an exponential mechanism and a tree of three nodes, summed up; both ways."""
        rho = Fraction(1, 2)
        rate = gaussian.call_epsilon(rho) / 4 * Fraction(1, 3)  # cost moves by 2: pure at a third of what calls share
        call = 4 * rate
        tree = GaussianBinaryTree(3, 1, 2, rho - call**2 / 8)
        weights = [np.exp(-float(rate) * np.array(one)) for one in costs]
        chosen = [one / one.sum() for one in weights]
        plain = BinaryTree(3, 1, ONE)
        for elements in combinations((1, 2, 3), 2):
            moved = [sum((0, node) in plain.nodes_of(element) for element in elements) for node in (1, 2, 3)]
            for epsilon in (0.5, 1.0, 2.0):
                delta = _hockey_stick(chosen, moved, float(tree.sigma2), epsilon)
                assert _allowed(rho, epsilon) >= delta > 0
        # and no less noise would do for what is spent
        assert tree.squared_sensitivity / (2 * tree.sigma2) + call**2 / 8 == rho


def _hockey_stick(chosen: Any, moved: list[int], sigma2: float, epsilon: float) -> float:
    """The sum of max(0, P - e**epsilon Q), the larger one of both ways: a choice, and discrete Gaussians that moved."""
    at = np.arange(-28, 29)
    worst = 0.0
    for first, second in (chosen, chosen[::-1]):
        law, other = np.array(first), np.array(second)
        for steps in moved:
            mine, theirs = np.exp(-(at**2) / (2 * sigma2)), np.exp(-((at - steps) ** 2) / (2 * sigma2))
            law, other = np.outer(law, mine / mine.sum()).ravel(), np.outer(other, theirs / theirs.sum()).ravel()
        worst = max(worst, float(np.maximum(law - math.exp(epsilon) * other, 0).sum()))
    return worst


def _allowed(rho: Fraction, epsilon: float) -> float:
    """A delta for which rho costs at most epsilon, by the conversion that is used."""
    return next(
        float(delta)
        for delta in (Fraction(1, 2**k) for k in range(40, 0, -1))
        if smallest_epsilon(rho, delta) <= epsilon
    )


class TestChoice:
    """Laplace or Gaussian: by public keys alone."""

    @both
    def test_the_one_of_less_variance_at_the_last_release_is_chosen(self, algorithm: str) -> None:
        found = set()
        for delta, count in itertools.product(("1e-3", "1e-6", "1e-12", "1e-60"), (1, 2, 4, 8)):
            section = metric(count, algorithm=algorithm, delta=delta)
            part = parts(section)[0]
            rho = largest_rho(ONE, Fraction(delta)) / count
            other = {"laplace": rho, "gaussian": None}[str(part.noise_kind)]
            assert part.rho == (None if other else rho)
            assert part.late_variance <= replace(part, rho=other).late_variance * (1 + 1e-5)
            found.add(part.noise_kind)
            assert statistic_of(section.parts).chosen() == [part.noise_kind]
        assert found == {"laplace", "gaussian"}

    @both
    def test_where_laplace_is_chosen_noise_is_as_without_a_delta(self, algorithm: str) -> None:
        (with_delta,), (without,) = (parts(metric(algorithm=algorithm, delta=delta)) for delta in ("1e-60", None))
        estimates = [released(part, 3) for part in (with_delta, without)]
        assert [one and one.details for one in estimates] == [LAPLACE, {}]
        for one in estimates:
            assert one is not None
        assert repr(estimates[0]).replace(repr(LAPLACE), "{}") == repr(estimates[1])
        # and what is not used is not counted
        section = metric(algorithm=algorithm, delta="1e-60")
        assert part_of(parse_unit("user"), section.parts).loss.delta == 0
        assert "delta is not used: remove it" in guarantee(section.parts)

    @both
    def test_releases_and_the_guarantee_name_it(self, algorithm: str) -> None:
        section = metric(2, algorithm=algorithm, group="g", max_groups=3)
        assert released(parts(section)[0], 1, groups=True).details == GAUSSIAN  # type: ignore[union-attr]
        assert "its noise is Gaussian, which is what delta is for" in guarantee(section.parts)
        assert "each with rho / 3" in guarantee(section.parts)
        assert "each with epsilon / 3" in guarantee(metric(delta=None, group="g", max_groups=3).parts)

    def test_other_algorithms_have_one_kind(self) -> None:
        for name in set(ALGORITHMS) - {"sharp", "naive"}:
            with pytest.raises(TypeError, match="noise of one kind"):
                _ = mean(ALGORITHMS[name]).late_variance
            assert mean(ALGORITHMS[name]).chosen() is None


def released(
    part: MeanParameters, key: int, *, ticks: int = 60, each: int = 5, groups: bool = False
) -> Estimate | None:
    """The last release of so many ticks, each of which has values in the middle of the range."""
    releaser = part.releaser(derive(KEY, key), b"g" if groups else b"", 0)
    half = part.grid.steps // 2
    for tick in range(ticks):
        releaser.add(Contribution(tick, "", 1, 0, each, each * half))
        releaser.close()
    return releaser.estimate()


class TestSize:
    """How large noise is."""

    @both
    def test_it_is_what_is_stated_and_intervals_hold(self, algorithm: str) -> None:
        part, count = (
            parts(metric(algorithm=algorithm, life="16d", users=20, clamp=False, delta="1e-3"))[0],
            tries(1500),
        )
        assert part.rho is not None
        estimates = [released(part, key, ticks=11) for key in range(count)]
        errors = np.array([one.value - 0.5 for one in estimates if one is not None])
        (sd,) = {one.noise_sd for one in estimates if one is not None}
        assert math.sqrt(float(np.mean(errors**2))) == pytest.approx(sd, rel=4 / math.sqrt(2 * count))
        held = np.mean([one.low <= 0.5 <= one.high for one in estimates if one is not None])
        assert abs(held - 0.95) <= 4 * math.sqrt(0.05 * 0.95 / count)

    @both
    def test_it_grows_like_the_root_of_the_coordinates(self, algorithm: str) -> None:
        """Without a delta it grows like their number."""
        noise = {count: parts(metric(count, algorithm=algorithm))[-1].late_variance for count in (2, 8, 32)}
        pure = {count: parts(metric(count, algorithm=algorithm, delta=None))[-1].late_variance for count in (2, 8)}
        assert math.sqrt(noise[8] / noise[2]) == pytest.approx(2, rel=1e-3)
        assert math.sqrt(noise[32] / noise[2]) == pytest.approx(4, rel=1e-3)
        assert math.sqrt(pure[8] / pure[2]) == pytest.approx(4, rel=1e-3)
        # so do what calls need: as many units for 32 coordinates as for one of a 32nd of rho
        if algorithm == "sharp":
            needed = [parts(metric(count))[0].least_units for count in (2, 8, 32)]  # type: ignore[attr-defined]
            assert needed[1] == pytest.approx(2 * needed[0], rel=0.01)
            assert needed[2] == pytest.approx(4 * needed[0], rel=0.01)

    def test_in_groups_it_grows_like_their_root(self) -> None:
        noise = [
            parts(metric(algorithm="naive", delta="1e-3", group="g", max_groups=groups))[0].late_variance
            for groups in (1, 9)
        ]
        assert math.sqrt(noise[1] / noise[0]) == pytest.approx(3, rel=1e-3)

    @in_a_loop
    @both
    @pytest.mark.parametrize("count", [1, 2])
    def test_a_plan_says_how_large_and_which(self, algorithm: str, count: int) -> None:
        section = metric(count, algorithm=algorithm)
        made = MeanReport.plans(section.parts, Stated(1000, 16.0, 365 * 86_400_000_000))
        assert len(made) == count
        fields = made[-1].fields
        assert (fields["delta"], fields["mechanism"]) == (1e-6, "gaussian")
        (own,) = [one for one in fields["algorithms"] if one["configured"]]
        part = parts(section)[-1]
        if isinstance(part, Naive):
            assert own["over_time"][-1]["noise_sd"] == pytest.approx(
                part.grid.width_value(math.sqrt(part.tree.variance(16_000))) / 16_000, rel=1e-4
            )
        assert {one["algorithm"] for one in fields["algorithms"]} == {"sharp", "naive"}
        assert "gaussian for sharp, gaussian for naive" in " ".join(made[-1].tables[0].remarks)
        assert "delta 0.000001" in made[-1].title
        assert "by chance no method comes within" in " ".join(made[-1].advice)

    def test_a_plan_of_what_is_refused_names_no_noise(self) -> None:
        fields = MeanReport.plans(metric(grid=2**30, max_contributions=64).parts, Stated(1000, 16.0, None))[0].fields
        assert "mechanism" not in fields


class TestState:
    """What survives a crash."""

    @in_a_loop
    @every_case
    @pytest.mark.parametrize("last", [0, 2, 9])
    def test_a_restart_changes_nothing(
        self, m: int, how: str, cap: int, choices: tuple[int, ...], last: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begin_at_once(monkeypatch, how, cap)
        parameters = mean(Sharp, m=m, users=6, steps=STEPS, rho=Fraction(10**5), noise_kind="gaussian", horizon=3)
        assert isinstance(parameters, Sharp)
        samples = stream(m, VALUES[3], ticks=8)  # so that the counter's epochs follow one another
        whole = run(parameters, samples, choices)
        cut = run(parameters, samples, choices, restarts=range(last + 1))
        assert cut[:-1] == whole[:-1]
        assert cut.releaser.head() == whole.releaser.head()
        assert {one.details["mechanism"] for one in whole.estimates if one is not None} == {"gaussian"}


class TestKeys:
    """What a configuration may say."""

    @in_a_loop
    @pytest.mark.parametrize("algorithm", ["wishful", "single-tree", "multi-tree", "full"])
    def test_algorithms_on_levels_have_no_use_for_a_delta(self, algorithm: str) -> None:
        prior = {} if algorithm == "full" else {"prior": 0}
        with pytest.raises(ValueError, match=f"{algorithm} divides epsilon over levels.*one of: sharp, naive"):
            metric(algorithm=algorithm, **prior)

    def test_so_many_coordinates(self) -> None:
        assert len(parts(metric(32))) == 32
        with pytest.raises(
            ValueError, match="value has 9 coordinates, and a mean without a decay 8 at most, or 32 with"
        ):
            metric(9, delta=None)
        with pytest.raises(ValueError, match="must be one name as text, or a list of 2 to 32 names"):
            metric(33)

    def test_events_have_it_too(self) -> None:
        for algorithm in ("sharp", "naive"):
            part = parts(metric(algorithm=algorithm, unit="event", max_contributions=None, delta="1e-3"))[0]
            assert part.rho == largest_rho(ONE, Fraction(1, 1000))

    def test_a_rho_must_be_one(self) -> None:
        with pytest.raises(ValueError, match="rho must be greater than 0"):
            mean(Naive, rho=Fraction(0))
