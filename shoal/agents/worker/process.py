"""Runs a worker in this process: owns the signals, the exit status and stderr.

SIGTERM and SIGINT commit what is processed, leave the group and end with status 0 within 20 s; while brokers are away
they leave without a commit, and the next owner repeats the work. Everything that must not go on ends with status 1
through `fail_stop.py`. Brokers that are away or not ready are waited for, at the start as well as later.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import structlog

from shoal.agents.audit.database import Unavailable
from shoal.agents.kafka.client_errors import NotConnected
from shoal.agents.kafka.fail_stop import fail_stop, stop_on_failure, unless_discreet
from shoal.agents.kafka.reachability import BrokersNotReady, Reach
from shoal.agents.kafka.rights import verify_rights
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import Verified, verify_topics
from shoal.agents.process_settings import (
    keep_freed_memory,
    quiet_libraries,
    share_interpreter,
    tune_garbage_collector,
)
from shoal.agents.worker.app import ShoalApp, make_app
from shoal.agents.worker.audit_feed import FIRST_DELAY, LAST_DELAY
from shoal.agents.worker.threads import in_thread
from shoal.models.errors import FailStop, KafkaError
from shoal.stream.machine import Domain

log = structlog.get_logger("shoal.worker")

LEAVE_LIMIT = 12.0  # seconds to leave the group after all is committed; the broker notices by itself otherwise
STOP_LIMIT = 18.0  # seconds for everything


def run_worker(
    settings: KafkaSettings,
    domain: Domain,
    *,
    verify: Callable[[], Awaitable[Verified]] | None = None,
    on_verified: Callable[[Verified], None] = lambda _: None,
    on_app: Callable[[ShoalApp], None] = lambda _: None,
) -> int:
    """Run until a signal, and return the exit status. ShoalErrors found before the first record are raised.

    `verify` looks at the topics, which may refuse them; brokers that are away meanwhile are waited for.
    """
    tune_garbage_collector()
    share_interpreter()
    keep_freed_memory()
    quiet_libraries()
    return asyncio.run(Worker(settings, domain, verify).run(on_verified, on_app))


def ignore_signals() -> None:
    """Let no second SIGTERM kill a process that is about to end with status 0."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)


class Worker:
    """One run of the app."""

    def __init__(
        self, settings: KafkaSettings, domain: Domain, verify: Callable[[], Awaitable[Verified]] | None = None
    ) -> None:
        self.settings, self.domain = settings, domain
        self._verify_topics = verify or self._look_at_topics

    async def run(self, on_verified: Callable[[Verified], None], on_app: Callable[[ShoalApp], None]) -> int:
        stop = self._signals()
        try:
            return await self._run(stop, on_verified, on_app)
        finally:
            ignore_signals()

    async def _run(
        self, stop: asyncio.Event, on_verified: Callable[[Verified], None], on_app: Callable[[ShoalApp], None]
    ) -> int:
        verified = await self._until(stop, self._verify())
        if verified is None:
            return 0
        if not await self._until(stop, self._agree(lambda: on_verified(verified))):
            return 0
        read = (*self.domain.sources, self.settings.contributions, self.settings.releases, self.settings.activations)
        app = make_app(self.settings, self.domain, {topic: verified.partitions[topic] for topic in read})
        app.in_worker = True
        on_app(app)
        started = await self._until(stop, self._start(app))
        if started:
            await self._until(stop, self._crashed(app))
        return await self._stop(app)

    def _signals(self) -> asyncio.Event:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        return stop

    async def _until(self, stop: asyncio.Event, work: Any) -> Any:
        """The result of the work, or None if a signal came first."""
        tasks = {asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())}
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        results = [task.result() for task in done]
        return None if stop.is_set() else results[0]

    async def _look_at_topics(self) -> Verified:
        return await verify_topics(self.settings, self.domain.sources)

    async def _verify(self) -> Verified:
        reach = Reach(self.settings)
        while True:
            await reach.wait()
            try:
                await verify_rights(self.settings, self.domain.sources)
                verified = await self._verify_topics()
                reach.ready()
                return verified
            except BrokersNotReady as error:
                await reach.retry(error.__cause__ or error)
            except NotConnected as error:
                if not error.away:
                    raise
                await reach.retry(error)
            except KafkaError:
                if await reach.ask():
                    raise

    async def _agree(self, agree: Callable[[], None]) -> bool:
        """Ask the ledger once, at the start; a database that is away is waited for."""
        delay = FIRST_DELAY
        while True:
            try:
                await in_thread(agree)
                return True
            except Unavailable as error:
                if delay == FIRST_DELAY:
                    log.warning("audit_log_away", reason=str(error), doing="waiting for it")
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY)

    async def _start(self, app: ShoalApp) -> bool:
        with stop_on_failure("start"):
            await app.start()
        return True

    async def _crashed(self, app: ShoalApp) -> None:
        """Faust stops an app that crashed; that is not an orderly end."""
        await app.wait_until_stopped()
        fail_stop(app.crash_reason or FailStop("Faust stopped by itself; restart the worker"), "Faust")

    async def _stop(self, app: ShoalApp) -> int:
        began = time.monotonic()
        try:
            await asyncio.wait_for(app.host.stop(), STOP_LIMIT)
        except TimeoutError:
            leave(
                "left_uncommitted", doing="the next owner aborts the open transactions, and does again what was in them"
            )
        limit = min(LEAVE_LIMIT, STOP_LIMIT - (time.monotonic() - began))
        try:
            await asyncio.wait_for(app.stop(), max(limit, 1.0))
            log.info("stopped", **unless_discreet(seconds=round(time.monotonic() - began, 2)))
        except Exception as error:
            leave("left_without_goodbye", error=type(error).__name__)
        return 0


def leave(event: str, **details: str) -> NoReturn:
    """End with status 0 at once: nothing is lost, and clients that wait for brokers must not hold up the end."""
    log.warning(event, **details)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
