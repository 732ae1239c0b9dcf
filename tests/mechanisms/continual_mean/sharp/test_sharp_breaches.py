"""The sharp mean against neighbours, part by part: its calls, its widths, and when it does what.

The private choices are made the same in both streams, as composition wants it; what is left must be paid for.
"""

import json
from collections.abc import Callable, Container, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, groupby
from typing import Any, NamedTuple

import pytest

from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.sharp import choices as sharp_choices
from shoal.mechanisms.continual_mean.sharp.cap import Beginning
from shoal.mechanisms.continual_mean.sharp.releaser import SharpReleaser
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.noise import keyed
from shoal.mechanisms.selection import clip_range, exponential
from shoal.mechanisms.statistic import Activation, Estimate
from tests.mechanisms.mechanism_cases import KEY, Sample, contributions, mean, merged
from tests.support.cover import in_a_loop

STEPS = 64
UNITS = 6


class Call(NamedTuple):
    """A private choice: what it was made from, and how sharply."""

    costs: list[int]
    rate: Fraction


class Run(NamedTuple):
    """What a stream brings about."""

    calls: list[Call]
    elements: list[int]  # that entered the counter, tick by tick
    estimates: list[Estimate | None]
    activations: list[tuple[int, Activation]]
    releaser: SharpReleaser


def sharp(m: int, *, epsilon: Fraction = Fraction(10**6), users: int = UNITS) -> Sharp:
    parameters = mean(Sharp, m=m, epsilon=epsilon, users=users, steps=STEPS)
    assert isinstance(parameters, Sharp)
    return parameters


