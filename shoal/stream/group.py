"""One group's history: what it has released, and the bytes of what it releases next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shoal.mechanisms.decayed_sum.statistic import StepReleaser
from shoal.mechanisms.statistic import NO_ESTIMATE, Activation, Contribution, LevelState
from shoal.models.chain import FIRST, chain
from shoal.models.records import activation_bytes, record_key, release_bytes, release_id
from shoal.models.times import iso
from shoal.stream.topic import AnyReleaser, Metric


class Release(NamedTuple):
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


class Activated(NamedTuple):
    """A published activation."""

    record_key: bytes
    value: bytes


@dataclass(slots=True)
class Released:
    """One transaction's worth: what `take` hands out."""

    releases: list[Release]
    activations: list[Activated]
    changelog: list[tuple[bytes, bytes | None]]
    next_offset: int
    events: int


@dataclass(slots=True)
class GroupState:
    """One group of one metric."""

    metric: Metric
    group: str | None
    releaser: AnyReleaser
    seq: int = 0
    chain: bytes = FIRST
    tick: int | None = None  # of what is released at every step: the last one that was
    active: int = 0  # and the last one in which something came
    written: int = 0  # checksum of the head that the changelog has; 0: none

    def head(self) -> dict[str, Any]:
        """The state, but for what the releaser keeps."""
        steps = {"tick": self.tick, "active": self.active} if self.metric.rest else {}
        return {"seq": self.seq, "chain": self.chain.hex(), "releaser": self.releaser.head()} | steps

    def level(self, level: int) -> dict[str, Any] | None:
        """What one level of the releaser holds; None if it has no such level."""
        levels: Sequence[LevelState] = getattr(self.releaser, "levels", ())
        return levels[level]._asdict() if 0 <= level < len(levels) else None

    def restore(self, head: dict[str, Any], kept: Iterable[Contribution]) -> None:
        """Take the state over."""
        self.seq, self.chain = head["seq"], bytes.fromhex(head["chain"])
        self.tick, self.active = head.get("tick"), head.get("active", 0)
        self.releaser.restore(head["releaser"], kept)

    def step_to(self, tick: int, *, active: bool) -> None:
        """The next step to be released is this one; steps between, in which the group rested, hold nothing."""
        if not isinstance(self.releaser, StepReleaser):
            return
        if self.tick is not None and tick > self.tick + 1:
            self.releaser.skip(tick - self.tick - 1)
        self.tick, self.active = tick, tick if active else self.active

    @property
    def next_tick(self) -> int | None:
        """The step that is due even if nothing comes in it; None: there is none."""
        rest = self.metric.rest
        if rest is None or self.tick is None or self.tick - self.active >= rest:
            return None
        return self.tick + 1

    def add(self, contributions: Iterable[Contribution], at: int) -> list[Activated]:
        """Hand a tick's contributions to the releaser, in canonical order; what they activated."""
        section = self.metric.section
        key = record_key(section.name, self.group).encode()
        add = self.releaser.add
        activations = [activation for contribution in contributions for activation in add(contribution)]
        activations += self.releaser.close()
        return [Activated(key, self._activation_bytes(activation, at)) for activation in activations]

    def _activation_bytes(self, activation: Activation, at: int) -> bytes:
        section = self.metric.section
        return activation_bytes(
            section.name, section.version, self.group, activation.level, at,
            activation.prior, float(activation.epsilon), activation.samples,
        )  # fmt: skip

    def next_release(self, at: int) -> bytes:
        """The bytes of the group's next release; it is then the last one."""
        estimate = self.releaser.estimate() or NO_ESTIMATE
        section = self.metric.section
        self.seq += 1
        fields: dict[str, Any] = {
            "metric": section.name,
            "group": self.group,
            "seq": self.seq,
            "id": release_id(section.name, section.version, self.group, self.seq),
            "at": iso(at),
            "value": estimate.value,
            "noise_sd": estimate.noise_sd,
            "low": estimate.low,
            "high": estimate.high,
            **estimate.counts,
            "epsilon": float(section.epsilon),
            "delta": float(section.delta),
            "unit": section.unit,
            "relation": section.relation,
            "algorithm": section.algorithm,
            "version": section.version,
            **estimate.details,
        }
        release = release_bytes(fields)
        self.chain = chain(self.chain, release)
        return release
