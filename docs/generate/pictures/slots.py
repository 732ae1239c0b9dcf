"""One cell of a slot: arrays of samples, the cap, and which algorithm errs least."""

import random
from dataclasses import replace
from fractions import Fraction

from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GOLD, GREEN, GREY, PALE, RED, VIOLET, Data, card, plain
from shoal.agents.pictures import QUIET
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.cap import candidates, contribution_cap
from shoal.mechanisms.slot.cell import CellParameters
from shoal.mechanisms.slot.means import best
from shoal.mechanisms.slot.means.packing import best_fit
from shoal.mechanisms.slot.worst_error import mean_error

SPEEDS = Grid(Fraction(0), Fraction(65), 1 << 20)
CELL = CellParameters(grid=SPEEDS, epsilon=Fraction(1))
HALF = Fraction(1, 2)  # epsilon where the cap is looked at
SMALL, PLACES, MANY = [9, 7, 7, 5, 4, 4, 3, 3, 2, 2, 1, 1, 1, 1], 6, 60
USERS = [10, 20, 40, 80, 160, 320, 640, 1280]
COLORS = {"baseline": GREY, "array-averaging": BLUE, "levy": VIOLET, "fixed-quantile": GREEN, "epsilon-quantile": GOLD}


def counts(users: int) -> list[int]:
    """Samples of each user, with a long tail."""
    rng = random.Random(4)
    return [min(150, int(2 * rng.paretovariate(0.9))) for _ in range(users)]


def data() -> Data:
    """Arrays of a small cell, the worst error of a larger one by its cap, likely errors by users."""
    large = counts(MANY)
    found: dict[str, list[float]] = {name: [] for name in COLORS}
    chosen = []
    for users in USERS:
        samples_of = counts(users)
        least: dict[str, float] = {}
        for candidate in best.candidates(samples_of, CELL):
            least[candidate.name] = min(candidate.error, least.get(candidate.name, candidate.error))
        for name, errors in found.items():
            errors.append(65 * least[name])
        chosen.append(best.chosen(samples_of, CELL).name)
    samples = sum(large)
    caps = [(each, kept) for each, kept in candidates(large)]
    return {
        "counts": SMALL,
        "arrays": [[(user, min(SMALL[user], PLACES)) for user in array.users] for array in best_fit(SMALL, PLACES)],
        "caps": [each for each, _ in caps],
        "left_out": [65 * (1 - kept / samples) for _, kept in caps],
        "noise": [65 * each / kept / float(HALF) for each, kept in caps],
        "error": [65 * float(mean_error(kept, each, samples, HALF)) for each, kept in caps],
        "optimal": contribution_cap(large, replace(CELL, epsilon=HALF)),
        "users": USERS,
        "likely": found,
        "chosen": chosen,
    }


def draw(data: Data) -> Figure:
    """Arrays, caps, algorithms."""
    below = "Speeds from 0 to 65 km/h, ε = 1 for a bus in an hour and cell. All of this is decided by public counts."
    with card(12.4, 4.8, "In a cell, counts decide how many samples of a user count, and how they are averaged", below,
              left=0.05, right=0.905, wspace=0.24) as figure:  # fmt: skip
        arrays, caps, likely = figure.subplots(1, 3, width_ratios=(1.05, 1, 1))
        plain(arrays, f"{len(SMALL)} users packed into arrays of {PLACES}")
        palette = (RED, BLUE, GREEN, VIOLET, GOLD, GREY)
        for place, array in enumerate(data["arrays"]):
            bottom = 0
            for user, samples in array:
                color = palette[user % len(palette)]
                arrays.bar(place, samples, bottom=bottom, width=0.8, color=PALE[color], edgecolor=color, linewidth=1)
                count = data["counts"][user]
                label = f"{chr(65 + user)} {samples}" + (f"/{count}" if count > samples else "")
                arrays.text(place, bottom + samples / 2, label, ha="center", va="center", size=7, color=color)
                bottom += samples
        arrays.set(xticks=[], xlabel="arrays: each is one vote", ylabel="samples")
        plain(caps, f"{MANY} users, ε = 0.5: worst error by cap")
        caps.plot(data["caps"], data["noise"], color=BLUE, linewidth=1.6)
        caps.plot(data["caps"], data["left_out"], color=GREY, linewidth=1.6)
        caps.plot(data["caps"], data["error"], color=RED, linewidth=2)
        caps.axvline(data["optimal"], color=RED, linewidth=0.9, linestyle=(0, (4, 2)))
        top = 1.1 * max(data["error"])
        caps.set(ylim=(0, top), xlim=(0, max(data["caps"])), xlabel="samples of a user that count", ylabel="km/h")
        caps.text(data["optimal"] + 2, 0.94 * top, f"optimal: {data['optimal']}", color=RED)
        last = len(data["caps"]) - 2  # before the longest line, which is straight
        labels = {"error": (RED, "both", 0.05), "noise": (BLUE, "noise", -0.1), "left_out": (QUIET, "left out", 0.04)}
        for name, (color, label, above) in labels.items():
            middle = (data[name][last] + data[name][-1]) / 2 + above * top
            caps.text((data["caps"][last] + data["caps"][-1]) / 2, middle, label, color=color)
        plain(likely, "Likely error by algorithm")
        ends = sorted((errors[-1], name) for name, errors in data["likely"].items())
        height = 0.0
        for end, name in ends:
            height = max(end, height * 1.42)
            likely.plot(data["users"], data["likely"][name], color=COLORS[name], linewidth=1.7)
            likely.text(1.15 * data["users"][-1], height, name, color=COLORS[name], va="center", size=9)
        lowest = [data["likely"][name][place] for place, name in enumerate(data["chosen"])]
        likely.scatter(data["users"], lowest, s=42, facecolor="none", edgecolor=RED, linewidth=1.4, zorder=4)
        likely.text(11, min(map(min, data["likely"].values())), "circles: what best takes", color=RED)
        likely.set(xscale="log", yscale="log", xlabel="users in the cell", ylabel="km/h")
        likely.set_xticks([10, 100, 1000], ["10", "100", "1,000"])
        likely.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
        likely.minorticks_off()
    return figure
