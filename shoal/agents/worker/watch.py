"""Watches a running worker: whether it owns partitions, a tick is stuck, a clock is ahead, or a topic was changed.

Findings become log lines and alarms, once each. What cannot be asked now is asked again later; nothing here ends the
worker.
"""

import asyncio
import time
from collections.abc import Mapping

import structlog

from shoal.agents.kafka.broker_clock import clock_warnings, seconds_ahead
from shoal.agents.kafka.fail_stop import describe
from shoal.agents.kafka.topic_policies import Configs, wrong_policies
from shoal.agents.kafka.topics import admin, read_configs, record_loss, source_ways, wanted_topics
from shoal.agents.misplaced import Place
from shoal.agents.open_transactions import open_transactions
from shoal.agents.worker.health import POLICY
from shoal.agents.worker.readiness import Ahead, Readiness
from shoal.mechanisms.words import duration
from shoal.models.errors import KafkaError

log = structlog.get_logger("shoal.worker")

LOOK_EVERY = 5.0
POLICIES_EVERY = 30.0  # what is set wrong is said within a minute
NOTHING_LIMIT = 60.0  # seconds without a partition, after which it is said why
AHEAD_LIMIT = 60.0  # seconds beyond what the file expects, as for this host's clock
WITHHELD = (
    "the audit log has releases that are not all made again from the topics; new ones wait. If the topics have another "
    "stream, raise the version"
)
clock = time.time


class Watching:
    """The checks of one worker, each of whose findings is logged once."""

    def __init__(self, readiness: Readiness) -> None:
        self._host, self._domain, self._readiness = readiness.host, readiness.domain, readiness
        self._nothing_since: float | None = None
        self._reported: set[str] = set()
        self._withheld: set[str] = set()
        self._said: dict[str, set[Place]] = {}  # event -> source partitions
        self._ahead: set[str] = set()  # metrics whose event time was said to be ahead, and still is
        self._asked = time.monotonic()
        self._lost: dict[str, str] | None = None
        self._wrong_clock = False
        self._group_checked = False

    async def watch(self) -> None:
        await self.compare_clocks()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                self.look(time.monotonic())
                if time.monotonic() - self._asked >= POLICIES_EVERY:
                    self._asked = time.monotonic()
                    await self._ask_policies()
                    await self.ask_transactions()
                    await self.compare_clocks()
                    await self._domain.ask_budget()
            except Exception as error:  # a failed look must neither end the worker nor the watching
                log.error("watch_failed", reason=describe(error, "watching"))

    def look(self, now: float) -> None:
        """Log what has lasted for too long; once, until it is over."""
        self._readiness.look()
        stuck = set(self._readiness.stuck())
        for text in sorted(stuck - self._reported):
            log.warning("tick_waits", reason=text)
        self._reported = stuck
        withheld = self._domain.withheld
        for metric in sorted(withheld - self._withheld):
            log.warning("withheld", metric=metric, reason=WITHHELD)
        self._withheld = withheld
        self._say("misplaced", self._readiness.misplaced())
        self._say("open_transaction", self._readiness.held_back())
        self._look_at_times()
        self._look_at_group()
        why = self._readiness.why_nothing
        if why is None or self._host.stopping:
            self._nothing_since = None
        elif self._nothing_since is None:
            self._nothing_since = now
        elif now - self._nothing_since >= NOTHING_LIMIT:
            log.warning("owns_nothing", reason=why, seconds=round(now - self._nothing_since))
            self._nothing_since = float("inf")  # said; until it owns something

    def _look_at_group(self) -> None:
        """Log once that the group is not joined yet, which takes long after a worker died."""
        if self._group_checked or self._host.stopping or not self._domain.health.running:
            return
        self._group_checked = True
        if not self._readiness.joined:
            log.info("joining", reason=self._readiness.unjoined)

    def _say(self, event: str, texts: Mapping[Place, str]) -> None:
        """Log what is wrong with source partitions; each once, until it is over."""
        for place in sorted(texts.keys() - self._said.get(event, set())):
            log.warning(event, reason=texts[place])
        self._said[event] = {*texts}

    async def ask_transactions(self) -> None:
        """Note the open transactions of the source partitions here."""
        places = self._readiness.sources()
        if not places:
            return
        try:
            async with admin(self._host.settings) as client:
                found = await open_transactions(client, places)
        except KafkaError:
            return  # asked again later
        self._readiness.standing.note(found, time.monotonic())

    def _look_at_times(self) -> None:
        """Log metrics whose event time is ahead of the brokers' time; once, until it is not."""
        found = self._readiness.times_ahead().items()
        ahead = {metric: one for metric, one in found if one.seconds > one.expected + AHEAD_LIMIT}
        for metric in sorted(ahead.keys() - self._ahead):
            log.warning("event_time_ahead", metric=metric, reason=in_words(metric, ahead[metric]))
        self._ahead = set(ahead)

    async def _ask_policies(self) -> None:
        try:
            async with admin(self._host.settings) as client:
                names = [*wanted_topics(self._host.settings, self._sources), *self._sources]
                configs, _ = await read_configs(client, names)
        except KafkaError:
            return  # asked again later
        self.judge(configs)

    async def compare_clocks(self) -> None:
        """Log once while this host's clock is wrong."""
        host_ahead = await seconds_ahead(self._host.settings, clock)
        self._readiness.host_ahead = host_ahead or 0.0
        warnings = clock_warnings(host_ahead)
        if warnings and not self._wrong_clock:
            log.warning("clock", reason=warnings[0])
        self._wrong_clock = bool(warnings)

    @property
    def _sources(self) -> dict[str, int]:
        return {topic: plan.source_partitions for topic, plan in self._domain.plans.items()}

    def judge(self, configs: Configs) -> None:
        """Raise an alarm for wrong policies until they are set right; log how a source began to lose events."""
        settings = self._host.settings
        wanted = {name: config for name, (_, config) in wanted_topics(settings, self._sources).items()}
        wrong = wrong_policies(wanted, configs)
        if wrong:
            self._domain.health.alarm(POLICY, "; ".join(policy.said(settings.brokers) for policy in wrong))
        else:
            self._domain.health.all_clear(POLICY)
        asked = [name for name in sorted(self._sources) if name in configs]
        lost = {name: record_loss(settings, name, source_ways(settings, name, configs[name])) for name in asked}
        for name, text in lost.items():
            if self._lost is not None and text and text != self._lost.get(name):
                log.warning("retention", warning=text)
        self._lost = lost


def in_words(metric: str, ahead: Ahead) -> str:
    """How far the event time of a metric is ahead, by which records, and what to do; of beats without an offset."""
    amount, offsets = duration(round(ahead.seconds) * 10**6), ahead.offsets
    if offsets is None:
        record, remedy = "a beat", "set the clock of who sends beats right"
    else:
        last = offsets.stop - 1
        record = f"offset {last}" if len(offsets) == 1 else f"an offset from {offsets.start} to {last}"
        remedy = "set its producer's clock right"
    return (
        f'event time of metric "{metric}" is ahead of the broker\'s by {amount}: topic {ahead.topic}, partition '
        f"{ahead.partition}, {record}; {remedy}: for that long, events of the true time are late"
    )


_watching: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references


def begin_watching(readiness: Readiness) -> None:
    """Watch from now on, in the running event loop; it ends with the process."""
    task = asyncio.get_running_loop().create_task(Watching(readiness).watch())
    _watching.add(task)
    task.add_done_callback(_watching.discard)
