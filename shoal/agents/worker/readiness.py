"""Observes a worker: what it waits for, how far it is, and why it is not ready, if it is not.

For `/readyz` (`conditions.py`), `/ready`, the gauges, and log lines that are written once.

All of it is a function of configuration and pattern: positions, clocks, and who answers. Of a discreet worker it is one
of clocks and of who answers. Nothing here can fail or wait.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from shoal.agents import misplaced, open_transactions
from shoal.agents.kafka.settings import RELEASE
from shoal.agents.misplaced import Place
from shoal.agents.worker.health import REPEATED_MESSAGES, STRAY_RECORDS
from shoal.agents.worker.host import Host
from shoal.agents.worker.outbox import BoundMachine, ReleaseMachine
from shoal.agents.worker.stages import Stages
from shoal.models.config.ahead import expects_times_ahead
from shoal.stream.machine import StagePartition
from shoal.stream.open_ticks import OpenTick, open_ticks

STUCK_AFTER = 60.0  # seconds, or four times idle_after: an idle partition lets a tick pass after little more than one
LOOKS_KEPT = 1000
REPEATED = "contributions came twice and were left out; somebody else writes there, or topics were restored"


class Waited(NamedTuple):
    """A source partition that holds up an open tick of a metric whose end others have passed."""

    metric: str
    topic: str
    partition: int


class Ahead(NamedTuple):
    """The source partition whose event time for a metric, less the lateness, is furthest ahead of the brokers' time."""

    seconds: float  # 0 if it is not ahead
    expected: float  # seconds that the file expects, by a `max_ahead` above its default
    topic: str
    partition: int
    offsets: range | None  # of the records of which one moved the clock; None: a beat did


