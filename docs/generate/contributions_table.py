"""The tables of docs/guides/contributions-and-cadence.md: `python -m docs.generate.contributions_table`.

With `--write` into the page. They run the mechanisms of `shoal plan` on the purchases of `shoal demo`, which are
public; what a plan of events draws comes from one key here, so that the tables can be made again.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.generate.epsilon_table import publish, table
from shoal.agents.demo.shop.purchases import rows
from shoal.agents.plan.observed import observed
from shoal.agents.plan.planners import PLANNERS
from shoal.mechanisms.forecast.mean_report import with_cadence
from shoal.mechanisms.forecast.observed_mean import ObservedMean
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.variants import with_samples
from shoal.mechanisms.words import number, percent
from shoal.models.config.file import Config, load

PAGE = Path(__file__).parents[1] / "guides/contributions-and-cadence.md"

KEY = bytes(range(32))  # of the tables alone
CAPS = (1, 2, 4, 8, 16, 32, 64)
CAP = 16  # where a table does not vary it
CADENCES = {"1h": 3600, "6h": 21_600, "1d": 86_400, "7d": 604_800, "30d": 2_592_000}
DAYS = 546
WIDTH = 200.0

COMMON = """
[privacy]
epsilon = 4
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
time = "at"
epsilon = 1
max_contributions = {cap}
"""
MEAN = 'statistic = "mean"\nvalue = "amount"\nrange = [0, 200]\n'
COUNT = 'statistic = "count"\n'
VALUES = f'every = "{{every}}"\nusers = 25000\nlife = "{DAYS}d"\n'
PRESENCE = 'relation = "add-remove"\nevery = "{every}"\nstart = {start}\nend = {end}\n'
FIRST, LAST = (datetime(*day, tzinfo=UTC).timestamp() for day in ((1997, 1, 1), (1998, 7, 1)))


def config(text: str, cap: int, every: str) -> Config:
    """A configuration, read as any is."""
    step = CADENCES[every]
    start = datetime.fromtimestamp(FIRST // step * step, UTC).isoformat()
    end = datetime.fromtimestamp(-(-LAST // step) * step, UTC).isoformat()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "shoal.toml"
        file.write_text((COMMON + text).format(cap=cap, every=every, start=start, end=end))
        return load(file)


def metric(text: str, cap: int, every: str) -> Metric:
    """Its metric."""
    return config(text, cap, every).metrics[0]


class Shop:
    """The purchases, and what comes of them under each setting."""

    def __init__(self) -> None:
        self.purchases = [(row["customer"], row["at"], float(row["amount"])) for row in rows()]
        self.users = len({customer for customer, _, _ in self.purchases})
        self.truth = sum(amount for _, _, amount in self.purchases) / len(self.purchases)
        given = config(MEAN + VALUES, CAP, "1d")
        with TemporaryDirectory() as folder:
            file = Path(folder) / "purchases.jsonl"
            file.write_text("".join(map(_line, self.purchases)))
            seen = observed(given, given.metrics[0], str(file), lambda read: None, key=KEY)
        self.metric = given.metrics[0]
        self.source = ObservedMean.of(self.metric, 0, seen)

    def of_values(self, cap: int, seconds: int) -> tuple[float | None, float]:
        """Noise and error of the last release of a mean under relation values."""
        settings = with_cadence(with_samples(self.metric, cap), Even(seconds * 1_000_000), DAYS * 86_400_000_000)
        last = self.source.final(settings)
        return last.noise_sd, last.error

    def of_presence(self, cap: int, every: str) -> tuple[float, float]:
        """Noise and error of the last release of a mean under relation add-remove, in the middle of its range."""
        settings = metric(MEAN + PRESENCE, cap, every)
        full = PLANNERS[kind_of(settings)].final_noise(settings, self.users).noise_sd  # with a cap's worth of everyone
        kept = self.kept(cap)
        noise = (full or 0.0) * self.users * cap / len(kept)
        return noise, math.hypot(noise, sum(min(amount, WIDTH) for amount in kept) / len(kept) - self.truth)

    def count_noise(self, cap: int) -> float | None:
        """Noise of the last release of a count under relation add-remove."""
        settings = metric(COUNT + PRESENCE, cap, "1d")
        return PLANNERS[kind_of(settings)].final_noise(settings, self.users).noise_sd

    def kept(self, cap: int) -> list[float]:
        """The first purchases of each customer, which count."""
        made: Counter[str] = Counter()
        kept = []
        for customer, _, amount in self.purchases:
            made[customer] += 1
            if made[customer] <= cap:
                kept.append(amount)
        return kept


def _line(purchase: tuple[str, str, float]) -> str:
    customer, at, amount = purchase
    return json.dumps({"customer": customer, "at": at, "amount": amount}) + "\n"


def by_cap(shop: Shop) -> Iterator[list[str]]:
    """A line for each cap."""
    for cap in CAPS:
        noise, error = shop.of_values(cap, CADENCES["1d"])
        sided, sided_error = shop.of_presence(cap, "1d")
        left_out = 1 - len(shop.kept(cap)) / len(shop.purchases)
        yield [
            str(cap), percent(left_out), number(noise), number(error), number(sided), number(sided_error),
            number(shop.count_noise(cap)),
        ]  # fmt: skip


def by_cadence(shop: Shop) -> Iterator[list[str]]:
    """A line for each cadence."""
    for every, seconds in CADENCES.items():
        releases = DAYS * 86_400 // seconds
        noise, error = shop.of_values(CAP, seconds)
        sided, sided_error = shop.of_presence(CAP, every)
        yield [every, f"{releases:,}", number(noise), number(error), number(sided), number(sided_error)]


def tables() -> str:
    """All that stands between the marks of the page."""
    shop = Shop()
    parts = ["noise, `values`", "error, `values`", "noise, `add-remove`", "error, `add-remove`"]
    return f"""
**By the cap**, released daily, in dollars; the last column in purchases:

{table(["m", "left out", *parts, "noise of a count, `add-remove`"], by_cap(shop))}
**By the cadence**, m = {CAP}, in dollars:

{table(["`every`", "releases", *parts], by_cadence(shop))}
"""


if __name__ == "__main__":
    publish(PAGE, tables())
