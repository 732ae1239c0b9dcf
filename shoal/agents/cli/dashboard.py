"""`shoal dashboard`: what was released, as a page of one file."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from shoal.agents.cli.output import AsJson, open_output, progress, result, say, writing
from shoal.agents.input.event_file import size_of
from shoal.agents.input.release_file import release_lines

Config = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG]", help="The configuration; none: what releases say of themselves.")
]
Input = Annotated[str, typer.Option("--input", metavar="RELEASES", help="Releases as JSON lines (or .gz), or -.")]
Out = Annotated[str, typer.Option("--out", metavar="PAGE", help="Where the page goes; - for stdout.")]


def dashboard(releases: Input, config: Config = None, out: Out = "page.html", as_json: AsJson = False) -> None:
    """Show what was released, with its noise: a page of one file, which needs no server and loads nothing.

    It needs no key and no right on events. Lines that are no releases are left out, and counted on the page.

    Example: shoal dashboard shoal.toml --input releases.jsonl --out page.html
    """
    from shoal.agents.dashboard.file import page_of
    from shoal.models.config.file import load

    loaded = None if config is None else load(config)
    name = "standard input" if releases == "-" else Path(releases).name
    with progress(f"reading {releases}", size_of(releases)) as advance:
        made = page_of((line for _, line in release_lines(releases, advance)), name, loaded)
    with writing(out), ExitStack() as files:
        open_output(files, out).write(made.text.encode())
    for reason, count in made.left_out.items():
        say(f"shoal: note: {releases}: {count:,} {reason}, left out")
    if out != "-":
        fields = {"page": out, **made.fields, "bytes": len(made.text.encode())}
        result(fields, as_json=as_json, text=lambda: f"{out}: {made.releases:,} releases of {made.metrics} metrics")
