"""A key whose clip range is chosen in private, after a restart, and one that is found: nothing changes."""

import json
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.linear.came import NEWCOMERS, SAMPLES_AT, ByPart, Whole
from shoal.mechanisms.linear.candidates import Candidates
from shoal.mechanisms.linear.groups import FoundGroups
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.sums.decays import Decay, Exponential, Undecayed, Window
from tests.mechanisms.linear.presence_cases import DECAYS, KEY
from tests.mechanisms.linear.test_clipped import STEPS, Chooses, clipped, past_of, sent, step, streams
from tests.support.effort import examples


def changes_of(releaser: Any, kept: dict[tuple[int, str], Contribution]) -> None:
    """What a changelog would hold; nothing is dropped that was never written."""
    written, dropped = releaser.take_changes()
    for name in dropped:
        del kept[name]
    for row in written:
        kept[row.level, row.pseudonym] = Contribution(*json.loads(json.dumps(row)))


@examples(80)
@given(
    st.sampled_from(list(DECAYS)), streams, st.integers(1, 12), st.integers(0, 7), st.integers(0, 6),
    st.lists(st.sampled_from(["", "commit", "crash"]), min_size=12, max_size=12),
)  # fmt: skip
def test_a_restart_changes_nothing(decay: Decay, stream: list[Any], at: int, rung: int, begin: int, what: list[str]):
    of, begin = clipped(decay, epsilon=1), min(begin, len(stream) - 1)
    past = past_of(stream, begin)
    whole, again = of.releaser(KEY, b""), of.releaser(KEY, b"")
    for releaser in (whole, again):
        releaser.begin(begin, past)
    kept: dict[tuple[int, str], Contribution] = {}
    one, other = Chooses(at, rung), Chooses(at, rung)
    for t, then in zip(range(begin, len(stream)), what, strict=False):
        with one.instead():
            expected = step(whole, sent(*stream[t]))
        with other.instead():
            assert step(again, sent(*stream[t])) == expected
        if then:
            changes_of(again, kept)
            assert kept == {name: Contribution(*json.loads(json.dumps(row))) for name, row in again.kept.items()}
        if then == "crash":
            head = json.loads(json.dumps(again.head()))
            again = of.releaser(KEY, b"")
            again.restore(head, kept.values())


@pytest.mark.parametrize("decay", [Undecayed(), Window(3)], ids=repr)
def test_a_restart_before_the_choice_keeps_what_came_and_who(decay: Decay):
    of, chooses, kept = clipped(decay), Chooses(3, 2), dict[tuple[int, str], Contribution]()
    releaser = of.releaser(KEY, b"")
    with chooses.instead():
        for rows in (sent([8, 3], [8]), sent([1], [1]), sent([5], [])):
            activations, released = step(releaser, rows)
            changes_of(releaser, kept)
            head, releaser = json.loads(json.dumps(releaser.head())), of.releaser(KEY, b"")
            releaser.restore(head, kept.values())
    assert [one.kind for one in activations] == ["clip"]
    assert (released.value, released.counts["count"]) == (pytest.approx(2 * (6 + 3 + 1 + 5) / 4), 4.0)
    assert chooses.numbers == [1, 0, 0, 0, 0, 0, 0, 1]


# ---------------------------------------------------------------- keys that are found


@examples(60)
@given(
    st.lists(st.tuples(st.lists(st.integers(0, STEPS), max_size=3), st.integers(0, STEPS)), min_size=2, max_size=8),
    st.sampled_from([Undecayed(), Window(3), Exponential(Fraction(1, 2))]), st.integers(1, 6), st.booleans(),
)  # fmt: skip
def test_a_key_that_is_found_chooses_from_all_numbers_since_the_start(
    ticks: list[Any], decay: Decay, at: int, restarts: bool
):
    """Beside a declared one that was there from the start, and chooses at the same tick."""
    selection = FirstCrossing(Fraction(1), Fraction(1, 10), horizon=4)
    of, shown = clipped(decay, groups=None, selection=selection), 3

    def groups() -> FoundGroups:
        return of.in_groups(KEY)  # type: ignore[return-value]

    def draw(self: Any, group: str, candidate: Any, tick: int) -> None:
        if group not in self._waking and tick <= shown:
            self._wake(group, shown)

    found, one, other, late = groups(), Chooses(at, 2), Chooses(shown + at, 2), []
    told: list[tuple[int, str]] = []
    declared = clipped(decay).releaser(KEY, b"k")
    hidden: dict[Any, Any] = {}
    with patch.object(Candidates, "_draw", draw):
        for tick, (samples, number) in enumerate([*ticks, *[([], 0)] * 8]):
            rows = [*sent(samples, [number] * (tick < len(ticks)))]
            rows += [Contribution(0, "", NEWCOMERS, 0, 1, 1)] if tick == 0 else []
            with other.instead():
                _, expected = step(declared, rows)
            with one.instead():
                closed = [each for each in found.close(tick, [("k", rows)] if rows else []) if each is not None]
            late += [(each.estimate, expected) for each in closed if each.estimate is not None]
            told += [(tick, activation.kind) for each in closed for activation in each.activations]
            if restarts and tick < shown:
                for record in found.hidden_changes():
                    hidden[record.tick] = json.loads(json.dumps(record.value))
                found = groups()
                for then, value in hidden.items():
                    if value is not None:
                        found.restore_hidden("k", then, value)
    assert len(late) >= 5
    assert told == [(shown, "shown"), (shown + at - 1, "clip")]
    assert one.numbers == other.numbers
    for estimate, expected in late:
        if expected.counts["count"] is None:
            assert estimate == expected
            continue
        assert estimate.counts == pytest.approx(expected.counts, rel=1e-5, abs=1e-5)
        if expected.counts["count"] > 1e-3:
            assert estimate.value == pytest.approx(expected.value, rel=1e-4, abs=1e-4)


def test_what_came_is_kept_part_by_part():
    form = ByPart()
    rows = sent([8, 8, 3], [8])
    came = form.plus(form.of(rows[0]), form.of(rows[1]))
    assert came == (3, [SAMPLES_AT, 2, 16, SAMPLES_AT + 5, 1, 3])
    assert list(form.contributions(4, came)) == [row._replace(effective=4) for row in rows[:2]]
    assert [form.is_ageless(row) for row in rows] == [False, False, True]
    assert Whole().plus((1, [7, 0]), (2, [3, 1])) == (3, [10, 1])
