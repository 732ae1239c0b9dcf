"""What every part is given: a folder, a broker of its own, and which lanes can be measured."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.speed import subjects
from benchmarks.speed.watching import Watched
from shoal.agents.broker.process import Broker


@dataclass(frozen=True)
class Context:
    """Where and how a part measures."""

    folder: Path
    broker: Broker
    quick: bool
    rounds: int | None = None
    events: int | None = None
    users: int | None = None
    some: tuple[str, ...] = ()  # subjects; all, if none is named

    @property
    def brokers(self) -> str:
        """Its address."""
        return self.broker.bootstrap

    @cached_property
    def watched(self) -> Watched:
        """Around whose programs costs are noted."""
        assert self.broker.pid is not None
        return Watched(self.broker.pid)

    def has(self, lane: str) -> bool:
        """Whether a lane of shoal can be measured, and is not left out."""
        absent = lane == subjects.KERNEL_LANE and subjects.kernel_is_missing()
        return not absent and (not self.some or lane in self.some)
