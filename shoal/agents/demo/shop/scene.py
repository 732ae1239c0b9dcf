"""The scene of the shop: the average purchase of 23,570 customers, over two years, by two algorithms."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rich.console import RenderableType
from rich.text import Text

from shoal.agents.demo.progress import DemoProgress, Due, interval
from shoal.agents.demo.scene import Conclusion, Scene
from shoal.agents.demo.shop import presence
from shoal.agents.demo.shop.outcome import SCALES, final, outcomes, summary
from shoal.agents.demo.shop.picture import draw
from shoal.agents.demo.shop.purchases import FILE, Purchases
from shoal.agents.demo.view import board, gauge, plain_table
from shoal.models.config.file import Config
from shoal.models.releases.record import Activation, Release
from shoal.models.times import iso

# Two metrics of one topic, each with one promise: all values of a person, for ever, epsilon = 1.
#
# `basket`: the default, with a cap and a range that need no knowledge of these data. It finds out by itself that most
# customers buy a few times and spend tens of dollars.
#
# `basket-full`: the paper's algorithm, for people with many samples. Here 11 of 23,570 have more than 64, and the noise
# of seven counters stays: it is shown because that is how it is.
METRICS = """\
epsilon = 2.0                    # of both metrics, about all purchases of one customer

[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "mean"
range = [0, 200]                 # dollars; where most purchases lie in it is found out privately
epsilon = 1.0
max_contributions = 64           # per customer, at most; how many of them pay is found out too
users = 25000
every = "1d"

[[metric]]
name = "basket-full"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "mean"
algorithm = "full"               # blocks, private medians, one counter per level: for people with many samples
range = [0, 200]
epsilon = 1.0
max_contributions = 64
users = 25000
every = "1d"
"""
LEGEND = ("━", "cyan"), " noise interval  ", ("●", "bold cyan"), " estimate  ", ("┃", "bold yellow"), " true mean"


@dataclass(frozen=True)
class ShopScene(Scene):
    """Real purchases, whose true running mean is known."""

    count: int
    purchases: Purchases
    events = "purchases"
    file = FILE
    rate = 8_000.0
    title = "# What `shoal demo` ran: the average purchase at an online shop, released once a day, by two algorithms.\n"
    metrics = METRICS

    @classmethod
    def open(cls, _: Path) -> Self:
        purchases = Purchases.read()
        return cls(len(purchases.times), purchases)

    def beside(self, folder: Path) -> AbstractContextManager[None]:
        """The same purchases by relation add-remove."""
        return presence.made(folder)

    def due(self, config: Config) -> Due:
        """The release after the very last purchase, of each metric."""
        last = self.purchases.times[-1]
        lengths = {metric.name: metric.length for metric in config.metrics}
        return {name: {length.end(length.index(last)): 1} for name, length in lengths.items() if length is not None}

    def line(self, progress: DemoProgress) -> str:
        lasts = [last for metric in progress.config.metrics if (last := progress.last(metric.name))]
        if not lasts:
            return ""
        estimates = ", ".join(f"{last.metric} {_estimate(last)}" for last in lasts)
        return f"{_day(lasts[0])}: {estimates}; true mean {self.purchases.true_mean(lasts[0].time):.2f}"

    def board(self, progress: DemoProgress) -> RenderableType:
        first = progress.last(progress.config.metrics[0].name)
        table = plain_table("dollars", "true mean", "estimate", "noise interval")
        table.add_column(Text.assemble(*LEGEND), no_wrap=True)
        activated: list[RenderableType] = []
        for metric in progress.config.metrics:
            table.add_row(metric.name, *self._row(metric.name, progress.last(metric.name)))
            levels = [f"{each.level} since {_day(each)}" for each in progress.activated(metric.name)]
            if levels:
                activated.append(Text(f"{metric.name}: activated level {', '.join(levels)}", "dim"))
        return board(progress, "" if first is None else f"released up to {_day(first)}", table, *activated)

    def _row(self, metric: str, last: Release | None) -> list[str | Text]:
        if last is None:
            return ["", "waiting"]
        value, low, high = interval(last)
        truth = self.purchases.true_mean(last.time)
        drawn = gauge(value, low, high, truth, SCALES[metric])
        return [f"{truth:.2f}", Text(f"{value:.2f}", "bold cyan"), f"{low:.2f} to {high:.2f}", drawn]

    def conclude(self, progress: DemoProgress, folder: Path, verdict: str) -> Conclusion:
        metrics, picture = outcomes(progress, self.purchases), folder / "picture.png"
        hidden = presence.outcome(folder, self.purchases)
        shown = metrics if hidden is None else [*metrics, hidden]
        draw(shown, picture, verdict)
        first = f"{self.count:,} purchases of {len(self.purchases.per_customer):,} customers"
        return Conclusion([first, *summary(shown)], {"picture": picture}, final(metrics, hidden))


def _estimate(release: Release) -> str:
    value, low, high = interval(release)
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _day(record: Release | Activation) -> str:
    return iso(record.time)[:10]
