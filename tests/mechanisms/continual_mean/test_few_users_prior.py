"""A prior that few users choose: who they are, the law over neighbours, what follows from a point, and from none."""

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, cast
from unittest.mock import patch

import pytest

from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.few_users_prior import FewUsersReleaser
from shoal.mechanisms.continual_mean.given_prior import ClippedReleaser, GivenPrior
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.error_bars import Scales
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection.few_users_point import PointChoice, stretches
from shoal.mechanisms.statistic import Activation, Contribution, Estimate
from shoal.mechanisms.workload import Pattern
from shoal.models.config.metric import MetricSection
from tests.mechanisms.mechanism_cases import KEY, Sample, by_tick, contributions, mean, play_ticks
from tests.mechanisms.selection.test_few_users_point import hockey_stick, law
from tests.support.effort import tries

Few = type[GivenPrior]
ALL: list[Few] = [Wishful, SingleTree, MultiTree]
every = pytest.mark.parametrize("cls", ALL)
MILLION = 10**6
WIDE = Grid(Fraction(-MILLION), Fraction(MILLION), 1 << 24)


def few_users(cls: Few, **more: Any) -> GivenPrior:
    """The algorithm over a million on either side of 0; values scatter by 5."""
    given: dict[str, Any] = {"grid": WIDE, "epsilon": Fraction(4), "delta": Fraction(1, 10**6), "sigma": Fraction(5)}
    return cls(**(given | {"max_contributions": 16, "users": 200} | more))


def small(cls: Few, **more: Any) -> GivenPrior:
    """The algorithm over [-1, 3] in eight steps, for four users who choose."""
    given: dict[str, Any] = {"m": 4, "steps": 8, "users": 2, "epsilon": Fraction(700), "delta": Fraction(1, 1000)}
    made = mean(cls, prior=None, **(given | more))
    assert isinstance(made, GivenPrior)
    return made


def sent_by(parameters: GivenPrior, values: Sequence[Sequence[float]]) -> list[Contribution]:
    """What bound sends if in each tick each user has one sample."""
    clip, bounder = parameters.sample_grid.clip, parameters.bounder()
    accounts, sent = [0] * len(values), []
    for at in range(len(values[0])):
        for user, own in enumerate(values):
            accounts[user], block = bounder.add(accounts[user], clip(own[at]))
            if block:
                sent.append(Contribution(at, f"{user:032x}", *block[:4]))
    return sorted(sent)


def crowd(users: int, each: int, centre: float, seed: int = 1) -> list[list[float]]:
    drawn = random.Random(seed)
    return [[drawn.gauss(centre, 5) for _ in range(each)] for _ in range(users)]


def run(
    parameters: GivenPrior, values: Sequence[Sequence[float]], key: bytes = KEY
) -> tuple[list[Estimate | None], list[tuple[int, Activation]]]:
    """The releases and activations of all ticks."""
    return play_ticks(parameters.releaser(key, b""), by_tick(sent_by(parameters, values)))


# ---------------------------------------------------------------- what it finds


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


@every
@pytest.mark.parametrize("centre", [-1_500_000.0, 2e9])
def test_a_point_beyond_the_range_becomes_its_end(cls: Few, centre: float) -> None:
    # given samples beyond what is said of their mean, which clipping leaves a little outside
    _, ((_, activation),) = run(few_users(cls), crowd(140, 16, centre))
    assert activation.prior == math.copysign(MILLION, centre)


# ---------------------------------------------------------------- who chooses, and what of


@contextmanager
def overheard(point: int | None = 0) -> Iterator[list[tuple[PointChoice, list[int]]]]:
    """Every choice and its numbers; what is chosen is this point."""
    calls: list[tuple[PointChoice, list[int]]] = []

    def choose(choice: PointChoice, numbers: Sequence[int], words: Iterator[int]) -> int | None:
        calls.append((choice, list(numbers)))
        return point

    with patch.object(PointChoice, "choose", choose):
        yield calls


