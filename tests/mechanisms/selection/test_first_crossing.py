"""First crossing: its exact law against every neighbour, its delta, and draws that have this law.

Laws are computed from the definition, with a draw at each tick, in fractions: `x` stands for exp(-epsilon).
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from tests.mechanisms.mechanism_cases import KEY
from tests.support.cover import in_a_loop
from tests.support.effort import examples, tries

X = Fraction(37, 100)  # about exp(-1)
MOST_RHO = 40  # whose chance is X**40
REST = X**MOST_RHO * 1000
Law = tuple[Fraction, ...]  # of the tick at which a key is shown; the last is never
ZERO, ONE = Fraction(0), Fraction(1)


def shows(theta: int, rho: int, n: int) -> Fraction:
    return min(ONE, X ** (theta + rho - n))


@lru_cache(maxsize=1 << 14)
def law(path: Sequence[int], theta: int, gate: Sequence[bool]) -> Law:
    """Of a key with weight path[t] at tick t, that may be shown where the gate is open."""
    found = [ZERO] * (len(path) + 1)
    for rho in range(MOST_RHO):
        alive = (1 - X) * X**rho
        for t, n in enumerate(path):
            p = shows(theta, rho, n) if gate[t] else ZERO
            found[t] += alive * p
            alive *= 1 - p
        found[-1] += alive
    return tuple(found)


def neighbours(ticks: int, most: int, weight: int = 1) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The weights of a key without a unit, which never fall, and with it, from any tick on."""
    for path in itertools.product(range(most + 1), repeat=ticks):
        if all(a <= b for a, b in itertools.pairwise(path)):
            for comes in range(ticks):
                yield path, tuple(n + weight * (t >= comes) for t, n in enumerate(path))


def gate(path: Sequence[int]) -> tuple[bool, ...]:
    return tuple(n > 0 for n in path)


def excess(one: Law, other: Law, factor: Fraction) -> Fraction:
    """The hockey-stick divergence: what one has beyond so many times the other."""
    return sum((max(a - factor * b, ZERO) for a, b in zip(one, other, strict=True)), ZERO)


@in_a_loop
@pytest.mark.parametrize(("ticks", "most"), [(2, 5), (3, 4), (4, 2)])
@pytest.mark.parametrize("theta", [2, 4])
def test_with_one_gate_a_key_loses_epsilon_and_not_twice_that(ticks: int, most: int, theta: int) -> None:
    worst = ZERO
    for without, with_it in neighbours(ticks, most):
        laws = law(without, theta, gate(with_it)), law(with_it, theta, gate(with_it))
        for a, b in zip(*laws, strict=True):
            if a and b:
                assert a * X <= b + REST
                assert b * X <= a
                worst = max(worst, b / a)
    assert worst > 1 / X * Fraction(99, 100), "and it is lost"


@in_a_loop
@pytest.mark.parametrize(("ticks", "most"), [(2, 4), (3, 3), (4, 2)])
@pytest.mark.parametrize("theta", [3, 6])
def test_beyond_epsilon_is_no_more_than_a_key_shown_for_the_unit_alone(ticks: int, most: int, theta: int) -> None:
    stated = ticks * X ** (theta - 1) / (1 + X)
    alone = 1 - law((1,) * ticks, theta, (True,) * ticks)[-1]
    for without, with_it in neighbours(ticks, most):
        laws = law(without, theta, gate(without)), law(with_it, theta, gate(with_it))
        assert excess(laws[0], laws[1], 1 / X) <= alone + REST
        assert excess(laws[1], laws[0], 1 / X) <= alone <= stated
    assert alone > Fraction(7, 10) * stated


def adaptive(ticks: int, most: int, theta: int, *, to_more: bool) -> Fraction:
    """The divergence against an adversary who chooses, after every output, who comes next, and when the unit does.

    What stands after a tick: in both worlds the law of rho while the key is not shown; others' weight; whether the unit
    has come.
    """

    @cache
    def worst(tick: int, alive: tuple[tuple[Fraction, ...], ...], n: int, came: bool) -> Fraction:
        if tick == ticks:
            one, other = (sum(side, ZERO) for side in (alive if to_more else alive[::-1]))
            return max(one - other / X, ZERO)
        found = ZERO
        for more, comes in itertools.product(range(n, most + 1), {came, True}):
            shown, left = [], []
            for side, weight in zip(alive, (more, more + comes), strict=True):
                ps = [shows(theta, rho, weight) if weight else ZERO for rho in range(len(side))]
                shown.append(sum((a * p for a, p in zip(side, ps, strict=True)), ZERO))
                left.append(tuple(a * (1 - p) for a, p in zip(side, ps, strict=True)))
            one, other = shown if to_more else shown[::-1]
            found = max(found, max(one - other / X, ZERO) + worst(tick + 1, tuple(left), more, comes))
        return found

    rho = tuple((1 - X) * X**j for j in range(12))
    return worst(0, (rho, rho), 0, came=False)


