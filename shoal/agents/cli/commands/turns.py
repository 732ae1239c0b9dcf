"""Commands that decide how a topic is read from then on: an entry of the ledger, with who made it and when."""

from collections.abc import Iterator
from typing import Annotated, Any

import orjson
import typer

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import epochs_of, load_config, open_session
from shoal.agents.cli.output import AsJson, ConfigPath, confirm, result, say
from shoal.agents.inspection.clocks import Position, positions
from shoal.agents.inspection.losses import Acceptance
from shoal.agents.inspection.states import read_states
from shoal.agents.kafka.settings import KafkaSettings, needed_settings
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError, LedgerError
from shoal.models.losses import AcceptedLoss
from shoal.models.parameters import clock_in
from shoal.models.tables import ACTIVE
from shoal.models.times import iso, time_of_text
from shoal.models.version import VersionId

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic, as metrics of the configuration name it.")]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides this; the ledger keeps it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Write it without asking; without a terminal this is needed.")]


def restart_clock(config: ConfigPath, topic: Topic, by: By, yes: Yes = False, as_json: AsJson = False) -> None:
    """Restart the event clocks of a topic that a wrong time took too far: for versions that are registered afterwards.

    A clock never goes back, so that nothing that was closed is closed again. Versions that are registered keep the old
    clock. Raise the version of each metric afterwards: it is charged as any, and begins with a clock that has heard
    nothing.

    Example: shoal restart-clock shoal.toml purchases --by "on-call engineer"
    """
    loaded = load_config(config)
    settings = needed_settings(loaded, config)
    _check(loaded, topic, by)
    with Ledger.open(loaded.audit.url) as ledger:
        found, ending = _now(ledger, settings, loaded, topic)
        for line in _words(topic, found, ending):
            say(f"shoal: {line}")
        confirm("Restart the clocks? The ledger keeps it for good", yes=yes)
        epoch = ledger.of(loaded.kafka.app).restart_clock(topic, by)
    fields = {
        "topic": topic, "epoch": epoch, "by": by, "ends": [list(version[1:]) for version in ending],
        "clocks": [{"metrics": list(one.metrics), "partition": one.partition, "time": iso(one.time)} for one in found],
    }  # fmt: skip
    text = f"restart {epoch} of the clocks of {topic}: raise the version of each of its metrics, then restart workers"
    result(fields, as_json=as_json, text=lambda: text)


def accept_loss(
    config: ConfigPath,
    topic: Topic,
    by: By,
    partition: Annotated[
        int | None, typer.Option("--partition", metavar="P", min=0, help="Only this partition.")
    ] = None,
    beat: Annotated[
        str | None,
        typer.Option(
            "--beat",
            metavar="TIME",
            help="Under add-remove: the earliest beat that ends the loss, if not the next one.",
        ),
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Accept that records of a topic are gone before they were read, and let workers go on behind them.

    Versions, accounts and noise stay, and nothing is charged: releases are of the records that were read. What comes
    again finds caps used and periods closed; where the unit is an event, it counts again. Under add-remove no record
    counts before the next beat.

    Example: shoal accept-loss shoal.toml purchases --by "on-call engineer"
    """
    loaded = load_config(config)
    settings = needed_settings(loaded, config)
    _check(loaded, topic, by)
    with open_session(config, loaded) as session:
        acceptance = Acceptance(session, settings, topic, partition=partition, beat=_beat_of(loaded, beat))
        losses = acceptance.losses()
        if not losses:
            where = topic if partition is None else f"{topic}[{partition}]"
            raise LedgerError(
                f"topic {where} has all records that workers have yet to read, so there is no loss to accept"
            )
        for loss in losses:
            say(f"shoal: {loss.words}; lost and given up are {loss.place.words()}")
        for line in _consequences(loaded, topic):
            say(f"shoal: {line}")
        confirm("Accept the loss? The ledger keeps it for good", yes=yes)
        found = acceptance.accept(losses, by)
    fields = {"topic": topic, "by": by, "losses": [_fields(loss) for loss in found]}
    lines = [loss.words() for loss in found]
    result(fields, as_json=as_json, text=lambda: "\n".join([*lines, "start the workers: they go on there"]))


def _fields(loss: AcceptedLoss) -> dict[str, Any]:
    place = loss.place
    beat = None if place.beat is None else iso(place.beat)
    ends = {"first": place.first, "next": place.next} if place.sealed is None else {"beat": beat}
    return {"id": loss.id, "partition": loss.partition, "at": loss.at} | ends


def _consequences(config: Config, topic: str) -> Iterator[str]:
    yield "versions, accounts and noise stay; nothing is charged, and what was published stays"
    if any(metric.unit.is_event for metric in config.metrics_of(topic)):
        yield "events that come again count again where the unit is an event: put none back that was read"
    if config.protects_presence:
        yield (
            "no record counts before the next beat; which records were read before the loss depends on load, which "
            "the guarantee does not cover"
        )


def _beat_of(config: Config, text: str | None) -> int | None:
    """The time of a beat that an operator names, in microseconds."""
    if text is None:
        return None
    if not config.protects_presence:
        raise ConfigError("--beat is for metrics that protect presence; others go on at the next record")
    if (time := time_of_text(text)) is None:
        raise ConfigError(f"--beat {text!r} is no time; write an ISO 8601 time such as 2026-01-31T18:00:00Z")
    return time


def _check(config: Config, topic: str, by: str) -> None:
    if topic not in config.topics:
        raise ConfigError(f"no metric reads topic {topic!r}; name one of {', '.join(config.topics)}")
    if not by.strip():
        raise ConfigError("--by is empty; name who decides this")


def _now(ledger: Ledger, settings: KafkaSettings, config: Config, topic: str) -> tuple[list[Position], list[VersionId]]:
    """Positions of a topic's clocks, and the active metric versions that use these clocks.

    Raises:
        LedgerError: no version of the topic has the present epoch, so a restart would change nothing.
    """
    registered = ledger.of(config.kafka.app)
    now = registered.epochs().get(topic, 0)
    active = [row for row in registered.versions() if row.state == ACTIVE]
    rows = [row for row in active if clock_in(orjson.loads(row.parameters)) == (topic, now)]
    if not rows:
        again = "; raise the versions of its metrics: they begin with a clock that has heard nothing" if now else ""
        raise LedgerError(
            f"topic {topic}: no active version has its present clocks, so there is nothing to restart{again}"
        )
    partitions = {name: count for name, count in registered.partitions().items() if name == topic}
    found = positions(config.in_epochs(epochs_of(ledger, config)), read_states(settings, partitions))
    return found, [VersionId.of(row) for row in rows]


def _words(topic: str, found: list[Position], ending: list[VersionId]) -> Iterator[str]:
    yield from (one.words() for one in found)
    for version in ending:
        yield (
            f"{version} keeps its clock, and ends when its version is raised; what it released stays, and its charge"
        )
    yield f"versions of topic {topic} that are registered afterwards are charged, and begin where workers are by then"