def test_the_first_users_with_enough_samples_choose_by_the_means_of_those() -> None:
    # given users who have one, four and sixteen samples, and more of the latter than are needed
    parameters = few_users(MultiTree)
    few, drawn = parameters.few, random.Random(3)
    assert (few.level, few.samples) == (2, 4)
    order = [f"{user:032x}" for user in range(few.users + 9)]
    drawn.shuffle(order)
    values = {name: [drawn.randrange(1000) for _ in range(16)] for name in order}
    # given that the last of them come with all samples in one tick
    late = set(order[few.users - 3 :])
    samples = [
        Sample(50 if name in late else at * 3 + place % 3, name, value)
        for place, name in enumerate(order)
        for at, value in enumerate(values[name])
    ]
    sent = contributions(parameters, sorted(samples, key=lambda sample: sample.effective))
    with overheard() as calls:
        _, activations = play_ticks(parameters.releaser(KEY, b""), by_tick(sent))
    # then those choose whose third block came first, and of one time by pseudonym
    enough = sorted((row.effective, row.pseudonym) for row in sent if row.level == few.level)[: few.users]
    start = parameters.margin
    expected = [math.floor(Fraction(sum(values[name][:4]), 4) + start + Fraction(1, 2)) for _, name in enough]
    ((choice, numbers),) = calls
    assert numbers == expected
    assert (choice.numbers, choice.epsilon, choice.delta) == (few.users, Fraction(1), Fraction(1, 10**6))
    assert len(activations) == 1


def test_a_user_whose_lower_blocks_are_missing_has_not_enough() -> None:
    """With late samples a block may come after the next one: its user counts when all are there, in any order."""
    parameters = few_users(MultiTree, epsilon=Fraction(10**4))
    few = parameters.few
    blocks = [Contribution(0, f"{user:032x}", level + 1, level, 1 << max(0, level - 1), 7)
              for user in range(few.users) for level in range(few.level + 1)]  # fmt: skip
    for missing in range(few.level + 1):
        releaser = parameters.releaser(KEY, b"")
        for block in blocks:
            if block.level != missing:
                releaser.add(block)
        assert not releaser.close()
        for block in blocks:
            if block.level == missing:
                releaser.add(block)
        assert len(releaser.close()) == 1


@every
def test_a_block_that_comes_twice_stops(cls: Few) -> None:
    releaser = few_users(cls).releaser(KEY, b"")
    block = Contribution(0, "a", 1, 0, 1, 5)
    releaser.add(block)
    with pytest.raises(ValueError, match="a unit's block of level 0 arrived twice"):
        releaser.add(block._replace(effective=3))


def test_the_choice_has_bits_of_its_own_name() -> None:
    parameters = few_users(Wishful)
    values = crowd(parameters.few.users, 16, 100.0)
    for coordinate in (0, 3):
        releaser = parameters.releaser(KEY, b"g", coordinate)
        _, ((_, found),) = play_ticks(releaser, by_tick(sent_by(parameters, values)))
        with overheard() as calls:
            play_ticks(parameters.releaser(KEY, b"g", coordinate), by_tick(sent_by(parameters, values)))
        ((choice, numbers),) = calls
        subkey = derive(KEY, b"g", "few-users-prior", "mean", coordinate, 0, 0)
        point = choice.choose(numbers, Bits(subkey).draw(0))
        assert found.prior == parameters.sample_grid.mean_value(point or 0, 1)


# ---------------------------------------------------------------- the constants


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
    both = ContinualMean.of(section)
    assert isinstance(both, Coordinates)
    parts = [cast(GivenPrior, part) for part in both.parts]
    assert sum(part.delta for part in parts) == section.delta == Fraction(1, 10**6)
    assert sum(part.epsilon for part in parts) == section.epsilon
    assert all(part.prior is None for part in parts)
    # and what the guarantee says in words is what they do
    (said,) = [clause for clause in ContinualMean.clauses(section, "") if "chosen" in clause]
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


# ---------------------------------------------------------------- privacy, by brute force