@pytest.mark.parametrize("to_more", [True, False])
def test_to_choose_who_comes_by_what_was_shown_gains_nothing(to_more: bool) -> None:
    alone = 1 - law((1,) * 3, 3, (True,) * 3)[-1]
    assert adaptive(3, 2, 3, to_more=to_more) <= alone + X**12 * 10


Rho = tuple[float, ...]  # of a key that is not shown: the chance of each rho, and that it is not shown yet
World = tuple[Rho | None, ...]  # by key; None: it is shown


class Adversary:
    """The worst who chooses, after every output, who comes to which key, which of its keys the unit comes to, and where
    its one sample lies. A sample is told from none by one bit, of odds 2, once its key is shown: its counter.

    What stands after a tick: the chances of both worlds, others' weights and the unit's, its keys so far, its sample.
    """

    def __init__(
        self, thetas: Sequence[int], weights: Sequence[int], others: Sequence[int], x: float, keys: int
    ) -> None:
        self.thetas, self.weights, self.others, self.x, self.keys = thetas, weights, others, x, keys
        self.allowed = 2 * x ** -sum(weights)
        self.rho = tuple((1 - x) * x**j for j in range(24))

    def excess(self, *, to_more: bool) -> float:
        """The largest probability beyond that of the other world times what epsilon allows."""
        start: World = (self.rho,) * self.keys
        nothing = (0,) * self.keys
        return self._worst(0, (start, start), nothing, nothing, (), None, (1.0, 1.0), to_more=to_more)

    def _worst(
        self, tick: int, worlds: tuple[World, World], n: tuple[int, ...], mine: tuple[int, ...], used: tuple[int, ...],
        sample: int | None, chances: tuple[float, float], *, to_more: bool,
    ) -> float:  # fmt: skip
        if tick == len(self.thetas):
            without, there = (
                chance * math.prod(sum(rho) for rho in world if rho is not None)
                for chance, world in zip(chances, worlds, strict=True)
            )
            return max(there - self.allowed * without, 0.0) if to_more else max(without - self.allowed * there, 0.0)
        open_keys = [key for key in range(self.keys) if worlds[0][key] is not None]
        comes = [
            found
            for more in range(len(self.weights) - len(used) + 1)
            for found in itertools.permutations([key for key in range(self.keys) if key not in used], more)
        ]
        samples = [sample] if sample is not None else [None, *range(self.keys)]
        worst = 0.0
        for others, new, lies in itertools.product(
            itertools.product(self.others, repeat=len(open_keys)), comes, samples
        ):
            weights = list(n)
            for key, more in zip(open_keys, others, strict=True):
                weights[key] += more
            own = list(mine)
            for key, weight in zip(new, self.weights[len(used) :], strict=False):
                own[key] += weight
            now = tuple(weights), tuple(map(sum, zip(weights, own, strict=True)))
            found = 0.0
            for shown in itertools.product([False, True], repeat=len(open_keys)):
                which = dict(zip(open_keys, shown, strict=True))
                after = [self._after(tick, world, of, which) for world, of in zip(worlds, now, strict=True)]
                odds = [chance * part[1] for chance, part in zip(chances, after, strict=True)]
                is_told = lies is not None and lies >= 0 and after[0][0][lies] is None
                bits = [(1 / 3, 2 / 3), (2 / 3, 1 / 3)] if is_told else [(1.0, 1.0)]
                found += sum(
                    self._worst(
                        tick + 1, (after[0][0], after[1][0]), now[0], tuple(own), (*used, *new),
                        -1 if is_told else lies, (odds[0] * bit[0], odds[1] * bit[1]), to_more=to_more,
                    )
                    for bit in bits
                    if any(odds)
                )  # fmt: skip
            worst = max(worst, found)
        return worst

    def _after(self, tick: int, world: World, weights: Sequence[int], shown: dict[int, bool]) -> tuple[World, float]:
        """A world in which these keys are shown at this tick and the others are not, and the chance of those shown."""
        chance, after = 1.0, list(world)
        for key, is_shown in shown.items():
            rho = world[key] or ()
            ps = [min(1.0, self.x ** (self.thetas[tick] + j - weights[key])) if weights[key] else 0.0
                  for j in range(len(rho))]  # fmt: skip
            if is_shown:
                chance *= sum(a * p for a, p in zip(rho, ps, strict=True))
                after[key] = None
            else:
                after[key] = tuple(a * (1 - p) for a, p in zip(rho, ps, strict=True))
        return tuple(after), chance


