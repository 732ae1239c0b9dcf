"""A tree over bins, and the distribution that is told from it."""

import random
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GREY, PALE, RED, Data, card, plain
from shoal.agents.pictures import INK, QUIET
from shoal.mechanisms.bins.tree import tree_for
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.cell import CellParameters, Draws
from shoal.mechanisms.slot.distribution import histogram, noised_sums, release, scales

SPEEDS = Grid(Fraction(0), Fraction(65), 1 << 16)
BINS, USERS, EACH, EPSILON = 64, 400, 2, Fraction(1)
KEY = bytes(32)


def data() -> Data:
    """Noisy sums of both levels, and the published cumulative shares."""
    rng = random.Random(11)
    users = []
    for _ in range(USERS):
        middle = rng.choice([18, 18, 42])
        users.append([SPEEDS.clip(round(rng.gauss(middle, 6), 1)) for _ in range(EACH)])
    cell = CellParameters(grid=SPEEDS, epsilon=EPSILON, cap=EACH, bins=BINS, quantiles=(Fraction(1, 2),))
    tree, exact = tree_for(BINS), histogram(users, cell, EACH)
    draws = Draws(KEY, b"cell", 0)
    by_level = scales(tree, EACH, EPSILON)
    told = release(users, cell, draws)
    return {
        "shape": tree.shape,
        "exact": tree.sums(exact),
        "noised": noised_sums(tree, exact, by_level, draws),
        "scales": [float(scale) for scale in by_level],
        "truth": [float(share) for share in np.cumsum(exact) / sum(exact)],
        "cdf": list(told.value["cdf"]),
        "low": list(told.low["cdf"]),
        "high": list(told.high["cdf"]),
        "mechanism": told.details["mechanism"],
    }


def draw(data: Data) -> Figure:
    """The levels on the left, the shares on the right."""
    below = f"{USERS} people with {EACH} speeds each in one cell and hour, ε = 1.  Bars: exact.  Marks: with noise."
    with card(10.6, 4.9, "Bins and sums of bins have noise; all of them together tell the distribution", below,
              left=0.065, right=0.975, wspace=0.2) as figure:  # fmt: skip
        left, shares = figure.subplots(1, 2, width_ratios=(1, 1))
        left.set_axis_off()
        bins = left.inset_axes((0, 0, 1, 0.42))
        upper = left.inset_axes((0, 0.56, 1, 0.42))
        for panel, level, title in ((upper, 0, "8 sums of 8 bins"), (bins, 1, "64 bins")):
            plain(panel, f"{title}: Laplace noise of scale {data['scales'][level]:.0f}")
            width = 65 / len(data["exact"][level])
            at = [width * (place + 0.5) for place in range(len(data["exact"][level]))]
            panel.bar(at, data["exact"][level], width=0.86 * width, color=PALE[BLUE])
            panel.scatter(at, data["noised"][level], s=13, color=RED, zorder=3)
            panel.axhline(0, color=GREY, linewidth=0.8)
            panel.set(xlim=(0, 65), ylabel="samples")
        upper.set_xticklabels([])
        bins.set_xlabel("speed, km/h")
        plain(shares, "Share of samples up to a speed")
        at = [65 * (place + 1) / BINS for place in range(BINS)]
        shares.fill_between(at, data["low"], data["high"], step=None, color=PALE[RED], linewidth=0)
        shares.plot(at, data["cdf"], color=RED, linewidth=1.8)
        shares.plot(at, data["truth"], color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
        shares.text(33, 0.22, "released, with low and high", color=RED)
        shares.text(33, 0.13, "dashes: exact", color=INK)
        shares.text(33, 0.05, data["mechanism"], color=QUIET)
        shares.set(xlim=(0, 65), ylim=(0, 1.02), xlabel="speed, km/h", ylabel="share")
    return figure
