"""Where a demo is shown while it runs: a live table on a terminal, a few plain lines elsewhere; all of it on stderr.

The truth stands beside the estimates here and nowhere else: no worker, topic or log knows it.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from shoal.agents.demo.progress import Progress
from shoal.agents.demo.scene import Scene

FRAMES_PER_SECOND = 8
PLAIN_EVERY = 2.0  # seconds
BAR = 41  # characters


class View(Protocol):
    """Where a demo reports to."""

    def say(self, text: str) -> None:
        """Something has been done."""
        ...

    def show(self, scene: Scene, progress: Progress) -> None:
        """How far the stream is; called often."""
        ...


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
    """A line every few seconds."""

    def __init__(self) -> None:
        self._next = 0.0

    def say(self, text: str) -> None:
        """A line."""
        print(text, file=sys.stderr, flush=True)

    def show(self, scene: Scene, progress: Progress) -> None:
        """How it stands, now and then."""
        if time.monotonic() >= self._next and (line := scene.line(progress)):
            self._next = time.monotonic() + PLAIN_EVERY
            self.say(f"  {progress.sent:,} events sent, {line}")


class TerminalView:
    """A table that moves."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._next = 0.0

    def say(self, text: str) -> None:
        """A line; the table, if there is one, stays as it is."""
        self.rest()
        self._console.print(text, style="dim", soft_wrap=True)

    def show(self, scene: Scene, progress: Progress) -> None:
        """Draw the table, or draw it again."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        if progress.complete or time.monotonic() >= self._next:
            self._next = time.monotonic() + 1 / FRAMES_PER_SECOND
            self._live.update(scene.board(progress), refresh=True)

    def rest(self) -> None:
        """Leave the table as it is, and the terminal in order."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def how_far(progress: Progress, reached: str) -> RenderableType:
    """A bar of what has been sent, and what has been reached."""
    ahead = Table.grid(padding=(0, 2))
    ahead.add_row(
        "events",
        ProgressBar(progress.count, progress.sent, width=BAR, complete_style="cyan", finished_style="cyan"),
        f"{progress.sent:,} of {progress.count:,}",
        Text(reached, "bold"),
    )
    return ahead
