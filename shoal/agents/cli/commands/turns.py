"""Commands that decide how a topic is read from then on: an entry of the ledger, with who made it and when."""

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.registration import version_name
from shoal.agents.audit.session import load_config, terms_of
from shoal.agents.audit.turns import epoch_of
from shoal.agents.cli.output import AsJson, ConfigPath, result, say
from shoal.agents.inspection.clocks import Position, positions
from shoal.agents.kafka.settings import KafkaSettings, needed_settings
from shoal.agents.reading.digits import printable
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError, LedgerError
from shoal.models.tables import ACTIVE
from shoal.models.times import iso

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
            say(f"shoal: {printable(line)}")
        _confirm(yes=yes)
        epoch = ledger.restart_clock(loaded.kafka.app, topic, by)
    fields = {
        "topic": topic, "epoch": epoch, "by": by, "ends": [list(version) for version in ending],
        "clocks": [{"metrics": list(one.metrics), "partition": one.partition, "time": iso(one.time)} for one in found],
    }  # fmt: skip
    text = f"restart {epoch} of the clocks of {topic}: raise the version of each of its metrics, then restart workers"
    result(fields, as_json=as_json, text=lambda: printable(text))


def _check(config: Config, topic: str, by: str) -> None:
    if topic not in config.topics:
        raise ConfigError(f"no metric reads topic {topic!r}; name one of {', '.join(config.topics)}")
    if not by.strip():
        raise ConfigError("--by is empty; name who decides this")


def _now(
    ledger: Ledger, settings: KafkaSettings, config: Config, topic: str
) -> tuple[list[Position], list[tuple[str, int]]]:
    """Positions of a topic's clocks, and the active metric versions that use these clocks.

    Raises:
        LedgerError: no version of the topic has the present epoch, so a restart would change nothing.
    """
    app = config.kafka.app
    epoch = ledger.epochs(app).get(topic, 0)
    rows = [row for row in ledger.versions(app) if row.state == ACTIVE and epoch_of(row.parameters) == (topic, epoch)]
    if not rows:
        again = "; raise the versions of its metrics: they begin with a clock that has heard nothing" if epoch else ""
        raise LedgerError(
            f"topic {topic}: no active version has its present clocks, so there is nothing to restart{again}"
        )
    partitions = {name: count for name, count in ledger.partitions(app).items() if name == topic}
    found = positions(settings, config.under(terms_of(ledger, config)), partitions)
    return found, [(row.metric, row.version) for row in rows]


def _words(topic: str, found: list[Position], ending: list[tuple[str, int]]) -> Iterator[str]:
    yield from (one.words() for one in found)
    for metric, version in ending:
        yield (
            f"{version_name(metric, version)} keeps its clock, and ends when its version is raised; what it released "
            "stays, and its charge"
        )
    yield f"versions of topic {topic} that are registered afterwards are charged, and begin where workers are by then"


def _confirm(*, yes: bool) -> None:
    """Ask on the terminal whether to restart the clocks, unless `yes`.

    Raises:
        LedgerError: there is no terminal to ask on.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise LedgerError("nothing is written: there is no terminal to ask on; add --yes")
    typer.confirm("Restart the clocks? The ledger keeps it for good", abort=True, err=True)
