"""`shoal tail`: releases in lines, as they are published."""

import asyncio
import sys
from contextlib import suppress
from typing import Annotated

import typer

from shoal.agents.cli.output import ConfigPath, say
from shoal.agents.process_settings import ending_in_order
from shoal.models.config.file import Config, load
from shoal.models.errors import InputError

SOME = 10

Metrics = Annotated[list[str] | None, typer.Option("--metric", metavar="NAME", help="Only this one; may be repeated.")]
Groups = Annotated[list[str] | None, typer.Option("--group", metavar="G", help="Only this one; may be repeated.")]
Last = Annotated[int, typer.Option("--last", min=0, metavar="N", help="Begin with so many that are there already.")]
Beginning = Annotated[bool, typer.Option("--from-beginning", help="Begin with all that are there.")]
Once = Annotated[bool, typer.Option("--once", help="End when what is there now is printed.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the records as they were published, one a line.")]
Activations = Annotated[bool, typer.Option("--activations/--no-activations", help="What begins to count, too, or not.")]


class ReaderGone(Exception):
    """Nobody reads our stdout any more; no error of a socket to Kafka."""


def tail(
    config: ConfigPath,
    metric: Metrics = None,
    group: Groups = None,
    last: Last = SOME,
    from_beginning: Beginning = False,
    once: Once = False,
    activations: Activations = True,
    as_json: AsJson = False,
) -> None:
    """Print releases with their noise intervals, each as soon as it is published, until Ctrl-C or SIGTERM.

    It needs no key, no database and no consumer group: only Read on the topics of releases and activations. Times are
    UTC. What is there at first is ordered by time, the last of what each partition has; with --from-beginning each
    group by itself.

    Example: shoal tail shoal.toml --metric basket --last 20
    """
    from shoal.agents.kafka.settings import needed_settings
    from shoal.agents.process_settings import quiet_libraries
    from shoal.agents.reading.last_records import Last as LastRecords
    from shoal.agents.reading.live import Reader
    from shoal.agents.tail.lines import Ended, Lines, Wanted

    quiet_libraries()
    loaded = load(config)
    settings = needed_settings(loaded, config)
    wanted = Wanted(
        _known(loaded, metric or ()), frozenset(group or ()), None if from_beginning else last, as_json, once
    )  # fmt: skip
    topics = (settings.releases, settings.activations) if activations else (settings.releases,)
    lines = Lines(wanted, {section.name: section for section in loaded.metric}, _write, say)
    wanted_last = None if from_beginning else LastRecords(last, lines.is_wanted)
    try:
        with ending_in_order(), suppress(KeyboardInterrupt, asyncio.CancelledError, Ended):
            asyncio.run(Reader(lines, settings, topics, "tail", wanted_last).run())
    except ReaderGone:
        raise BrokenPipeError from None


def _known(config: Config, names: list[str] | tuple[()]) -> frozenset[str]:
    known = [section.name for section in config.metric]
    for name in names:
        if name not in known:
            raise typer.BadParameter(
                f"there is no metric {name!r}; name one of: {', '.join(known)}", param_hint="--metric"
            )
    return frozenset(names)


def _write(line: bytes) -> None:
    try:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise InputError(f"standard output: cannot be written ({error.strerror}); make room, or pipe it on") from None