@in_a_loop
@pytest.mark.parametrize(
    ("thetas", "weights", "others", "x", "keys", "reached"),
    [
        ((3, 4), (1,), (0, 1, 2), 0.5, 1, True),
        ((3, 3, 4), (1,), (0, 1), 0.5, 1, True),  # a threshold that a doubling raises
        ((3, 3), (1,), (0, 1), 0.5, 2, True),
        ((3, 4), (1, 1), (0, 2), 0.5, 2, False),
        ((6, 7), (2, 1), (0, 3), 0.5, 2, False),
    ],
)
def test_nor_does_it_with_several_keys_and_a_counter_of_each(
    thetas: tuple[int, ...], weights: tuple[int, ...], others: tuple[int, ...], x: float, keys: int, reached: bool
) -> None:
    adversary = Adversary(thetas, weights, others, x, keys)
    alone = 0.0
    for weight in weights:
        for j, rho in enumerate(adversary.rho):
            alone += rho * (1 - math.prod(1 - min(1.0, x ** (theta + j - weight)) for theta in thetas))
    left_out = keys * 10 * x**22
    worst = adversary.excess(to_more=True)
    assert adversary.excess(to_more=False) <= worst <= alone + left_out
    if reached:
        assert worst >= alone - left_out


# ---------------------------------------------------------------- thresholds

SELECTIONS = st.builds(
    FirstCrossing,
    epsilon=st.fractions(Fraction(1, 50), 8, max_denominator=50),
    delta=st.sampled_from([Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**12)]),
    horizon=st.integers(1, 3000),
    weights=st.sampled_from([(1,), (6, 3, 2), (2, 2)]),
    unit=st.sampled_from([12, 11]),
)


def spent(selection: FirstCrossing, first: int, last: int, less: int = 0) -> float:
    """What a unit's keys are shown for it alone in these ticks, at most."""
    rate = float(selection.epsilon) / selection.unit
    keys = sum(math.exp(rate * weight) for weight in selection.weights) / (1 + math.exp(-rate))
    return sum(math.exp(-rate * (selection.threshold(t) - less)) * keys for t in range(first, last + 1))


@examples(30)
@given(SELECTIONS)
def test_all_ticks_for_ever_spend_delta_at_most_and_hardly_less(selection: FirstCrossing) -> None:
    ends = [0] + [selection.horizon << doubling for doubling in range(3)]
    for doubling, (before, end) in enumerate(itertools.pairwise(ends)):
        share = float(selection.delta) / (2 << doubling)
        assert spent(selection, before + 1, end) <= share * (1 + 1e-9)
        assert spent(selection, before + 1, end, less=1) > share, "a threshold lower by one step would spend more"