def run(
    parameters: Sharp,
    samples: Sequence[Sample],
    choices: tuple[int, ...] = (),
    *,
    one_by_one: bool = False,
    restarts: Container[int] = (),
) -> Run:
    """A release after each tick; given choices, a centre is in the middle, and candidates of scales are as given."""
    calls: list[Call] = []
    choose = exponential.choose

    def overheard(costs: Sequence[int], rate: Fraction, words: Iterator[int]) -> int:
        calls.append(Call(list(costs), rate))
        if not choices:
            return choose(costs, rate, words)
        wanted = (len(costs) // 2, *choices, *choices[-1:] * len(calls))[len(calls) - 1]
        return min(wanted, len(costs) - 1)

    releaser = parameters.releaser(KEY, b"")
    found = Run(calls, [], [], [], releaser)
    sent = (contributions if one_by_one else merged)(parameters, samples)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(exponential, "choose", overheard)
        for tick, rows in groupby(sent, lambda row: row.effective):
            for row in rows:
                assert releaser.add(row) == ()
            found.activations.extend((tick, one) for one in releaser.close())
            found.estimates.append(releaser.estimate())
            found.elements.append(releaser._total - sum(found.elements))
            if tick in restarts:
                head, kept = releaser.head(), list(releaser.kept.values())
                releaser = parameters.releaser(KEY, b"")
                releaser.restore(json.loads(json.dumps(head)), kept)
    return found._replace(releaser=releaser)


def stream(
    each: int, values: Callable[[int], int], *, ticks: int = 4, others: int = 13, early: int | None = None
) -> list[Sample]:
    """Units with `each` samples, half of them early, in the first tick; unit 0 has these values, others their own."""
    samples, early = [], each // 2 if early is None else early
    for number in range(each):
        tick = max(0, number - early) * ticks // each
        for unit in range(UNITS):
            value = values(number) if unit == 0 else (unit + number) * others % (STEPS + 1)
            samples.append(Sample(tick, f"{unit:032x}", value))
    return sorted(samples, key=lambda sample: sample.effective)


VALUES: list[Callable[[int], int]] = [
    lambda _: 0,
    lambda _: STEPS,
    lambda _: STEPS // 2,
    lambda number: STEPS * (number % 2),
    lambda number: STEPS if number < 64 else 0,
]
SHORT, RANGED, UNALIKE, ALIKE = "whole range", "range of first samples", "range of first blocks", "octaves apart"
# (cap of the configuration, how it begins, cap that is chosen, which candidates of the scales are chosen)
CASES = [
    (8, SHORT, 4, ()),
    (8, RANGED, 1, (2,)),
    (8, RANGED, 4, (4,)),
    (8, RANGED, 8, (4,)),
    (100, SHORT, 96, ()),
    (300, SHORT, 16, ()),
    (300, RANGED, 256, (3,)),
    (300, UNALIKE, 16, (3,)),
    (300, UNALIKE, 96, (4,)),
    (300, ALIKE, 300, (4, 3)),
    (300, ALIKE, 300, (5, 0)),
    (300, ALIKE, 300, (4, 0, 7, 0)),
]
every_case = pytest.mark.parametrize(("m", "how", "cap", "choices"), CASES)


def begin_at_once(monkeypatch: pytest.MonkeyPatch, how: str, cap: int) -> None:
    """In the first tick, whatever would pay."""

    def begin(mean: Sharp, units: int, longs: int, samples: int, ticks: int) -> Beginning:
        if how in (UNALIKE, ALIKE):
            return Beginning(mean.max_contributions, firsts=0, longs=longs, alike=True)
        return Beginning(cap, firsts=units if how == RANGED else 0, longs=0, alike=False)

    def relative_noise(releaser: SharpReleaser, beginning: Beginning, forecast: Any) -> int:
        return 1 if beginning.alike == (how == ALIKE) else 100

    monkeypatch.setattr(Sharp, "begin", begin)
    monkeypatch.setattr(Sharp, "choose_cap", lambda *_: cap)
    monkeypatch.setattr(SharpReleaser, "_relative_noise", relative_noise)


def spent(calls: Sequence[Call]) -> list[Fraction]:
    """What each call may lose: twice its rate times what a unit moves a cost by, 2 for a centre, 1 for a scale."""
    return [2 * call.rate * (1 if number else 2) for number, call in enumerate(calls)]


@in_a_loop
@every_case
@pytest.mark.parametrize("one_by_one", [False, True])
def test_no_neighbours_lose_more_than_epsilon(
    m: int, how: str, cap: int, choices: tuple[int, ...], one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = sharp(m)
    begin_at_once(monkeypatch, how, cap)
    # given the same choices and, where a release is used again, the same release
    monkeypatch.setattr(SharpReleaser, "_last_release", lambda _: Fraction(STEPS, 2))
    monkeypatch.setattr(clip_range, "widening", lambda *_, **__: Fraction(1))  # so that clipping shows
    runs = [run(parameters, stream(m, values), choices, one_by_one=one_by_one) for values in VALUES]
    tree = runs[0].releaser._counter.tree
    assert isinstance(tree, GrowingBlue)
    octaves = parameters.shape.octaves - 1 if how == ALIKE else 0
    assert len(runs[0].calls) == (2 + octaves if choices else 0)
    worst_moved = 0
    for one, other in combinations(runs, 2):
        # then all that is chosen and published of it is the same, the counter's noise and what may move it, too
        assert one.releaser._counter.tree == other.releaser._counter.tree
        assert one.releaser.head()[:4] == other.releaser.head()[:4]
        assert one.activations == other.activations
        # then a unit moves a cost of a call by what its rate is for
        for number, (a, b) in enumerate(zip(one.calls, other.calls, strict=True)):
            assert a.rate == b.rate
            assert max(abs(x - y) for x, y in zip(a.costs, b.costs, strict=True)) <= (1 if number else 2)
        moved = sum(abs(x - y) for x, y in zip(one.elements, other.elements, strict=True))
        worst_moved = max(worst_moved, moved)
    # and all calls, with the counter, lose at most epsilon, as is charged; what enters that moves by its width at most
    assert worst_moved <= tree.width
    assert sum(spent(runs[0].calls), tree.epsilon) <= parameters.group_epsilon
    assert sum(one.epsilon for _, one in runs[0].activations) == sum(spent(runs[0].calls))
    assert worst_moved > tree.width * Fraction(1, 4)


@in_a_loop
@every_case
@pytest.mark.parametrize("last", [0, 1, 2, 9])
def test_a_restart_changes_nothing_that_a_unit_may_move(
    m: int, how: str, cap: int, choices: tuple[int, ...], last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_at_once(monkeypatch, how, cap)
    parameters, samples = sharp(m), stream(m, VALUES[3], ticks=8)
    whole = run(parameters, samples, choices)
    cut = run(parameters, samples, choices, restarts=range(last + 1))
    assert cut[:-1] == whole[:-1]
    assert cut.releaser.head() == whole.releaser.head()


def test_each_call_has_bits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    class Reading(keyed.Bits):
        def draw(self, index: int) -> Iterator[int]:
            read.append((self._subkey, index))
            return super().draw(index)

    monkeypatch.setattr(sharp_choices, "Bits", Reading)
    begin_at_once(monkeypatch, ALIKE, 300)
    found = run(sharp(300), stream(300, VALUES[2]))
    # then centre, scale and each octave's scale read other bits
    assert len(set(read)) == len(read) == len(found.calls) >= 4


def test_the_centre_of_an_octave_is_the_last_release(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_at_once(monkeypatch, ALIKE, 300)
    # given noise that shows, and octaves that open in a tick of which nothing was released yet
    parameters = sharp(300, epsilon=Fraction(3000))
    found = run(parameters, stream(300, VALUES[2], ticks=8))
    opened = [(tick, one) for tick, one in found.activations if one.level > parameters.shape.levels]
    assert opened
    low, high = float(parameters.grid.low), float(parameters.grid.high)
    for tick, one in opened:
        last = found.estimates[tick - 1]
        assert last is not None
        assert last.value is not None
        assert last.noise_sd > 1e-6
        assert one.prior == pytest.approx(min(max(last.value, low), high), abs=1e-9)


@pytest.mark.parametrize(("m", "epsilon", "others", "level"), [(8, 100, 0, 0), (1024, 1000, 13, 7)])
def test_values_have_no_say_in_when_and_how_a_mean_is_ready(m: int, epsilon: int, others: int, level: int) -> None:
    # given so few units that the number of samples decides, or units with so many samples that their blocks do
    parameters = sharp(m, epsilon=Fraction(epsilon), users=8)
    streams = [stream(m, values, ticks=24, others=others, early=4) for values in VALUES]
    runs = [run(parameters, samples) for samples in streams]
    whens = [[(tick, one.level, one.samples, one.epsilon) for tick, one in found.activations[:1]] for found in runs]
    assert all(when == whens[0] for when in whens)
    assert [how[1] for how in whens[0]] == [level]
    begun = [found.releaser._beginning for found in runs]
    assert len({how and (how.firsts, how.longs) for how in begun}) == 1
