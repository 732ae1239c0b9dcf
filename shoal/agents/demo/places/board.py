"""What a terminal shows of the buses: the hours that are released, and how near they are to the truth."""

from statistics import median

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shoal.agents.demo.places.outcome import Found, hour, quantile
from shoal.agents.demo.progress import Progress
from shoal.agents.demo.view import how_far


def line(found: list[Found]) -> str:
    """The slots that are there, and how good they are."""
    if not found:
        return ""
    errors = [error for slot in found for error in slot.errors]
    said = f"released up to {hour(found[-1].at)}: {len(errors):,} speeds"
    return f"{said}, half of them within {median(errors):.1f} km/h of the truth" if errors else said


def board(progress: Progress, found: list[Found]) -> RenderableType:
    """Progress, and a row for each slot."""
    reached = f"released up to {hour(found[-1].at)}" if found else ""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("hour until")
    for name in ("cells released", "not released", "noise \N{PLUS-MINUS SIGN} km/h", "from the truth", "nine of ten"):
        table.add_column(name, justify="right", no_wrap=True)
    for slot in found:
        table.add_row(hour(slot.at), f"{slot.released:,}", f"{slot.not_released:,}", *_numbers(slot))
    if not found:
        table.add_row("waiting")
    return Group("", how_far(progress, reached), "", table, "")


def _numbers(slot: Found) -> list[Text | str]:
    if not slot.errors:
        return []
    return [
        f"{median(slot.margins):.1f}",
        Text(f"{median(slot.errors):.1f}", "bold cyan"),
        f"{quantile(slot.errors, 0.9):.1f}",
    ]
