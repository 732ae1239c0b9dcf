"""Keys that nobody declared: when they are shown, by which law, and what they begin with."""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.groups import Closed
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.candidates import Candidates, Words, keyed_words
from shoal.mechanisms.linear.groups import FoundGroups
from shoal.mechanisms.linear.sides import Samples
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.of import Count
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.statistic import OF_KEY, Contribution
from shoal.mechanisms.sums.decays import Undecayed, Window
from tests.mechanisms.mechanism_cases import KEY
from tests.support.cover import in_a_loop
from tests.support.effort import examples

FIRST = 70  # the number of the first step
MOST_RHO = 7  # of a key that is gone through; both laws leave out the rest
SURE = 10**9  # an epsilon without noise
FEW = FirstCrossing(Fraction(1), Fraction(9, 10), horizon=2)  # thresholds change after 2, 4, 8 ticks
Rows = list[tuple[str, list[Contribution]]]


def came(samples: int, newcomers: int = 0, weight: int = 1) -> list[Contribution]:
    parts = [Contribution(0, "", 0, 0, samples, 0)] if samples else []
    return parts + ([Contribution(0, "", NEWCOMERS, 0, newcomers, newcomers * weight)] if newcomers else [])


@lru_cache
def statistic(decay: Any, epsilon: int = SURE) -> LinearStatistic:
    return LinearStatistic(
        statistic=Count, sides=Samples(), decay=decay, epsilon=Fraction(epsilon), groups=None, first=FIRST
    )


def found_groups(
    selection: FirstCrossing, words: Words, *, decay: Any = None, end: int | None = None, epsilon: int = SURE
) -> FoundGroups:
    counts = statistic(decay or Undecayed(), epsilon)
    candidates = Candidates(selection, words, FIRST, counts.history)
    return FoundGroups(lambda group: counts.releaser(KEY, group), candidates, Fraction(1, 5), FIRST, end)


def closed(groups: FoundGroups, tick: int, rows: Rows) -> list[Closed]:
    return [one for one in groups.close(tick, sorted(rows)) if one is not None]


def run(groups: FoundGroups, rows: Mapping[int, Rows], last: int) -> Iterator[tuple[int, Closed]]:
    """The stream's way: of the ticks in which something came or is due, each in its turn."""
    waiting = dict(rows)
    while ticks := [tick for tick in (*waiting, groups.due()) if tick is not None and tick <= last]:
        tick = min(ticks)
        for one in closed(groups, tick, waiting.pop(tick, [])):
            yield tick, one


# ---------------------------------------------------------------- the law


def word_of(k: int, x: float) -> int:
    """A word with which a geometric number of this ratio is k: the middle of its cell."""
    return min(int((x**k + x ** (k + 1)) / 2 * 2**64), 2**64 - 1)


class Script:
    """Words that make each draw come out as wished; what was not wished for is noted, and comes late."""

    def __init__(self, selection: FirstCrossing, rho: int, waits: Mapping[int, int | None]) -> None:
        self.selection, self.rho, self.waits = selection, rho, waits
        self.rate = float(selection.epsilon) / selection.unit
        self.chances: dict[int, float] = {}  # of the outcome of each tick's draw
        self.open: list[tuple[int, int]] = []  # ticks of draws that were not wished for, and until when they count
        self.weight = 0

    def __call__(self, group: str, what: str, tick: int = 0) -> Iterator[int]:
        if what == "rho":
            return itertools.repeat(word_of(self.rho, math.exp(-self.rate)))
        p = min(1.0, math.exp(-self.rate * (self.selection.threshold(tick) + self.rho - self.weight)))
        until = 1 if p == 1.0 else self.selection.next_change(tick) - tick
        if tick not in self.waits:
            self.open.append((tick, until))
        wait = self.waits.get(tick)  # None: not before the threshold changes
        k = until if wait is None else wait
        self.chances[tick] = (1 - p) ** k * (1.0 if wait is None else p)
        return itertools.repeat(word_of(k, 1 - p) if p < 1.0 else 0)


def shown_at(selection: FirstCrossing, path: Sequence[int], script: Script) -> int:
    groups = found_groups(selection, script)
    for index, (before, n) in enumerate(itertools.pairwise((0, *path))):
        script.weight = n
        for one in closed(groups, FIRST + index, [("k", came(1, n - before))] if n > before else []):
            if one.activations:
                return index
    return len(path)


