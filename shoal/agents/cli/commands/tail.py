"""`shoal tail`: releases in lines, as they are published."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.agents.cli.output import PrintableFile, say
from shoal.agents.process_settings import ending_in_order
from shoal.models.config.file import Config, load
from shoal.models.errors import InputError

if TYPE_CHECKING:
    from shoal.agents.tail.lines import Lines

SOME = 10

ConfigPath = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG]", help="The configuration; none, of a file: what releases say.")
]
Input = Annotated[
    str | None, typer.Option("--input", metavar="FILE", help="A file of releases, or -, in place of the topics.")
]
Metrics = Annotated[list[str] | None, typer.Option("--metric", metavar="NAME", help="Only this one; may be repeated.")]
Groups = Annotated[list[str] | None, typer.Option("--group", metavar="G", help="Only this one; may be repeated.")]
Last = Annotated[
    int | None,
    typer.Option(
        "--last",
        min=0,
        metavar="N",
        help="Print this many of the present releases first; default: 10, or all of a file.",
    ),
]
Beginning = Annotated[bool, typer.Option("--from-beginning", help="Print all present releases first.")]
Once = Annotated[bool, typer.Option("--once", help="End when the present releases are printed.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the records as they were published, one a line.")]
Activations = Annotated[
    bool,
    typer.Option(
        "--activations/--no-activations", help="Whether to print activations, by which something begins to count, too."
    ),
]


class ReaderGone(Exception):
    """Nobody reads our stdout any more; no error of a socket to Kafka."""


def tail(
    config: ConfigPath = None,
    input_: Input = None,
    metric: Metrics = None,
    group: Groups = None,
    last: Last = None,
    from_beginning: Beginning = False,
    once: Once = False,
    activations: Activations = True,
    as_json: AsJson = False,
) -> None:
    """Print releases with their noise intervals, each as soon as it is published, until Ctrl-C or SIGTERM.

    It needs no key, no database and no consumer group: only Read on the topics of releases and activations. Times are
    UTC. What is there at first is ordered by time, the last of what each partition has; with --from-beginning each
    group by itself. With --input it prints what a file has, such as one by `shoal run`, in its order, and ends.

    Example: shoal tail shoal.toml --metric basket --last 20
    """
    from shoal.agents.tail.lines import Ended, Lines, Wanted

    if config is None and input_ is None:
        raise typer.BadParameter("name a configuration, or a file of releases: --input FILE")
    loaded = None if config is None else load(config)
    names = frozenset(metric or ()) if loaded is None else _known(loaded, metric or ())
    if last is None and input_ is None:
        last = SOME
    wanted = Wanted(
        names, frozenset(group or ()), None if from_beginning else last, as_json, once or input_ is not None
    )
    metrics = {} if loaded is None else {metric.name: metric for metric in loaded.metrics}
    lines = Lines(wanted, metrics, _write, say)
    if config is None or loaded is None or input_ is not None:
        _print_file(lines, input_ or "-")
        return
    from shoal.agents.kafka.settings import needed_settings
    from shoal.agents.process_settings import quiet_libraries
    from shoal.agents.reading.last_records import Last as LastRecords
    from shoal.agents.reading.live import Reader

    quiet_libraries()
    settings = needed_settings(loaded, config)
    topics = (settings.releases, settings.activations) if activations else (settings.releases,)
    wanted_last = None if wanted.last is None else LastRecords(wanted.last, lines.is_wanted)
    try:
        with ending_in_order(), suppress(KeyboardInterrupt, asyncio.CancelledError, Ended):
            asyncio.run(Reader(lines, settings, topics, "tail", wanted_last).run())
    except ReaderGone:
        raise BrokenPipeError from None


def _print_file(lines: "Lines", path: str) -> None:
    """Print what a file of releases has."""
    from shoal.agents.input.release_file import release_lines
    from shoal.agents.tail.lines import Ended

    try:
        with suppress(Ended):
            lines.take((line.rstrip(b"\r\n") for _, line in release_lines(path)), quiet=True)
            lines.is_read()
    except ReaderGone:
        raise BrokenPipeError from None


def _known(config: Config, names: list[str] | tuple[()]) -> frozenset[str]:
    known = [metric.name for metric in config.metrics]
    for name in names:
        if name not in known:
            raise typer.BadParameter(
                f"there is no metric {name!r}; name one of: {', '.join(known)}", param_hint="--metric"
            )
    return frozenset(names)


def _write(line: bytes) -> None:
    try:
        out = PrintableFile(sys.stdout.buffer)
        out.write(line)
        out.flush()
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise InputError(f"standard output: cannot be written ({error.strerror}); make room, or pipe it on") from None
