"""Runs the toy domain as `shoal worker` runs the real one. The only argument is JSON; see `main`."""

import json
import logging
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import structlog

from shoal.agents.audit.database import Unavailable
from shoal.agents.kafka import topics
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transactions import Writer
from shoal.agents.worker.app import ShoalApp
from shoal.agents.worker.host import Host
from shoal.agents.worker.process import run_worker
from shoal.models.errors import ShoalError
from tests.kafka.toy_machine import ToyBound, ToyDomain, ToyRelease


def main() -> int:
    """{"settings": KafkaSettings, "sources": [...], "folder": ..., "drop": share, and files that make it misbehave}."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    options: dict[str, Any] = json.loads(sys.argv[1])
    settings = KafkaSettings(**options["settings"])
    folder = Path(options["folder"]) if options.get("folder") else None
    domain = ToyDomain(options["sources"], settings.app, settings.partitions, folder)
    if options.get("drop"):
        lose_batches(options["drop"])
    if options.get("freeze"):
        freeze_before_commit(Path(options["freeze"]))
    if options.get("stalled"):
        withhold(Path(options["stalled"]))
    if options.get("start_limit"):
        vars(topics)["START_LIMIT"] = options["start_limit"]
    if options.get("no_sql"):
        domain.sink = lacking(Path(options["no_sql"]), domain.sink)  # type: ignore[method-assign]

    def watch(app: ShoalApp) -> None:
        app.host.on_owned.append(lambda: print("owns", sorted(map(str, app.host.partitions)), flush=True))

    try:
        status = run_worker(settings, domain, on_app=watch)
    except ShoalError as error:
        print(f"shoal: {error}", file=sys.stderr)
        return error.exit_code
    idles = sum(len(machine.idles) for machine in domain.bounds if isinstance(machine, ToyBound))
    print("idle", idles, flush=True)
    return status


def lose_batches(share: float) -> None:
    """Lose some batches between fetch and partition, as Faust may in a rebalance."""
    accept, lose = Host.accept, random.Random(1)

    def lossy(host: Host, message: Any) -> None:
        if lose.random() >= share:
            accept(host, message)
        else:
            print("lost", flush=True)

    Host.accept = lossy  # type: ignore[method-assign,assignment]


def withhold(flag: Path) -> None:
    """Have release commit nothing for as long as the file is there, and say how much its worker held at most."""
    outbox, accept, most = ToyRelease.outbox, Host.accept, [0]

    def withheld(machine: ToyRelease) -> Any:
        return None if flag.exists() else outbox(machine)

    def watched(host: Host, message: Any) -> None:
        accept(host, message)
        held = sum(inbox.held for inbox in host.inboxes)
        if held > most[0]:
            most[0] = held
            print("held", held, flush=True)

    ToyRelease.outbox = withheld  # type: ignore[method-assign,assignment]
    Host.accept = watched  # type: ignore[method-assign,assignment]


def freeze_before_commit(flag: Path) -> None:
    """SIGSTOP ourselves at an exact point, when the file is there: all is written, nothing is committed."""
    check = Writer._check_offset

    def checked(writer: Writer, target: tuple[str, int], offset: int) -> None:
        check(writer, target, offset)
        if flag.exists():
            flag.unlink()
            os.kill(os.getpid(), signal.SIGSTOP)

    Writer._check_offset = checked  # type: ignore[method-assign,assignment]


def lacking(flag: Path, sink: Any) -> Any:
    """A sink that is away for as long as the file is there."""

    def call(topic: str, partition: int, records: Any) -> None:
        if flag.exists():
            raise Unavailable("no database")
        sink(topic, partition, records)

    return call


if __name__ == "__main__":
    sys.exit(main())
