"""The sharp mean against neighbours, part by part: its calls, its widths, and when it does what.

The private choices are made the same in both streams, as composition wants it; what is left must be paid for.
"""

import json
from collections.abc import Callable, Container, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, groupby
from typing import NamedTuple

import pytest

from shoal.mechanisms import exponential, keyed, scale, sharp_releaser
from shoal.mechanisms.sharp import Sharp
from shoal.mechanisms.sharp_releaser import SharpReleaser
from shoal.mechanisms.statistic import Activation, Estimate
from tests.mechanisms.mechanism_cases import KEY, Sample, contributions, mean, merged

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
    parameters: Sharp, samples: Sequence[Sample], *, one_by_one: bool = False, restarts: Container[int] = ()
) -> Run:
    """A release after each tick; what was chosen is what `exponential.choose` says."""
    calls: list[Call] = []
    choose = exponential.choose

    def overheard(costs: Sequence[int], rate: Fraction, words: Iterator[int]) -> int:
        calls.append(Call(list(costs), rate))
        return choose(costs, rate, words)

    releaser = parameters.releaser(KEY, b"")
    assert isinstance(releaser, SharpReleaser)
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


def stream(each: int, values: Callable[[int], int], *, ticks: int = 4, others: int = 13) -> list[Sample]:
    """Units with `each` samples, half of them in the first tick; unit 0 has these values, all others their own."""
    samples = []
    for number in range(each):
        tick = max(0, number - each // 2) * ticks // each
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
# (cap of the configuration, cap that is chosen, which candidates of a scale are chosen)
CASES = [(8, 1, 2), (8, 4, 4), (8, 8, 4), (300, 16, 3), (300, 300, 0), (300, 300, 3)]


@pytest.mark.parametrize(("m", "cap", "narrow"), CASES)
@pytest.mark.parametrize("one_by_one", [False, True])
def test_no_neighbours_lose_more_than_epsilon(
    m: int, cap: int, narrow: int, one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = sharp(m)
    centre_rate = parameters.group_epsilon * parameters.shares.centre / 4
    # given the same cap, the same choices and, where a release is used again, the same release
    monkeypatch.setattr(Sharp, "choose_cap", lambda *_: cap)
    monkeypatch.setattr(SharpReleaser, "_last_release", lambda _: Fraction(STEPS, 2))
    monkeypatch.setattr(scale, "widening", lambda *_, **__: Fraction(1))  # so that clipping shows
    monkeypatch.setattr(
        exponential, "choose", lambda costs, rate, words: len(costs) // 2 if rate == centre_rate else narrow
    )
    runs = [run(parameters, stream(m, values), one_by_one=one_by_one) for values in VALUES]
    tree = runs[0].releaser._counter.tree
    octaves = [parameters.octave_epsilon] * (len(runs[0].calls) - 2) if parameters.octaves else []
    shares = [parameters.group_epsilon * part for part in (parameters.shares.centre, parameters.shares.scale)]
    shares += octaves
    worst_moved = 0
    for one, other in combinations(runs, 2):
        assert one.releaser._counter.tree == other.releaser._counter.tree
        # then each call loses at most its share: twice its rate times what a cost moves by
        for share, a, b in zip(shares, one.calls, other.calls, strict=True):
            assert a.rate == b.rate
            assert 2 * a.rate * max(abs(x - y) for x, y in zip(a.costs, b.costs, strict=True)) <= share
        moved = sum(abs(x - y) for x, y in zip(one.elements, other.elements, strict=True))
        worst_moved = max(worst_moved, moved)
    # and all of them, with the counter, at most epsilon; what enters that moves by its width at most
    assert worst_moved <= tree.width
    assert sum(shares, tree.epsilon) <= parameters.group_epsilon
    assert worst_moved > tree.width * Fraction(1, 4)


@pytest.mark.parametrize(("m", "cap", "narrow"), CASES)
@pytest.mark.parametrize("last", [0, 1, 2, 9])
def test_a_restart_changes_nothing_that_a_unit_may_move(
    m: int, cap: int, narrow: int, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sharp, "choose_cap", lambda *_: cap)
    monkeypatch.setattr(exponential, "choose", lambda *_: narrow)
    parameters, samples = sharp(m), stream(m, VALUES[3], ticks=8)
    whole = run(parameters, samples)
    cut = run(parameters, samples, restarts=range(last + 1))
    assert cut[:-1] == whole[:-1]
    assert cut.releaser.head() == whole.releaser.head()


def test_each_call_has_bits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    class Reading(keyed.Bits):
        def draw(self, index: int) -> Iterator[int]:
            read.append((self._subkey, index))
            return super().draw(index)

    monkeypatch.setattr(sharp_releaser, "Bits", Reading)
    monkeypatch.setattr(Sharp, "choose_cap", lambda *_: 300)
    found = run(sharp(300), stream(300, VALUES[2]))
    # then centre, scale and each octave's scale read other bits
    assert len(set(read)) == len(read) == len(found.calls) >= 4


def test_the_centre_of_an_octave_is_the_last_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sharp, "choose_cap", lambda *_: 300)
    # given noise that shows, and octaves that open in a tick of which nothing was released yet
    parameters = sharp(300, epsilon=Fraction(3000))
    found = run(parameters, stream(300, VALUES[2], ticks=8))
    opened = [(tick, one) for tick, one in found.activations if one.level]
    assert opened
    low, high = float(parameters.grid.low), float(parameters.grid.high)
    for tick, one in opened:
        last = found.estimates[tick - 1]
        assert last is not None
        assert last.value is not None
        assert last.noise_sd > 1e-6
        assert one.prior == pytest.approx(min(max(last.value, low), high), abs=1e-9)


def test_values_have_no_say_in_when_and_how_a_mean_is_ready() -> None:
    # given so few units that the number of samples decides
    parameters = sharp(8, epsilon=Fraction(100), users=1000)
    runs = [run(parameters, stream(8, values, ticks=6, others=0)) for values in VALUES]
    assert parameters.ready_units > UNITS
    whens = [[(tick, one.level, one.samples, one.epsilon) for tick, one in found.activations] for found in runs]
    assert all(when == whens[0] != [] for when in whens)
    assert len({found.releaser._cap for found in runs}) == 1
