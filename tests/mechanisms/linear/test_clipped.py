"""A key whose clip range is chosen in private: what is sent for it, what is released before and after, and its cost."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.linear import statistic as module
from shoal.mechanisms.linear.bounding import newcomers, rung_blocks
from shoal.mechanisms.linear.came import NEWCOMERS, NUMBERS_AT, PARTS, SAMPLES_AT
from shoal.mechanisms.linear.candidates import keyed_words
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.overall_accounts import Limit, OverallAccounts
from shoal.mechanisms.selection.upper_end import Ladder, UpperEnd
from shoal.mechanisms.statistic import OF_CLIP, Activation, Contribution, Estimate
from shoal.mechanisms.sums.decays import Decay, Exponential, Undecayed, Window
from tests.mechanisms.account_cases import Ledger
from tests.mechanisms.counters.counter_cases import Injected
from tests.mechanisms.linear.presence_cases import DECAYS, KEY, SURE, exact, two_sided
from tests.support.cover import in_a_loop, some
from tests.support.effort import examples

STEPS = 8
LADDER = Ladder(STEPS)
RUNGS = LADDER.rungs  # 8, 7, 6, 5, 4, 3, 2, 1
RANGE = Fraction(0), Fraction(16)
USUAL = UpperEnd(LADDER, Fraction(20), Fraction(1), Fraction(1, 2))


def clipped(decay: Decay, *, clip: UpperEnd = USUAL, epsilon: Fraction | int = SURE, **more: Any) -> LinearStatistic:
    return two_sided(more.pop("statistic", "mean"), decay, epsilon=epsilon, ends=RANGE, clip=clip, **more)


def sent(
    samples: Sequence[int], numbers: Sequence[int] = (), age: int = 0, ladder: Ladder = LADDER
) -> list[Contribution]:
    """What bound sends of samples and of units' numbers, which are grid indices, merged by part."""
    parts: dict[int, tuple[int, int]] = {}
    for part, value in [
        *((SAMPLES_AT + ladder.rung_of(i), i) for i in samples),
        *((NUMBERS_AT + ladder.rung_of(i), 0) for i in numbers),
    ]:
        count, total = parts.get(part, (0, 0))
        parts[part] = count + 1, total + value
    return [Contribution(age, "", part, 0, *parts[part]) for part in sorted(parts)]


def past_of(stream: Sequence[Any], begin: int) -> list[Contribution]:
    """What came before the step in which a key begins."""
    ages = zip(range(begin, 0, -1), stream, strict=False)
    return [row for age, (samples, numbers) in ages for row in sent(samples, numbers, age)]


class Chooses:
    """Makes the choice at a release, counted from 1, whatever came; and a rung."""

    def __init__(self, at: int | None, rung: int) -> None:
        self.at, self.rung, self.asked, self.numbers = at, rung, 0, list[int]()

    def is_due(self, end: UpperEnd, units: int, rho: int, words: Iterator[int]) -> bool:
        self.asked += 1
        return self.asked == self.at

    def choose(self, end: UpperEnd, numbers: Sequence[int], words: Iterator[int]) -> int:
        self.numbers = list(numbers)
        return self.rung

    def instead(self) -> Any:
        return patch.multiple(UpperEnd, is_due=_method(self.is_due), choose=_method(self.choose))


def _method(bound: Any) -> Any:
    return lambda *given: bound(*given)


def step(releaser: Any, rows: Sequence[Contribution]) -> tuple[Sequence[Activation], Estimate]:
    for row in rows:
        assert releaser.add(row) == ()
    activations = releaser.close()
    return activations, releaser.estimate()


# ---------------------------------------------------------------- what is sent

M = 3
LIMIT = Limit(M, declared=frozenset("gh"))
records = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("ghx"), st.integers(0, 2), st.integers(0, STEPS)), max_size=10
)