def law(selection: FirstCrossing, path: Sequence[int]) -> list[float]:
    """Of the tick at which the product shows a key whose weights these are; the last is never.

    It is driven through all outcomes of all its draws: rho, and at each tick with a draw a wait, or a late end.
    """
    found, x = [0.0] * (len(path) + 1), math.exp(-float(selection.epsilon) / selection.unit)
    for rho in range(MOST_RHO):
        pending: list[dict[int, int | None]] = [{}]
        while pending:
            script = Script(selection, rho, pending.pop())
            at = shown_at(selection, path, script)
            if script.open:
                tick, until = script.open[0]
                pending += [{**script.waits, tick: wait} for wait in (None, *range(until))]
            else:
                found[at] += (1 - x) * x**rho * math.prod(script.chances.values())
    return found


@lru_cache
def defined(selection: FirstCrossing, path: Sequence[int]) -> list[float]:
    """The same by the definition: a draw at each tick."""
    found, rate = [0.0] * (len(path) + 1), float(selection.epsilon) / selection.unit
    for rho in range(MOST_RHO):
        alive = (1 - math.exp(-rate)) * math.exp(-rate * rho)
        for t, n in enumerate(path):
            p = min(1.0, math.exp(-rate * (selection.threshold(t + 1) + rho - n))) if n else 0.0
            found[t] += alive * p
            alive *= 1 - p
        found[-1] += alive
    return found


ENDS = FirstCrossing(Fraction(1), Fraction(1, 2), horizon=4, ends=True)
HALVES = FirstCrossing(Fraction(2), Fraction(1, 2), horizon=3, weights=(2, 1), unit=3)


@in_a_loop
@pytest.mark.parametrize(
    ("selection", "path"),
    [
        (FEW, (0, 1, 1, 2)),
        (FEW, (1, 1, 2, 2)),  # the number and the threshold change at one tick
        (FEW, (2, 2, 2, 2, 2)),
        (ENDS, (1, 2, 2, 3)),
        (ENDS, (0, 0, 9, 9)),  # certain
        (HALVES, (1, 3, 3, 3)),
    ],
)
def test_a_key_is_shown_by_exactly_the_law_of_a_draw_at_each_tick(
    selection: FirstCrossing, path: tuple[int, ...]
) -> None:
    assert law(selection, path) == pytest.approx(defined(selection, path), abs=1e-12)


def test_the_loss_of_whoever_comes_is_epsilon_and_delta_and_both_are_used() -> None:
    """The hockey-stick divergence of the product's own laws, over all neighbours of three ticks."""
    selection = FirstCrossing(Fraction(1), Fraction(1, 20), horizon=3, ends=True)
    laws = {path: law(selection, path) for path in itertools.product(range(3), repeat=3) if is_rising(path)}
    left_out = math.exp(-MOST_RHO)
    alone = 1 - left_out - laws[1, 1, 1][-1]
    assert Fraction(1, 40) < alone <= selection.delta
    worst = 0.0
    for path, comes in itertools.product(laws, range(3)):
        with_it = tuple(n + (t >= comes) for t, n in enumerate(path))
        if with_it in laws:
            for one, other in ((laws[path], laws[with_it]), (laws[with_it], laws[path])):
                excess = sum(max(a - math.e * b, 0.0) for a, b in zip(one, other, strict=True))
                assert excess <= alone + left_out
                worst = max(worst, excess)
    assert worst == pytest.approx(alone)


def is_rising(path: Sequence[int]) -> bool:
    return all(a <= b for a, b in itertools.pairwise(path))


@in_a_loop
@pytest.mark.parametrize("selection", [FEW, ENDS, HALVES, FirstCrossing(Fraction(1), Fraction(1, 10**9), 365)])
@given(tick=st.integers(1, 4), missing=st.integers(1, 30), word=st.integers(0, 2**64 - 1), more=st.integers(0, 9))
def test_a_look_at_one_word_says_no_other_than_the_draw(
    selection: FirstCrossing, tick: int, missing: int, word: int, more: int
) -> None:
    def words(first: int) -> Iterator[int]:
        return itertools.chain((first,), itertools.repeat(2**63 + 1))

    weight = max(1, selection.threshold(tick) - missing)
    for first in (word, 2**64 - 1 - word % 1000, word >> 3 * more):
        rho = [word_of(more, math.exp(-float(selection.epsilon) / selection.unit))]
        found = selection.showing(tick, weight, lambda: itertools.cycle(rho), words(first))  # noqa: B023
        drawn = selection.crossing(tick, weight, selection.rho(itertools.cycle(rho)), words(first))
        assert found == (drawn if drawn < selection.next_change(tick) else None)


