"""Lost records: whether a partition's topic still has what its state has yet to read, and losses that were accepted.

A worker's takeover asks this of what it has locked, and `check` asks it of what it sees, so both say the same.
"""

import secrets
from collections.abc import Iterable
from pathlib import Path

import orjson

from shoal.mechanisms.noise.keyed import derive
from shoal.models.errors import FailStop
from shoal.models.losses import AcceptedLoss
from shoal.stream.machine import StagePartition
from shoal.stream.state_mark import ANEW, REMEDY

SEAL = 8  # bytes of an offset, and of the nonce that no other offset shares


def gap(
    partition: StagePartition, position: int, was: str | None, now: str, bounds: tuple[int, int], *, discreet: bool
) -> str | None:
    """What a topic lacks for a state, in words; None if it lacks nothing.

    `position`: the next offset that the state needs; `was`, `now`: ids of the topic that the state was made of, None if
    that is not known, and of the one that is there; `bounds`: the first offset of the topic, and the one after its
    last. Without offsets if `discreet`.
    """
    first, end = bounds
    place = f"{partition.topic}[{partition.number}]"
    if was not in (None, now):
        return f"{place}: topic {partition.topic} was made anew: it is not the one that was read or written before"
    if position < first:
        lost = "records that were not read" if discreet else f"offsets {position} to {first - 1}"
        return f"{place}: {lost} are gone: retention deleted them, or somebody did"
    if position > end:
        said = "it ends before what was read" if discreet else f"it ends at {end} but {position} were read"
        return f"{place}: {said}: the topic lost records in an unclean leader election"
    return None


def made_anew(topic: str) -> str:
    """What is said of a topic with another id than the one that was read or written."""
    return f"topic {topic} was made anew: it is not the one that was read or written before"


def changed_count(topic: str, now: int, before: int) -> str:
    """What is said of a topic with another number of partitions than before."""
    why = "partitions were added, and records of one user may be in two of them" if now > before else "some are gone"
    return (
        f"topic {topic} has {now} partitions instead of {before}: {why}; a changed count re-hashes users and groups: "
        f"make the topic anew with {before} partitions, or use a new topic and {ANEW}"
    )


def way_on(path: Path, topic: str, sources: Iterable[str]) -> str:
    """What an operator can do about a gap: only what others wrote can be given up."""
    if topic in sources:
        return f"accept the loss with `shoal accept-loss {path} {topic} --by NAME`, or {REMEDY}"
    return REMEDY


def no_state(partition: StagePartition, offset: int) -> str:
    """What is said of a partition that has no state though it had one: its users would start again at count 0."""
    return (
        f"{partition}: its changelog is empty though offset {offset} was committed; a topic was re-created or "
        f"truncated: restore it, or {ANEW}"
    )


def unnamed(partition: StagePartition) -> str:
    """What is said of a state that does not name its topic."""
    return f"{partition}: its changelog does not say which topic the state was made of; {REMEDY}"


def cut_off(changelog: str, partition: int) -> str:
    """What is said of a changelog without its beginning; not up to which offset, which depends on values."""
    return (
        f"{changelog}[{partition}]: its first records were deleted, by retention or by hand, and the last values of "
        f"keys may be among them; set retention.ms=-1 and retention.bytes=-1, and {REMEDY}"
    )


def digest_of(secret: bytes, mark: bytes) -> str:
    """The digest of a state's mark under the key; of offsets in it nobody else learns anything."""
    return derive(secret, "mark", mark).hex()


def turn_of(mark: bytes) -> int:
    """The id of the last accepted loss that a state is behind; 0 without any."""
    found: int = orjson.loads(mark).get("turn", 0)
    return found


def accepted(
    losses: Iterable[AcceptedLoss], partition: StagePartition, mark: bytes, secret: bytes
) -> AcceptedLoss | None:
    """The loss that was accepted for the state with this mark, if any, with the offset to read next.

    Raises:
        FailStop: the state is behind a loss that is not among these.
    """
    here = [one for one in losses if (one.topic, one.partition) == (partition.topic, partition.number)]
    turn = turn_of(mark)
    if turn and turn not in {one.id for one in here}:
        raise FailStop(
            f"{partition}: its state is behind an accepted loss that the audit log does not have; restore the newer log"
        )
    digest = digest_of(secret, mark)
    found = next((one for one in reversed(here) if one.place.mark == digest), None)
    if found is None or found.place.sealed is None:
        return found
    return found._replace(place=found.place._replace(next=unseal(secret, digest, found.place.sealed)))


def seal(secret: bytes, digest: str, offset: int) -> str:
    """An offset that only the key can read, once for a loss of the state with this digest."""
    nonce = secrets.token_bytes(SEAL)
    return (nonce + _masked(secret, digest, nonce, offset.to_bytes(SEAL, "big"))).hex()


def unseal(secret: bytes, digest: str, sealed: str) -> int:
    """The offset again.

    >>> unseal(bytes(32), "f00d", seal(bytes(32), "f00d", 17))
    17
    """
    raw = bytes.fromhex(sealed)
    return int.from_bytes(_masked(secret, digest, raw[:SEAL], raw[SEAL:]), "big")


def _masked(secret: bytes, digest: str, nonce: bytes, raw: bytes) -> bytes:
    mask = derive(secret, "sealed offset", digest, nonce)
    return bytes(one ^ other for one, other in zip(raw, mask[:SEAL], strict=True))
