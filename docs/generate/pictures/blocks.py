"""Blocks of a person's samples: how narrowly each level is clipped, and what that saves and costs."""

import random
from fractions import Fraction
from typing import Any

from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GOLD, GREEN, GREY, PALE, RED, Data, card, plain
from shoal.agents.pictures import INK
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.error_bars import noise_sd
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.workload import Pattern

GRID = Grid(Fraction(0), Fraction(1), 1 << 20)
USERS, CAP, MEAN, SPREAD, SHOWN = 10_000, 1 << 16, 0.42, 0.25, 40
CAPS = [1 << power for power in range(2, 19, 2)]
COLORS = {"naive": GREY, "full": RED, "single-tree": GOLD, "multi-tree": BLUE, "wishful": GREEN}


def data() -> Data:
    """Half widths of `full`, block means of synthetic people, and the last release's noise by cap."""
    public: dict[str, Any] = {"grid": GRID, "epsilon": Fraction(1), "users": USERS}
    rng = random.Random(5)
    levels = [
        {
            "weight": level.weight,
            "half": level.half_width / (level.weight * GRID.steps) if level.half_width else None,
            "means": [min(max(rng.gauss(MEAN, SPREAD / level.weight**0.5), 0.0), 1.0) for _ in range(SHOWN)],
        }
        for level in Full(**public, max_contributions=CAP).levels
    ]
    prior = Fraction(42, 100)
    noise: dict[str, list[float]] = {name: [] for name in COLORS}
    for cap in CAPS:
        means: list[MeanParameters] = [Naive(**public, max_contributions=cap), Full(**public, max_contributions=cap)]
        means += [kind(**public, max_contributions=cap, prior=prior) for kind in (SingleTree, MultiTree, Wishful)]
        for mean in means:
            samples, law = mean.counted(Pattern.even(USERS, float(cap)), 1.0)
            noise[mean.name].append(noise_sd(law) / (samples * GRID.steps))
    return {"levels": levels, "caps": CAPS, "noise": noise}


def draw(data: Data) -> Figure:
    """The levels on the left, the noise on the right."""
    below = f"{USERS:,} people, ε = 1, range 0 to 1. Left: cap {CAP:,}. Right: all have given all samples of the cap."
    with card(10.8, 5.2, "Longer blocks are clipped more narrowly, and many of them share epsilon", below,
              left=0.095, right=0.865, wspace=0.3, top=0.76) as figure:  # fmt: skip
        blocks, noise = figure.subplots(1, 2, width_ratios=(1, 1))
        plain(blocks, "40 people's blocks, and where full clips")
        blocks.grid(visible=False)
        for place, level in enumerate(data["levels"]):
            half = level["half"]
            is_clipped = half is not None and half < 0.5
            low, high = (max(0.0, MEAN - half), min(1.0, MEAN + half)) if is_clipped else (0.0, 1.0)
            blocks.barh(place, high - low, left=low, height=0.72, color=PALE[RED if is_clipped else GREY])
            blocks.scatter(level["means"], [place] * len(level["means"]), s=5, color=INK, alpha=0.55, linewidth=0)
        weights = [f"{level['weight']:,}" for level in data["levels"]]
        blocks.set_yticks(range(len(weights)), weights, size=8.5)
        blocks.set(xlim=(0, 1), xlabel="place in the range", ylabel="samples in a block")
        plain(noise, "Standard deviation of the noise in the mean")
        for name, color in COLORS.items():
            noise.plot(data["caps"], data["noise"][name], color=color, linewidth=1.8, marker="o", markersize=3)
            height = data["noise"][name][-1] * (1.25 if name == "single-tree" else 0.85 if name == "multi-tree" else 1)
            noise.text(1.3 * data["caps"][-1], height, name, color=color, va="center")
        noise.set(xscale="log", yscale="log", xlabel="cap: samples of a person that count")
        noise.set_ylabel("part of the range")
        noise.set_xticks([10, 1000, 100000], ["10", "1,000", "100,000"])
        noise.set_yticks([1e-4, 1e-3, 1e-2, 1e-1, 1], ["0.0001", "0.001", "0.01", "0.1", "1"])
        noise.minorticks_off()
    return figure
