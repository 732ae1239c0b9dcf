"""Whether a worker does its work, and if not, why: for `/ready`, the gauges, and log lines that are written once.

All of it is a function of configuration and pattern: positions, clocks, and who answers. Of a discreet worker it is one
of clocks and of who answers. Nothing here can fail or wait.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from shoal.agents.kafka.settings import BOUND, RELEASE
from shoal.agents.worker.host import Host
from shoal.agents.worker.outbox import BoundMachine, ReleaseMachine
from shoal.agents.worker.stages import Stages
from shoal.stream.machine import StagePartition
from shoal.stream.open_ticks import OpenTick, open_ticks

STUCK_AFTER = 60.0  # seconds, or four times idle_after: an idle partition lets a tick pass after little more than one
REPEATED = "contributions came twice and were left out; somebody else writes there, or topics were restored"


class Readiness:
    """Observes one worker over time."""

    def __init__(self, host: Host, domain: Stages, now: Callable[[], float] = time.monotonic) -> None:
        self.host, self.domain, self._now = host, domain, now
        self.settings = host.settings
        # Of each metric's tick: its state, and when that began.
        self._since: dict[tuple[StagePartition, str], tuple[Any, float]] = {}
        self._closed: dict[tuple[StagePartition, str], tuple[int | None, float]] = {}

    # -- why not

    def reasons(self) -> list[str]:
        """Why this worker is not ready; empty if it is."""
        if not self.domain.health.running:
            return ["the worker is starting: brokers, topics or the audit log were not agreed with yet"]
        self.look()
        reasons = [f"alarm {kind}: {message}" for kind, message in self.domain.health.alarms.items()]
        if self.host.reach.away:
            reasons.append(f"no broker of {self.settings.brokers} answers")
        if self.host.sink.away:
            reasons.append("the audit log cannot be reached; releases go on, and it catches up later")
        reasons += [self.why_nothing] if self.why_nothing else []
        return [*reasons, *self.without_beats(), *self.stuck()]

    @property
    def why_nothing(self) -> str | None:
        """Why no partition is worked on; None if some are."""
        if self.host.stopping:
            return "the worker is stopping"
        if not self.joined:
            return f"the consumer group {self.settings.app} is not joined yet"
        if not self.host.accepting:
            return "a rebalance is under way, or partitions are being taken over"
        if not self.host.partitions and not self.host.sink.feeds:
            most = max((self.settings.partitions, *self._source_counts()))
            return f"there are more workers than partitions: at most {most} of them have something to do"
        return None

    @property
    def _thread(self) -> Any:
        """The consumer's thread; None until Faust has made one, which asking must not do for it."""
        consumer = getattr(self.host.app, "_consumer", None)
        return None if consumer is None else consumer._thread

    @property
    def joined(self) -> bool:
        """Whether the group has given this worker a generation."""
        return self._thread is not None and self._thread.generation > 0

    def _source_counts(self) -> Iterator[int]:
        return (plan.source_partitions for plan in self.domain.plans.values())

    def without_beats(self) -> list[str]:
        """Source partitions that have had no beat, though the clocks of metrics here go by beats."""
        silent = {(tick.topic, number): None for _, tick in self.ticks() for number in tick.without_beats}
        names = ", ".join(f"{topic}[{number}]" for topic, number in sorted(silent))
        return [f"{names} had no beat yet, and no tick closes before: run `shoal beat`"] if names else []

    def stuck(self) -> list[str]:
        """Ticks whose end some partition passed long ago, and which wait for others."""
        limit, now = max(STUCK_AFTER, 4 * self.settings.idle_after), self._now()
        texts: dict[str, None] = {}
        for partition, tick in self.ticks():
            (step, waits), since = self._since.get((partition, tick.metric), ((None, False), now))
            if waits and step == tick.step and now - since > limit:
                names = ", ".join(f"{tick.topic}[{number}]" for number in tick.waits_for)
                texts[f"metric {tick.metric}: its open tick has waited for {names} for more than {limit:.0f} s"] = None
        return list(texts)

    # -- looking

    def ticks(self) -> Iterator[tuple[StagePartition, OpenTick]]:
        """The open ticks of all contributions partitions here."""
        for partition, machine in self._releases():
            yield from ((partition, tick) for tick in open_ticks(machine))

    def _releases(self) -> Iterator[tuple[StagePartition, ReleaseMachine]]:
        for partition, part in sorted(self.host.partitions.items()):
            if partition.stage == RELEASE and isinstance(part.machine, ReleaseMachine):
                yield partition, part.machine

    def look(self) -> None:
        """Note since when ticks wait and when they closed, and raise the alarms that counters stand for."""
        now, since, closed = self._now(), {}, {}
        for partition, tick in self.ticks():
            name = partition, tick.metric
            state = tick.step, bool(tick.waits_for)
            known = self._since.get(name)
            since[name] = known if known and known[0] == state else (state, now)
            before = self._closed.get(name)
            closed[name] = before if before and before[0] == tick.step else (tick.step, now)
        self._since, self._closed = since, closed
        if not self.domain.discreet:  # how many messages there are to come twice depends on how many events there are
            for partition, machine in self._releases():
                self._judge(partition, machine)

    def _judge(self, partition: StagePartition, machine: ReleaseMachine) -> None:
        """Raise an alarm for repeats and strays among the contributions."""
        strays = machine.strays
        if machine.counters["repeated_messages"]:
            self.domain.health.alarm("repeated_messages", REPEATED)
        if strays.count:
            text = (
                f"topic {partition.topic}, partition {partition.number}, offset {strays.last}: not written by shoal, "
                f"and left out ({strays.count} such records since it was taken over); find out who else writes there"
            )
            self.domain.health.alarm("stray_records", text)

    def seconds_since_tick(self) -> dict[str, float]:
        """Seconds since a tick of each metric closed here, or since the takeover."""
        now, seconds = self._now(), dict[str, float]()
        for (_, metric), (_, moment) in self._closed.items():
            seconds[metric] = min(seconds.get(metric, now - moment), now - moment)
        return seconds

    def event_times(self) -> dict[str, float]:
        """Event time up to which the releases of each metric are complete here, in seconds since 1970."""
        times: dict[str, float] = {}
        for _, tick in self.ticks():
            if tick.reached is not None:
                times[tick.metric] = min(times.get(tick.metric, tick.reached / 1e6), tick.reached / 1e6)
        return times

    def waits_for(self) -> set[tuple[str, int]]:
        """(metric, source partition) of all that open ticks wait for though others have passed their end."""
        return {(tick.metric, partition) for _, tick in self.ticks() for partition in tick.waits_for}

    def lag(self, stage: str) -> int:
        """Records that no transaction of this worker covers yet, by the ends that the last fetches told."""
        ends = self._thread.ends() if self.joined else {}
        behind = 0
        for partition, part in self.host.partitions.items():
            kind = BoundMachine if stage == BOUND else ReleaseMachine
            if isinstance(part.machine, kind):
                behind += max(0, ends.get((partition.topic, partition.number), part.committed) - part.committed)
        return behind

    def audit_behind(self) -> int:
        """Releases and activations that the audit log has not taken yet."""
        ends = self._thread.ends() if self.joined else {}
        return sum(max(0, ends.get(tp, feed.done) - feed.done) for tp, feed in self.host.sink.feeds.items())
