"""`shoal map`: releases by place, as a picture and as a page."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.agents.cli.output import AsJson, progress, result
from shoal.agents.input.event_file import size_of
from shoal.agents.input.release_file import release_lines
from shoal.models.extras import require

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
    require("shoal map", "geo", "plots")
    from shoal.agents.map.drawing import draw_map  # draws: half a second that no other command should wait for
    from shoal.agents.map.releases import read_places

    with progress(f"reading {releases}", size_of(releases)) as advance:
        places = read_places(release_lines(releases, advance), releases, metric)
    fields = draw_map(places, out, label or places.metric)
    result(fields, as_json=as_json, text=lambda: f"picture   {fields['picture']}\npage      {fields['page']}")