# ---------------------------------------------------------------- candidates


class Asked:
    """Keyed words, and which draws asked for them."""

    def __init__(self) -> None:
        self.names: list[tuple[Any, ...]] = []

    def __call__(self, *name: Any) -> Iterator[int]:
        self.names.append(name)
        return keyed_words(KEY)(*name)


def test_silent_candidates_need_no_work_until_the_threshold_changes() -> None:
    selection, words = FirstCrossing(Fraction(1), Fraction(1, 10**9), horizon=9), Asked()
    groups = found_groups(selection, words)
    keys = [f"k{number:04}" for number in range(1200)]
    assert all(one.is_hidden for one in closed(groups, FIRST, [(key, came(2, 1)) for key in keys]))
    asked = len(words.names)
    assert groups.due() == FIRST + 9
    list(groups.hidden_changes())
    for tick in range(FIRST + 1, FIRST + 9):
        assert closed(groups, tick, []) == []
    assert (len(words.names), list(groups.hidden_changes())) == (asked, [])
    assert list(groups.close(FIRST + 9, [])) == [None]  # the loop is given back
    assert {name[1:] for name in words.names[asked:]} == {("cross", 10)}
    assert {name[0] for name in words.names[asked:]} == set(keys)
    assert (groups.due(), list(groups.hidden_changes())) == (FIRST + 18, [])


def test_a_key_without_a_newcomer_is_never_shown_however_many_samples_it_has() -> None:
    groups, words = found_groups(FEW, Asked()), Asked()
    groups = found_groups(FEW, words)
    rows: dict[int, Rows] = {FIRST + tick: [("k", came(1000))] for tick in range(40)}
    assert all(one.is_hidden for _, one in run(groups, rows, FIRST + 60))
    assert words.names == []


def test_no_two_draws_share_a_name() -> None:
    words = Asked()
    groups = found_groups(FEW, words, epsilon=1)
    rows: dict[int, Rows] = {FIRST + 3 * tick: [("a", came(1, 1)), ("b", came(1, 2))] for tick in range(4)}
    list(run(groups, rows, FIRST + 40))
    crossings = [name for name in words.names if name[1] == "cross"]
    assert len(set(crossings)) == len(crossings) > 2
    assert {name for name in words.names if name[1] == "rho"} <= {("a", "rho"), ("b", "rho")}


def test_when_a_key_is_shown_depends_on_no_other_key() -> None:
    """On Kafka a key has other neighbours in its partition than in a file."""
    last = FIRST + 20

    def shown(rows: Mapping[int, Rows]) -> dict[str, int]:
        made = run(found_groups(FEW, keyed_words(KEY)), rows, last)
        return {one.group: tick for tick, one in made if one.activations}

    # given keys to which somebody comes, once or twice
    each = [
        {FIRST + tick: [(f"key {number}", came(1, 1))] for tick in (number % 3, number % 7)} for number in range(60)
    ]
    together: dict[int, Rows] = {}
    for rows in each:
        for tick, those in rows.items():
            together.setdefault(tick, []).extend(those)
    # then each is shown at the tick at which it is with nobody beside it, and not all of them at once
    found = shown(together)
    assert found == {key: tick for rows in each for key, tick in shown(rows).items()}
    assert len(set(found.values())) > 5


def test_all_that_came_since_the_start_is_in_the_first_release_once() -> None:
    selection = FirstCrossing(Fraction(1), Fraction(1, 1000), horizon=8, ends=True)
    for decay, expected in ((Undecayed(), [12, 13, 13, 13]), (Window(3), [11, 7, 7, 1])):
        groups = found_groups(selection, keyed_words(KEY), decay=decay, end=FIRST + 8)
        rows: dict[int, Rows] = {
            FIRST: [("k", came(1))], FIRST + 2: [("k", came(5, 1))], FIRST + 4: [("k", came(6, 60))],
            FIRST + 5: [("k", came(1))],
        }  # fmt: skip
        found = [(tick, one) for tick, one in run(groups, rows, FIRST + 19) if one.estimate is not None]
        assert [one.estimate.value for _, one in found if one.estimate is not None] == expected
        assert [tick for tick, _ in found] == list(range(FIRST + 4, FIRST + 8))
        assert [(one.level, one.kind, one.epsilon) for _, each in found for one in each.activations] == [
            (OF_KEY, "shown", Fraction(1, 5))
        ]