def parts(limit: Limit, stream: Sequence[tuple[str, str, int, int]]) -> Counter[Any]:
    """Samples and total of each key, tick and part; a crash after each record loses nothing."""
    ledger = Ledger(partial(OverallAccounts, limit, rung_blocks(LADDER)))
    for user, key, tick, value in stream:
        ledger.accounts.add(user.encode(), key, value, tick, tick)
        ledger.commit()
        ledger.crash()
    found: Counter[Any] = Counter()
    for group, effective, _, block in ledger.sent:
        found[group, effective, block.part, "samples"] += block.samples
        found[group, effective, block.part, "total"] += block.total
    return found


@examples(120)
@given(records)
def test_a_unit_gives_one_number_that_of_its_first_counted_sample_in_that_samples_key(stream: list[Any]):
    found = parts(LIMIT, stream)
    firsts: dict[str, tuple[str, int, int]] = {}
    for user, key, tick, value in stream:
        if key != "x":
            firsts.setdefault(user, (key, tick, NUMBERS_AT + LADDER.rung_of(value)))
    numbers = {at[:3]: n for at, n in found.items() if at[2] >= NUMBERS_AT and at[3] == "samples" and n}
    assert numbers == Counter(firsts.values())


@examples(120)
@given(records, st.sampled_from("ab"))
def test_a_unit_moves_one_number_and_of_each_rung_its_samples_widths_at_most(stream: list[Any], unit: str):
    there, gone = parts(LIMIT, stream), parts(LIMIT, [one for one in stream if one[0] != unit])
    there.subtract(gone)
    assert sum(abs(n) for (_, _, part, what), n in there.items() if part >= NUMBERS_AT and what == "samples") <= 1
    for width in RUNGS:
        moved = 0
        for key, tick in {at[:2] for at in there}:
            count = [there[key, tick, SAMPLES_AT + rung, "samples"] for rung in range(len(RUNGS))]
            total = [there[key, tick, SAMPLES_AT + rung, "total"] for rung in range(len(RUNGS))]
            p = sum(n * width if RUNGS[rung] > width else total[rung] for rung, n in enumerate(count))
            moved += abs(p) + abs(sum(count) * width - p)
        assert moved <= M * width


def test_each_event_is_a_unit_with_a_number_of_its_own():
    found = parts(Limit(None, newcomers=newcomers((1,))), [("a", "g", 0, 5), ("a", "g", 0, 5)])
    assert found["g", 0, NUMBERS_AT + 3, "samples"] == found["g", 0, NEWCOMERS, "samples"] == 2
    assert max(part for _, _, part, _ in found) < PARTS == clipped(Undecayed()).bounder().parts


# ---------------------------------------------------------------- what is released

streams = st.lists(
    st.tuples(st.lists(st.integers(0, STEPS), max_size=4), st.lists(st.integers(0, STEPS), max_size=2)),
    min_size=1, max_size=12,
)  # fmt: skip


@pytest.mark.parametrize("statistic", ["mean", "sum"])
@examples(100)
@given(st.sampled_from(list(DECAYS)), streams, st.integers(1, 12), st.integers(0, 7), st.integers(0, 12))
def test_nothing_is_told_before_the_choice_and_then_all_that_came_under_its_rung(
    statistic: Any, decay: Decay, stream: list[Any], at: int, rung: int, begin: int
):
    """Of a key that is declared, or begins late: then with a past."""
    of, weigh, begin = clipped(decay, statistic=statistic), DECAYS[decay], min(begin, len(stream) - 1)
    releaser, chooses = of.releaser(KEY, b""), Chooses(at, rung)
    past = past_of(stream, begin)
    if begin:
        releaser.begin(begin, past)
    with chooses.instead():
        for t in range(begin, len(stream)):
            activations, released = step(releaser, sent(*stream[t]))
            seq = t - begin + 1
            if seq < at:
                assert (activations, released) == ((), of.without_counters())
                assert (released.value, released.counts) == (None, {"count": None, "count_sd": None})
                continue
            high = 16 * RUNGS[rung] / STEPS
            assert activations == ((Activation(OF_CLIP, high, None, USUAL.cost, "clip"),) if seq == at else ())
            assert (released.details["clip"], chooses.asked) == (high, at)
            clip = [[min(i, RUNGS[rung]) for i in samples] for samples, _ in stream[: t + 1]]
            n, expected = exact(of, [(weigh(s, t), i) for s in range(t + 1) for i in clip[s]])
            assert released.counts["count"] == pytest.approx(n, rel=1e-5, abs=1e-5)
            if n > 1e-3 or statistic == "sum":
                assert released.value == pytest.approx(expected, rel=2e-5, abs=1e-4)
    if begin + at <= len(stream):
        numbers = Counter(LADDER.rung_of(i) for _, each in stream[: begin + at] for i in each)
        assert chooses.numbers == [numbers[number] for number in range(len(RUNGS))]


