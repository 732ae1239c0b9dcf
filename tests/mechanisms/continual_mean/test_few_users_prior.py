"""A prior that few users choose: that it is found, its constants, what follows from a point, and from none."""

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

import pytest

from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.few_users_prior import FewUsersReleaser
from shoal.mechanisms.continual_mean.given_prior import GivenPrior
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.error_bars import Scales
from shoal.mechanisms.selection.few_users_point import stretches
from shoal.mechanisms.workload import Pattern
from shoal.models.config.metric import MetricSection
from tests.mechanisms.continual_mean.few_users_cases import (
    ALL,
    MILLION,
    WIDE,
    Few,
    crowd,
    every,
    few_users,
    overheard,
    run,
    sent_by,
)
from tests.mechanisms.mechanism_cases import KEY, by_tick, mean, play_ticks
from tests.support.cover import in_a_loop

# ---------------------------------------------------------------- what it finds


@in_a_loop
@every
@pytest.mark.parametrize("centre", [731_234.5, -999_000.0, 3.0])
def test_a_mean_far_from_the_centre_of_a_huge_range_is_found(cls: Few, centre: float) -> None:
    # given a range 400,000 times as wide as values scatter, and no idea where they are
    parameters = few_users(cls)
    users = parameters.few.users
    estimates, activations = run(parameters, crowd(users + 40, 16, centre))
    # then one attempt is made when enough users have given enough samples, and finds them
    assert len(activations) == 1
    at, activation = activations[0]
    assert at == len([tick for tick in estimates if tick is None])
    assert activation.samples == users * parameters.few.samples
    assert activation.epsilon == 1
    assert abs(activation.prior - centre) <= parameters.grid.width_value(parameters.few.off)
    # and the noise is for how values scatter, not for how wide the range is
    assert estimates[-1] is not None
    assert abs(estimates[-1].value - centre) < 100
    samples, tree = (users + 40) * 16, Naive(grid=WIDE, epsilon=Fraction(4), max_contributions=16, users=200).tree
    per_sample = parameters.grid.width_value(math.sqrt(tree.variance(samples))) / samples
    assert estimates[-1].noise_sd < per_sample / 100


@every
def test_nothing_is_released_or_chosen_before_enough_users_have_come(cls: Few) -> None:
    parameters = few_users(cls)
    estimates, activations = run(parameters, crowd(parameters.few.users - 1, 16, 5000.0))
    assert activations == []
    assert set(estimates) == {None}


def chance_near(few: Any, means: Sequence[int], centre: int) -> float:
    """The probability of a point within 3 r0 of the centre, by the law."""
    weights = {None: math.log(few.choice.garbage * few.choice.ball)}
    near = []
    for stretch in stretches(sorted(means), few.choice.radius):
        log = math.log(stretch.points) + float(few.choice.rate) * stretch.near
        weights[len(weights)] = log  # type: ignore[index]
        if abs(stretch.start - centre) <= few.off and abs(stretch.start + stretch.points - 1 - centre) <= few.off:
            near.append(log)
    most = max(weights.values())
    return sum(math.exp(log - most) for log in near) / sum(math.exp(log - most) for log in weights.values())


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_49_percent_may_be_anywhere_and_a_third_in_one_wrong_place(epsilon: str) -> None:
    few = few_users(MultiTree, epsilon=Fraction(epsilon)).few
    drawn, true, false = random.Random(5), 1 << 22, 1 << 20
    good = [true + drawn.randint(-few.reach, few.reach) for _ in range(few.users)]
    bad = few.users * 49 // 100
    # given users who are all wrong in ways of their own
    scattered = [drawn.randrange(1 << 24) for _ in range(bad)]
    assert chance_near(few, good[bad:] + scattered, true) > 1 - few.failure
    # or a third of them who agree on a wrong place
    third = few.users // 3
    assert chance_near(few, good[third:] + [false] * third, true) > 0.999
    # then the point is right; with all of 49 % in one wrong place it is only likelier to be
    assert 0.5 < chance_near(few, good[bad:] + [false] * bad, true) < 0.99


@in_a_loop
@every
@pytest.mark.parametrize("centre", [-1_500_000.0, 2e9])
def test_a_point_beyond_the_range_becomes_its_end(cls: Few, centre: float) -> None:
    # given samples beyond what is said of their mean, which clipping leaves a little outside
    _, ((_, activation),) = run(few_users(cls), crowd(140, 16, centre))
    assert activation.prior == math.copysign(MILLION, centre)


