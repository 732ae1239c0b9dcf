"""Membership in the consumer group: what a worker claims, and what it does with its assignment.

The leader keeps nothing between two rebalances: each member says what it owns and since which generation, as it knows
from the last assignment that it received (`assignment.py`). A static member that is started again gets its former
assignment back from the coordinator without a rebalance, of which the leader does not hear; its claim stays the same.
If it reads other topics meanwhile than the assignment was made for, it takes what it can and asks for a rebalance.

Workers of another version share partitions by another rule: fail-stop, with what to do.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.errors import InconsistentGroupProtocolError

from shoal.agents.kafka.assignment import Claim, Member, share
from shoal.agents.kafka.fail_stop import fail_stop
from shoal.agents.kafka.settings import KafkaSettings
from shoal.models.errors import FailStop

# Raised whenever workers that compute assignments, or say what they own, in the old and the new way must not meet in
# one group. The coordinator refuses a member that knows none of the names that the others know.
NAME = "shoal-1"
VERSION = 0  # of Kafka's own envelope around what members say


class Assignor(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka is untyped
    """The assignor of one consumer; nothing of it is shared with another consumer of the process."""

    name = NAME

    def __init__(self, stage: Callable[[str], str]) -> None:
        self.generation = -1  # that of the next assignment; the group member below keeps it up to date
        self._stage = stage
        self._claim = Claim()

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """What this member sends when it joins."""
        return ConsumerProtocolMemberMetadata(VERSION, sorted(topics), encode_claim(self._claim))

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Remember what this member owns from now on."""
        owned = {topic: sorted(numbers) for topic, numbers in assignment.assignment}
        self._claim = Claim(self.generation, owned)

    def assign(
        self, cluster: Any, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Share all partitions among the members, as the leader of the group."""
        known = {
            name: Member(frozenset(metadata.subscription), decode_claim(metadata.user_data))
            for name, metadata in members.items()
        }
        topics = {topic for member in known.values() for topic in member.topics}
        partitions = {topic: cluster.partitions_for_topic(topic) or () for topic in topics}
        return {
            name: ConsumerProtocolMemberAssignment(VERSION, sorted(owned.items()), encode_topics(known[name].topics))
            for name, owned in share(partitions, known, self._stage).items()
        }


def encode_claim(claim: Claim) -> bytes:
    """The bytes in which a member sends its claim."""
    return orjson.dumps({"generation": claim.generation, "owned": claim.owned}, option=orjson.OPT_SORT_KEYS)


def decode_claim(data: bytes | None) -> Claim:
    """Read a claim back; whatever else a member sends counts as no claim."""
    try:
        claim = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError:
        return Claim()
    generation, owned = (claim.get("generation"), claim.get("owned")) if isinstance(claim, dict) else (None, None)
    if type(generation) is not int or not isinstance(owned, dict):
        return Claim()
    if not all(
        isinstance(numbers, list) and all(type(number) is int for number in numbers) for numbers in owned.values()
    ):
        return Claim()
    return Claim(generation, owned)


def encode_topics(topics: Iterable[str]) -> bytes:
    """The bytes that say for which topics an assignment was made."""
    return orjson.dumps(sorted(topics))


def made_for_others(data: bytes, topics: Iterable[str]) -> bool:
    """Whether an assignment was made for a member that reads other topics."""
    try:
        names = orjson.loads(data or b"null")
    except orjson.JSONDecodeError:
        return False
    return isinstance(names, list) and names != sorted(topics)


class GroupMember:
    """Stands between aiokafka's coordinator and the assignor."""

    def __init__(self, coordinator: Any, assignor: Assignor, settings: KafkaSettings) -> None:
        self._coordinator, self._assignor, self._settings = coordinator, assignor, settings
        self._complete, self._push = coordinator._on_join_complete, coordinator._push_error_to_user
        self._asked = -1  # the generation in which it asked for a rebalance
        coordinator._on_join_complete, coordinator._push_error_to_user = self._joined, self._refused

    async def _joined(self, generation: int, member_id: str, protocol: str, raw: bytes) -> None:
        """Take an assignment, without topics that are no longer read."""
        assignment = ConsumerProtocolMemberAssignment.decode(raw)
        topics = self._coordinator._subscription.subscription.topics
        mine = [(topic, numbers) for topic, numbers in assignment.assignment if topic in topics]
        self._assignor.generation = generation
        taken = ConsumerProtocolMemberAssignment(assignment.version, mine, assignment.user_data)
        await self._complete(generation, member_id, protocol, taken.encode())
        if made_for_others(assignment.user_data, topics) and generation != self._asked:
            self._asked = generation
            self._coordinator.request_rejoin()

    def _refused(self, error: Exception) -> Any:
        if isinstance(error, InconsistentGroupProtocolError):
            fail_stop(FailStop(another_rule(self._settings)), "group")
        return self._push(error)


def another_rule(settings: KafkaSettings) -> str:
    """The message where the coordinator reports that members do not understand each other."""
    return (
        f"consumer group {settings.app}: its workers share partitions by another rule than this one ({NAME}), as those "
        "of another version of shoal do; stop all workers first, then start all in one version (one with --instance "
        f"is in the group for {settings.session_timeout:.0f} s after its end)"
    )
