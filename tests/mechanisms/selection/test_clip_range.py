"""Private centre and scale: their exact output laws against e**epsilon, over all neighbours of small data sets."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp.buckets import Buckets, outside
from shoal.mechanisms.continual_mean.sharp.cap import Beginning
from shoal.mechanisms.continual_mean.sharp.parameters import SHORT
from shoal.mechanisms.continual_mean.sharp.releaser import SharpReleaser
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection import clip_range, exponential
from tests.mechanisms.continual_mean.sharp.sharp_cases import sharp
from tests.mechanisms.mechanism_cases import KEY, Sample, by_tick, contributions, merged
from tests.support.cover import in_a_loop

EPSILON = Fraction(3, 2)
STEPS = 8
HALVES = (8, 4, 2, 1)
ENDS = Buckets(STEPS)


def law(monkeypatch: pytest.MonkeyPatch, call: Callable[[], int]) -> tuple[list[int], list[float]]:
    """(costs, probabilities) of a call, by the definition of the exponential mechanism."""
    seen: list[tuple[Sequence[int], Fraction]] = []

    def choose(costs: Sequence[int], rate: Fraction, words: object) -> int:
        seen.append((costs, rate))
        return 0

    with monkeypatch.context() as patch:
        patch.setattr(exponential, "choose", choose)
        call()
    ((costs, rate),) = seen
    weights = [math.exp(-float(rate) * cost) for cost in costs]
    return list(costs), [weight / sum(weights) for weight in weights]


def histogram(values: Sequence[int]) -> list[int]:
    found = Counter(map(ENDS.of, values))
    return [found[bucket] for bucket in range(ENDS.count)]


def centre_of(values: Sequence[int]) -> int:
    return clip_range.centre(histogram(values), EPSILON, iter(()))


def scale_of(values: Sequence[int], middle: int, target: int) -> int:
    left = [outside(histogram(values), *ENDS.around(middle, half)) for half in HALVES]
    return clip_range.scale(left, target, EPSILON, iter(()))


SETS: list[tuple[int, ...]] = list(itertools.combinations_with_replacement(range(STEPS + 1), 4))


def worst(laws: dict[tuple[int, ...], list[float]]) -> float:
    """The largest log ratio over all data sets and all changes of one value."""
    found = 0.0
    for values, one in laws.items():
        for i, value in itertools.product(range(4), range(STEPS + 1)):
            other = laws[tuple(sorted((*values[:i], value, *values[i + 1 :])))]
            found = max(found, *(abs(math.log(a / b)) for a, b in zip(one, other, strict=True)))
    return found


def test_the_law_of_a_centre_is_within_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = {values: law(monkeypatch, partial(centre_of, values))[1] for values in SETS}
    assert 0.6 * EPSILON <= worst(laws) <= EPSILON + Fraction(1, 10**9)


@in_a_loop
@pytest.mark.parametrize(("middle", "target"), [(0, 1), (4, 1), (4, 2), (5, 3), (8, 0)])
def test_the_law_of_a_scale_is_within_epsilon(monkeypatch: pytest.MonkeyPatch, middle: int, target: int) -> None:
    laws = {values: law(monkeypatch, partial(scale_of, values, middle, target))[1] for values in SETS}
    assert 0.4 * EPSILON <= worst(laws) <= EPSILON + Fraction(1, 10**9)


@given(st.lists(st.integers(0, STEPS), min_size=1, max_size=9), st.integers(0, STEPS), st.integers(0, STEPS))
def test_costs_move_by_two_and_by_one_at_most(values: list[int], value: int, middle: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        other = [value, *values[1:]]
        one, two = (law(monkeypatch, partial(centre_of, v))[0] for v in (values, other))
        assert max(abs(a - b) for a, b in zip(one, two, strict=True)) <= 2
        one, two = (law(monkeypatch, partial(scale_of, v, middle, 2))[0] for v in (values, other))
        assert max(abs(a - b) for a, b in zip(one, two, strict=True)) <= 1


def test_a_unit_that_entered_with_all_its_samples_would_break_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why a call sees first samples alone: five numbers of one unit, all changed, move the law by more than epsilon."""
    others = [1, 3, 4, 6, 7]
    laws = [law(monkeypatch, partial(centre_of, [v] * 5 + others))[1] for v in (0, STEPS)]
    assert max(abs(math.log(a / b)) for a, b in zip(*laws, strict=True)) > EPSILON


Seen = list[tuple[list[int], Fraction]]


def heard(monkeypatch: pytest.MonkeyPatch, releaser: SharpReleaser, choose: Callable[[list[int]], int]) -> Seen:
    """(costs, rate) of the calls that the end of a tick makes."""
    seen: Seen = []

    def note(costs: Sequence[int], rate: Fraction, words: object) -> int:
        seen.append((list(costs), rate))
        return choose(list(costs))

    with monkeypatch.context() as patch:
        patch.setattr(exponential, "choose", note)
        releaser.close()
    return seen


def loss(one: Seen, other: Seen) -> float:
    """The largest log ratio of both calls' laws, summed."""
    found = 0.0
    for (costs, rate), (moved, same) in zip(one, other, strict=True):
        assert rate == same
        both = [[math.exp(-float(rate) * cost) for cost in some] for some in (costs, moved)]
        ratios = [a / sum(both[0]) / (b / sum(both[1])) for a, b in zip(*both, strict=True)]
        found += max(abs(math.log(ratio)) for ratio in ratios)
    return found


