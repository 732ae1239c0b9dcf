"""The group's assignor through long histories: joins, leaves, kills, restarts that the leader does not hear of."""

import random
from asyncio import run
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.errors import InconsistentGroupProtocolError, TopicAuthorizationFailedError

from shoal.agents.kafka import assignor as assignors
from shoal.agents.kafka.assignment import Claim, Member, Shares
from shoal.agents.kafka.assignor import Assignor, GroupMember, decode_claim, encode_claim, made_for_others
from shoal.agents.kafka.settings import KafkaSettings
from tests.agents.kafka.test_assignment import expect_balance, most_that_may_stay, owned_of

SETTINGS = KafkaSettings("", "app")
OWN = {"app.contributions": 4, "app.releases": 4, "app.activations": 4}
Topics = dict[str, range]


class Cluster:
    """What a leader knows of topics."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self.counts[topic])) if topic in self.counts else None


class Group:
    """The coordinator's side of a group, as far as assignments go; members are what a worker has, an `Assignor`."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.cluster = Cluster(OWN | {"events": self.choice.randint(1, 9)})
        self.generation = 0
        self.members: dict[str, Assignor] = {}
        self.read: dict[str, list[str]] = {}
        self.static: dict[str, str] = {}  # member -> its instance
        self.given: dict[str, bytes] = {}  # the last assignment of each
        self.away: dict[str, Assignor] = {}  # frozen: gone for the group, and back one day
        self.number = 0

    def join(self, instance: str | None = None) -> None:
        """A newcomer; one with an instance takes its former place over, and nobody else hears of it."""
        self.number += 1
        name = f"{instance or 'worker'}-{self.choice.randrange(10**6):06}-{self.number}"
        former = next((one for one, known in self.static.items() if known == instance), None)
        self.members[name], self.read[name] = Assignor(SETTINGS.stage), sorted(self.cluster.counts)
        if instance is not None:
            self.static[name] = instance
        if former is not None:
            assignment = self.given.pop(former)
            self.remove(former)
            self.receive(name, assignment)

    def remove(self, name: str) -> Assignor:
        self.given.pop(name, None)
        self.static.pop(name, None)
        del self.read[name]
        return self.members.pop(name)

    def receive(self, name: str, raw: bytes) -> None:
        self.given[name] = raw
        self.members[name].generation = self.generation
        self.members[name].on_assignment(ConsumerProtocolMemberAssignment.decode(raw))

    def said(self) -> dict[str, ConsumerProtocolMemberMetadata]:
        """What all members say, through the wire."""
        encoded = {name: member.metadata(self.read[name]).encode() for name, member in self.members.items()}
        return {name: ConsumerProtocolMemberMetadata.decode(raw) for name, raw in encoded.items()}

    def rebalance(self) -> tuple[dict[str, Member], Shares]:
        """Everybody joins, some member is the leader, everybody gets its assignment."""
        said = self.said()
        leader = self.choice.choice(sorted(self.members))
        found = self.members[leader].assign(self.cluster, said)
        turned = dict(reversed(said.items()))
        assert self.members[self.choice.choice(sorted(self.members))].assign(self.cluster, turned) == found
        self.generation += 1
        for name, assignment in found.items():
            self.receive(name, assignment.encode())
        members = {name: Member(frozenset(one.subscription), decode_claim(one.user_data)) for name, one in said.items()}
        return members, {name: dict(found[name].assignment) for name in found}

    def act(self) -> None:
        """Something happens."""
        names = sorted(self.members)
        match self.choice.choice(["join", "static", "leave", "freeze", "thaw", "restart", "topic", "nothing"]):
            case "join" if len(names) < 5:
                self.join()
            case "static" if len(names) < 5:
                self.join(f"static{self.number}")
            case "leave" if len(names) > 1:
                self.remove(self.choice.choice(names))
            case "freeze" if len(names) > 1:
                name = self.choice.choice(names)
                if name not in self.static:
                    self.away[name] = self.remove(name)
            case "thaw" if self.away and len(names) < 5:
                name, member = self.away.popitem()
                self.members[name], self.read[name] = member, sorted(self.cluster.counts)
            case "restart" if self.static:
                self.join(self.static[self.choice.choice(sorted(self.static))])
            case "topic" if len(self.cluster.counts) < 6:
                self.cluster.counts[f"events{self.number}"] = self.choice.randint(1, 9)
                self.number += 1
                for name in names:  # some are started again with the new configuration, some are not
                    if self.choice.random() < 0.7:
                        self.read[name] = sorted(self.cluster.counts)


@pytest.mark.parametrize("seed", range(40))
def test_through_any_history_every_topic_is_shared_evenly_and_moves_are_the_fewest(seed):
    group = Group(seed)
    group.join()
    for step in range(60):
        # when something happens, and the group rebalances
        group.act()
        members, shares = group.rebalance()
        # then it is even, and nothing moved that could have stayed
        topics = {name: range(count) for name, count in group.cluster.counts.items()}
        expect_balance(topics, members, shares)
        if step % 8:
            continue  # trying all assignments takes its time
        claims = effective(topics, members)
        stayed = sum(
            1
            for partition, owner in owned_of(shares).items()
            if partition[1] in claims[owner].claim.owned.get(partition[0], ())
        )
        assert stayed == most_that_may_stay(topics, claims)


def effective(topics: Topics, members: dict[str, Member]) -> dict[str, Member]:
    """Of claims that contradict each other the latest, of these the first by name."""
    taken: set[tuple[str, int]] = set()
    found = {}
    for name in sorted(members, key=lambda one: (-members[one].claim.generation, one)):
        owned: dict[str, list[int]] = {}
        for topic, numbers in members[name].claim.owned.items():
            if topic in members[name].topics and topic in topics:
                owned[topic] = [one for one in numbers if one in topics[topic] and (topic, one) not in taken]
                taken |= {(topic, one) for one in owned[topic]}
        found[name] = Member(members[name].topics, Claim(0, owned))
    return found


