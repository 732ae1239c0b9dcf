"""Accounts of sums: one cap over all groups in each period, and periods that close in pieces."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.statistic import OneByOne
from shoal.mechanisms.stepped.accounts import EventAccounts, Rule, UnitAccounts
from tests.mechanisms.account_cases import Ledger

LENGTH = 10  # of a period


def in_periods(site: Site) -> Accounts:
    return UnitAccounts(Rule(max_contributions=2, groups=1, period=LENGTH), OneByOne(2).add, site)


def for_ever(site: Site) -> Accounts:
    return UnitAccounts(Rule(max_contributions=2, groups=1, period=None), OneByOne(2).add, site)


times = st.lists(st.integers(-15, 45), max_size=40).map(sorted)


@given(times, st.data())
def test_a_period_has_its_cap_once_wherever_accounts_are_closed_and_crash(found, data):
    ledger = Ledger(in_periods)
    counts: Counter[int] = Counter()
    for time in found:
        if data.draw(st.booleans()):
            ledger.commit(promise=time)
            assert ledger.accounts.sizes == [len(ledger.changelog), 0]
            assert all(int.from_bytes(name[5:13], "big", signed=True) >= time // LENGTH for name in ledger.changelog)
            if data.draw(st.booleans()):
                ledger.crash()
        counts[time // LENGTH] += 1
        over = counts[time // LENGTH] > 2
        assert ledger.accounts.add(b"a", None, 1, time, time) == ("over_cap" if over else None)
    assert Counter(sent.effective // LENGTH for sent in ledger.sent) == {p: min(n, 2) for p, n in counts.items()}
    ledger.commit(promise=1000)
    assert not ledger.changelog


def test_an_event_that_counts_in_another_period_than_its_own_is_late():
    accounts = Ledger(in_periods).accounts
    assert accounts.add(b"a", None, 1, time=9, effective=10) == "late"
    assert accounts.add(b"a", None, 1, time=7, effective=9) is None
    assert Ledger(for_ever).accounts.add(b"a", None, 1, time=7, effective=99) is None


def test_one_cap_holds_over_all_groups_and_groups_are_limited():
    ledger = Ledger(for_ever)
    add = ledger.accounts.add
    assert [add(b"a", group, 1, 0, 0) for group in ("x", "y", "x", "x")] == [None, "groups_left_out", None, "over_cap"]
    assert add(b"stranger", "x", 1, 0, 0) == "wrong-partition"
    assert (ledger.accounts.count(b"a", None), ledger.accounts.count(b"a", "x")) == (2, None)
    ledger.commit(promise=1 << 60)
    ledger.crash()
    assert ledger.accounts.sizes == [1, 1]
    assert ledger.accounts.add(b"a", "x", 1, 0, 0) == "over_cap"


def test_without_a_changelog_periods_are_forgotten_all_the_same():
    ledger = Ledger(in_periods, durable=False)
    ledger.accounts.add(b"a", "x", 1, 0, 0)
    assert ledger.commit(promise=9) == []
    assert ledger.accounts.sizes == [1, 1]
    assert ledger.commit(promise=10) == []
    assert ledger.accounts.sizes == [0, 0]


def test_every_event_counts_where_it_is_the_unit():
    ledger = Ledger(lambda site: EventAccounts(OneByOne(1).add, site))
    assert [ledger.accounts.add(user, "x", 7, 0, 5) for user in (b"a", b"a", b"stranger")] == [None] * 3
    assert [(sent.effective, sent.block.total) for sent in ledger.sent] == [(5, 7)] * 3
    assert (ledger.accounts.sizes, ledger.accounts.count(b"a", None), ledger.commit(9)) == ([0, 0], None, [])


def test_a_sample_that_closes_no_block_counts_and_sends_nothing():
    def keep(account: int, value: int) -> tuple[int, None]:
        return account + 1, None

    def units(site: Site) -> Accounts:
        return UnitAccounts(Rule(max_contributions=1, groups=1, period=None), keep, site)

    for make, second in ((units, "over_cap"), (lambda site: EventAccounts(keep, site), None)):
        ledger = Ledger(make)
        assert [ledger.accounts.add(b"a", None, 1, 0, 0) for _ in range(2)] == [None, second]
        assert not ledger.sent