# ---------------------------------------------------------------- the constants


@in_a_loop
@pytest.mark.parametrize("sigma", [None, Fraction(1, 50)])
@pytest.mark.parametrize(("m", "samples"), [(1, 1), (2, 1), (4, 1), (8, 2), (100, 16), (128, 32)])
def test_constants_are_those_of_the_proof(m: int, samples: int, sigma: Fraction | None) -> None:
    steps, users, failure = 1 << 20, 5000, Fraction(1, 1000)
    spread = steps if sigma is None else 2 * float(sigma) * steps / 4 + 1
    for cls in ALL:
        parameters = mean(cls, prior=None, m=m, users=users, sigma=sigma, groups=2, delta=Fraction(1, 10**6))
        assert isinstance(parameters, GivenPrior)
        few = parameters.few
        assert few.samples == (m if cls is Wishful else samples)
        assert (few.epsilon, few.delta) == (Fraction(1, 8), Fraction(1, 2 * 10**6))
        # N: 51 % of it are 1 + 2 / e (ln(1 / (d f)) + ln 2) or more
        needed = 1 + math.ceil(16 * (math.log(2e6) + math.log(3000) + math.log(2)))
        assert few.users == math.ceil(needed / 0.51)
        # r0 = sigma sqrt(2 ln(2 N / f) / s), and a step for rounding; D has w (R + r0), with R = 2 r0
        reach = math.ceil(spread / 2 * math.sqrt(2 * math.log(2 * few.users * 3000) / few.samples)) + 1
        assert few.reach == reach
        blocks = 1 if cls is Wishful else max(1, math.ceil(math.log2(m))) + (sigma is not None)
        for weight, half in zip(parameters.weights, parameters.half_widths, strict=True):
            hoeffding = spread * math.sqrt(weight / 2 * math.log(2 * users * blocks * 3 / failure))
            assert 0 <= half - (hoeffding + weight * 3 * reach) < 2
        for width, half, weight in zip(parameters.widths, parameters.half_widths, parameters.weights, strict=True):
            assert width == min(2 * half, weight * parameters.sample_grid.steps)


@in_a_loop
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("m", [1, 3, 5, 1024])
@every
def test_the_shares_sum_to_epsilon_and_delta(cls: Few, m: int, groups: int) -> None:
    epsilon, delta = Fraction("0.7"), Fraction(1, 10**5)
    parameters = mean(cls, prior=None, m=m, groups=groups, epsilon=epsilon, delta=delta)
    assert isinstance(parameters, GivenPrior)
    for trees in (parameters.trees, parameters.trees_of(parameters.widest)):
        assert groups * (parameters.few.epsilon + sum(tree.epsilon for tree in trees)) == epsilon
    assert groups * parameters.few.delta == delta


def test_coordinates_share_epsilon_and_delta() -> None:
    given = {
        "name": "m", "topic": "t", "user": "u", "value": ["x", "y"], "statistic": "mean", "range": [[0, 1], [0, 5]],
        "epsilon": 1, "delta": "1e-6", "max_contributions": 9, "users": 9, "every": "1h", "algorithm": "multi-tree",
        "prior": "few-users",
    }  # fmt: skip
    section = MetricSection.model_validate(given)
    both = ContinualMean.of(section.parts)
    assert isinstance(both, Coordinates)
    parts = [cast(GivenPrior, part) for part in both.parts]
    assert sum(part.delta for part in parts) == section.delta == Fraction(1, 10**6)
    assert sum(part.epsilon for part in parts) == section.epsilon
    assert all(part.prior is None for part in parts)
    # and what the guarantee says in words is what they do
    (said,) = [clause for clause in ContinualMean.clauses(section.parts, "") if "chosen" in clause]
    few = parts[0].few
    assert f"with 1/4 of epsilon and all of delta, by the first {few.users:,} users with {few.samples} samples" in said


@every
def test_a_delta_is_needed(cls: Few) -> None:
    with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
        mean(cls, prior=None)


def test_a_plan_waits_for_the_attempt() -> None:
    # given that all users reach a quarter of their samples at a quarter of the time
    parameters = few_users(MultiTree)
    pattern = Pattern.even(parameters.few.users, 16)
    assert parameters.counted(pattern, 0.2) == (0, ())
    samples, noise = parameters.counted(pattern, 1.0)
    assert samples == parameters.few.users * 16
    assert {scale for scale, _ in cast(Scales, noise)} == {tree.scale for tree in parameters.trees}
    fewer = Pattern.even(parameters.few.users - 1, 16)
    assert parameters.counted(fewer, 1.0) == (0, ())