@given(st.integers(10**15, 10**17), st.integers(1, 3000))
def test_a_threshold_is_the_least_integer_that_spends_no_more_than_its_share(unit: int, horizon: int) -> None:
    """Of parts so small that floats do not hold it; in 60 digits."""
    selection = FirstCrossing(ONE, Fraction(1, 10**6), horizon, (unit // 2, unit // 3), unit)
    with localcontext(Context(prec=60)):
        keys = sum((Decimal(weight) / unit).exp() for weight in selection.weights) / (1 + (Decimal(-1) / unit).exp())
        spent = [horizon * keys * (-Decimal(selection.threshold(1) - less) / unit).exp() for less in (0, 1)]
        assert spent[0] <= Decimal(1) / (2 * 10**6) < spent[1]


@given(SELECTIONS, st.integers(1, 20_000))
def test_a_threshold_stands_until_the_change_that_is_foretold(selection: FirstCrossing, tick: int) -> None:
    change = selection.next_change(tick)
    assert change > tick
    assert selection.threshold(tick) == selection.threshold(change - 1) <= selection.threshold(change)
    assert selection.next_change(change - 1) == change


def test_a_stream_that_ends_spends_all_of_delta_in_its_ticks_and_has_no_others() -> None:
    for epsilon, weights, unit in ((ONE, (1,), 1), (Fraction(1, 3), (6, 3, 2), 11)):
        selection = FirstCrossing(epsilon, Fraction(1, 10**9), 365, weights, unit, ends=True)
        assert spent(selection, 1, 365) <= 1e-9 * (1 + 1e-9) < spent(selection, 1, 365, less=1)
        with pytest.raises(ValueError, match="no tick after the last one"):
            selection.threshold(366)
    assert FirstCrossing(ONE, Fraction(1, 10**9), 365, ends=True).threshold(365) == 28


def test_keys_are_shown_at_the_numbers_of_people_that_are_known() -> None:
    """With a delta of 1e-9 over all ticks up to T, epsilon 1."""
    found = [FirstCrossing(ONE, Fraction(2, 10**9), 10**power).threshold(1) for power in range(3, 8)]
    assert found == [29, 31, 33, 36, 38]


# ---------------------------------------------------------------- draws


def shown(selection: FirstCrossing, path: Sequence[int], name: int) -> int:
    """The index of the tick at which real draws show a key with these weights; their number if at none."""
    rho = selection.rho(Bits(derive(KEY, name, "rho")).draw(0))
    weight, waking = 0, math.inf
    for tick, n in enumerate(path, 1):
        if n != weight or (weight and selection.threshold(tick) != selection.threshold(tick - 1)):
            weight = n
            waking = selection.crossing(tick, n, rho, Bits(derive(KEY, name, "cross", tick)).draw(0))
        if waking == tick:
            return tick - 1
    return len(path)


@pytest.mark.parametrize(
    ("selection", "path"),
    [
        (FirstCrossing(ONE, Fraction(9, 10), horizon=2), (0, 1, 1, 2, 2, 2, 3)),
        (FirstCrossing(Fraction(1, 2), Fraction(1, 2), horizon=1, weights=(2, 1), unit=3), (1, 4, 4, 4, 9, 9)),
        (FirstCrossing(ONE, Fraction(1, 10), horizon=8), (3, 3, 3, 5, 5, 9)),
    ],
)
def test_one_draw_for_each_change_has_the_law_of_a_draw_at_each_tick(
    selection: FirstCrossing, path: Sequence[int]
) -> None:
    runs, rate = tries(1500), float(selection.epsilon) / selection.unit
    law, never = [0.0] * len(path), 0.0
    for rho in range(400):
        alive = (1 - math.exp(-rate)) * math.exp(-rate * rho)
        for t, n in enumerate(path):
            p = min(1.0, math.exp(-rate * (selection.threshold(t + 1) + rho - n))) if n else 0.0
            law[t] += alive * p
            alive *= 1 - p
        never += alive
    found = Counter(shown(selection, path, name) for name in range(runs))
    expected = [chance * runs for chance in (*law, never)]
    squares = sum((found[t] - mean) ** 2 / mean for t, mean in enumerate(expected) if mean > 0.5)
    assert squares < 50  # at most seven degrees of freedom
    assert all(found[t] == 0 for t, n in enumerate(path) if not n)


def test_wrong_parameters_are_refused() -> None:
    for wrong, message in (
        ({"epsilon": ZERO}, "epsilon must be greater than 0"),
        ({"delta": ONE}, "delta must lie between 0 and 1"),
        ({"horizon": 0}, "horizon must be greater than 0"),
        ({"weights": (1, 1)}, "weights must be positive integers that add up to the unit at most"),
        ({"weights": ()}, "weights must be positive"),
        ({"weights": (0, 1)}, "weights must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            FirstCrossing(**{"epsilon": ONE, "delta": Fraction(1, 10), "horizon": 9} | wrong)
    selection = FirstCrossing(ONE, Fraction(1, 10), 9)
    with pytest.raises(ValueError, match="tick must be greater than 0"):
        selection.threshold(0)
    with pytest.raises(ValueError, match="weight must be greater than 0"):
        selection.crossing(1, 0, 0, iter([]))


@in_a_loop
@pytest.mark.parametrize("keys", [1, 2, 5, 64])
def test_falling_weights_keep_to_their_unit_and_lose_hardly_any_of_it(keys: int) -> None:
    weights, unit = falling(keys)
    assert unit - keys < sum(weights) <= unit
    assert all(abs(weights[0] - number * weight) <= number for number, weight in enumerate(weights, 1))
