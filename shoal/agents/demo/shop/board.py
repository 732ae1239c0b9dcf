"""What a terminal shows of the purchases: truth and estimates, side by side."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shoal.agents.demo.progress import Progress, Seen
from shoal.agents.demo.shop.purchases import Purchases
from shoal.agents.demo.view import how_far
from shoal.models.times import iso

# What gauges and pictures show of a metric, in dollars: estimates beyond it are off the scale, and said to be.
SCALES = {"basket": (0.0, 80.0), "basket-full": (-1000.0, 1000.0)}
GAUGE = 41  # characters


def line(progress: Progress, purchases: Purchases) -> str:
    """The latest estimates."""
    lasts = [last for metric in progress.config.metric if (last := progress.last(metric.name))]
    if not lasts:
        return ""
    estimates = ", ".join(f"{last.metric} {_estimate(last)}" for last in lasts)
    return f"{day(lasts[0].at)}: {estimates}; true mean {purchases.true_mean(lasts[0].at):.2f}"


def _estimate(seen: Seen) -> str:
    return f"{seen.fields['value']:.2f} [{seen.fields['low']:.2f}, {seen.fields['high']:.2f}]"


def board(progress: Progress, purchases: Purchases) -> RenderableType:
    """Progress, estimates and activations."""
    first = progress.last(progress.config.metric[0].name)
    ahead = how_far(progress, "" if first is None else f"released up to {day(first.at)}")
    parts: list[RenderableType] = ["", ahead, "", _estimates(progress, purchases), ""]
    for metric in progress.config.metric:
        levels = [
            f"{one['level']} since {one['at'][:10]}" for one in progress.activations if one["metric"] == metric.name
        ]
        if levels:
            parts.append(Text(f"{metric.name}: activated level {', '.join(levels)}", "dim"))
    return Group(*parts)


def _estimates(progress: Progress, purchases: Purchases) -> Table:
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
        truth = purchases.true_mean(last.at)
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
