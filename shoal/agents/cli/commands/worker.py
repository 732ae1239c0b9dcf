"""`shoal worker`: runs the agents until it is told to stop."""

import asyncio
import json
import logging
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer

from shoal.agents.audit.database import Unavailable
from shoal.agents.audit.session import Session, open_session
from shoal.agents.cli.output import ConfigPath, say
from shoal.agents.cli.stopping import leave
from shoal.agents.inspection.clocks import positions, warnings
from shoal.agents.inspection.record_keys import refuse_other_keys
from shoal.agents.inspection.states import read_states
from shoal.agents.kafka.fail_stop import be_discreet
from shoal.agents.kafka.settings import KafkaSettings, needed_settings
from shoal.agents.kafka.topics import Verified, verify_topics
from shoal.agents.lane import words_of
from shoal.agents.log_stream import drop_unwritable_lines
from shoal.agents.worker.app import ShoalApp
from shoal.agents.worker.audit_feed import FIRST_DELAY, LAST_DELAY
from shoal.agents.worker.health import Health
from shoal.agents.worker.process import run_worker
from shoal.agents.worker.readiness import Readiness
from shoal.agents.worker.stages import Stages
from shoal.agents.worker.watch import begin_watching
from shoal.agents.worker.web import serve
from shoal.models.printable import printable


def worker(
    config: ConfigPath,
    instance: Annotated[
        str | None,
        typer.Option(
            envvar="SHOAL_INSTANCE", help="A name that is unique among the workers: faster takeover after a crash."
        ),
    ] = None,
) -> None:
    """Run the agents: events in, private releases out, until SIGTERM or Ctrl-C.

    Start as many as you like, on any host: they share the partitions. A worker that dies is replaced by the others;
    nothing is lost, doubled or re-noised. Log lines are JSON on stderr.

    Example: shoal worker shoal.toml
    """
    log_json_lines()
    with _patient_session(config) as session:
        settings = needed_settings(session.config, config, instance=instance)
        if session.config.is_discreet:
            be_discreet()
        health = Health()
        domain = Stages(session, settings, health)

        def agree(verified: Verified) -> None:
            for warning in verified.warnings:
                structlog.get_logger("shoal.worker").warning("retention", warning=warning)
            _warn_before_charge(session, settings, verified)
            domain.agree(verified)
            _say_lane(domain)
            health.running = True

        async def verify() -> Verified:
            registered = dict[str, int]()
            with suppress(Unavailable):  # what agrees with the ledger afterwards waits for it
                registered = await asyncio.to_thread(session.app_ledger.partitions)
            verified = await verify_topics(settings, session.config.topics, registered=registered)
            await refuse_other_keys(settings, session.config, verified)
            return verified

        status = run_worker(
            settings, domain,
            verify=verify,
            on_verified=agree,
            on_app=lambda app: _serve(session, app, domain),
        )  # fmt: skip
    sys.exit(status)


def log_json_lines() -> None:
    """Log to stderr, one JSON object per line; a line that cannot be written is dropped."""
    drop_unwritable_lines()
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.add_log_level,
            structlog.processors.JSONRenderer(_printable_json),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _printable_json(fields: dict[str, Any], **options: Any) -> str:
    """A log line without control characters, whatever the names in it are."""
    return printable(json.dumps(fields, **options))


@contextmanager
def _patient_session(path: Path) -> Iterator[Session]:
    """Open the session; a database that is away is waited for."""
    delay = FIRST_DELAY
    before = signal.signal(signal.SIGTERM, leave)
    with ExitStack() as opened:
        while True:
            try:
                session = opened.enter_context(open_session(path))
                break
            except Unavailable as error:
                if delay == FIRST_DELAY:
                    say(f"shoal: {error}; waiting for it")
                time.sleep(delay)
                delay = min(2 * delay, LAST_DELAY)
        signal.signal(signal.SIGTERM, before)
        yield session


def _warn_before_charge(session: Session, settings: KafkaSettings, verified: Verified) -> None:
    """Log which new versions would go on with a clock that is ahead of today."""
    sources = {topic: verified.partitions[topic] for topic in session.config.topics}
    counts = sources | {settings.contributions: verified.partitions[settings.contributions]}
    new = {charge.metric for charge in session.check(partitions=counts).charged}
    if not new:
        return
    log = structlog.get_logger("shoal.worker")
    states = read_states(settings, sources)
    found = [one for one in positions(session.config, states) if new & set(one.metrics)]
    for warning in warnings(session.path, found):
        log.warning("clock_ahead", warning=warning)


def _say_lane(domain: Stages) -> None:
    """Log who takes the events in, and why."""
    lane, log = domain.lane, structlog.get_logger("shoal.worker")
    if lane.state == "refused":
        log.warning("kernel_refused", reason=lane.why, doing="the twin runs: the same releases, slower")
    twins = {topic: words_of(keys) for topic, keys in domain.unknown.items() if keys}
    log.info("lane", lane=lane.name, kernel=lane.state, version=lane.version, topics_by_twin=twins)


def _serve(session: Session, app: ShoalApp, domain: Stages) -> None:
    """Watch the worker, and serve health and metrics where a port is configured."""
    readiness = Readiness(app.host, domain)
    begin_watching(readiness)
    web = session.config.web
    if web.port is not None:
        serve(readiness, web.host, web.port, web.names)