def test_a_static_member_that_the_leader_did_not_see_restart_keeps_what_it_has():
    # given two static members that share everything
    group = Group(5)
    group.join("one")
    group.join("two")
    _, before = group.rebalance()
    # when one is started again, gets its former assignment without a rebalance, and then another one joins and leaves
    group.join("one")
    restarted = next(name for name, instance in group.static.items() if instance == "one")
    said = decode_claim(group.members[restarted].metadata([]).user_data)
    group.rebalance()
    _, after = group.rebalance()
    # then it said what it owned, as of the present generation, and nothing moved
    assert said.generation == 1
    former = {name.partition("-")[0]: owned for name, owned in before.items()}
    assert {name.partition("-")[0]: owned for name, owned in after.items()} == former


FOREIGN = [
    b"", b"\x00\x00\x00\x01\x00\x06events", b"{", b"null", b"3", b"[]", b"{}", b'{"generation": 3}',
    b'{"generation": true, "owned": {}}', b'{"generation": "3", "owned": {}}', b'{"generation": 3, "owned": []}',
    b'{"generation": 3, "owned": {"events": 4}}', b'{"generation": 3, "owned": {"events": ["0"]}}', b"\xff\xfe",
    b'{"generation": 3, "owned": {"events": [true]}}',
]  # fmt: skip


@pytest.mark.parametrize("data", FOREIGN)
def test_what_a_leader_cannot_read_is_no_claim(data):
    said = {
        "good": ConsumerProtocolMemberMetadata(0, ["events"], encode_claim(Claim(1, {"events": [0, 1]}))),
        "odd": ConsumerProtocolMemberMetadata(0, ["events", "missing"], data),
    }
    found = Assignor(SETTINGS.stage).assign(Cluster({"events": 2}), said)
    assert {name: dict(found[name].assignment) for name in found} == {"good": {"events": [0]}, "odd": {"events": [1]}}
    assert decode_claim(data) == Claim()


def test_a_claim_may_name_what_does_not_exist_or_is_not_read():
    said = {
        "a": ConsumerProtocolMemberMetadata(
            0, ["events"], encode_claim(Claim(9, {"events": [0, 99, -1], "gone": [0]}))
        ),
        "b": ConsumerProtocolMemberMetadata(0, ["events"], encode_claim(Claim(1, {"events": [0, 1]}))),
    }
    found = Assignor(SETTINGS.stage).assign(Cluster({"events": 2}), said)
    assert [dict(found[name].assignment) for name in "ab"] == [{"events": [0]}, {"events": [1]}]


class Coordinator:
    """As much of aiokafka's as a group member touches."""

    def __init__(self, *topics: str) -> None:
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(topics=set(topics)))
        self.taken: list[dict[str, list[int]]] = []
        self.pushed: list[Exception] = []
        self.rejoins = 0
        self.assignor = Assignor(SETTINGS.stage)

    async def _on_join_complete(self, generation: int, member_id: str, protocol: str, raw: bytes) -> None:
        assignment = ConsumerProtocolMemberAssignment.decode(raw)
        self.taken.append(dict(assignment.assignment))
        self.assignor.on_assignment(assignment)

    def _push_error_to_user(self, error: Exception) -> None:
        self.pushed.append(error)

    def request_rejoin(self) -> None:
        self.rejoins += 1


def test_a_member_that_reads_other_topics_than_its_assignment_was_made_for_asks_for_another():
    # given a static member that was started again with another configuration, before anybody noticed
    coordinator: Any = Coordinator("app.contributions", "new")
    GroupMember(coordinator, coordinator.assignor, SETTINGS)
    made_for = orjson.dumps(["app.contributions", "old"])
    raw = ConsumerProtocolMemberAssignment(0, [("app.contributions", [1]), ("old", [0])], made_for).encode()
    # when it gets the former assignment back
    run(coordinator._on_join_complete(4, "me", assignors.NAME, raw))
    # then it takes what it reads, asks for a rebalance, once in a generation, and says since when it owns what
    assert coordinator.taken == [{"app.contributions": [1]}]
    run(coordinator._on_join_complete(4, "me", assignors.NAME, raw))
    assert coordinator.rejoins == 1
    claim = decode_claim(coordinator.assignor.metadata(["new"]).user_data)
    assert claim == Claim(4, {"app.contributions": [1]})
    # and after it none
    right = ConsumerProtocolMemberAssignment(0, [("new", [0])], orjson.dumps(["app.contributions", "new"])).encode()
    run(coordinator._on_join_complete(5, "me", assignors.NAME, right))
    assert coordinator.rejoins == 1


def test_what_an_assignment_was_made_for_may_be_unsaid():
    assert [made_for_others(data, ["a"]) for data in (b"", b"{", b'"a"', b'["a"]', b'["b"]')] == [False] * 4 + [True]


def test_workers_of_another_version_are_named(monkeypatch):
    coordinator: Any = Coordinator()
    GroupMember(coordinator, coordinator.assignor, SETTINGS)
    ended: list[str] = []
    monkeypatch.setattr(assignors, "fail_stop", lambda error, where: ended.append(str(error)))
    coordinator._push_error_to_user(TopicAuthorizationFailedError())
    assert (len(coordinator.pushed), ended) == (1, [])
    coordinator._push_error_to_user(InconsistentGroupProtocolError())
    assert len(ended) == 1
    assert "consumer group app: its workers share partitions by another rule" in ended[0]
    assert "stop all workers first" in ended[0]
