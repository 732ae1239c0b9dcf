"""The law of a point near few users' means, where they agree and where they do not."""

import random
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GREY, PALE, RED, Data, card, plain
from shoal.agents.pictures import INK, QUIET
from shoal.mechanisms.selection.few_users_point import PointChoice, reach_steps, stretches, users_needed

EPSILON, DELTA, FAILURE = Fraction(1), Fraction(1, 10**6), Fraction(1, 20)
USERS, SAMPLES, STEPS, SIGMA = 60, 100, 10_000, 1_000
TRUE = 3_800


def data() -> Data:
    """How many means are near each point, and the probability of a point there and of none at all."""
    rng = random.Random(3)
    near = [round(rng.gauss(TRUE, SIGMA / SAMPLES**0.5)) for _ in range(USERS)]
    crowds = {
        "all agree": near,
        "a third lie elsewhere": near[: 2 * USERS // 3] + [rng.randrange(STEPS) for _ in range(USERS // 3)],
        "no two agree": [round((user + rng.random()) * STEPS / USERS) for user in range(USERS)],
    }
    reach = reach_steps(USERS, SAMPLES, FAILURE, Fraction(SIGMA))
    choice = PointChoice(USERS, 2 * reach, EPSILON, DELTA)
    return {
        "reach": reach,
        "radius": choice.radius,
        "needed": users_needed(EPSILON, DELTA, FAILURE),
        "crowds": {name: _law(choice, sorted(means)) for name, means in crowds.items()},
    }


def _law(choice: PointChoice, means: list[int]) -> Data:
    runs = list(stretches(means, choice.radius))
    rate, most = float(choice.rate), max(run.near for run in runs)
    weights = [run.points * np.exp(rate * (run.near - most)) for run in runs]
    none = choice.garbage * choice.ball * np.exp(-rate * most)
    total = sum(weights) + none
    return {
        "means": means,
        "starts": [run.start for run in runs] + [runs[-1].start + runs[-1].points],
        "near": [run.near for run in runs],
        "density": [float(weight / total / run.points) for weight, run in zip(weights, runs, strict=True)],
        "none": float(none / total),
    }


def draw(data: Data) -> Figure:
    """A panel for each crowd: how many are near, and the law."""
    below = (
        f"{USERS} users with {SAMPLES} samples each, σ a tenth of the range, ε = 1, δ = 1e-6.  "
        "Grey: means within R of a point.  Red: law of the choice."
    )
    with card(11.6, 4.2, "A point that many users' means are near, or no release at all", below,
              left=0.06, right=0.98, wspace=0.16) as figure:  # fmt: skip
        panels = figure.subplots(1, 3, sharey=True)
        for panel, (name, crowd) in zip(panels, data["crowds"].items(), strict=True):
            plain(panel, name[0].upper() + name[1:])
            edges = [start / STEPS for start in crowd["starts"]]
            panel.stairs(crowd["near"], edges, fill=True, color=PALE[GREY], edgecolor=GREY, linewidth=0.9)
            panel.scatter(
                [mean / STEPS for mean in crowd["means"]], [-3.5] * USERS, s=14, marker="|", color=INK, linewidth=0.7
            )
            highest = max(crowd["density"])
            shown = 1 - crowd["none"]
            panel.stairs(
                [shown * USERS * each / highest for each in crowd["density"]], edges, fill=True, color=RED, alpha=0.55
            )
            said = crowd["none"]
            text = "no release: " + (f"{said:.2g}" if said < 0.999 else "nearly certain")
            panel.text(0.98, 0.93, text, color=RED, ha="right", transform=panel.transAxes)
            panel.axvline(TRUE / STEPS, ymax=0.86, color=BLUE, linewidth=1, linestyle=(0, (4, 2)))
            panel.set(xlim=(0, 1), ylim=(-7, 74), xlabel="place in the range")
        panels[0].set_ylabel("users near")
        panels[0].text(TRUE / STEPS + 0.1, 30, "true mean", color=BLUE)
        panels[0].text(
            0.98, 0.02, "marks: the users' means", color=QUIET, ha="right", size=8.5, transform=panels[0].transAxes
        )
    return figure
