"""How workers share partitions: evenly in each topic and each stage, and with as few moves as that takes.

The arguments are the partitions of each topic, and the topics and claims of each member. Each of the w members of a
topic with n partitions gets n // w of them or one more. Who gets one more is chosen so that the totals of a stage
differ as little as possible, and among such choices so that most partitions stay where they are. The result is a
function of the arguments alone, the same for every member that computes it. Nothing here can fail.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

Shares = dict[str, dict[str, list[int]]]  # member -> topic -> partitions


@dataclass(frozen=True, slots=True)
class Claim:
    """What a member says it owned, and the generation of the group in which it got that."""

    generation: int = -1
    owned: Mapping[str, Collection[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Member:
    """The topics that a member reads, and its claim."""

    topics: frozenset[str]
    claim: Claim = field(default_factory=Claim)


def share(topics: Mapping[str, Collection[int]], members: Mapping[str, Member], stage: Callable[[str], str]) -> Shares:
    """Assign the partitions of each topic to those members that read it."""
    shares: Shares = {name: {} for name in sorted(members)}
    owners = _owners(topics, members)
    stages: dict[str, list[str]] = {}
    for topic in sorted(topics):
        if any(topic in member.topics for member in members.values()):
            stages.setdefault(stage(topic), []).append(topic)
    load: Counter[str] = Counter()
    for _, names in sorted(stages.items()):
        parts = [_Topic(name, topics[name], members, owners) for name in names]
        _choose(parts, load)
        for part in parts:
            for name, numbers in part.deal(load).items():
                shares[name][part.name] = numbers
                load[name] += len(numbers)
    return shares


def _owners(topics: Mapping[str, Collection[int]], members: Mapping[str, Member]) -> dict[tuple[str, int], str]:
    """The owner of each partition: of several claims the one of the latest generation, then the first by name."""
    owners: dict[tuple[str, int], str] = {}
    for name in sorted(members, key=lambda name: (-members[name].claim.generation, name)):
        member = members[name]
        for topic in member.topics & topics.keys() & member.claim.owned.keys():
            for number in set(topics[topic]).intersection(member.claim.owned[topic]):
                owners.setdefault((topic, number), name)
    return owners


class _Topic:
    """One topic: its members, what they hold of it, and which of them get one partition more than the others."""

    def __init__(
        self,
        name: str,
        numbers: Collection[int],
        members: Mapping[str, Member],
        owners: Mapping[tuple[str, int], str],
    ) -> None:
        self.name, self.numbers = name, sorted(numbers)
        self.members = [member for member in sorted(members) if name in members[member].topics]
        self.least, self.extras = divmod(len(self.numbers), len(self.members))
        self.held: dict[str, list[int]] = {member: [] for member in self.members}
        for number in self.numbers:
            owner = owners.get((name, number))
            if owner is not None:
                self.held[owner].append(number)
        self.more: set[str] = set()

    def keeps(self, member: str) -> int:
        """How many more partitions stay where they are if this member gets one more: 1 or 0."""
        return int(len(self.held[member]) > self.least)

    def deal(self, load: Mapping[str, int]) -> dict[str, list[int]]:
        """Let members keep their own as far as there is room, and give the rest to those that have the least so far."""
        due = {member: self.least + (member in self.more) for member in self.members}
        dealt = {member: self.held[member][: due[member]] for member in self.members}
        kept = {number for numbers in dealt.values() for number in numbers}
        free = iter([number for number in self.numbers if number not in kept])
        for member in sorted(self.members, key=lambda member: (load[member], member)):
            dealt[member] += [next(free) for _ in range(due[member] - len(dealt[member]))]
        return {member: sorted(numbers) for member, numbers in dealt.items() if numbers}


def _choose(topics: list[_Topic], load: Mapping[str, int]) -> None:
    """Decide for the topics of one stage who gets one more of each."""
    total: Counter[str] = Counter()
    for topic in topics:
        for member in topic.members:
            total[member] += topic.least
    for topic in topics:
        best = sorted(topic.members, key=lambda member: (-topic.keeps(member), total[member], load[member], member))
        topic.more = set(best[: topic.extras])
        total.update(topic.more)
    _Exchange(topics, total).improve()


class _Exchange:
    """Passes on who gets one more, until no exchange makes totals more even, or lets more stay at equal totals.

    This is minimum-cost flow by cancelling negative cycles. Its nodes are the members and None, which stands for the
    totals: an edge into None means that a member's total grows by one, an edge out of it that one's total shrinks.
    Costs are the sum of squared totals first, then the number of partitions that move.
    """

    def __init__(self, topics: list[_Topic], total: Counter[str]) -> None:
        self._topics, self._total = topics, total
        self._members = sorted({member for topic in topics for member in topic.members})
        self._square = 1 + 2 * len(topics) * len(self._members)  # costs more than all that could move

    def improve(self) -> None:
        while (cycle := self._cycle()) is not None:
            edges = self._edges()
            for giver, taker in pairwise(cycle):
                if giver is None or taker is None:
                    continue
                topic = edges[giver, taker][1]
                topic.more.remove(giver)
                topic.more.add(taker)
                self._total[giver] -= 1
                self._total[taker] += 1

    def _edges(self) -> dict[tuple[str, str], tuple[int, _Topic]]:
        """(giver, taker) -> the least cost of passing one more of some topic from one to the other."""
        edges: dict[tuple[str, str], tuple[int, _Topic]] = {}
        for topic in self._topics:
            takers = [member for member in topic.members if member not in topic.more]
            for giver in sorted(topic.more):
                for taker in takers:
                    cost = topic.keeps(giver) - topic.keeps(taker)
                    if (giver, taker) not in edges or cost < edges[giver, taker][0]:
                        edges[giver, taker] = cost, topic
        return edges

    def _costs(self) -> Iterable[tuple[str | None, str | None, int]]:
        for (giver, taker), (cost, _) in self._edges().items():
            yield giver, taker, cost
        for member in self._members:
            yield member, None, self._square * (2 * self._total[member] + 1)
            yield None, member, self._square * (1 - 2 * self._total[member])

    def _cycle(self) -> list[str | None] | None:
        """A cycle of negative cost, its first node again at its end; None if there is none (Bellman and Ford)."""
        costs = list(self._costs())
        nodes: list[str | None] = [None, *self._members]
        distance = dict.fromkeys(nodes, 0)
        before: dict[str | None, str | None] = {}
        changed: str | None = None
        for _ in nodes:
            improved = False
            for giver, taker, cost in costs:
                if distance[giver] + cost < distance[taker]:
                    distance[taker], before[taker] = distance[giver] + cost, giver
                    changed, improved = taker, True
            if not improved:
                return None
        for _ in nodes:  # back from a node that still changed: after so many steps one is in the cycle
            changed = before[changed]
        cycle = [changed]
        while len(cycle) == 1 or cycle[-1] != changed:
            cycle.append(before[cycle[-1]])
        return cycle[::-1]
