"""Feeds the audit log from its topics without ever holding up the stream.

Batches of releases and activations go to a sink, in a thread, one at a time. The sink commits first and the group's
offset follows, so a crash repeats records, which the sink skips. If the sink is away, its partitions pause, and all
others go on. Any other error of the sink is fail-stop.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog
from faust.types.tuples import TP

from shoal.agents.audit.database import Unavailable
from shoal.agents.kafka.fail_stop import stop_on_failure
from shoal.agents.kafka.transport import Batch
from shoal.agents.worker.inbox import Inbox
from shoal.agents.worker.threads import in_thread
from shoal.stream.machine import Record

log = structlog.get_logger("shoal.audit")

FIRST_DELAY, LAST_DELAY = 0.5, 15.0
HOLD = "audit"

SinkCall = Callable[[str, int, Sequence[Record]], None]


class Feed:
    """One partition on its way to the sink."""

    def __init__(self, position: int) -> None:
        self.done = position  # up to where the sink has it
        self.expected = position  # where the next batch must begin
        self.inbox = Inbox()


class Sink:
    """All partitions of this worker that go to the audit log."""

    def __init__(self, call: SinkCall, hold: Callable[[TP, str], None], let_go: Callable[[TP, str], None]) -> None:
        self.feeds: dict[TP, Feed] = {}
        self.on_delivered: Callable[[], None] = lambda: None
        self._call, self._hold, self._let_go = call, hold, let_go
        self._away = False
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def away(self) -> bool:
        """Whether the sink could not take records when it was last called."""
        return self._away

    def assign(self, positions: dict[TP, int]) -> None:
        """Begin with these partitions at these offsets, and drop all others."""
        self.drop()
        self.feeds = {tp: Feed(position) for tp, position in positions.items()}
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def drop(self) -> None:
        """Forget everything that waits: the next owner reads it again."""
        for tp in self.feeds:
            self._let_go(tp, HOLD)
        self.feeds = {}

    def accept(self, tp: TP, batch: Batch) -> bool:
        """Queue a batch; False if it does not follow the last one."""
        feed = self.feeds.get(tp)
        if feed is None or batch.start != feed.expected:
            return False
        feed.inbox.add(batch)
        feed.expected = batch.end
        if feed.inbox.full:
            self._hold(tp, HOLD)
        self._arrived.set()
        return True

    async def _run(self) -> None:
        with stop_on_failure("audit"):
            while True:
                self._arrived.clear()
                for tp, feed in list(self.feeds.items()):
                    await self._deliver(tp, feed)
                if not any(feed.inbox for feed in self.feeds.values()):
                    await self._arrived.wait()

    async def _deliver(self, tp: TP, feed: Feed) -> None:
        """Give the sink what waits of one partition, unless the partition is taken away meanwhile."""
        delay = FIRST_DELAY
        while feed.inbox and self.feeds.get(tp) is feed:
            batch = feed.inbox.first
            try:
                await in_thread(self._call, tp.topic, tp.partition, batch.records)
            except Unavailable as error:
                self._tell(away=True, reason=str(error))
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY)
                continue
            self._tell(away=False)
            delay = FIRST_DELAY
            feed.inbox.take()
            feed.inbox.done()
            feed.done = batch.end
            self.on_delivered()
            if feed.inbox.low and self.feeds.get(tp) is feed:
                self._let_go(tp, HOLD)

    def _tell(self, *, away: bool, reason: str = "") -> None:
        """Log once that the sink is away, whatever the partitions and rebalances, and once that it is back."""
        if away and not self._away:
            log.warning("audit_log_away", reason=reason, doing="waiting; nothing is lost")
        elif self._away and not away:
            log.warning("audit_log_back")
        self._away = away

    async def stop(self) -> None:
        """Drop everything. A running call is left to itself, for it may wait for long."""
        self.drop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