@in_a_loop
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("end", [0, STEPS])
def test_of_a_unit_with_several_samples_one_enters(monkeypatch: pytest.MonkeyPatch, together: bool, end: int) -> None:
    """The law of the real calls, where a unit has all of its samples in the tick that begins, at either end."""
    parameters = sharp(6, 63, users=300, horizon=1, steps=STEPS)
    laws = []
    for value in (STEPS // 2, end):
        samples = [Sample(0, f"{unit:032x}", unit % (STEPS + 1)) for unit in range(300)]
        samples += [Sample(0, "f" * 32, value)] * 63
        releaser = parameters.releaser(KEY, b"")
        for sent in (merged if together else contributions)(parameters, samples):
            releaser.add(sent)
        laws.append(heard(monkeypatch, releaser, lambda costs: len(costs) // 2))
        assert releaser._beginning is not None
        assert releaser._beginning.firsts == 301
    assert [len(seen) for seen in laws] == [2, 2]
    # and all of them one number: below the lowest boundary there is none, so its cost is how many there are
    assert [centre[0][0] for centre, _ in laws] == [301, 301]
    assert 0 < loss(*laws) <= parameters.epsilon * (SHORT.centre + SHORT.scale) + Fraction(1, 10**9)


@pytest.mark.parametrize("end", [0, 64])
def test_of_a_unit_with_several_blocks_one_enters(monkeypatch: pytest.MonkeyPatch, end: int) -> None:
    """The same where first blocks are asked, and then those of an octave, in each of which the unit has two."""
    parameters = sharp(200, 64, steps=64)
    laws, begun = list[list[Seen]](), Beginning(1, 0, 0, alike=False)
    for value in (32, end):
        samples = [Sample(at, f"{unit:032x}", 30 + unit % 3) for at in (0, 1) for unit in range(12) for _ in range(16)]
        samples = [s._replace(value=value) if s.unit.endswith("7") else s for s in samples]
        releaser = parameters.releaser(KEY, b"")
        monkeypatch.setattr(SharpReleaser, "_last_release", lambda _: Fraction(32))  # the same in both
        laws.append([])
        for tick in by_tick(merged(parameters, samples)):
            for sent in tick:
                releaser.add(sent)
            laws[-1].append(heard(monkeypatch, releaser, lambda costs: 2 * len(costs) // 3))
        assert releaser._beginning is not None
        begun = releaser._beginning
        assert begun.alike
    shares = parameters.shares(begun)
    assert [[len(seen) for seen in both] for both in laws] == [[2, 1], [2, 1]]
    for at, share in enumerate((shares.centre + shares.scale, shares.octave)):
        assert 0 < loss(laws[0][at], laws[1][at]) <= parameters.epsilon * share + Fraction(1, 10**9)


def test_a_centre_is_drawn_with_its_exact_law(monkeypatch: pytest.MonkeyPatch) -> None:
    values, bits = [0, 1, 1, 4, 5, 8, 8], Bits(derive(KEY, "centre"))
    _, expected = law(monkeypatch, lambda: centre_of(values))
    drawn = Counter(clip_range.centre(histogram(values), EPSILON, bits.draw(index)) for index in range(6000))
    for index, p in enumerate(expected):
        assert abs(drawn[index] - 6000 * p) <= 5 * math.sqrt(6000 * p * (1 - p))


def test_a_scale_is_drawn_with_its_exact_law(monkeypatch: pytest.MonkeyPatch) -> None:
    left, bits = [0, 1, 4, 6], Bits(derive(KEY, "scale"))
    _, expected = law(monkeypatch, lambda: clip_range.scale(left, 2, EPSILON, iter(())))
    drawn = Counter(clip_range.scale(left, 2, EPSILON, bits.draw(index)) for index in range(6000))
    for index, p in enumerate(expected):
        assert abs(drawn[index] - 6000 * p) <= 5 * math.sqrt(6000 * p * (1 - p))


@given(st.integers(1, 30), st.fractions(Fraction(1, 1000), 10**9), st.sampled_from([clip_range.SLACK, clip_range.SURE]))
def test_so_many_are_left_outside_that_none_would_cost_too_much(candidates: int, epsilon: Fraction, slack: int) -> None:
    target, least = clip_range.outside(candidates, epsilon, slack), 2 * (math.log(candidates) + slack) / epsilon
    assert least <= target + Fraction(1, 10**9)
    assert target <= least + 1 + Fraction(1, 10**9)
    # and with as many values as that needs, but not with one less, they can be widened for
    needed = clip_range.values_needed(candidates, epsilon, slack)
    most = clip_range.TO_TWO_SIGMA[-1][0]
    assert Fraction(target, needed) <= most < Fraction(target, needed - 1)


@given(
    st.fractions(0, Fraction(9, 20)),
    st.fractions(Fraction(1, 10**9), 1) | st.sampled_from([Fraction(1, 10**80), Fraction(1, 10**300)]),
    st.booleans(),
)
def test_widening_never_narrows_and_has_an_end(part: Fraction, noise: Fraction, skewed: bool) -> None:
    """It is a function of counts, and none of them may stop a run, whatever epsilon."""
    assert 1 <= clip_range.widening(part, noise, skewed=skewed) <= 10**5
    assert clip_range.widening(part, noise) >= clip_range.widening(part, 2 * noise)
