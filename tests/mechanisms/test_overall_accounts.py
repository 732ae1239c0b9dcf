"""Accounts with one cap over all keys: what a unit sends, that nobody else changes it, and periods that close."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.linear.bounding import newcomers
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.overall_accounts import Limit, OverallAccounts, blocks_of
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.statistic import OneByOne
from tests.mechanisms.account_cases import Ledger, Sent
from tests.support.cover import in_a_loop
from tests.support.effort import examples

STEP = 10


class Record(NamedTuple):
    user: bytes
    key: str | None
    time: int  # of its own, and the one that it counts at
    value: int = 1


def finding(limit: Limit, *weights: int) -> Limit:
    """The limit where keys are found, by a unit's weights in its first, second, ... key."""
    return replace(limit, keys=max(limit.keys, len(weights)), newcomers=newcomers(weights))


ANY = Limit(2, start=0, step=Even(STEP))
LIMITS = {
    "one key": finding(ANY, 1),
    "two keys": finding(replace(ANY, samples=3), 2, 1),
    "declared": replace(ANY, declared=frozenset("x")),
    "in periods": finding(replace(ANY, period=Even(STEP)), 1),
    "users": finding(replace(ANY, once="key", keys=2), 1),
    "users of a step": finding(replace(ANY, once="step"), 2, 1),
    "users of a step, in periods of two": finding(replace(ANY, once="step", period=Even(2 * STEP)), 1),
    "in each step anew": finding(replace(ANY, samples=3, anew=True), 1, 1),
    "between": finding(replace(ANY, start=STEP, end=2 * STEP), 1),
}


def open_ledger(limit: Limit, *, durable: bool = True) -> Ledger:
    def make(site: Site) -> Accounts:
        return OverallAccounts(limit, blocks_of(OneByOne(limit.samples or 1)), site)

    return Ledger(make, durable=durable)


def weights_of(limit: Limit) -> list[int]:
    return [block.total for block in limit.newcomers]


def place_of(limit: Limit, record: Record) -> tuple[str | None, int]:
    """What a record is new in: its key, or that in its step."""
    return record.key, record.time // STEP if limit.anew else 0


def ledger_of(limit: Limit, records: Sequence[Record]) -> Ledger:
    ledger = open_ledger(limit)
    for user, key, time, value in records:
        ledger.accounts.add(user, key, value, time, time)
    return ledger


