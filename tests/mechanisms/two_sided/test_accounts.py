"""Accounts under relation add-remove: what a unit sends, and that nobody else sends anything else for it."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.two_sided.accounts import EventAccounts, Rule, UnitAccounts
from shoal.mechanisms.two_sided.came import NEWCOMERS
from tests.mechanisms.account_cases import Ledger, Sent
from tests.support.cover import in_a_loop
from tests.support.effort import examples

STEP = 10


class Record(NamedTuple):
    user: bytes
    key: str | None
    time: int  # of its own, and the one that it counts at
    value: int = 1


ANY = Rule(max_contributions=2, start=0, step=STEP)
RULES = {
    "one key": replace(ANY, weights=(1,)),
    "two keys": replace(ANY, max_contributions=3, weights=(2, 1)),
    "declared": replace(ANY, declared=frozenset("x")),
    "in periods": replace(ANY, weights=(1,), period=STEP),
    "users": replace(ANY, weights=(1,), once="key"),
    "users of a step": replace(ANY, weights=(2, 1), once="step"),
    "users of a step, in periods of two": replace(ANY, weights=(1,), once="step", period=2 * STEP),
    "in each step anew": replace(ANY, max_contributions=3, weights=(1, 1), anew=True),
    "between": replace(ANY, start=STEP, end=2 * STEP, weights=(1,)),
}


def place_of(rule: Rule, record: Record) -> tuple[str | None, int]:
    """What a record is new in: its key, or that in its step."""
    return record.key, record.time // STEP if rule.anew else 0


def ledger_of(rule: Rule, records: Sequence[Record]) -> Ledger:
    ledger = Ledger(partial(UnitAccounts, rule))
    for user, key, time, value in records:
        ledger.accounts.add(user, key, value, time, time)
    return ledger


def expected(rule: Rule, records: Sequence[Record]) -> Iterator[tuple[Record, int | None]]:
    """Each record that counts, and its weight as a newcomer if it is one, by the unit's own records."""
    counted: dict[tuple[bytes, int | None], list[Record]] = {}
    for record in records:
        own = counted.setdefault((record.user, None if rule.period is None else record.time // rule.period), [])
        keys = list(dict.fromkeys(place_of(rule, one) for one in own))
        in_time = rule.start <= record.time and (rule.end is None or record.time < rule.end)
        declared = rule.declared is None or record.key in rule.declared
        again = {
            None: False,
            "key": place_of(rule, record) in keys,
            "step": (record.key, record.time // STEP) in [(one.key, one.time // STEP) for one in own],
        }[rule.once]
        if not in_time or not declared or again or len(own) == rule.max_contributions:
            continue
        own.append(record)
        is_newcomer = place_of(rule, record) not in keys and len(keys) < len(rule.weights)
        yield record, rule.weights[len(keys)] if is_newcomer else None


def sent(found: Sequence[Sent], *, part: int) -> list[tuple[bytes, str | None, int, int]]:
    return [(one.user, one.group, one.effective, one.block.total) for one in found if one.block.part == part]


RECORDS = st.builds(Record, st.sampled_from([b"a", b"b"]), st.sampled_from("xyz"), st.integers(-5, 45))
KINDS = tuple(itertools.product((b"a", b"b"), "xy"))
TIMES = ((0, 0, 0, 10), (0, 10, 10, 25), (10, 5, 10, 5))


@in_a_loop
@pytest.mark.parametrize("name", RULES)
def test_a_unit_that_is_removed_takes_its_contributions_with_it_and_no_other(name: str) -> None:
    """All streams of four records of two users in two keys: each unit's are what its own records say, also of a user's
    other periods.
    """
    rule = RULES[name]
    for times, kinds in itertools.product(TIMES, itertools.product(KINDS, repeat=4)):
        records = [Record(user, key, time) for (user, key), time in zip(kinds, times, strict=True)]
        found = ledger_of(rule, records).sent
        others = ledger_of(rule, [record for record in records if record.user != b"a"]).sent
        assert [one for one in found if one.user != b"a"] == others
        if rule.period is not None:
            later = ledger_of(rule, [record for record in records if record.time >= rule.period]).sent
            assert [one for one in found if one.effective >= rule.period] == later
        counting = list(expected(rule, records))
        assert sent(found, part=0) == [(*record[:3], 1) for record, _ in counting]
        newcomers = [(*record[:3], weight) for record, weight in counting if weight is not None]
        assert sent(found, part=NEWCOMERS) == newcomers


@examples(60)
@given(
    st.sampled_from(sorted(RULES)),
    st.lists(
        st.builds(Record, st.sampled_from([b"a", b"b"]), st.sampled_from("xyz"), st.integers(-5, 45)), max_size=30
    ),
    st.data(),
)
def test_a_restart_counts_nothing_anew(name: str, records: list[Record], data: st.DataObject) -> None:
    """Also where steps and periods are closed: no time comes before the promise."""
    rule, records = RULES[name], sorted(records, key=lambda record: record.time)
    ledger = Ledger(partial(UnitAccounts, rule))
    for user, key, time, value in records:
        if data.draw(st.booleans()):
            ledger.commit(promise=time)
            ledger.crash()
        ledger.accounts.add(user, key, value, time, time)
    assert ledger.sent == ledger_of(rule, records).sent
    ledger.commit(promise=1 << 60)
    assert (rule.period is None) or not ledger.changelog


def test_a_restart_within_a_step_lets_nobody_count_twice_in_it() -> None:
    ledger = Ledger(partial(UnitAccounts, RULES["users of a step"]))
    assert ledger.accounts.add(b"a", "x", 1, 1, 1) is None
    ledger.commit(promise=1)
    ledger.crash()
    assert ledger.accounts.add(b"a", "x", 1, 9, 9) == "over_cap"
    assert ledger.accounts.add(b"a", "x", 1, 10, 10) is None


@given(st.lists(st.builds(Record, st.just(b"a"), st.sampled_from("vwxyz"), st.integers(0, 45)), max_size=20))
def test_a_unit_has_one_weight_in_all_and_one_newcomer_in_a_key(records: list[Record]) -> None:
    for rule in RULES.values():
        if rule.period is None and not rule.anew:
            found = sent(ledger_of(rule, records).sent, part=NEWCOMERS)
            assert sum(weight for *_, weight in found) <= sum(rule.weights)
            assert all(count == 1 for count in Counter(key for _, key, *_ in found).values())
            assert [weight for *_, weight in found] == list(rule.weights[: len(found)])


def test_the_reasons_come_in_one_order_and_use_nothing_up() -> None:
    rule = replace(ANY, max_contributions=1, declared=frozenset("x"), start=STEP, end=3 * STEP, period=STEP)
    add = Ledger(partial(UnitAccounts, rule)).accounts.add
    assert add(b"a", "y", 1, 9, 9) == "before-start"
    assert add(b"a", "y", 1, 30, 30) == "after-end"
    assert add(b"stranger", "y", 1, 9, 10) == "undeclared"
    assert add(b"stranger", "x", 1, 9, 10) == "wrong-partition"
    assert add(b"a", "x", 1, 9, 10) == "late"
    assert [add(b"a", "x", 1, 10, 10), add(b"a", "x", 1, 10, 10), add(b"a", "y", 1, 10, 10)] == [
        None, "over_cap", "undeclared",
    ]  # fmt: skip


def test_of_events_each_is_a_newcomer_and_nothing_is_kept() -> None:
    for weights in ((), (3, 2)):
        rule = replace(ANY, weights=weights, end=STEP)
        ledger = Ledger(partial(EventAccounts, rule))
        assert [ledger.accounts.add(b"stranger", key, 7, 0, 5) for key in "xyx"] == [None] * 3
        assert ledger.accounts.add(b"stranger", "x", 7, 0, STEP) == "after-end"
        assert sent(ledger.sent, part=0) == [(b"stranger", key, 5, 7) for key in "xyx"]
        assert sent(ledger.sent, part=NEWCOMERS) == [(b"stranger", key, 5, 3) for key in "xyx" if weights]
        assert (ledger.accounts.sizes, ledger.commit(9)) == ([0, 0, 0], [])


def test_a_person_is_told_what_is_held_of_them() -> None:
    ledger = ledger_of(RULES["users of a step"], [Record(b"a", "y", 0), Record(b"a", "x", 12), Record(b"b", "x", 0)])
    found = [(one.start, one.place, one.samples) for one in ledger.accounts.of_user(b"a")]
    assert found == [(None, None, 2), (None, "x", None), (None, "y", None), (0, "y", None), (10, "x", None)]
    assert (ledger.accounts.count(b"a", None), ledger.accounts.count(b"a", "x")) == (2, None)
    assert list(ledger.accounts.of_user(b"c")) == []
