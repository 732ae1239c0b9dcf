"""A sharp mean on synthetic purchases: where it clips, and what it releases beside `naive`."""

import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GREY, PALE, RED, VIOLET, Data, card, plain
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.sharp.parameters import SHORT
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.statistic import Activation, Contribution, Estimate, Releaser

RANGE = Grid(Fraction(0), Fraction(200), 1 << 20)
USERS, CAP, DAYS, EACH = 6_000, 64, 90, 4
BARS = 64  # of the histogram
KEY = bytes(31) + b"\x02"


class Sample(NamedTuple):
    """A purchase."""

    day: int
    user: str
    value: int  # in grid steps


def samples() -> list[Sample]:
    """Log-normal purchases around 20, on random days; customers differ."""
    rng = random.Random(17)
    found = []
    for user in range(USERS):
        usual = rng.gauss(3.0, 0.35)
        for _ in range(EACH):
            amount = math.exp(rng.gauss(usual, 0.4))
            found.append(Sample(rng.randrange(DAYS), f"{user:032x}", RANGE.clip(round(amount, 2))))
    return sorted(found, key=lambda sample: sample.day)


def releases(
    mean: MeanParameters, releaser: Releaser, stream: Sequence[Sample]
) -> Iterator[tuple[Estimate | None, Sequence[Activation]]]:
    """The release of each day, and what it activated."""
    bounder, accounts = mean.bounder(), dict.fromkeys((sample.user for sample in stream), 0)
    for day in range(DAYS):
        for _, user, value in (sample for sample in stream if sample.day == day):
            accounts[user], block = bounder.add(accounts[user], value)
            if block is not None:
                releaser.add(Contribution(day, user, *block[:4]))
        activations = releaser.close()
        yield releaser.estimate(), activations


def data() -> Data:
    """Both means over one stream, and the private choice of where to clip."""
    stream = samples()
    public: dict[str, Any] = {"grid": RANGE, "epsilon": Fraction(1), "max_contributions": CAP, "users": USERS}
    sharp, naive = Sharp(**public, horizon=DAYS), Naive(**public)
    knowing = Naive(**public | {"max_contributions": EACH})
    releaser = sharp.releaser(KEY, b"")
    found = list(releases(sharp, releaser, stream))
    began = next(day for day, (_, activations) in enumerate(found) if activations)
    waited = [sample for sample in stream if sample.day <= began]
    first: dict[str, int] = {}
    for sample in waited:
        first.setdefault(sample.user, sample.value)
    counts = [0] * sharp.buckets.count
    for value in first.values():
        counts[sharp.buckets.of(value)] += 1
    costs = [abs(2 * below - len(first)) for below in accumulate(counts, initial=0)]
    rate = float(sharp.call_epsilon * SHORT.centre / 4)
    weights = [math.exp(-rate * (cost - min(costs))) for cost in costs]
    beginning = sharp.begin(len(first), 0, len(waited), began + 1)
    sums = list(accumulate(stream, lambda total, sample: total + sample.value, initial=0))
    ends = [sum(sample.day <= day for sample in stream) for day in range(DAYS)]
    return {
        "boundaries": [RANGE.mean_value(boundary, 1) for boundary in sharp.buckets.boundaries],
        "bars": [sum(value * BARS // RANGE.steps == bar for value in first.values()) for bar in range(BARS)],
        "centre": [weight / sum(weights) for weight in weights],
        "clip": releaser.bounds,
        "began": began,
        "cap": None if beginning is None else beginning.cap,
        "truth": [RANGE.mean_value(sums[end], end) for end in ends],
        "sharp": [_told(estimate) for estimate, _ in found],
        "knowing": [_told(estimate) for estimate, _ in releases(knowing, knowing.releaser(KEY, b""), stream)],
        "naive": [_told(estimate) for estimate, _ in releases(naive, naive.releaser(KEY, b""), stream)],
    }


def _told(estimate: Estimate | None) -> list[float] | None:
    return None if estimate is None or not estimate.samples else [estimate.value, estimate.low, estimate.high]


def draw(data: Data) -> Figure:
    """The choice on the left, the releases on the right."""
    low, high = data["clip"]
    below = f"{USERS:,} people with {EACH} purchases each; cap {CAP}, range 0 to 200, ε = 1 for a person, for ever."
    with card(11.4, 4.9, "The sharp mean waits, chooses where to clip, and then counts", below,
              left=0.07, right=0.77, wspace=0.25, top=0.75, bottom=0.125) as figure:  # fmt: skip
        choice, stream = figure.subplots(1, 2, width_ratios=(1, 1.05))
        plain(choice, f"First purchases of the {sum(data['bars']):,} people so far")
        edges, bars = data["boundaries"], data["bars"]
        ends = [200 * bar / BARS for bar in range(BARS + 1)]
        choice.stairs(bars, ends, fill=True, color=PALE[GREY], edgecolor=GREY, linewidth=0.8)
        choice.axvspan(low, high, color=PALE[RED], alpha=0.55, zorder=0)
        choice.axvline(high, color=RED, linewidth=1.6)
        top = 1.42 * max(bars)
        choice.set(xlim=(0, 200), ylim=(0, top), xlabel="amount", ylabel="people")
        choice.text(
            high + 3, 0.93 * top, f"clipped to {low:g} to {high:g},\nchosen with 0.14 of ε", color=RED, va="top"
        )
        law = choice.twinx()
        law.bar(edges, data["centre"], width=1.6, color=BLUE, zorder=5)
        law.set(ylim=(0, 2.6 * max(data["centre"])), yticks=[])
        law.spines["right"].set_visible(False)
        peak = max(range(len(edges)), key=lambda index: data["centre"][index])
        said = "how likely each\nboundary was as\nthe centre, by\nits rank"
        law.text(high + 3, 0.62 * law.get_ylim()[1], said, color=BLUE, va="center")
        law.annotate("", (edges[peak] + 4, 0.95 * data["centre"][peak]), (high + 2, 0.6 * law.get_ylim()[1]),
                     arrowprops={"arrowstyle": "->", "color": BLUE, "linewidth": 0.9})  # fmt: skip
        plain(stream, "Half of the 95 % noise interval, by day")
        truth = data["truth"]
        lines = {
            "naive": (GREY, f"naive: whole range, cap {CAP}"),
            "knowing": (VIOLET, f"naive, told that {EACH} will do"),
            "sharp": (RED, f"sharp: clipped, {data['cap']} count"),
        }
        for name, (color, label) in lines.items():
            rows = [(day, (row[2] - row[1]) / 2) for day, row in enumerate(data[name]) if row is not None]
            stream.plot(*zip(*rows, strict=True), color=color, linewidth=1.8)
            stream.text(DAYS + 1, rows[-1][1], label, color=color, va="center")
        errors = [(day, abs(row[0] - truth[day])) for day, row in enumerate(data["sharp"]) if row is not None]
        stream.scatter(*zip(*errors, strict=True), s=9, color=RED, alpha=0.6, linewidth=0)
        stream.text(DAYS + 1, 0.16, "dots: error of sharp,\nclipping included", color=RED, va="center")
        began = data["began"]
        stream.axvspan(0, began, color=PALE[BLUE], alpha=0.7, linewidth=0)
        stream.text(began / 2, 0.022, "waits", color=BLUE, ha="center", rotation=90)
        stream.set(yscale="log", xlim=(0, DAYS - 1), ylim=(0.015, 3000), xlabel="day", ylabel="amount")
        stream.set_yticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1,000"])
        stream.minorticks_off()
    return figure
