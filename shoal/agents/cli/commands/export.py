"""`shoal export`: releases as CSV, JSON lines or Parquet."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from shoal.agents.cli.output import open_lines, open_output, refuse_packed, say, writing
from shoal.agents.input.same_files import deployment_files, log_files, refuse_same
from shoal.agents.process_settings import ending_in_order
from shoal.agents.reading.export import Export, Format, ready
from shoal.agents.reading.selection import selection
from shoal.agents.reading.sources import configured_source, file_source, log_source

ConfigPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="[CONFIG]",
        help="A configuration: its releases topic, or its audit log; with --input, how long slots and windows are.",
    ),
]
Input = Annotated[str | None, typer.Option("--input", metavar="FILE", help="A file of releases, or - for stdin.")]
Log = Annotated[
    str | None, typer.Option("--log", metavar="URL", help="An audit log: sqlite:///FILE or postgresql://...")
]
App = Annotated[str | None, typer.Option("--app", help="The app whose releases to take, if the log has several.")]
Form = Annotated[Format | None, typer.Option("--format", help="Default: what the name of the output says, or csv.")]
Output = Annotated[str, typer.Option("--output", metavar="FILE", help="The file to write; - for stdout.")]
Metrics = Annotated[list[str] | None, typer.Option("--metric", metavar="NAME", help="Only this one; may be repeated.")]
Groups = Annotated[list[str] | None, typer.Option("--group", metavar="G", help="Only this one; may be repeated.")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Only ticks that end after it; UTC.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only ticks that end at or before it; UTC.")]
Guarded = Annotated[
    bool, typer.Option("--guard/--no-guard", help="Put an apostrophe before texts that a spreadsheet would run.")
]


def export(
    config: ConfigPath = None,
    input_: Input = None,
    log: Log = None,
    app: App = None,
    form: Form = None,
    output: Output = "-",
    metric: Metrics = None,
    group: Groups = None,
    since: Since = None,
    until: Until = None,
    guarded: Guarded = True,
) -> None:
    """Write releases as CSV or Parquet, with a row for each number, or as JSON lines, as they were published.

    They are those in a configuration's releases topic (or, without [kafka], its audit log), in a file or in an audit
    log. No key is needed, and nothing else is written. They need not fit into memory. A file alone does not say how
    long slots and windows are; name the configuration beside it, and rows say since when, too.

    Example: shoal export shoal.toml --metric basket --output basket.csv
    """
    if sum((input_ is not None, log is not None, config is not None and input_ is None)) != 1:
        raise typer.BadParameter("name one thing to read: CONFIG, --input FILE (with CONFIG, or alone) or --log URL")
    if app is not None and log is None:
        raise typer.BadParameter("it is for a log with several apps: --log URL", param_hint="--app")
    refuse_packed(output=output)
    refuse_same({"--output": output}, {"the input": input_, **log_files(log), **_deployment(config)})
    chosen = form or _named(output)
    ready(chosen)
    wanted = selection(metric, group, since, until)
    if log is not None:
        source = log_source(log, app)
    elif input_ is not None:
        source = file_source(input_, None if config is None else str(config))
    else:
        source = configured_source(str(config))
    releases = Export(source, wanted, say)
    with ending_in_order(), ExitStack() as files, writing(output):
        file = (open_output if chosen is Format.PARQUET else open_lines)(files, output)
        releases.write(file, chosen, guarded=guarded)
        file.flush()
    say(f"shoal: {releases.written:,} releases, as {chosen.value}")


def _deployment(config: Path | None) -> dict[str, str]:
    """The files of the deployment that is exported, or that says how long slots are."""
    if config is None:
        return {}
    from shoal.models.config.file import load  # a file of releases is read without it

    return deployment_files(config, load(config))


def _named(output: str) -> Format:
    """The form that a file's name says; CSV if it says none."""
    ending = output.lower().rpartition(".")[2]
    return {"jsonl": Format.JSONL, "ndjson": Format.JSONL, "parquet": Format.PARQUET}.get(ending, Format.CSV)