def test_a_mean_without_a_range_lies_somewhere_in_all_of_it_and_of_a_sum_nothing_is_known():
    mean, total = clipped(Undecayed()), clipped(Undecayed(), statistic="sum")
    assert (mean.without_counters().low, mean.without_counters().high) == (0.0, 16.0)
    assert (total.without_counters().low, total.without_counters().high) == (None, None)
    assert mean.without_counters().details == {"mechanism": "blue", "clip": None}


def test_no_draw_has_the_name_of_another_nor_of_those_that_find_the_key():
    asked: list[tuple[Any, ...]] = []

    def words(key: bytes) -> Any:
        def of(*name: Any) -> Iterator[int]:
            asked.append(name)
            return keyed_words(key)(*name)

        return of

    with patch.object(module, "keyed_words", words):
        end = UpperEnd(LADDER, Fraction(1), Fraction(1), Fraction(1, 2))  # needs 40
        releaser = clipped(Undecayed(), clip=end).releaser(KEY, b"k")
        for _ in range(80):
            step(releaser, sent([3], [3]))
    assert asked[:2] == [("k", "clip-rho"), ("k", "clip-cross", 1)]
    assert asked[-1] == ("k", "clip")
    assert len(set(asked)) == len(asked) > 20
    assert not {name[1] for name in asked} & {"rho", "cross"}


def test_the_choice_is_made_of_the_numbers_alone_and_where_they_lie():
    end = UpperEnd(Ladder(STEPS), Fraction(1000), Fraction(100), Fraction(1, 10))
    releaser = clipped(Undecayed(), clip=end).releaser(KEY, b"")
    assert step(releaser, sent([8] * 90, []))[0] == ()  # samples are no numbers
    activations, _ = step(releaser, sent([8] * 90, [2] * 90 + [3] * 11))
    assert [one.prior for one in activations] == [4.0]  # 2 of 8 steps over 16: a tenth lies above


# ---------------------------------------------------------------- what it costs


@in_a_loop
@pytest.mark.parametrize("decay", [Undecayed(), Undecayed(6), Window(3), Exponential(Fraction(9, 10))], ids=repr)
def test_a_sample_costs_an_mth_of_epsilon_under_every_rung(decay: Decay):
    of = clipped(decay, epsilon=Fraction(7, 3), m=3)
    for rung, width in enumerate(RUNGS):
        under: Any = of.under(rung)
        steps = [sum(Fraction(node.coefficient) / node.scale for node in under.sums.column(s)) for s in range(1, 70)]
        assert under.sides.width == width
        assert max(steps) * width == Fraction(7, 9)


FEW = 2  # draws are from -FEW to FEW: of each outcome that both worlds have the chances are exact
TWO = Ladder(2)  # rungs 2, 1