def test_n_stays_where_a_window_forgets_what_came() -> None:
    selection = FirstCrossing(Fraction(1), Fraction(1, 10**9), horizon=100)
    groups = found_groups(selection, keyed_words(KEY), decay=Window(2))
    for tick in (FIRST, FIRST + 5):
        closed(groups, tick, [("k", came(1, 3))])
    values = {one.tick: one.value for one in groups.hidden_changes()}
    assert values == {None: [6, FIRST + 5, 0, 0, None, 1], FIRST + 5: [1, 0]}


def test_numbers_beyond_those_of_floats_are_exact() -> None:
    groups = found_groups(FirstCrossing(Fraction(1), Fraction(1, 10), 9, weights=(1,), unit=2**60), keyed_words(KEY))
    closed(groups, FIRST, [("k", came(2**53, 1, weight=2**53))])
    closed(groups, FIRST + 1, [("k", came(1, 1))])
    (record,) = groups.hidden_changes()
    assert json.dumps(record.value) == json.dumps([2**53 + 1, FIRST + 1, 0, 2**53 + 1, 0, 1])


# ---------------------------------------------------------------- restarts

KEYS = st.sampled_from("abc")


def writings(record: list[Any]) -> int:
    """How often the record of a candidate was written; that of a tick is written once."""
    return record[5] if len(record) > 2 else 1


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 9), KEYS, st.integers(0, 2), st.integers(0, 3)), max_size=12),
    st.sampled_from([Undecayed(), Window(2)]),
    st.data(),
)
def test_a_restart_shows_the_same_keys_at_the_same_ticks(
    sent: list[tuple[int, str, int, int]], decay: Any, data: st.DataObject
) -> None:
    rows: dict[int, Rows] = {}
    for (tick, key), several in itertools.groupby(sorted(sent, key=itemgetter(0, 1)), itemgetter(0, 1)):
        parts = [part for _, _, samples, newcomers in several for part in came(samples, newcomers)]
        if parts:
            rows.setdefault(FIRST + tick, []).append((key, parts))
    whole = list(run(found_groups(FEW, keyed_words(KEY), decay=decay), rows, FIRST + 12))
    changelog: dict[tuple[str, int | None], Any] = {}
    heads: dict[str, Any] = {}
    kept: dict[str, dict[tuple[int, str], Contribution]] = {}
    groups, found, waiting = found_groups(FEW, keyed_words(KEY), decay=decay), [], dict(rows)
    closed: set[str] = set()  # shown keys since the last commit

    def commit() -> None:
        for group, at, value, before in groups.hidden_changes():
            assert before == (writings(changelog[group, at]) if (group, at) in changelog else 0)
            if value is None:
                del changelog[group, at]
            else:
                changelog[group, at] = json.loads(json.dumps(value))
        for group, written, dropped in groups.changes():
            own = kept.setdefault(group, {})
            own.update({(row.level, row.pseudonym): row for row in written})
            for name in dropped:
                del own[name]
        heads.update({group: json.loads(json.dumps(groups.head(group))) for group in closed})
        closed.clear()

    def restart() -> FoundGroups:
        again = found_groups(FEW, keyed_words(KEY), decay=decay)
        for (group, at), value in changelog.items():
            again.restore_hidden(group, at, value)
        for group, head in heads.items():
            again.restore(group, head, kept.get(group, {}).values())
        return again

    while ticks := [tick for tick in (*waiting, groups.due()) if tick is not None and tick <= FIRST + 12]:
        tick = min(ticks)
        left = dict(waiting.pop(tick, []))
        for one in groups.close(tick, sorted(left.items())):
            if one is None:
                continue
            left.pop(one.group, None)
            found.append((tick, one))
            closed |= set() if one.is_hidden else {one.group}
            if data.draw(st.booleans()):
                commit()
                if data.draw(st.booleans()):
                    groups, waiting = restart(), waiting | ({tick: list(left.items())} if left else {})
                    break
    assert found == whole
    shown = {one.group for _, one in found if not one.is_hidden}
    commit()
    assert not shown & {group for group, _ in changelog}