def expected(limit: Limit, records: Sequence[Record]) -> Iterator[tuple[Record, int | None]]:
    """Each record that counts, and its weight as a newcomer if it is one, by the unit's own records."""
    counted: dict[tuple[bytes, int | None], list[Record]] = {}
    for record in records:
        own = counted.setdefault((record.user, None if limit.period is None else limit.period.index(record.time)), [])
        keys = list(dict.fromkeys(place_of(limit, one) for one in own))
        in_time = (limit.start or 0) <= record.time and (limit.end is None or record.time < limit.end)
        declared = limit.declared is None or record.key in limit.declared
        again = {
            None: False,
            "key": place_of(limit, record) in keys,
            "step": (record.key, record.time // STEP) in [(one.key, one.time // STEP) for one in own],
        }[limit.once]
        if not in_time or not declared or again or len(own) == limit.samples:
            continue
        own.append(record)
        is_newcomer = place_of(limit, record) not in keys and len(keys) < len(limit.newcomers)
        yield record, weights_of(limit)[len(keys)] if is_newcomer else None


def sent(found: Sequence[Sent], *, part: int) -> list[tuple[bytes, str | None, int, int]]:
    return [(one.user, one.group, one.effective, one.block.total) for one in found if one.block.part == part]


RECORDS = st.builds(Record, st.sampled_from([b"a", b"b"]), st.sampled_from("xyz"), st.integers(-5, 45))
KINDS = tuple(itertools.product((b"a", b"b"), "xy"))
TIMES = ((0, 0, 0, 10), (0, 10, 10, 25), (10, 5, 10, 5))


@in_a_loop
@pytest.mark.parametrize("name", LIMITS)
def test_a_unit_that_is_removed_takes_its_contributions_with_it_and_no_other(name: str) -> None:
    """All streams of four records of two users in two keys: each unit's are what its own records say, also of a user's
    other periods.
    """
    limit = LIMITS[name]
    for times, kinds in itertools.product(TIMES, itertools.product(KINDS, repeat=4)):
        records = [Record(user, key, time) for (user, key), time in zip(kinds, times, strict=True)]
        found = ledger_of(limit, records).sent
        others = ledger_of(limit, [record for record in records if record.user != b"a"]).sent
        assert [one for one in found if one.user != b"a"] == others
        if limit.period is not None:
            begin = limit.period.start(1)
            later = ledger_of(limit, [record for record in records if record.time >= begin]).sent
            assert [one for one in found if one.effective >= begin] == later
        counting = list(expected(limit, records))
        assert sent(found, part=0) == [(*record[:3], 1) for record, _ in counting]
        newcomers = [(*record[:3], weight) for record, weight in counting if weight is not None]
        assert sent(found, part=NEWCOMERS) == newcomers


@examples(60)
@given(
    st.sampled_from(sorted(LIMITS)),
    st.lists(
        st.builds(Record, st.sampled_from([b"a", b"b"]), st.sampled_from("xyz"), st.integers(-5, 45)), max_size=30
    ),
    st.data(),
)
def test_a_restart_counts_nothing_anew(name: str, records: list[Record], data: st.DataObject) -> None:
    """Also where steps and periods are closed: no time comes before the promise."""
    limit, records = LIMITS[name], sorted(records, key=lambda record: record.time)
    ledger = open_ledger(limit)
    for user, key, time, value in records:
        if data.draw(st.booleans()):
            ledger.commit(promise=time)
            ledger.crash()
        ledger.accounts.add(user, key, value, time, time)
    assert ledger.sent == ledger_of(limit, records).sent
    ledger.commit(promise=1 << 60)
    assert (limit.period is None) or not ledger.changelog


def test_a_restart_makes_nobody_a_newcomer_again() -> None:
    ledger = open_ledger(LIMITS["two keys"])
    for _ in range(2):
        assert ledger.accounts.add(b"a", "x", 1, 1, 1) is None
        ledger.commit()
        ledger.crash()
    assert sent(ledger.sent, part=NEWCOMERS) == [(b"a", "x", 1, 2)]


def test_a_restart_within_a_step_lets_nobody_count_twice_in_it() -> None:
    ledger = open_ledger(LIMITS["users of a step"])
    assert ledger.accounts.add(b"a", "x", 1, 1, 1) is None
    ledger.commit(promise=1)
    ledger.crash()
    assert ledger.accounts.add(b"a", "x", 1, 9, 9) == "over_cap"
    assert ledger.accounts.add(b"a", "x", 1, 10, 10) is None


@given(st.lists(st.builds(Record, st.just(b"a"), st.sampled_from("vwxyz"), st.integers(0, 45)), max_size=20))
def test_a_unit_has_one_weight_in_all_and_one_newcomer_in_a_key(records: list[Record]) -> None:
    for limit in LIMITS.values():
        if limit.period is None and not limit.anew:
            found = sent(ledger_of(limit, records).sent, part=NEWCOMERS)
            assert sum(weight for *_, weight in found) <= sum(weights_of(limit))
            assert all(count == 1 for count in Counter(key for _, key, *_ in found).values())
            assert [weight for *_, weight in found] == weights_of(limit)[: len(found)]


def test_the_reasons_come_in_one_order_and_use_nothing_up() -> None:
    between = replace(ANY, start=STEP, end=3 * STEP, period=Even(STEP), declared=frozenset("xy"))
    add = open_ledger(replace(between, samples=1, keys=1, leaves_out=True)).accounts.add
    assert add(b"stranger", "z", 1, 0, 9) == "before-start"
    assert add(b"stranger", "z", 1, 9, 30) == "after-end"
    assert add(b"stranger", "z", 1, 9, 10) == "undeclared"
    assert add(b"stranger", "x", 1, 9, 10) == "late"
    assert add(b"stranger", "x", 1, 10, 10) == "wrong-partition"
    found = [add(b"a", key, 1, 10, 10) for key in "xyxz"]
    assert found == [None, "groups_left_out", "over_cap", "undeclared"]


def test_of_events_each_is_a_newcomer_and_nothing_is_kept() -> None:
    for weights in ((), (3, 2)):
        limit = finding(replace(ANY, samples=None, end=STEP), *weights)
        ledger = open_ledger(limit)
        assert [ledger.accounts.add(b"stranger", key, 7, 0, 5) for key in "xyx"] == [None] * 3
        assert ledger.accounts.add(b"stranger", "x", 7, 0, STEP) == "after-end"
        assert sent(ledger.sent, part=0) == [(b"stranger", key, 5, 7) for key in "xyx"]
        assert sent(ledger.sent, part=NEWCOMERS) == [(b"stranger", key, 5, 3) for key in "xyx" if weights]
        assert (ledger.accounts.sizes, ledger.commit(9)) == ([0, 0, 0], [])


def test_a_person_is_told_what_is_held_of_them() -> None:
    ledger = ledger_of(LIMITS["users of a step"], [Record(b"a", "y", 0), Record(b"a", "x", 12), Record(b"b", "x", 0)])
    found = [(one.start, one.place, one.samples) for one in ledger.accounts.of_user(b"a")]
    assert found == [(None, None, 2), (None, "x", None), (None, "y", None), (0, "y", None), (10, "x", None)]
    assert (ledger.accounts.count(b"a", None), ledger.accounts.count(b"a", "x")) == (2, None)
    assert list(ledger.accounts.of_user(b"c")) == []


# ---------------------------------------------------------------- relation values: keys beyond a number do not count

FOR_EVER = Limit(2, keys=1, leaves_out=True)
IN_PERIODS = replace(FOR_EVER, period=Even(STEP))


@given(st.lists(st.integers(-15, 45), max_size=40).map(sorted), st.data())
def test_a_period_has_its_cap_once_wherever_accounts_are_closed_and_crash(
    times: list[int], data: st.DataObject
) -> None:
    ledger, counts = open_ledger(Limit(2, period=Even(STEP))), Counter[int]()
    for time in times:
        if data.draw(st.booleans()):
            ledger.commit(promise=time)
            assert ledger.accounts.sizes == [len(ledger.changelog), 0]
            assert all(int.from_bytes(name[5:13], "big", signed=True) >= time // STEP for name in ledger.changelog)
            if data.draw(st.booleans()):
                ledger.crash()
        counts[time // STEP] += 1
        over = counts[time // STEP] > 2
        assert ledger.accounts.add(b"a", None, 1, time, time) == ("over_cap" if over else None)
    assert Counter(sent.effective // STEP for sent in ledger.sent) == {p: min(n, 2) for p, n in counts.items()}
    ledger.commit(promise=1000)
    assert not ledger.changelog


def test_an_event_that_counts_in_another_period_than_its_own_is_late() -> None:
    add = open_ledger(IN_PERIODS).accounts.add
    assert add(b"a", "x", 1, time=9, effective=10) == "late"
    assert add(b"a", "x", 1, time=7, effective=9) is None
    assert open_ledger(FOR_EVER).accounts.add(b"a", "x", 1, time=7, effective=99) is None


def test_one_cap_holds_over_all_groups_and_groups_are_limited() -> None:
    ledger = open_ledger(FOR_EVER)
    add = ledger.accounts.add
    assert [add(b"a", group, 1, 0, 0) for group in "xyxyx"] == [
        None, "groups_left_out", None, "groups_left_out", "over_cap",
    ]  # fmt: skip
    assert add(b"stranger", "x", 1, 0, 0) == "wrong-partition"
    assert (ledger.accounts.count(b"a", None), ledger.accounts.count(b"a", "x")) == (2, None)
    ledger.commit(promise=1 << 60)
    ledger.crash()
    assert ledger.accounts.sizes == [1, 1]
    assert ledger.accounts.add(b"a", "x", 1, 0, 0) == "over_cap"


def test_without_a_changelog_periods_are_forgotten_all_the_same() -> None:
    ledger = open_ledger(IN_PERIODS, durable=False)
    ledger.accounts.add(b"a", "x", 1, 0, 0)
    assert ledger.commit(promise=9) == []
    assert ledger.accounts.sizes == [1, 1]
    assert ledger.commit(promise=10) == []
    assert ledger.accounts.sizes == [0, 0]


def test_each_sample_of_a_user_is_the_first_of_its_unit_where_it_is_alone() -> None:
    ledger = open_ledger(Limit(2, keys=2, alone=True))
    assert [ledger.accounts.add(b"a", group, 7, 0, 5) for group in "xyz"] == [None, None, "over_cap"]
    assert [(sent.effective, sent.block.number) for sent in ledger.sent] == [(5, 1), (5, 1)]


def test_a_sample_that_closes_no_block_counts_and_sends_nothing() -> None:
    for samples, second in ((1, "over_cap"), (None, None)):
        ledger = Ledger(partial(OverallAccounts, Limit(samples), lambda number, value: ()))
        assert [ledger.accounts.add(b"a", None, 1, 0, 0) for _ in range(2)] == [None, second]
        assert not ledger.sent
