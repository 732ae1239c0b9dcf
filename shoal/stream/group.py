"""One group's history: what it has released, and the bytes of what it releases next."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from shoal.mechanisms.groups import Groups
from shoal.mechanisms.statistic import NO_ESTIMATE, Activation, Contribution, Estimate
from shoal.models.digests import FIRST, chain
from shoal.models.records import (
    CLIP,
    SHOWN,
    activation_bytes,
    clip_bytes,
    record_key,
    release_id,
    shown_bytes,
)
from shoal.models.times import LATEST, iso
from shoal.stream.topic import Metric


class GroupOutput(NamedTuple):
    """A published release; the first four fields are the order in which files list them."""

    at: int
    metric: str
    group: str  # "" without one
    seq: int
    value: bytes
    headers: tuple[tuple[str, bytes], ...]

    @property
    def record_key(self) -> bytes:
        """The Kafka record key."""
        return record_key(self.metric, self.group).encode()


def group_name(key: str) -> str:
    """The name of a group by its key in messages and state; "" where there is none.

    >>> group_name("visits/1|a|b"), group_name("visits/1|")
    ('a|b', '')
    """
    return key.partition("|")[2]


def label_of(key: str) -> str:
    """The metric and version in the key of a group.

    >>> label_of("visits/1|a|b")
    'visits/1'
    """
    return key.partition("|")[0]


# A release from its six fields, in a third of the time.
new_release: Callable[[tuple[Any, ...]], GroupOutput] = partial(tuple.__new__, GroupOutput)


class Activated(NamedTuple):
    """A published activation."""

    record_key: bytes
    value: bytes
    level: int  # or what stands for one


@dataclass(slots=True)
class Released:
    """One transaction's worth: what `take` hands out."""

    releases: list[GroupOutput]
    activations: list[Activated]
    changelog: list[tuple[bytes, bytes | None]]
    next_offset: int
    events: int


@dataclass(slots=True)
class GroupState:
    """One group of one metric: what it has released."""

    metric: Metric
    group: str | None
    groups: Groups  # that have its state
    seq: int = 0
    chain: bytes = FIRST
    written: int = 0  # checksum of the head that the changelog has; 0: none

    def head(self) -> dict[str, Any]:
        """The state, but for what the statistic keeps."""
        return {"seq": self.seq, "chain": self.chain.hex()} | self.groups.head(self.group or "")

    def level(self, level: int) -> dict[str, Any] | None:
        """What one level of the group holds; None if it has no such level."""
        return self.groups.level(self.group or "", level)

    def restore(self, head: dict[str, Any], kept: Iterable[Contribution]) -> None:
        """Take the state over."""
        self.seq, self.chain = head["seq"], bytes.fromhex(head["chain"])
        self.groups.restore(self.group or "", head, kept)

    def activated(self, activations: Sequence[Activation], at: int) -> list[Activated]:
        """The records of what a tick activated."""
        key = record_key(self.metric.parts.name, self.group).encode()
        return [Activated(key, self._activation_bytes(each, at), each.level) for each in activations]

    def _activation_bytes(self, activation: Activation, at: int) -> bytes:
        parts = self.metric.parts
        if activation.kind == SHOWN:
            return shown_bytes(parts.name, parts.version, self.group or "", at, float(activation.epsilon))
        if activation.kind == CLIP:
            high, epsilon = activation.prior, float(activation.epsilon)
            return clip_bytes(parts.name, parts.version, self.group, at, high, epsilon)
        return activation_bytes(
            parts.name, parts.version, self.group, activation.level, at,
            activation.prior, float(activation.epsilon), activation.samples,
        )  # fmt: skip

    def _details(self, estimate: Estimate, at: int) -> Mapping[str, Any]:
        """The release's further fields, with the latest instant at which a mean that waits begins."""
        if estimate.ticks_ahead is None or self.metric.length is None:
            return estimate.details
        until = min(at + self.metric.length.span(estimate.ticks_ahead), LATEST)
        return {**estimate.details, "waiting": {"until": iso(until)}}

    def next_release(self, made: Estimate | None, at: int) -> bytes:
        """The bytes of the group's next release; it is then the last one."""
        estimate, parts, group = made or NO_ESTIMATE, self.metric.parts, self.group
        seq = self.seq = self.seq + 1
        fields: dict[str, Any] = {
            "group": group,
            "seq": seq,
            "id": release_id(parts.name, parts.version, group, seq),
            "at": iso(at),
            "value": estimate.value,
            "noise_sd": estimate.noise_sd,
            "low": estimate.low,
            "high": estimate.high,
            **estimate.counts,
        }
        release = self.metric.form.release(fields, self._details(estimate, at))
        self.chain = chain(self.chain, release)
        return release