class Readiness:
    """Observes one worker over time."""

    def __init__(
        self,
        host: Host,
        domain: Stages,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.host, self.domain, self._now, self.wall = host, domain, now, wall
        self.settings = host.settings
        self.standing = open_transactions.Standing()
        self.host_ahead = 0.0  # seconds by which this host's clock is ahead of the brokers', as far as it is known
        self._ticks: list[tuple[StagePartition, OpenTick]] = []
        # Of a contributions partition's open tick and a source partition that it waits for: its step, and since when.
        self._waits: dict[tuple[StagePartition, Waited], tuple[int | None, float]] = {}
        # Ends of what goes to the audit log, each with the moment at which it was seen first.
        self._audit: dict[Any, deque[tuple[int, float]]] = {}
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
        return self.why_unassigned or self.why_unrestored

    @property
    def why_unrestored(self) -> str | None:
        """Why the state of what the group has given to this worker is not in use; None if it is."""
        return None if self.host.accepting else "a rebalance is under way, or partitions are being taken over"

    @property
    def unjoined(self) -> str:
        """The start of the reason why a worker that has not joined its consumer group does nothing."""
        seconds = f"{self.settings.session_timeout:.0f} s"
        return (
            f"the consumer group {self.settings.app}, which waits up to {seconds} for workers that died, is not joined"
        )

    @property
    def why_unassigned(self) -> str | None:
        """Why this worker has no partition; None if it has some, or is being given some."""
        if self.host.stopping:
            return "the worker is stopping"
        if not self.joined:
            return f"{self.unjoined} yet"
        if self.host.accepting and not self.host.partitions and not self.host.sink.feeds:
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
        names = ", ".join(f"{topic}[{number}]" for topic, number in sorted(self.silent()))
        return [f"{names} had no beat yet, and no tick closes before: run `shoal beat`"] if names else []

    @property
    def patience(self) -> float:
        """Seconds after which a tick that waits is stuck."""
        return max(STUCK_AFTER, 4 * self.settings.idle_after)

    def stuck(self) -> list[str]:
        """Ticks whose end some partition passed long ago, and which wait for others."""
        limit, now = self.patience, self._now()
        texts: dict[str, None] = {}
        for partition, tick in self.ticks():
            (step, waits), since = self._since.get((partition, tick.metric), ((None, False), now))
            if waits and step == tick.step and now - since > limit:
                names = ", ".join(f"{topic}[{number}]" for topic, number in tick.places)
                texts[f"metric {tick.metric}: its open tick has waited for {names} for more than {limit:.0f} s"] = None
        return list(texts)

    # -- what comes in

    def sources(self) -> dict[Place, BoundMachine]:
        """The source partitions here; none of a discreet worker, which shows nothing of what is in them."""
        hosted = [] if self.domain.discreet else sorted(self.host.partitions.items())
        machines = ((partition, part.machine) for partition, part in hosted)
        return {(one.topic, one.number): machine for one, machine in machines if isinstance(machine, BoundMachine)}

    def misplaced(self) -> dict[Place, str]:
        """What to say about source partitions of which a large part is keyed by something else than the user."""
        texts = {}
        for place, machine in self.sources().items():
            if (share := machine.placement.found) is not None:
                user = machine.plan.metrics[0].parts.source.user  # of all metrics of a topic
                what_to_do = misplaced.remedy(user, machine.plan.partitioner)
                texts[place] = f"{misplaced.said({place: share}, user)}; {what_to_do}"
        return texts

    def held_back(self) -> dict[Place, str]:
        """What to say about source partitions that a producer's open transaction has held back for a minute."""
        here, brokers = self.sources(), self.settings.brokers
        lasting = [one for one in self.standing.lasting() if one.place in here]
        return {
            one.place: f"{open_transactions.said(one)}; {open_transactions.remedy(one, brokers)}" for one in lasting
        }

    # -- looking

    def ticks(self) -> Sequence[tuple[StagePartition, OpenTick]]:
        """The open ticks of all contributions partitions here, by the last look: finding them takes time."""
        return self._ticks

    def _releases(self) -> Iterator[tuple[StagePartition, ReleaseMachine]]:
        for partition, part in sorted(self.host.partitions.items()):
            if partition.stage == RELEASE and isinstance(part.machine, ReleaseMachine):
                yield partition, part.machine

    def look(self) -> None:
        """Note since when ticks wait and when they closed, and raise the alarms that counters stand for."""
        now, since, closed, waits = self._now(), {}, {}, {}
        self._ticks = [(place, tick) for place, machine in self._releases() for tick in open_ticks(machine)]
        for partition, tick in self.ticks():
            name = partition, tick.metric
            state = tick.step, bool(tick.places)
            known = self._since.get(name)
            since[name] = known if known and known[0] == state else (state, now)
            for topic, number in tick.places:
                waited = partition, Waited(tick.metric, topic, number)
                one = self._waits.get(waited)
                waits[waited] = one if one and one[0] == tick.step else (tick.step, now)
            before = self._closed.get(name)
            closed[name] = before if before and before[0] == tick.step else (tick.step, now)
        self._since, self._closed, self._waits = since, closed, waits
        self._look_at_audit(now)
        if not self.domain.discreet:  # how many messages there are to come twice depends on how many events there are
            for partition, machine in self._releases():
                self._judge(partition, machine)

    def _judge(self, partition: StagePartition, machine: ReleaseMachine) -> None:
        """Raise an alarm for repeats and strays among the contributions."""
        strays = machine.strays
        if machine.counters["repeated_messages"]:
            self.domain.health.alarm(REPEATED_MESSAGES, REPEATED)
        if strays.count:
            text = (
                f"topic {partition.topic}, partition {partition.number}, offset {strays.last}: not written by shoal, "
                f"and left out ({strays.count} such records since it was taken over); find out who else writes there"
            )
            self.domain.health.alarm(STRAY_RECORDS, text)

    def _look_at_audit(self, now: float) -> None:
        """Note the ends of topics that go to the audit log, and forget those that it has reached."""
        ends, kept = self.ends(), {}
        for tp, feed in self.host.sink.feeds.items():
            seen = kept[tp] = self._audit.get(tp) or deque[tuple[int, float]]()
            while seen and seen[0][0] <= feed.done:
                seen.popleft()
            end = ends.get(tp, feed.done)
            if end > max(feed.done, seen[-1][0] if seen else 0) and len(seen) < LOOKS_KEPT:
                seen.append((end, now))
        self._audit = kept

    def audit_seconds(self) -> float:
        """For how long the oldest record has waited that the audit log has not taken, by the last look."""
        return max((self._now() - seen[0][1] for seen in self._audit.values() if seen), default=0.0)

    def waiting(self) -> dict[Waited, float]:
        """What open ticks wait for, and for how many seconds already, by the last look."""
        now, seconds = self._now(), dict[Waited, float]()
        for (_, waited), (_, since) in sorted(self._waits.items()):
            seconds[waited] = max(seconds.get(waited, 0.0), now - since)
        return seconds

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

    def tick_lengths(self) -> dict[str, float]:
        """Of each metric, in seconds."""
        return {tick.metric: tick.length.microseconds / 1e6 for _, tick in self.ticks()}

    def silent(self) -> set[tuple[str, int]]:
        """Source partitions that have had no beat, of topics whose clocks go by beats."""
        return {(tick.topic, number) for _, tick in self.ticks() for number in tick.without_beats}

    def event_time_lags(self) -> dict[str, float]:
        """Seconds by which the releases of each topic's slowest metric are behind the clock of this host."""
        wall, lags = self.wall(), dict[str, float]()
        for _, tick in self.ticks():
            if tick.reached is not None:
                lags[tick.topic] = max(lags.get(tick.topic, 0.0), wall - tick.reached / 1e6)
        return lags

    def times_ahead(self) -> dict[str, Ahead]:
        """Of each metric the source partition here that is furthest ahead of the brokers' time."""
        found: dict[str, Ahead] = {}
        now = self.wall() - self.host_ahead
        for partition, part in sorted(self.host.partitions.items()):
            if isinstance(part.machine, BoundMachine):
                for metric, ahead in _ahead_in(part.machine, partition, now):
                    found[metric] = max(found.get(metric, ahead), ahead, key=lambda one: one.seconds)
        return found

    def ends(self) -> dict[tuple[str, int], int]:
        """Where the partitions that are read end, by what the last fetches told."""
        return self._thread.ends() if self.joined else {}

    def behind(self) -> dict[StagePartition, int]:
        """Number of records that this worker has not processed yet, by stage partition."""
        ends = self.ends()
        return {
            partition: max(0, ends.get((partition.topic, partition.number), part.processed) - part.processed)
            for partition, part in sorted(self.host.partitions.items())
        }

    def audit_behind(self) -> int:
        """Releases and activations that the audit log has not taken yet."""
        return sum(self.audit_lags().values())

    def audit_lags(self) -> dict[tuple[str, int], int]:
        """Of each partition of releases and activations the records that the audit log has not taken yet."""
        ends = self.ends()
        feeds = self.host.sink.feeds.items()
        return {(tp[0], tp[1]): max(0, ends.get(tp, feed.done) - feed.done) for tp, feed in feeds}


def _ahead_in(machine: BoundMachine, partition: StagePartition, now: float) -> Iterator[tuple[str, Ahead]]:
    """How far each metric of a source partition is ahead of `now`; metrics without a clock yet are left out."""
    for metric in machine.plan.metrics:
        clock = machine.plan.clocks[metric.clock]
        latest = machine.watermark(metric.clock)
        if latest is not None:
            seconds = max(0.0, (latest - clock.lateness) / 1e6 - now)
            is_expected = expects_times_ahead(metric.parts) and not clock.beats
            expected = metric.parts.source.max_ahead / 1e6 if is_expected else 0.0
            offsets = None if clock.beats else machine.moved_by(metric.clock)
            yield metric.name, Ahead(seconds, expected, partition.topic, partition.number, offsets)
