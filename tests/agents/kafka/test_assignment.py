"""Workers share partitions: evenly, whatever happens to them, and without moving more than that takes."""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.assignment import Claim, Member, Shares, share

Topics = dict[str, range]


def stage(topic: str) -> str:
    """Whatever is none of the app's own is a source."""
    stages = {"contributions": "release", "releases": "audit", "activations": "audit"}
    return stages.get(topic.removeprefix("app."), "bound")


def app(own: int, *sources: int) -> Topics:
    """The topics of an app."""
    names = ("contributions", "releases", "activations")
    return {name: range(own) for name in names} | {f"s{n}": range(count) for n, count in enumerate(sources)}


def owned_of(shares: Shares) -> dict[tuple[str, int], str]:
    found = [(topic, one, member) for member in shares for topic in shares[member] for one in shares[member][topic]]
    assert len({partition[:2] for partition in found}) == len(found), "a partition has two owners"
    return {(topic, number): member for topic, number, member in found}


def expect_balance(topics: Mapping[str, Collection[int]], members: Mapping[str, Member], shares: Shares) -> None:
    """Everything has an owner; of each topic floor or ceil, of each stage totals within one where all read the same."""
    readers = {topic: [name for name in members if topic in members[name].topics] for topic in topics}
    expected = {(topic, number) for topic in topics if readers[topic] for number in topics[topic]}
    assert owned_of(shares).keys() == expected
    for topic, names in readers.items():
        counts = [len(shares[name].get(topic, ())) for name in names]
        assert not counts or sum(counts) == len(topics[topic])
        assert not counts or max(counts) - min(counts) <= 1, (topic, counts)
        assert all(topic not in shares[name] for name in members if name not in names)
    if all(member.topics >= topics.keys() for member in members.values()):
        for wanted in set(map(stage, topics)):
            totals = [sum(len(shares[m].get(t, ())) for t in topics if stage(t) == wanted) for m in members]
            assert max(totals) - min(totals) <= 1, (wanted, totals)


def most_that_may_stay(topics: Topics, members: Mapping[str, Member]) -> int:
    """By trying all: of each stage the choices of who gets one more with the most even totals, and what then stays."""
    stay = 0
    for wanted in sorted(set(map(stage, topics))):
        mine = [topic for topic in sorted(topics) if stage(topic) == wanted]
        stay += max((-squares, stays) for squares, stays in _choices(topics, mine, members))[1]
    return stay


def _choices(topics: Topics, mine: list[str], members: Mapping[str, Member]) -> Iterator[tuple[int, int]]:
    readers = {topic: sorted(name for name in members if topic in members[name].topics) for topic in mine}
    mine = [topic for topic in mine if readers[topic]]
    least = {topic: divmod(len(topics[topic]), len(readers[topic])) for topic in mine}
    held = {
        (topic, name): len(set(topics[topic]) & set(members[name].claim.owned.get(topic, ())))
        for topic in mine
        for name in readers[topic]
    }
    for chosen in product(*(combinations(readers[topic], least[topic][1]) for topic in mine)):
        total, stays = Counter[str](), 0
        for topic, more in zip(mine, chosen, strict=True):
            for name in readers[topic]:
                due = least[topic][0] + (name in more)
                total[name] += due
                stays += min(due, held[topic, name])
        yield sum(count**2 for count in total.values()), stays


def claims_of(shares: Shares, generation: int) -> dict[str, Claim]:
    return {name: Claim(generation, owned) for name, owned in shares.items()}


def moves(before: Shares, after: Shares) -> int:
    """Partitions that had an owner who is still there, and have another one now."""
    old, new = owned_of(before), owned_of(after)
    return sum(1 for partition, owner in old.items() if owner in after and new.get(partition) != owner)


