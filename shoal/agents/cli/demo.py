"""`shoal demo`: a real Kafka, a worker and 69,659 real purchases, with the truth beside the estimates."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.agents.cli.output import AsJson, result
from shoal.models.errors import AuditError


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything it makes; a former demo in it is deleted.")] = Path(
        "shoal-demo"
    ),
    as_json: AsJson = False,
) -> None:
    """Stream a real purchase history through a real Kafka, watch the private estimates, and audit every one of them.

    It starts Kafka and a worker on free ports and stops them again, also on Ctrl-C. The folder then holds picture.png,
    releases.jsonl, the configuration, a new key, the audit log and Kafka's data.

    With --json the last line on stdout is {"events", "releases", "verified", "picture", "file", "final"}; `final` has
    the last release of each metric and the true mean at that instant.

    Example: shoal demo --out shoal-demo
    """
    from shoal.agents.demo.show import run_demo  # draws: half a second that no other command should wait for
    from shoal.agents.demo.view import open_view

    with open_view() as view:
        try:
            shown = run_demo(out, view)
        except KeyboardInterrupt:
            view.say("stopped before the end, and with it everything that was started")
            raise
    result(shown.fields, as_json=as_json, text=lambda: shown.text)
    if not shown.audited.ok:
        raise AuditError(
            f"the audit does not confirm every release: {shown.audited.complaint or 'see shoal audit replay'}"
        )
