"""Accounts of slots: what a unit may have in slots and cells, and that its samples are sent once, whatever happens."""

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.slot.accounts import MOST_CELLS, Rule, SlotAccounts
from shoal.mechanisms.slot.samples import Samples
from tests.mechanisms.account_cases import Ledger

SLOT = 10


USUAL = Rule(max_contributions=2, slot=Even(SLOT), unit=Even(30), max_slots=2, max_groups=2, splits=True)


def rule(**changes: Any) -> Rule:
    return replace(USUAL, **changes)


def maker(of: Rule):
    def make(site: Site) -> Accounts:
        return SlotAccounts(of, site)

    return make


def samples(ledger: Ledger) -> Counter[tuple[bytes, int, str]]:
    """Of each user, slot and cell."""
    found: Counter[tuple[bytes, int, str]] = Counter()
    for sent in ledger.sent:
        assert sent.block.samples == sum(map(len, sent.block.total.values()))
        for cell, values in sent.block.total.items():
            found[sent.user, sent.effective // SLOT, cell] += len(values)
    return found


RULES = [rule(), rule(unit=Even(SLOT)), rule(unit=None, max_slots=3), rule(max_groups=1, max_contributions=3)]
events = st.lists(
    st.tuples(st.integers(0, 65), st.sampled_from([b"a", b"ab"]), st.sampled_from("xyz")), max_size=40
).map(lambda found: sorted(found, key=lambda event: event[0]))


@given(st.sampled_from(RULES), events, st.data())
def test_a_units_first_slots_cells_and_samples_count_once_wherever_it_crashes(of, found, data):
    ledger = Ledger(maker(of))
    slots: dict[Any, set[int]] = defaultdict(set)
    cells: dict[Any, set[str]] = defaultdict(set)
    in_unit: Counter[Any] = Counter()
    sent: Counter[tuple[bytes, int, str]] = Counter()
    for time, user, cell in found:
        if data.draw(st.booleans()):
            ledger.accounts.flush(time, idle=False)
            ledger.commit(time)
            if data.draw(st.booleans()):
                ledger.crash()
        slot, unit = time // SLOT, (user, 0 if of.unit is None else of.unit.index(time))
        inside = (slot, cell) if of.unit == of.slot else cell
        expected = None
        if in_unit[unit, inside] >= of.max_contributions:
            expected = "over_cap"
        elif of.unit != of.slot and slot not in slots[unit] and len(slots[unit]) == of.max_slots:
            expected = "slots_left_out"
        elif cell not in cells[user, slot] and len(cells[user, slot]) == of.max_groups:
            expected = "cells_left_out"
        else:
            in_unit[unit, inside] += 1
            slots[unit].add(slot)
            cells[user, slot].add(cell)
            sent[user, slot, cell] += 1
        assert ledger.accounts.add(user, cell, 1, time, time) == expected
    ledger.accounts.flush(None, idle=True)
    assert samples(ledger) == sent


def test_a_unit_that_is_for_ever_keeps_its_slots_and_samples_through_restarts():
    ledger = Ledger(maker(rule(unit=None)))
    for time, cell, expected in (
        (1, "x", None), (11, "x", None), (12, "x", "over_cap"), (21, "y", "slots_left_out"), (31, "x", "over_cap"),
    ):  # fmt: skip
        assert ledger.accounts.add(b"a", cell, 1, time, time) == expected
        ledger.accounts.flush(time, idle=True)
        ledger.commit(time)
        ledger.crash()


def test_a_sample_whose_own_time_is_in_another_unit_is_late():
    accounts = Ledger(maker(rule())).accounts
    assert accounts.add(b"a", None, 1, time=29, effective=30) == "late"
    assert accounts.add(b"a", None, 1, time=5, effective=10) is None


def test_a_stranger_is_refused_and_nothing_is_kept():
    ledger = Ledger(maker(rule()))
    assert ledger.accounts.add(b"stranger", "x", 1, 0, 0) == "wrong-partition"
    assert (ledger.accounts.sizes, ledger.commit()) == ([0, 0, 0], [])


def test_what_was_sent_leaves_the_changelog():
    ledger = Ledger(maker(rule(unit=Even(SLOT))))
    ledger.accounts.add(b"a", None, 7, 1, 1)
    ledger.commit(1)
    assert ledger.accounts.sizes == [2, 0, 1]
    assert ledger.accounts.count(b"a", None) == ledger.accounts.count(b"a", "") == 1
    ledger.accounts.flush(SLOT, idle=False)
    ledger.commit(SLOT)
    assert (ledger.changelog, ledger.accounts.sizes) == ({}, [0, 0, 0])
    assert [sent.block.total for sent in ledger.sent] == [{"": [7]}]


def test_samples_of_several_values_are_kept_and_sent_as_lists():
    ledger = Ledger(maker(rule(unit=Even(SLOT), coordinates=3)))
    packing = Samples(3)
    for sample in ([1, 1 << 32, 0], [7, 8, 9]):
        ledger.accounts.add(b"a", "x", packing.pack(sample), 1, 1)
        ledger.commit(1)
        ledger.crash()
    ledger.accounts.flush(SLOT, idle=False)
    assert [sent.block.total for sent in ledger.sent] == [{"x": [[1, 1 << 32, 0], [7, 8, 9]]}]
    assert samples(ledger) == {(b"a", 0, "x"): 2}


def test_without_a_changelog_samples_are_sent_all_the_same():
    ledger = Ledger(maker(rule()), durable=False)
    ledger.accounts.add(b"a", "x", 7, 1, 1)
    assert ledger.commit(1) == []
    ledger.accounts.flush(None, idle=True)
    assert ledger.commit(100) == []
    assert samples(ledger) == {(b"a", 0, "x"): 1}


def test_of_very_many_cells_release_is_given_the_first_ones():
    assert [rule(max_groups=k, splits=False).most_cells for k in (1, 9000)] == [MOST_CELLS, 9000]
    assert rule(max_groups=7).most_cells == 7


def test_a_slot_of_which_a_changelog_has_no_samples_keeps_none():
    accounts = Ledger(maker(rule())).accounts
    assert isinstance(accounts, SlotAccounts)
    accounts.keep_again(4)
    assert list(accounts.of_user(b"a")) == []
    assert not accounts._kept