@pytest.mark.parametrize(("sources", "own"), [((4,), 4), ((8,), 8), ((16,), 8), ((4, 4, 4), 4), ((5, 3), 7)])
def test_workers_that_join_one_after_the_other_get_what_they_would_get_at_once(sources, own):
    topics = app(own, *sources)
    claims: dict[str, Claim] = {}
    for generation, name in enumerate("abcd"):
        claims[name] = Claim()
        members = {one: Member(frozenset(topics), claim) for one, claim in claims.items()}
        shares = share(topics, members, stage)
        expect_balance(topics, members, shares)
        claims = claims_of(shares, generation)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.integers(0, 4),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_no_assignment_as_even_moves_fewer_partitions(sources, own, count, choice):
    # given members that own something, nobody else the same, and do not all read the same topics
    topics = app(own, *sources)
    names = [f"m{number}" for number in range(count)]
    owner = {(topic, number): choice.choice([*names, None]) for topic in topics for number in topics[topic]}
    members = {}
    for name in names:
        owned = {topic: [number for number in topics[topic] if owner[topic, number] == name] for topic in topics}
        read = frozenset(topics) if choice.random() < 0.6 else frozenset(choice.sample(sorted(topics), 3))
        members[name] = Member(read, Claim(7, {topic: owned[topic] for topic in read}))
    # when they share
    shares = share(topics, members, stage)
    # then it is even, and as much stays as in the best of all assignments that are as even
    expect_balance(topics, members, shares)
    new = owned_of(shares)
    stayed = sum(
        new.get(partition) == name for partition, name in owner.items() if name and partition[0] in members[name].topics
    )
    assert stayed == most_that_may_stay(topics, members)
    # and once it is so, it stays so
    claims = claims_of(shares, 8)
    again = share(topics, {name: Member(members[name].topics, claims[name]) for name in names}, stage)
    assert again == shares


def test_the_later_generation_owns_what_two_members_claim():
    topics = app(0, 2)
    late, early = Claim(9, {"s0": [0]}), Claim(3, {"s0": [0, 1]})
    read = frozenset(topics)
    shares = share(topics, {"a": Member(read, early), "z": Member(read, late)}, stage)
    assert (shares["a"]["s0"], shares["z"]["s0"]) == ([1], [0])
    # of one generation the first by name, in whatever order they are told
    tied = {"z": Member(read, Claim(3, {"s0": [0]})), "a": Member(read, early)}
    assert share(topics, tied, stage) == share(topics, dict(reversed(tied.items())), stage)
    assert share(topics, tied, stage)["a"]["s0"] == [0]


def test_what_is_left_over_of_single_topics_does_not_fall_to_one_member():
    # Twenty sources of one partition each, and two workers: not twenty to none.
    topics = app(1, *[1] * 20)
    members = {name: Member(frozenset(topics)) for name in "ab"}
    shares = share(topics, members, stage)
    expect_balance(topics, members, shares)
    assert sum(map(len, shares["a"].values())) - sum(map(len, shares["b"].values())) in (-1, 0, 1)


def test_many_members_and_topics_are_shared_in_good_time():
    topics = app(64, *[13] * 12)
    choice = random.Random(4)
    members = {f"m{number:02}": Member(frozenset(topics)) for number in range(40)}
    for generation in range(3):
        shares = share(topics, members, stage)
        expect_balance(topics, members, shares)
        claims = claims_of(shares, generation)
        for name in choice.sample(sorted(members), 7):
            del members[name]
        members = {name: Member(frozenset(topics), claims[name]) for name in members}
        after = share(topics, members, stage)
        expect_balance(topics, members, after)
        members |= {f"n{generation}{number}": Member(frozenset(topics)) for number in range(5)}


def test_nobody_moves_without_need_when_one_of_four_leaves():
    topics = app(8, 8)
    members = {name: Member(frozenset(topics)) for name in "abcd"}
    before = share(topics, members, stage)
    claims = claims_of(before, 1)
    after = share(topics, {name: Member(frozenset(topics), claims[name]) for name in "abc"}, stage)
    assert moves(before, after) == 0
