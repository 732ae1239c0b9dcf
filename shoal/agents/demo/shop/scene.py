"""The scene of the shop: the average purchase of 23,570 customers, over two years, by two algorithms.

purchases   the input, and its true running mean, which only the demo knows
board       what a terminal shows meanwhile
outcome     what is said at the end: truth against estimate, what activated
picture     the same, drawn
"""

from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Self

from rich.console import RenderableType

from shoal.agents.demo.progress import Due, Progress
from shoal.agents.demo.scene import Told
from shoal.agents.demo.shop import board
from shoal.agents.demo.shop.outcome import final, outcomes, summary
from shoal.agents.demo.shop.picture import draw
from shoal.agents.demo.shop.purchases import FILE, Purchases
from shoal.models.config.file import Config
from shoal.models.times import end_of_tick

# Two metrics of one topic, the same promise: all values of a person together, epsilon = 1 each.
#
# `basket`: the default, with a cap and a range that need no knowledge of these data. It finds out by itself that most
# customers buy a few times and spend tens of dollars.
#
# `basket-full`: the paper's algorithm, for people with many samples. Here 11 of 23,570 have more than 64, and the noise
# of seven counters stays: it is shown because that is how it is.
CONFIG = Template("""\
# What `shoal demo` ran: the average purchase at an online shop, released once a day, by two algorithms.

[kafka]
brokers = "$brokers"
app = "shoal"
partitions = 2

[audit]
url = "sqlite:///shoal.db"

[privacy]
key_file = "shoal.key"
epsilon = 2.0                    # both metrics together, about all purchases of one customer

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
""")


@dataclass(frozen=True)
class Shop:
    """See the module."""

    purchases: Purchases
    events = "purchases"
    file = FILE
    rate = 8_000.0

    @classmethod
    def open(cls, _: Path) -> Self:
        """Read the purchases."""
        return cls(Purchases.read())

    @property
    def count(self) -> int:
        """How many purchases."""
        return self.purchases.count

    def config(self, brokers: str) -> str:
        """Two metrics."""
        return CONFIG.substitute(brokers=brokers)

    def due(self, config: Config) -> Due:
        """The release after the very last purchase, of each metric."""
        last = self.purchases.times[-1]
        return {metric.name: {end_of_tick(last, metric.cadence or 1): 1} for metric in config.metric}

    def line(self, progress: Progress) -> str:
        """The latest estimates."""
        return board.line(progress, self.purchases)

    def board(self, progress: Progress) -> RenderableType:
        """Progress, estimates and activations."""
        return board.board(progress, self.purchases)

    def look_back(self, progress: Progress, place: Path, verdict: str) -> Told:
        """The picture, and what it shows."""
        found = outcomes(progress, self.purchases)
        picture = place / "picture.png"
        draw(found, picture, verdict)
        said = f"{self.count:,} purchases of {len(self.purchases.per_customer):,} customers"
        return Told([said, *summary(found)], {"picture": picture}, final(found))