def variants(m: int) -> Iterator[list[list[Sample]]]:
    """Patterns of six users; for each, every way in which all values of one may be the lowest or the highest."""
    for pattern in ("a" * m + "bcdef" * m, "abcdef" * m, "fedcba" * (m - 1) + "a" + "bcdef"):
        rows = [(at // 2, unit) for at, unit in enumerate(pattern)]
        own = sum(unit == "a" for _, unit in rows)
        others = random.Random(m)
        values = {(at, unit): others.choice([2, 3]) for at, unit in rows}
        yield [
            [Sample(at, unit, next(chosen) if unit == "a" else values[at, unit]) for at, unit in rows]
            for chosen in map(iter, itertools.product([0, 8], repeat=own))
        ]


def elements(
    parameters: GivenPrior, samples: list[Sample]
) -> tuple[list[list[int]], list[tuple[int, ...]], list[BinaryTree]]:
    """What each counter holds after each tick, the counts of the same, and their trees."""
    releaser = parameters.releaser(KEY, b"")
    assert isinstance(releaser, FewUsersReleaser)
    sums, counts = [], []
    for tick in by_tick(contributions(parameters, samples)):
        play_ticks(releaser, [tick])
        head = releaser.head()
        counts.append(tuple(head[1]))
        sums.append(list(head[2]))
    inner = releaser._inner
    return sums, counts, [counter.tree for counter in inner._counters] if isinstance(inner, ClippedReleaser) else []


@pytest.mark.parametrize("point", [None, 0, 3, 8])
@pytest.mark.parametrize("m", [1, 2, 4])
@every
def test_after_any_choice_neighbours_differ_by_what_the_counters_are_for(
    cls: Few, m: int, point: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All values of a user change: the choice's numbers in one place, and each counter by its width."""
    # given intervals so narrow that they really clip
    monkeypatch.setattr(GivenPrior, "half_width", lambda _, weight, projections: weight + 1)
    parameters = small(cls, m=m)
    attempts = 0
    for runs in variants(m):
        found = []
        for samples in runs:
            with overheard(point) as calls:
                found.append((elements(parameters, samples), [numbers for _, numbers in calls]))
        attempts += len(found[0][1])
        for ((one, counts, trees), numbers), ((other, *same), others) in itertools.combinations(found, 2):
            assert [counts, trees] == same
            # then there is one choice at most, and one number of it differs
            assert len(numbers) == len(others) <= 1
            for mine, theirs in zip(numbers, others, strict=True):
                assert sum(a != b for a, b in zip(mine, theirs, strict=True)) <= 1
            # and what moves in each counter, over all ticks together, is what its noise is for
            loss = Fraction(0)
            for index, tree in enumerate(trees):
                rows = [(a[index], b[index]) for a, b in zip(one, other, strict=True) if a]
                differences = [a - b for a, b in rows]
                steps = zip(differences, [0, *differences], strict=False)
                loss += Fraction(sum(abs(now - before) for now, before in steps) * tree.height) / tree.scale
            assert loss <= parameters.epsilon * Fraction(3, 4)
    assert attempts


def test_no_neighbours_choose_with_more_than_a_quarter_of_epsilon_and_delta() -> None:
    """The exact law of the choice over random neighbours, of whom one changes all samples."""
    drawn, used = random.Random(11), []
    for _ in range(tries(60)):
        epsilon, delta = drawn.choice(["40", "160", "700"]), Fraction(drawn.choice([1, 20]), 1000)
        parameters = small(MultiTree, epsilon=Fraction(epsilon), delta=delta, failure=Fraction("0.9"), m=8)
        users = parameters.few.users
        spot = drawn.choice([[0, 8], [3, 4], [0]])
        samples = [Sample(at, f"{user}", drawn.choice(spot)) for at in range(8) for user in range(users)]
        changed = [row._replace(value=8 - row.value if row.unit == "0" else row.value) for row in samples]
        with overheard() as calls:
            for stream in (samples, changed):
                play_ticks(parameters.releaser(KEY, b""), by_tick(contributions(parameters, stream)))
        (choice, one), (same, other) = calls
        assert choice == same
        stick = hockey_stick(law(choice, one), law(choice, other), float(epsilon) / 4)
        assert stick <= float(delta) * (1 + 1e-9)
        used.append(stick)
    assert used


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
