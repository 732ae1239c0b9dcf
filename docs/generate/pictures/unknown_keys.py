"""How a key comes to be shown: streams of three keys, and the probability by how many people it has."""

import math
import random
from fractions import Fraction

from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GREEN, GREY, RED, VIOLET, Data, card, plain
from shoal.agents.pictures import INK, QUIET
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection.first_crossing import FirstCrossing

DELTA, HORIZON = Fraction(1, 10**9), 365
EPSILONS = {"ε = 1": Fraction(1), "ε = 0.5": Fraction(1, 2), "ε = 0.2": Fraction(1, 5)}
RATES = {"bakery": 1.3, "chemist": 0.45, "ferry": 0.1}  # new people a day
SHOWN_DAYS = 120
PLACES = {"bakery": (74, 78), "chemist": (62, 26), "ferry": (70, 5)}  # of what is said about them
HEIGHTS = {"ε = 1": 2e-2, "ε = 0.5": 1e-2, "ε = 0.2": 1e-4}  # of the labels of lines
KEY = bytes(31) + b"\x09"


def data() -> Data:
    """Three keys with draws of their own, and the exact probability of being shown within a year."""
    selection = FirstCrossing(EPSILONS["ε = 1"], DELTA, HORIZON)
    return {
        "threshold": selection.threshold(1),
        "keys": {name: _key(selection, name, rate) for name, rate in RATES.items()},
        "people": list(range(1, 181)),
        "shown": {
            name: [_probability(FirstCrossing(epsilon, DELTA, HORIZON), people) for people in range(1, 181)]
            for name, epsilon in EPSILONS.items()
        },
    }


def _key(selection: FirstCrossing, name: str, rate: float) -> Data:
    """The people who have come by each day, what its own draw adds to the threshold, and when it is shown."""
    rng = random.Random(name)
    rho = selection.rho(Bits(derive(KEY, name, "rho")).draw(0))
    people, come, shown = [], 0, None
    for day in range(1, SHOWN_DAYS + 1):
        new = sum(rng.random() < rate / 4 for _ in range(4))
        come += new
        people.append(come)
        if shown is None and come:
            words = Bits(derive(KEY, name, "cross")).draw(day)
            if selection.crossing(day, come, rho, words) == day:
                shown = day
    return {"rho": rho, "people": people, "shown": shown}


def _probability(selection: FirstCrossing, people: int) -> float:
    """Of a key that has so many people from the first tick of the horizon to the last."""
    rate = float(selection.epsilon)
    x, threshold = math.exp(-rate), selection.threshold(1)
    total = 0.0
    for rho in range(400):
        each = min(1.0, math.exp(-rate * (threshold + rho - people)))
        within = 1.0 if each == 1 else -math.expm1(HORIZON * math.log1p(-each))
        total += (1 - x) * x**rho * within
    return total


def draw(data: Data) -> Figure:
    """Keys on the left, probabilities on the right."""
    below = (
        "δ = 1e-9, 365 days. A key has one draw of its own, which raises its threshold, and a fresh chance every day."
    )
    with card(11.0, 4.7, "A key stays silent until clearly more people have come to it than one can explain", below,
              left=0.055, right=0.975, wspace=0.2) as figure:  # fmt: skip
        keys, law = figure.subplots(1, 2)
        plain(keys, "Three keys, ε = 1")
        days = range(1, SHOWN_DAYS + 1)
        threshold = data["threshold"]
        keys.axhline(threshold, color=INK, linewidth=1, linestyle=(0, (4, 2)))
        keys.text(2, threshold + 1.5, f"threshold {threshold}", color=INK, size=9)
        for color, (name, key) in zip((BLUE, VIOLET, GREEN), data["keys"].items(), strict=True):
            shown = key["shown"]
            end = SHOWN_DAYS if shown is None else shown
            keys.step(days[:end], key["people"][:end], where="post", color=color, linewidth=1.0, linestyle=":")
            if shown is not None:
                keys.step(days[end - 1 :], key["people"][end - 1 :], where="post", color=color, linewidth=2.2)
                keys.scatter([shown], [key["people"][shown - 1]], s=46, color=RED, zorder=4)
                said = f"{name}: shown on day {shown},\nwith {key['people'][shown - 1]} people (ρ is {key['rho']})"
                keys.text(*PLACES[name], said, color=color, va="top", size=9)
            else:
                keys.text(*PLACES[name], f"{name}: not shown", color=color, va="top", size=9)
        keys.set(xlim=(1, SHOWN_DAYS), ylim=(0, 82), xlabel="day", ylabel="people who have come to the key")
        plain(law, "Probability of being shown within a year")
        for color, (name, shares) in zip((RED, VIOLET, BLUE), data["shown"].items(), strict=True):
            law.plot(data["people"], shares, color=color, linewidth=1.9)
            height = HEIGHTS[name]
            at = next(place for place, share in enumerate(shares) if share > height)
            is_first = color == RED
            place = data["people"][at] + (-2 if is_first else 3)
            law.text(place, height, name, color=color, va="top", ha="right" if is_first else "left", size=9)
        law.axhline(1e-9, color=GREY, linewidth=1, linestyle=(0, (4, 2)))
        law.text(178, 1.5e-9, "δ", color=QUIET, ha="right")
        law.set(yscale="log", xlim=(1, 180), ylim=(1e-10, 2), xlabel="people who have come to the key, all year")
        law.set_yticks([1, 1e-3, 1e-6, 1e-9], ["1", "0.001", "1e-6", "1e-9"])
        law.minorticks_off()
    return figure
