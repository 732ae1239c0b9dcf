"""Weights of decays, the noisy numbers that hold a step, and the noise of windows by mechanism."""

from fractions import Fraction
from functools import partial
from statistics import fmean

from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GOLD, GREEN, GREY, PALE, RED, Data, card, plain
from shoal.agents.pictures import INK
from shoal.mechanisms.sums.decays import Polynomial, Window
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.gaussian_window import RootWindow
from shoal.mechanisms.sums.patent.window_sum import DyadicWindow
from shoal.mechanisms.sums.steps.blue import best_trees
from shoal.mechanisms.sums.steps.hats import HatSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.steps.steps import NoisedSteps
from shoal.mechanisms.sums.window import WindowSum

AGES, WINDOW, HALF_LIFE, EXPONENT = 61, 24, 12, Fraction(3, 2)
RATIOS, STEPS, STEP = (4, 4), 48, 22
LENGTHS = [1 << power for power in range(13)]
ONE = Fraction(1)


def data() -> Data:
    """Weights by age, hats that hold a step, standard deviations by window."""
    half_life = Exponentials.half_life(Fraction(HALF_LIFE))
    polynomial = Exponentials.polynomial(EXPONENT, Polynomial(EXPONENT).horizon)
    hats = HatSteps(1, ONE, RATIOS)
    columns = [hats.column(step) for step in range(1, STEPS + 1)]
    weights: dict[str, list[float]] = {}
    for index, column in enumerate(columns):
        for node in column[1:]:
            stride = hats.strides[node.subkey - 1]
            weights.setdefault(f"{stride} {node.place}", [0.0] * STEPS)[index] = node.coefficient / (2 * stride)
    noise: dict[str, list[float]] = {"per-step": [], "trees": [], "hats": [], "patent": [], "square-root": []}
    for length in LENGTHS:
        trees = best_trees(max(length, 2), partial(_score, length))
        patent = DyadicWindow(1, ONE, length)
        noise["per-step"].append(WindowSum(length, LaplaceSteps(1, ONE)).mean_variance ** 0.5)
        noise["trees"].append(WindowSum(length, trees(1, ONE)).mean_variance ** 0.5)
        noise["hats"].append(Window(length).sharp(1, ONE).mean_variance ** 0.5)
        places = sorted({max(1, length * place // 16) for place in range(1, 17)})
        noise["patent"].append(fmean(patent.variance(2 * length + place) for place in places) ** 0.5)
        noise["square-root"].append(RootWindow(1, ONE, Fraction(1, 1000), length).mean_variance ** 0.5)
    return {
        "window": [float(age < WINDOW) for age in range(AGES)],
        "half-life": [half_life.weight(age) for age in range(AGES)],
        "polynomial": [polynomial.weight(age) for age in range(AGES)],
        "hats": weights,
        "held": [f"{hats.strides[node.subkey - 1]} {node.place}" for node in columns[STEP - 1][1:]],
        "lengths": LENGTHS,
        "noise": noise,
    }


def _score(length: int, steps: NoisedSteps) -> float:
    return steps.levels**2 * steps.mean_window_squares(length)


def draw(data: Data) -> Figure:
    """Three panels."""
    below = "A person's step is in one number by itself and in two hats of each width, whatever the window or decay."
    with card(12.4, 4.7, "Old steps fade by arithmetic; the noise is in numbers that hold each step a few times", below,
              left=0.055, right=0.885, wspace=0.24) as figure:  # fmt: skip
        weights, hats, noise = figure.subplots(1, 3, width_ratios=(1, 1.15, 1))
        plain(weights, "Weight of a step by its age")
        weights.step(range(AGES), data["window"], where="post", color=BLUE, linewidth=1.8)
        weights.plot(data["half-life"], color=RED, linewidth=1.8)
        weights.plot(data["polynomial"], color=GREEN, linewidth=1.8)
        weights.text(25, 0.93, f"window of {WINDOW}", color=BLUE)
        weights.text(27, 0.27, f"half-life of {HALF_LIFE}", color=RED)
        weights.text(4.5, 0.19, "polynomial", color=GREEN, va="bottom", size=9)
        weights.set(xlim=(0, AGES - 1), ylim=(0, 1.05), xlabel="age in steps", ylabel="weight")
        plain(hats, f"The noisy numbers that hold step {STEP}")
        hats.grid(visible=False)
        levels = sorted({int(name.split()[0]) for name in data["hats"]})
        for name, values in data["hats"].items():
            level = 1 + levels.index(int(name.split()[0]))
            is_held = name in data["held"]
            tops = [level * 1.35 + value for value in values]
            shown = [(at + 1, top) for at, top in enumerate(tops) if values[at]]
            if is_held:
                hats.fill_between([at for at, _ in shown], level * 1.35, [top for _, top in shown], color=PALE[RED])
            hats.plot(*zip(*shown, strict=True), color=RED if is_held else GREY, linewidth=1.5 if is_held else 0.8)
        for step in range(1, STEPS + 1):
            hats.bar(step, 0.8, width=0.7, color=PALE[RED] if step == STEP else "white",
                     edgecolor=RED if step == STEP else GREY, linewidth=1.5 if step == STEP else 0.5)  # fmt: skip
        hats.axvline(STEP, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
        hats.set(xlabel="step", xlim=(0, STEPS + 1), ylim=(0, 4.0))
        hats.set_yticks([0.4, 1.85, 3.2], ["itself", f"hats of\nstride {levels[0]}", f"stride {levels[1]}"])
        plain(noise, "Noise of a window, ε = 1")
        labels = {"per-step": (GREY, "a draw per step"), "patent": (GOLD, "WindowSum\n(Bolot et al.)"),
                  "trees": (BLUE, "BLUE trees"), "hats": (RED, "sharp"),
                  "square-root": (GREEN, "square root,\nδ = 0.001")}  # fmt: skip
        for name, (color, label) in labels.items():
            noise.plot(data["lengths"], data["noise"][name], color=color, linewidth=1.8)
            shift = {"patent": 1.12, "trees": 1.22, "hats": 1.02, "square-root": 0.7}.get(name, 1)
            noise.text(
                1.3 * data["lengths"][-1], shift * data["noise"][name][-1], label, color=color, va="center", size=9
            )
        noise.set(xscale="log", yscale="log", xlabel="length of the window in steps", ylabel="standard deviation")
        noise.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        noise.set_yticks([1, 10, 100], ["1", "10", "100"])
        noise.minorticks_off()
    return figure
