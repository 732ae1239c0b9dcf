"""`shoal map`: releases by place, as a picture and as a page."""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from shoal.agents.cli.output import AsJson, progress, result
from shoal.agents.input.event_file import opened, size_of
from shoal.models.errors import InputError

if TYPE_CHECKING:
    from shoal.agents.map.releases import Places

Releases = Annotated[str, typer.Argument(metavar="RELEASES", help="Releases as JSON lines (or .gz), or - for stdin.")]
Metric = Annotated[str | None, typer.Option("--metric", metavar="NAME", help="Which metric, where several could be.")]
Label = Annotated[str | None, typer.Option("--label", metavar="TEXT", help='What the values are, as in "speed, km/h".')]
Out = Annotated[Path, typer.Option(help="Folder for map.png and map.html; made if need be.")]


def map_(
    releases: Releases, out: Out = Path(), metric: Metric = None, label: Label = None, as_json: AsJson = False
) -> None:
    """Draw the releases of a metric whose groups are H3 cells: map.png shows the fullest slot, map.html all of them.

    What is drawn is what was released: that costs nothing, and no key is needed. Cells of which nothing was released
    are hatched.

    Example: shoal map releases.jsonl --out map --label "speed, km/h"
    """
    from shoal.agents.map.drawing import draw_map  # draws: half a second that no other command should wait for

    places = _read(releases, metric)
    fields = draw_map(places, out, label or places.metric)
    result(fields, as_json=as_json, text=lambda: f"picture   {fields['picture']}\npage      {fields['page']}")


def _read(path: str, metric: str | None) -> "Places":
    from shoal.agents.map.releases import read_places

    try:
        with opened(path) as (raw, file), progress(f"reading {path}", size_of(path)) as advance:
            return read_places(_told(file, raw, advance), path, metric)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read ({reason}); name a file of releases") from None


def _told(file: BinaryIO, raw: BinaryIO, advance: Callable[[int], None]) -> Iterator[bytes]:
    """The lines, telling now and then how far they are."""
    for number, line in enumerate(file):
        if number % 1000 == 0 and raw.seekable():
            advance(raw.tell())
        yield line
