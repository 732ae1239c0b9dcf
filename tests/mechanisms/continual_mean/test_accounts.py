"""Accounts of means: a cap in each group, a limit of groups, and one partition for each user, through every restart."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.continual_mean.accounts import MeanAccounts, Rule
from shoal.mechanisms.statistic import OneByOne
from tests.mechanisms.account_cases import Ledger


def two_each(site: Site) -> Accounts:
    """Two samples of a user in a group, and two groups."""
    return MeanAccounts(Rule(max_contributions=2, groups=2), OneByOne(2).add, site)


@given(st.lists(st.tuples(st.sampled_from([b"a", b"ab"]), st.sampled_from(["b", "bc", "c", None])), max_size=40),
       st.sets(st.integers(0, 39)))  # fmt: skip
def test_the_first_samples_of_the_first_groups_count_wherever_it_crashes(samples, crashes):
    ledger = Ledger(two_each)
    counts: Counter[tuple[bytes, str | None]] = Counter()
    groups: set[tuple[bytes, str]] = set()
    for number, (user, group) in enumerate(samples):
        if number in crashes:
            ledger.commit()
            ledger.crash()
        expected = None
        if (user, group) not in counts and group is not None and sum(u == user for u, _ in groups) == 2:
            expected = "groups_left_out"
        elif counts[user, group] == 2:
            expected = "over_cap"
        else:
            counts[user, group] += 1
            groups |= {(user, group)} if group is not None else set()
        if not counts[user, group]:
            del counts[user, group]
        assert ledger.accounts.add(user, group, 1, number, number) == expected
        assert ledger.accounts.count(user, group) == counts.get((user, group))
    assert Counter((sent.user, sent.group) for sent in ledger.sent) == counts


def test_a_stranger_opens_no_account_and_who_has_one_is_not_asked_again():
    ledger = Ledger(two_each)
    assert ledger.accounts.add(b"stranger", None, 1, 0, 0) == "wrong-partition"
    assert ledger.accounts.sizes == [0, 0]
    assert not ledger.commit()


def test_accounts_never_close():
    ledger = Ledger(two_each)
    ledger.accounts.add(b"a", "x", 1, 0, 0)
    assert len(ledger.commit(promise=1 << 60)) == 2
    assert ledger.accounts.sizes == [1, 1]
    assert sorted(key[:1] for key in ledger.changelog) == [b"a", b"g"]


def test_an_account_has_room_for_every_coordinate():
    assert [Rule(1, 1, count).account_bytes for count in (1, 2, 5)] == [16, 20, 44]
