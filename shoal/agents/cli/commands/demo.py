"""`shoal demo`: a real Kafka, a worker and 69,659 real purchases or simulated buses, the truth beside the estimates."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from shoal.agents.cli.output import AsJson, result
from shoal.models.errors import AuditError
from shoal.models.extras import require


def demo(
    geo: Annotated[
        bool, typer.Option("--geo", help="Simulated buses instead: speeds by place and hour, on a map.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for everything it makes; a former demo in it is deleted. [shoal-demo, shoal-demo-geo]"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Stream a real purchase history through a real Kafka, watch the private estimates, and audit every one of them.

    It starts Kafka and a worker on free ports and stops them again, also on Ctrl-C. The folder then holds picture.png
    (with --geo map.png, map.html, trips.jsonl), dashboard.html with all that was released, releases.jsonl, the
    configuration, a new key, the audit log and Kafka's data.

    With --json the last line on stdout is {"events", "releases", "verified", "picture", "dashboard", "file", "final"};
    `final` has the last release of each metric and the true mean at that instant. With --geo "page" follows "picture",
    and `final` has {"at", "slots", "released", "not_released", "median_error"} of all cells and hours.

    Example: shoal demo --out shoal-demo
    """
    require("shoal demo", "demo")
    # What draws takes half a second that no other command should wait for.
    from shoal.agents.demo.places.scene import PlacesScene
    from shoal.agents.demo.shop.scene import ShopScene
    from shoal.agents.demo.show import run_demo
    from shoal.agents.demo.view import open_view

    folder = out or Path("shoal-demo-geo" if geo else "shoal-demo")
    with open_view() as view:
        try:
            shown = run_demo(PlacesScene.open if geo else ShopScene.open, folder, view)
        except KeyboardInterrupt:
            view.say("stopped before the end, and with it everything that was started")
            raise typer.Exit(128 + signal.SIGINT) from None
    result(shown.fields, as_json=as_json, text=lambda: shown.text)
    if not shown.audited.ok:
        raise AuditError(
            f"the audit does not confirm every release: {shown.audited.complaint or 'see shoal audit replay'}"
        )