# ---------------------------------------------------------------- none, and the state


@every
def test_without_a_point_nothing_is_clipped_and_the_noise_is_for_the_whole_range(cls: Few) -> None:
    # given users who are all apart, and so much epsilon that there is no noise
    parameters = few_users(cls, epsilon=Fraction(10**30), delta=Fraction(1, 10**40), users=20)
    centres = [-900_000.0, -300_000.0, 300_000.0, 900_000.0] * 30
    values = [[centre] * 16 for centre in centres]
    with overheard(None):
        estimates, ((_, activation),) = run(parameters, values)
    assert activation.prior is None
    assert estimates[-1] is not None
    assert abs(estimates[-1].value - sum(centres) / len(centres)) < 1
    # given as much as usual
    usual = few_users(cls)
    with overheard(None):
        estimates, _ = run(usual, values)
    steps = usual.sample_grid.steps
    assert usual.trees_of(usual.widest)[-1].width >= 16 * steps // 2
    assert estimates[-1] is not None
    assert estimates[-1].noise_sd > 1000


def test_none_of_users_who_are_apart_is_almost_certain() -> None:
    parameters = few_users(MultiTree)
    apart = [[10_000.0 * user - 600_000] * 16 for user in range(parameters.few.users)]
    _, ((_, activation),) = run(parameters, apart)
    assert activation.prior is None


@every
def test_an_interval_is_never_wider_than_a_block(cls: Few) -> None:
    # given data of which nothing is known but a range: where the paper's interval is wider, all that a block may be
    parameters = mean(cls, prior=None, m=4096, users=20, delta=Fraction(1, 1000))
    assert isinstance(parameters, GivenPrior)
    clips = parameters.around_point(100)
    for (low, high), width, widest in zip(clips, parameters.widths, parameters.widest, strict=True):
        assert high - low == width <= widest
        assert width < widest or (low, high) == (0, widest)
    assert cls is Wishful or clips[0] == (0, parameters.grid.steps)
    assert parameters.widths[-1] < parameters.widest[-1]


@every
def test_blocks_are_kept_until_the_attempt_and_no_longer(cls: Few) -> None:
    parameters = few_users(cls, epsilon=Fraction(400))
    releaser = parameters.releaser(KEY, b"")
    assert isinstance(releaser, FewUsersReleaser)
    users, blocks = parameters.few.users, len(parameters.weights)
    seen: dict[int, int] = defaultdict(int)
    for tick in by_tick(sent_by(parameters, crowd(users, 16, 50.0))):
        activated = play_ticks(releaser, [tick])[1]
        for row in tick:
            seen[row.level] += 1
        if not activated and releaser.head()[3] == []:
            assert len(releaser.kept) == sum(seen.values()) <= users * blocks
            assert [level.waiting for level in releaser.levels] == [seen[index] for index in range(blocks)]
            assert all(level.elements == level.total == 0 for level in releaser.levels)
        else:
            assert releaser.kept == {}
            assert sum(level.elements for level in releaser.levels) == sum(seen.values())
    assert releaser.kept == {}


def test_coordinates_choose_at_once_each_for_itself() -> None:
    # given a second coordinate in which users are apart
    parts = tuple(few_users(MultiTree, epsilon=Fraction(2), delta=Fraction(1, 2 * 10**6)) for _ in range(2))
    both, users = Coordinates(parts), parts[0].few.users
    alone, apart = (sent_by(parts[0], values) for values in (crowd(users, 16, 70_000.0), crowd(users, 16, 0.0)))
    spread = [row._replace(total=row.samples * (1 << 17) * int(row.pseudonym, 16)) for row in apart]
    rows = [one._replace(total=[one.total, other.total]) for one, other in zip(alone, spread, strict=True)]
    releaser = both.releaser(KEY, b"")
    estimates, ((_, activation),) = play_ticks(releaser, by_tick(rows))
    # then there is one activation, with the prior of one and none of the other
    found, none = activation.prior
    assert none is None
    assert abs(found - 70_000) < 100
    assert activation.samples == [users * 4] * 2
    assert activation.epsilon == 1
    assert estimates[-1] is not None
    assert None not in estimates[-1].value
