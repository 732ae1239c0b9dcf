"""Noise as a function of the key and of a draw's name: the same after a crash, and with the law it should have."""

import math
from collections import Counter
from fractions import Fraction
from functools import partial

from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GREY, PALE, RED, Data, card, plain
from shoal.agents.pictures import INK, QUIET
from shoal.mechanisms.counters.blue import BlueTree
from shoal.mechanisms.noise.keyed import derive, metric_key
from shoal.mechanisms.noise.laplace import DiscreteLaplace

RELEASES, CRASH, DRAWS, SCALE = 48, 30, 20_000, Fraction(5)
MASTER = bytes(range(32))  # of this picture, and of nothing else
TREE = BlueTree.best(RELEASES, width=1, epsilon=Fraction(1))


def _noise(version: int, first: int) -> list[int]:
    """The noise of releases from the first on, by a counter that has just been made."""
    key = metric_key(MASTER, "basket", version, "digest of the parameters")
    counter = TREE.counter(partial(derive, key, b"", "tree", "mean", 0, 0))
    return [counter.noise(release) for release in range(first, RELEASES + 1)]


def data() -> Data:
    """Noise before and after a crash, that of another version, and how often each number is drawn."""
    noise = DiscreteLaplace(SCALE, derive(MASTER, "histogram"))
    counted = Counter(noise.draw_block(0, DRAWS).tolist())
    p = math.exp(-1 / float(SCALE))
    numbers = list(range(-40, 41))
    return {
        "first": _noise(1, 1)[: CRASH + 3],
        "again": _noise(1, CRASH),
        "other": _noise(2, 1),
        "numbers": numbers,
        "drawn": [counted[number] for number in numbers],
        "law": [DRAWS * (1 - p) / (1 + p) * p ** abs(number) for number in numbers],
    }


def draw(data: Data) -> Figure:
    """The stream on the left, the law on the right."""
    below = "No generator, no seed that moves on: a draw is looked up by its name, whenever it is needed."
    with card(10.8, 4.6, "A crash changes no noise, since noise is a function of the key", below,
              left=0.065, right=0.975, wspace=0.2) as figure:  # fmt: skip
        stream, law = figure.subplots(1, 2, width_ratios=(1.15, 1))
        plain(stream, "Noise of a counter's releases")
        stream.plot(range(1, RELEASES + 1), data["other"], color=GREY, linewidth=1, linestyle=":")
        stream.plot(range(1, len(data["first"]) + 1), data["first"], color=BLUE, linewidth=2.0)
        stream.scatter(
            range(CRASH, RELEASES + 1), data["again"], s=34, facecolor="none", edgecolor=RED, linewidth=1.3, zorder=4
        )
        stream.axvline(CRASH + 3, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        low, high = min(data["first"] + data["other"]), max(data["first"] + data["other"])
        stream.set(xlim=(0, RELEASES + 1), ylim=(low - 8, high + 9), xlabel="release", ylabel="noise")
        stream.text(1, high + 4, "first worker", color=BLUE)
        stream.text(CRASH + 4, high + 4, "crash", color=INK)
        stream.text(CRASH + 4, low - 6.5, "second worker", color=RED, size=9)
        stream.text(1, low - 6.5, "dots: version 2", color=QUIET, size=9)
        plain(law, f"{DRAWS:,} draws, discrete Laplace, scale {SCALE}")
        law.bar(data["numbers"], data["drawn"], width=1, color=PALE[BLUE], edgecolor=BLUE, linewidth=0.4)
        law.plot(data["numbers"], data["law"], color=RED, linewidth=1.6)
        law.set(yscale="log", ylim=(0.5, 4000), xlim=(-40, 40), xlabel="draw", ylabel="how often")
        law.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        law.minorticks_off()
        law.text(38, 1500, "red: what is expected", color=RED, ha="right")
    return figure
