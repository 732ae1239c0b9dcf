"""The rungs that a range's upper end is chosen from, the law of the choice, and what each rung would cost."""

import math
import random
from fractions import Fraction

from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GREY, PALE, RED, Data, card, plain
from shoal.agents.pictures import QUIET
from shoal.mechanisms.selection.upper_end import Ladder, UpperEnd
from shoal.mechanisms.sums.running import RunningSum

STEPS, TOP, PEOPLE, CAP, RELEASES, BINS = 10_000, 1_000, 12_000, 8, 365, 50
END = UpperEnd(Ladder(STEPS), Fraction(1, 5), Fraction(1, 50), Fraction(1, 50))
REST = 1 - END.cost  # of epsilon 1, for the counters


def values() -> list[int]:
    """First amounts, log-normal around 20, as grid steps of a tenth."""
    rng = random.Random(8)
    return [min(STEPS, round(10 * math.exp(rng.gauss(3.0, 0.9)))) for _ in range(PEOPLE)]


def data() -> Data:
    """Law and cost of every rung for these people, each with one sample."""
    first, rungs = values(), END.ladder.rungs
    at = [0] * len(rungs)
    for value in first:
        at[END.ladder.rung_of(value)] += 1
    rate = float(END.epsilon / (2 * (1 - END.share) * END.share.denominator))
    costs = END.costs(at)
    weights = [math.exp(-rate * (cost - min(costs))) for cost in costs]
    mean = sum(first) / PEOPLE
    noise, bias = [], []
    for rung in rungs:
        clipped = sum(min(value, rung) for value in first) / PEOPLE
        side = RunningSum(CAP * rung, REST, RELEASES).variance(RELEASES) ** 0.5
        part = clipped / rung
        noise.append(side / PEOPLE * math.sqrt((1 - part) ** 2 + part**2) / 10)
        bias.append((mean - clipped) / 10)
    return {
        "bars": [sum(value * BINS // 2_000 == bar for value in first) for bar in range(BINS)],
        "rungs": [rung / 10 for rung in rungs],
        "law": [weight / sum(weights) for weight in weights],
        "above": [sum(at[:number]) / PEOPLE for number in range(len(rungs))],
        "noise": noise,
        "bias": bias,
        "needed": END.needed,
    }


def draw(data: Data) -> Figure:
    """Values and law on the left, costs on the right."""
    below = f"{PEOPLE:,} people's first amounts, range 0 to {TOP:,}, ε = 1, of which 0.22 is for the choice."
    with card(11.0, 4.8, "One look at first values: the end of the range that leaves two in a hundred above it", below,
              left=0.08, right=0.97, wspace=0.22) as figure:  # fmt: skip
        choice, cost = figure.subplots(1, 2)
        plain(choice, "First amounts, rungs, and the choice")
        choice.stairs(
            data["bars"], [200 * bar / BINS for bar in range(BINS + 1)], fill=True, color=PALE[GREY], edgecolor=GREY
        )
        top = 1.15 * max(data["bars"])
        choice.set(xlim=(0, 200), ylim=(0, top), xlabel="amount", ylabel="people")
        law = choice.twinx()
        law.bar(data["rungs"], data["law"], width=2.2, color=RED)
        law.vlines(data["rungs"], 0, 0.025, color=BLUE, linewidth=0.9)
        law.set(ylim=(0, 1.35), yticks=[])
        law.spines["right"].set_visible(False)
        best = max(range(len(data["law"])), key=lambda number: data["law"][number])
        rung = data["rungs"][best]
        often = f"with {100 * data['law'][best]:.0f} %" if data["law"][best] < 0.99 else "nearly always"
        said = f"{rung:g}: chosen {often},\n{100 * data['above'][best]:.1f} % of people lie above"
        law.text(rung - 4, 1.12, said, color=RED, ha="right")
        law.text(196, 0.06, "blue: rungs", color=BLUE, ha="right")
        plain(cost, "What each rung would cost in the last mean")
        cost.plot(data["rungs"], data["noise"], color=BLUE, linewidth=1.8)
        cost.plot(data["rungs"], data["bias"], color=GREY, linewidth=1.8)
        both = [math.hypot(noise, bias) for noise, bias in zip(data["noise"], data["bias"], strict=True)]
        cost.plot(data["rungs"], both, color=RED, linewidth=2.2)
        cost.axvline(rung, color=RED, linewidth=0.9, linestyle=(0, (4, 2)))
        cost.set(
            xscale="log",
            yscale="log",
            ylim=(0.02, 40),
            xlabel="upper end of the range",
            ylabel="error of the mean, amount",
        )
        cost.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        cost.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
        cost.minorticks_off()
        cost.text(210, 1.0, "noise", color=BLUE)
        cost.text(1.3, 12, "clipped away", color=QUIET)
        cost.text(rung * 0.9, 0.028, "chosen", color=RED, ha="right")
        cost.text(300, 6, "both", color=RED)
    return figure
