"""`shoal dashboard` and `shoal map`: what was released, on a page that is kept up to date, in a file, or by place."""

import asyncio
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from shoal.agents.cli.output import AsJson, open_output, progress, refuse_packed, result, say, writing
from shoal.agents.input.event_file import size_of
from shoal.agents.input.release_file import release_lines
from shoal.agents.input.same_files import deployment_files, refuse_same
from shoal.agents.process_settings import ending_in_order
from shoal.agents.worker_addresses import addresses_of
from shoal.mechanisms.words import many
from shoal.models.config.file import Config, load
from shoal.models.errors import InputError, ShoalError
from shoal.models.extras import require

if TYPE_CHECKING:
    from shoal.agents.audit.budget import BudgetReport

LOCAL = "127.0.0.1"
ConfigPath = Annotated[
    Path | None,
    typer.Argument(metavar="[CONFIG]", help="The configuration; none, of a file: what releases say of themselves."),
]
Input = Annotated[
    str | None,
    typer.Option("--input", metavar="RELEASES", help="Releases as JSON lines (or .gz), or -: a page of one file."),
]
Out = Annotated[str, typer.Option("--out", metavar="PAGE", help="With --input: where the page goes; - for stdout.")]
Workers = Annotated[str, typer.Option(metavar="HOST:PORT,...", help="Workers to ask, too, at their [web] port.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port of the page; 0: any port that is free.")]
Host = Annotated[str, typer.Option(help="The address to listen on; other than this machine's own it takes a token.")]
Names = Annotated[
    list[str] | None, typer.Option("--name", metavar="NAME", help="A name under which the page is reached.")
]
Token = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="A file with the token; default: a token is made if other machines can reach the page.",
    ),
]
Releases = Annotated[str, typer.Argument(metavar="RELEASES", help="Releases as JSON lines (or .gz), or - for stdin.")]
Metric = Annotated[str | None, typer.Option("--metric", metavar="NAME", help="The metric, if several could be meant.")]
Label = Annotated[str | None, typer.Option("--label", metavar="TEXT", help='What the values are, as in "speed, km/h".')]
Folder = Annotated[Path, typer.Option(help="Folder for map.png and map.html; made if it is missing.")]


def dashboard(
    config: ConfigPath = None,
    releases: Input = None,
    out: Out = "page.html",
    workers: Workers = "",
    port: Port = 8090,
    host: Host = LOCAL,
    name: Names = None,
    token_file: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show what was released, with its noise, budget and audit, on a page that is kept up to date; or in one file.

    The page needs no key and no right on events: it reads the topics of releases and activations, the audit log by
    SELECT, and what workers show at their [web] port. With --input it is one file that needs no server.

    Example: shoal dashboard shoal.toml --workers localhost:8080
    """
    loaded = None if config is None else load(config)
    if releases is not None:
        refuse_packed(out=out)
        deployment = {} if config is None or loaded is None else deployment_files(config, loaded)
        refuse_same({"--out": out}, {"the input": releases, **deployment})
        _page(releases, out, loaded, as_json)
    elif config is None or loaded is None:
        raise typer.BadParameter("name a configuration, or a file of releases with --input", param_hint="CONFIG")
    else:
        _serve(config, loaded, workers, (host, port), tuple(name or ()), _token(token_file))


def _page(releases: str, out: str, config: Config | None, as_json: bool) -> None:
    from shoal.agents.dashboard.file import page_of

    budget = None if config is None else _charged(config.audit.url)
    name = "standard input" if releases == "-" else Path(releases).name
    with progress(f"reading {releases}", size_of(releases)) as advance:
        made = page_of((line for _, line in release_lines(releases, advance)), name, config, budget=budget)
    with writing(out), ExitStack() as files:
        open_output(files, out).write(made.text.encode())
    for reason, count in made.left_out.items():
        say(f"shoal: note: {releases}: {count:,} {reason}, left out")
    if out != "-":
        fields = {"page": out, **made.fields, "bytes": len(made.text.encode())}
        result(
            fields, as_json=as_json, text=lambda: f"{out}: {made.releases:,} releases of {many(made.metrics, 'metric')}"
        )


def _charged(url: str) -> "BudgetReport | None":
    """What the ledger was charged, if it is at hand; that it cannot be read is said."""
    from sqlalchemy.exc import SQLAlchemyError

    from shoal.agents.dashboard.ledger import NoLog, budget_of

    try:
        return budget_of(url)
    except NoLog:
        return None
    except (ShoalError, SQLAlchemyError, OSError) as error:
        why = str(error) if isinstance(error, ShoalError) else "the audit log may not be read; SELECT is needed"
        say(f"shoal: note: {why}; the sum on the page is of the configuration, and of what releases say")
        return None


def _token(path: Path | None) -> str | None:
    """The token in a file.

    Raises:
        InputError: there is none.
    """
    if path is None:
        return None
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"--token-file {path}: cannot be read; name a file with a token in it") from None
    if not token:
        raise InputError(f"--token-file {path}: is empty; write a token into it")
    return token


def _serve(
    path: Path, config: Config, workers: str, where: tuple[str, int], names: tuple[str, ...], token: str | None
) -> None:
    from shoal.agents.dashboard.live import Hub
    from shoal.agents.dashboard.server import Access, serve
    from shoal.agents.http_server.limits import listen
    from shoal.agents.kafka.settings import needed_settings
    from shoal.agents.process_settings import quiet_libraries

    quiet_libraries()
    settings, asked = needed_settings(config, path), addresses_of(workers)
    access = Access.to(where[0], names, token)
    listening = listen(*where, remedy="choose another with --port")
    shown = f"[{where[0]}]" if ":" in where[0] else where[0]
    ending = f"/#token={quote(access.token)}" if access.token else "/"
    say(f"the page is at http://{shown}:{listening.getsockname()[1]}{ending}")
    with ending_in_order(), suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(serve(Hub(config, asks=bool(asked)), access, listening, settings, asked))


def map_(
    releases: Releases, out: Folder = Path(), metric: Metric = None, label: Label = None, as_json: AsJson = False
) -> None:
    """Draw the releases of a metric whose groups are H3 cells: map.png shows the fullest slot, map.html all of them.

    What is drawn is what was released: that costs nothing, and no key is needed. Cells of which nothing was released
    are hatched.

    Example: shoal map releases.jsonl --out map --label "speed, km/h"
    """
    require("shoal map", "geo", "plots")
    from shoal.agents.map.drawing import PAGE, PICTURE, draw_map  # half a second that no other command should wait for
    from shoal.agents.map.releases import read_places

    picture, page = str(out / PICTURE), str(out / PAGE)
    refuse_same({PICTURE: picture, PAGE: page}, {"the input": releases})

    with progress(f"reading {releases}", size_of(releases)) as advance:
        places = read_places(release_lines(releases, advance), releases, metric)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made ({error.strerror}); choose another folder with --out") from None
    with writing(picture, page), ExitStack() as files:
        drawn = draw_map(places, open_output(files, picture), open_output(files, page), label or places.metric)
    fields = drawn | {"picture": picture, "page": page}
    result(fields, as_json=as_json, text=lambda: f"picture   {picture}\npage      {page}")
