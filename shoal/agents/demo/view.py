"""Where a demo is shown while it runs: a live table on a terminal, a few plain lines elsewhere; all of it on stderr.

The truth stands beside the estimates here and nowhere else: no worker, topic or log knows it.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from shoal.agents.demo.progress import DemoProgress
from shoal.agents.demo.scene import Scene
from shoal.models.printable import printable_lines

FRAMES_PER_SECOND = 8
PLAIN_EVERY = 2.0  # seconds
BAR = 41  # characters


class View(Protocol):
    """Where a demo reports what it does, and how far it is."""

    def say(self, text: str) -> None: ...

    def show(self, scene: Scene, progress: DemoProgress) -> None:
        """Show how far the stream is; called often."""


@contextmanager
def open_view() -> Iterator[View]:
    """The view that suits stderr."""
    if not sys.stderr.isatty():
        yield PlainView()
        return
    view = TerminalView(Console(stderr=True, highlight=False))
    try:
        yield view
    finally:
        view.rest()


class PlainView:
    """Prints a line every few seconds."""

    def __init__(self) -> None:
        self._next = 0.0

    def say(self, text: str) -> None:
        print(printable_lines(text), file=sys.stderr, flush=True)

    def show(self, scene: Scene, progress: DemoProgress) -> None:
        if time.monotonic() >= self._next and (line := scene.line(progress)):
            self._next = time.monotonic() + PLAIN_EVERY
            self.say(f"  {progress.sent:,} events sent, {line}")


class TerminalView:
    """Redraws a table in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._next = 0.0

    def say(self, text: str) -> None:
        self.rest()
        self._console.print(printable_lines(text), style="dim", soft_wrap=True)

    def show(self, scene: Scene, progress: DemoProgress) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        if progress.complete or time.monotonic() >= self._next:
            self._next = time.monotonic() + 1 / FRAMES_PER_SECOND
            self._live.update(scene.board(progress), refresh=True)

    def rest(self) -> None:
        """Leave the last table on the screen, and the terminal in order."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def plain_table(first: str, *numbers: str) -> Table:
    """A table without lines: a column of names, and columns of numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def board(progress: DemoProgress, reached: str, table: Table, *below: RenderableType) -> RenderableType:
    """A bar of what has been sent, what is released up to now, and a table of it."""
    ahead = Table.grid(padding=(0, 2))
    ahead.add_row(
        "events",
        ProgressBar(progress.count, progress.sent, width=BAR, complete_style="cyan", finished_style="cyan"),
        f"{progress.sent:,} of {progress.count:,}",
        Text(reached, "bold"),
    )
    return Group("", ahead, "", table, "", *below)


def gauge(value: float, low: float, high: float, truth: float, scale: tuple[float, float], width: int = BAR) -> Text:
    """Interval, estimate and truth on one line; an arrow where something is off the scale.

    >>> gauge(50, 20, 60, 40, (0, 100), width=11).plain
    '··━━┃●━····'
    >>> gauge(900, -20, 300, 40, (0, 100), width=11).plain
    '◄━━━┃━━━━━►'
    """
    first, last = scale
    step = (last - first) / (width - 1)

    def cell(number: float) -> int:
        return round((number - first) / step)

    marks = [("━", "cyan") if cell(low) <= i <= cell(high) else ("·", "bright_black") for i in range(width)]
    if low < first:
        marks[0] = ("◄", "cyan")
    if high > last:
        marks[-1] = ("►", "cyan")
    if 0 <= cell(value) < width:
        marks[cell(value)] = ("●", "bold cyan")
    if 0 <= cell(truth) < width:
        marks[cell(truth)] = ("┃", "bold yellow")
    return Text.assemble(*marks)
