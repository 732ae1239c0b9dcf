"""What accounts say that they hold of one user is what counted of that user, after any crash, and nobody else's."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.continual_mean.accounts import MeanAccounts
from shoal.mechanisms.continual_mean.accounts import Rule as MeanRule
from shoal.mechanisms.continual_mean.blocks import BlockBounder
from shoal.mechanisms.overall_accounts import Limit, OverallAccounts, blocks_of
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.slot.accounts import Rule as SlotRule
from shoal.mechanisms.slot.accounts import SlotAccounts
from shoal.mechanisms.statistic import OneByOne
from tests.mechanisms.account_cases import Ledger

LENGTH = 10  # of a period, and of a slot
USERS = st.sampled_from([b"a", b"ab", b"b"])
EVENTS = st.lists(st.tuples(st.integers(0, 45), USERS, st.sampled_from("xyz"), st.integers(1, 9)), max_size=40).map(
    lambda events: sorted(events, key=lambda event: event[0])
)
Event = tuple[int, bytes, str, int]


def blocks(site: Site) -> Accounts:
    return MeanAccounts(MeanRule(max_contributions=6, groups=2), BlockBounder(6).add, site)


def in_periods(site: Site) -> Accounts:
    limit = Limit(4, keys=2, leaves_out=True, period=Even(LENGTH))
    return OverallAccounts(limit, blocks_of(OneByOne(4)), site)


def slots(site: Site, unit: int | None = None) -> Accounts:
    period = None if unit is None else Even(unit)
    rule = SlotRule(max_contributions=3, slot=Even(LENGTH), unit=period, max_slots=2, max_groups=2, splits=True)
    return SlotAccounts(rule, site)


def counted(ledger: Ledger, events: list[Event], place: bool = True) -> list[Event]:
    """The events that counted, by accounts that were restored after them."""
    kept = [e for e in events if ledger.accounts.add(e[1], e[2] if place else None, e[3], e[0], e[0]) is None]
    ledger.commit()
    ledger.crash()
    return kept


@given(EVENTS, USERS, st.booleans())
def test_of_means_the_samples_of_each_group_and_the_sum_of_the_open_block(
    events: list[Event], who: bytes, has_groups: bool
) -> None:
    ledger = Ledger(blocks)
    values: dict[str | None, list[int]] = {}
    for _, user, group, value in counted(ledger, events, has_groups):
        if user == who:
            values.setdefault(group if has_groups else None, []).append(value)
    found = {each.place: (each.start, each.samples, each.open_sum) for each in ledger.accounts.of_user(who)}
    assert found == {
        place: (None, len(own), sum(own[1 << len(own).bit_length() - 1 :])) for place, own in values.items()
    }


@given(EVENTS, USERS)
def test_of_steps_the_samples_of_each_period_and_its_groups(events: list[Event], who: bytes) -> None:
    ledger = Ledger(in_periods)
    own = [event for event in counted(ledger, events) if event[1] == who]
    samples = Counter(time // LENGTH * LENGTH for time, *_ in own)
    groups = {(time // LENGTH * LENGTH, group) for time, _, group, _ in own}
    found = list(ledger.accounts.of_user(who))
    assert {each.start: each.samples for each in found if each.place is None} == samples
    assert {(each.start, each.place) for each in found if each.place is not None} == groups
    assert all(each.samples is None for each in found if each.place is not None)


@given(EVENTS, USERS)
def test_of_slots_the_samples_of_each_cell_and_what_waits(events: list[Event], who: bytes) -> None:
    ledger = Ledger(slots)
    own = [event for event in counted(ledger, events) if event[1] == who]
    found = list(ledger.accounts.of_user(who))
    # then the account of the unit, which here is for ever
    assert {each.place: each.samples for each in found if each.start is None} == Counter(cell for *_, cell, _ in own)
    # and those of the slots, none of whose samples was sent
    in_slots: Counter[tuple[int, str | None]] = Counter((time // LENGTH * LENGTH, cell) for time, _, cell, _ in own)
    in_slots += Counter((time // LENGTH * LENGTH, None) for time, *_ in own)
    of_slots = {(each.start, each.place): (each.samples, each.waiting) for each in found if each.start is not None}
    assert of_slots == {name: (samples, samples) for name, samples in in_slots.items()}
    # when they were, nothing waits; when the slots are over, their accounts are gone
    ledger.accounts.flush(None, idle=True)
    assert not any(each.waiting for each in ledger.accounts.of_user(who))
    ledger.commit(promise=1000)
    assert all(each.start is None for each in ledger.accounts.of_user(who))


def test_where_the_slot_is_the_unit_there_is_one_account() -> None:
    ledger = Ledger(lambda site: slots(site, unit=LENGTH))
    counted(ledger, [(3, b"a", "x", 1), (4, b"a", "y", 1), (12, b"b", "x", 1)])
    found = [(each.start, each.place, each.samples) for each in ledger.accounts.of_user(b"a")]
    assert found == [(0, "x", 1), (0, "y", 1), (0, None, 2)]


def test_where_each_event_is_the_unit_nothing_is_kept() -> None:
    ledger = Ledger(lambda site: OverallAccounts(Limit(None), blocks_of(OneByOne(1)), site))
    assert counted(ledger, [(3, b"a", "x", 1)])
    assert list(ledger.accounts.of_user(b"a")) == []
