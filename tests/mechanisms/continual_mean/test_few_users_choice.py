"""Who chooses a prior that few users choose, what of, and the law over neighbours by brute force."""

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction

import pytest

from shoal.mechanisms.continual_mean.few_users_prior import FewUsersReleaser
from shoal.mechanisms.continual_mean.given_prior import ClippedReleaser, GivenPrior
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.continual_mean.few_users_cases import (
    Few,
    crowd,
    every,
    few_users,
    overheard,
    sent_by,
    small,
)
from tests.mechanisms.mechanism_cases import KEY, Sample, by_tick, contributions, play_ticks
from tests.mechanisms.selection.test_few_users_point import hockey_stick, law
from tests.support.cover import in_a_loop
from tests.support.effort import tries


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


@in_a_loop
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