def law(of: LinearStatistic, clip: UpperEnd, stream: Sequence[Any]) -> dict[Any, float]:
    """The law of when the range is chosen, of the rung and of all noisy sides."""
    found: dict[Any, float] = {}
    ratio = math.exp(-float(clip.crossing))
    for at in (None, *range(1, len(stream) + 1)):
        due = sum((1 - ratio) * ratio**rho * _due(clip, stream, rho, at) for rho in range(60))
        for rung, chance in enumerate(_rungs(clip, stream[:at]) if at else [1.0]):
            for sides, p in _sums(of, at, rung, stream):
                found[at, rung, sides] = due * chance * p
    return found


def _due(clip: UpperEnd, stream: Sequence[Any], rho: int, at: int | None) -> float:
    """The chance that the choice is made at this release, of a key with this rho."""
    alive, n = 1.0, 0
    for seq, (_, numbers) in enumerate(stream, start=1):
        n += len(numbers)
        p = math.exp(-float(clip.crossing) * max(0, clip.needed + rho - n))
        if seq == at:
            return alive * p
        alive *= 1 - p
    return alive


def _rungs(clip: UpperEnd, stream: Sequence[Any]) -> list[float]:
    numbers, share = [i for _, each in stream for i in each], float(clip.share)
    above = [sum(i > width for i in numbers) for width in clip.ladder.rungs]
    weights = [
        math.exp(-float(clip.epsilon) * abs(count - share * len(numbers)) / (2 * (1 - share))) for count in above
    ]
    return [weight / sum(weights) for weight in weights]


def _sums(of: LinearStatistic, at: int | None, rung: int, stream: Sequence[Any]) -> Iterator[tuple[Any, float]]:
    """All noisy sides that the product then has, with all values of their draws."""
    injected = Injected()
    with injected.instead(), Chooses(at, rung).instead():
        _sides(of, stream)
    names = list(injected.asked)
    rates = [math.exp(-1 / next(iter(injected.scales[subkey]))) for subkey, _ in names]
    weights = [{z: (1 - x) / (1 + x) * x ** abs(z) for z in range(-FEW, FEW + 1)} for x in rates]
    for draws in itertools.product(range(-FEW, FEW + 1), repeat=len(names)):
        injected.values = dict(zip(names, draws, strict=True))
        with injected.instead(), Chooses(at, rung).instead():
            yield _sides(of, stream), math.prod(w[z] for w, z in zip(weights, draws, strict=True))


def _sides(of: LinearStatistic, stream: Sequence[Any]) -> Any:
    releaser: Any = of.releaser(KEY, b"")
    found = []
    for samples, numbers in stream:
        step(releaser, sent(samples, numbers, ladder=TWO))
        found.append(None if releaser.counters is None else tuple(releaser.counters.released))
    return tuple(found)


NOBODY: tuple[list[int], list[int]] = ([], [])


@in_a_loop
@pytest.mark.parametrize(
    ("others", "unit"),
    some(
        [
            ([NOBODY], [([2], [2])]),
            ([NOBODY, NOBODY], [NOBODY, ([1], [1])]),
            ([([1, 2], [1, 2])], [([2], [2])]),
            ([NOBODY, NOBODY], [([2], [2]), NOBODY]),
            ([([1], [1]), NOBODY], [([0], [0]), NOBODY]),
        ],
        3,
    ),
)
def test_no_event_tells_a_stream_from_that_without_a_unit_by_more_than_all_that_is_charged(others: Any, unit: Any):
    """Counters, when the range is chosen, and which: of all that is published, at once."""
    clip = UpperEnd(TWO, Fraction(1, 2), Fraction(1, 3), Fraction(1, 2))
    of = two_sided("mean", Window(1), epsilon=1, steps=2, m=1, ends=RANGE, clip=clip)
    there = [(a + c, b + d) for (a, b), (c, d) in zip(others, unit, strict=True)]
    one, other = law(of, clip, others), law(of, clip, there)
    losses = [abs(math.log(one[what] / other[what])) for what in one.keys() & other.keys()]
    assert len(losses) > 20
    assert 1.3 < max(losses) <= 1 + clip.cost + 1e-9
