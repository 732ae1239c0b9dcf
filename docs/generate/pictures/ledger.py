"""A chain of releases with a changed one in it, and what metrics charge to a ledger."""

from dataclasses import replace
from fractions import Fraction

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from docs.generate.pictures.card import BLUE, GREEN, GREY, PALE, RED, VIOLET, Data, card, empty, plain
from shoal.agents.pictures import INK, QUIET
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.unit import charge, parse_unit
from shoal.models.digests import FIRST, chain

RELEASES = [("1", "23.4"), ("2", "23.1"), ("3", "22.9"), ("4", "23.0")]
CHANGED = 2  # the second, to
LIE = "31.0"
BUDGET = Fraction(4)


def _body(seq: str, value: str) -> bytes:
    return f'{{"metric":"basket","version":1,"seq":{seq},"value":{value}}}'.encode()


def _digests(values: list[tuple[str, str]]) -> list[str]:
    digest, found = FIRST, []
    for seq, value in values:
        digest = chain(digest, _body(seq, value))
        found.append(digest.hex()[:8])
    return found


def data() -> Data:
    """Digests of both chains; charges of four metrics to a person."""
    changed = [(seq, LIE if seq == str(CHANGED) else value) for seq, value in RELEASES]
    person, free = parse_unit("user"), Fraction(0)
    events = replace(parse_unit("event"), of_a_user=8)
    both = (VALUES, ADD_REMOVE)  # relations of the ledger and of the metric
    costs = {
        "basket, version 1: unit user, ε 1": charge(person, person, Fraction(1), free)[0],
        "clicks: unit event, ε 0.1, 8 events of a user": charge(person, events, Fraction(1, 10), free)[0],
        "visits: add-remove, ε 0.4": charge(person, person, Fraction(4, 10), free, relations=both)[0],
        "basket, version 2: unit user, ε 1": charge(person, person, Fraction(1), free)[0],
        "a count under values": charge(person, person, free, free)[0],
    }
    return {
        "true": _digests(RELEASES),
        "changed": _digests(changed),
        "costs": {name: float(cost) for name, cost in costs.items()},
        "budget": float(BUDGET),
    }


def draw(data: Data) -> Figure:
    """The chain above, the budget below."""
    with card(10.6, 5.6, "Releases are chained, and charges add up", "Digests are SHA-256, their first 8 digits.",
              left=0.03, right=0.97, hspace=0.3, top=0.85, bottom=0.1) as figure:  # fmt: skip
        links, budget = figure.subplots(2, 1, height_ratios=(1.25, 1))
        empty(links)
        links.set(xlim=(0, 10.6), ylim=(0, 3.2))
        for row, (name, values) in enumerate((("true", None), ("changed", LIE))):
            top = 1.75 - 1.7 * row
            said = "what was released" if values is None else "release 2 is changed"
            links.text(0.05, top + 0.62, said, color=INK if values is None else RED, va="center")
            for place, (seq, value) in enumerate(RELEASES):
                digest = data[name][place]
                differs = digest != data["true"][place]
                color = RED if differs else BLUE
                left = 2.55 + 2.02 * place
                links.add_patch(FancyBboxPatch((left, top), 1.62, 1.2, boxstyle="round,pad=0,rounding_size=0.08",
                                               facecolor=PALE[color], edgecolor=color, linewidth=1.2))  # fmt: skip
                shown = LIE if values is not None and seq == str(CHANGED) else value
                links.text(left + 0.81, top + 0.88, f"release {seq}: {shown}", ha="center", va="center", size=9.5,
                           weight="bold" if shown != value else "normal")  # fmt: skip
                links.text(
                    left + 0.81, top + 0.38, digest, ha="center", va="center", family="DejaVu Sans Mono", color=color
                )
                if place:
                    links.annotate("", (left - 0.02, top + 0.38), (left - 0.4, top + 0.38),
                                   arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.3})  # fmt: skip
        plain(budget, f"The ledger of a population: what one person can lose, of {data['budget']:g}")
        budget.grid(visible=False)
        at, colors = 0.0, (BLUE, VIOLET, GREEN, GREY, GREY)
        for color, (name, cost) in zip(colors, data["costs"].items(), strict=True):
            if cost:
                budget.barh(0, cost, left=at, height=0.5, color=PALE[color], edgecolor=color)
                budget.text(at + cost / 2, 0, f"{cost:g}", ha="center", va="center", color=color, weight="bold")
                said = name.replace(": ", ":\n").replace(", 8", ",\n8")
                budget.text(at + cost / 2, 0.36, said, ha="center", va="bottom", size=8.5, color=color)
                at += cost
        budget.barh(0, data["budget"] - at, left=at, height=0.5, color="white", edgecolor=GREY, linestyle="--")
        budget.text(
            (at + data["budget"]) / 2, 0, f"left: {data['budget'] - at:.1f}", ha="center", va="center", color=QUIET
        )
        budget.axvline(data["budget"], color=RED, linewidth=1.6)
        budget.set(xlim=(0, data["budget"] * 1.005), ylim=(-0.35, 1.35), yticks=[], xlabel="epsilon charged")
        budget.spines["left"].set_visible(False)
    return figure
