"""What one sees while a demo runs: a live table on a terminal, a few plain lines elsewhere; all of it on stderr.

The true mean stands beside the estimate here and nowhere else: no worker, topic or log knows it.
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

from shoal.agents.demo.streaming import Progress, Seen
from shoal.models.times import iso

# What gauges and pictures show of a metric, in dollars: estimates beyond it are off the scale, and said to be.
SCALES = {"basket": (0.0, 80.0), "basket-full": (-1000.0, 1000.0)}
FRAMES_PER_SECOND = 8
PLAIN_EVERY = 2.0  # seconds
GAUGE = 41  # characters


class View(Protocol):
    """Where a demo reports to."""

    def say(self, text: str) -> None:
        """Something has been done."""
        ...

    def show(self, progress: Progress) -> None:
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

    def show(self, progress: Progress) -> None:
        """The latest estimates, now and then."""
        lasts = [last for metric in progress.config.metric if (last := progress.last(metric.name))]
        if lasts and time.monotonic() >= self._next:
            self._next = time.monotonic() + PLAIN_EVERY
            truth = progress.purchases.true_mean(lasts[0].at)
            estimates = ", ".join(f"{last.metric} {_estimate(last)}" for last in lasts)
            self.say(f"  {progress.sent:,} events sent, {day(lasts[0].at)}: {estimates}; true mean {truth:.2f}")


def _estimate(seen: Seen) -> str:
    return f"{seen.fields['value']:.2f} [{seen.fields['low']:.2f}, {seen.fields['high']:.2f}]"


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

    def show(self, progress: Progress) -> None:
        """Draw the table, or draw it again."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        if progress.complete or time.monotonic() >= self._next:
            self._next = time.monotonic() + 1 / FRAMES_PER_SECOND
            self._live.update(board(progress), refresh=True)

    def rest(self) -> None:
        """Leave the table as it is, and the terminal in order."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def board(progress: Progress) -> RenderableType:
    """Progress, estimates and activations."""
    total = progress.purchases.count
    first = progress.last(progress.config.metric[0].name)
    ahead = Table.grid(padding=(0, 2))
    reached = "" if first is None else f"released up to {day(first.at)}"
    ahead.add_row(
        "events",
        ProgressBar(total, progress.sent, width=GAUGE, complete_style="cyan", finished_style="cyan"),
        f"{progress.sent:,} of {total:,}",
        Text(reached, "bold"),
    )
    parts: list[RenderableType] = ["", ahead, "", _estimates(progress), ""]
    for metric in progress.config.metric:
        levels = [
            f"{one['level']} since {one['at'][:10]}" for one in progress.activations if one["metric"] == metric.name
        ]
        if levels:
            parts.append(Text(f"{metric.name}: activated level {', '.join(levels)}", "dim"))
    return Group(*parts)


def _estimates(progress: Progress) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("dollars")
    for name in ("true mean", "estimate", "noise interval"):
        table.add_column(name, justify="right", no_wrap=True)
    legend = Text.assemble(
        ("━", "cyan"), " noise interval  ", ("●", "bold cyan"), " estimate  ", ("┃", "bold yellow"), " true mean"
    )
    table.add_column(legend, no_wrap=True)
    for metric in progress.config.metric:
        last = progress.last(metric.name)
        if last is None:
            table.add_row(metric.name, "", "waiting", "", "")
            continue
        value, low, high = (last.fields[name] for name in ("value", "low", "high"))
        truth = progress.purchases.true_mean(last.at)
        drawn = gauge(value, low, high, truth, SCALES[metric.name])
        table.add_row(metric.name, f"{truth:.2f}", Text(f"{value:.2f}", "bold cyan"), f"{low:.2f} to {high:.2f}", drawn)
    return table


def gauge(value: float, low: float, high: float, truth: float, scale: tuple[float, float], width: int = GAUGE) -> Text:
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


def day(at: int) -> str:
    """The day of an instant.

    >>> day(0)
    '1970-01-01'
    """
    return iso(at)[:10]
