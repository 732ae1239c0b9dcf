"""One group's history: what it has released, and the bytes of what it releases next."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from shoal.mechanisms.coordinates import CoordinatesReleaser, Estimates, JointActivation
from shoal.mechanisms.statistic import Activation, Contribution, Estimate, Releaser
from shoal.models.chain import FIRST, chain
from shoal.models.records import activation_bytes, record_key, release_bytes, release_id
from shoal.models.times import iso
from shoal.stream.plan import Metric


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
class GroupState:
    """One group of one metric."""

    metric: Metric
    group: str | None
    releaser: Releaser | CoordinatesReleaser
    seq: int = 0
    chain: bytes = FIRST

    def add(self, contributions: Iterable[Contribution], at: int) -> list[Activated]:
        """Hand a tick's contributions to the releaser, in canonical order; what they activated."""
        section = self.metric.section
        key = record_key(section.name, self.group).encode()
        add = self.releaser.add
        activations = [activation for contribution in contributions for activation in add(contribution)]
        activations += self.releaser.close()
        return [Activated(key, self._activation_bytes(activation, at)) for activation in activations]

    def _activation_bytes(self, activation: Activation | JointActivation, at: int) -> bytes:
        section = self.metric.section
        return activation_bytes(
            section.name, section.version, self.group, activation.level, at,
            activation.prior, float(activation.epsilon), activation.samples,
        )  # fmt: skip

    def next_release(self, at: int) -> bytes:
        """The bytes of the group's next release; it is then the last one."""
        estimate = self.releaser.estimate()
        section = self.metric.section
        self.seq += 1
        release = release_bytes(
            {
                "metric": section.name,
                "group": self.group,
                "seq": self.seq,
                "id": release_id(section.name, section.version, self.group, self.seq),
                "at": iso(at),
                "value": None if estimate is None else self._value(estimate),
                "noise_sd": None if estimate is None else estimate.noise_sd,
                "low": None if estimate is None else estimate.low,
                "high": None if estimate is None else estimate.high,
                "samples": 0 if estimate is None else estimate.samples,
                "epsilon": float(section.epsilon),
                "delta": float(section.delta),
                "unit": section.unit,
                "relation": section.relation,
                "algorithm": section.algorithm,
                "version": section.version,
            }
        )
        self.chain = chain(self.chain, release)
        return release

    def _value(self, estimate: Estimate | Estimates) -> float | None | list[float | None]:
        """The estimate, or that of each coordinate, clamped if the metric says so."""
        section = self.metric.section
        if not section.clamps:
            return estimate.value
        if isinstance(estimate, Estimates):
            ends = [own or ends for own, ends in zip(estimate.bounds, section.ranges, strict=True)]
            return [_clamped(one, *own) for one, own in zip(estimate.value, ends, strict=True)]
        return _clamped(estimate.value, *(estimate.bounds or section.ranges[0]))


def _clamped(value: float | None, low: Fraction | float, high: Fraction | float) -> float | None:
    return None if value is None else min(max(value, float(low)), float(high))
