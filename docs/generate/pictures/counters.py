"""The nodes that make up a release of a binary counter, and how the error of counters grows."""

from fractions import Fraction

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from docs.generate.pictures.card import BLUE, GREEN, GREY, PALE, RED, VIOLET, Data, card, empty, plain
from shoal.agents.pictures import INK, QUIET
from shoal.mechanisms.counters.binary import BinaryCounter, BinaryTree
from shoal.mechanisms.counters.blue import BlueTree
from shoal.mechanisms.counters.square_root import SquareRoot
from shoal.mechanisms.noise import laplace

CAPACITY = 15
RELEASE = 13  # whose nodes are shown: 13 = 8 + 4 + 1
HORIZON = 4095
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
TIMES = sorted({round(HORIZON ** (i / 60)) for i in range(61)})


def data() -> Data:
    """Nodes and their noise under a key of zeros; standard deviations of releases."""
    tree = BinaryTree(CAPACITY, 1, EPSILON)
    draw = tree.sampler(bytes(32)).draw
    counter = BinaryCounter(tree, lambda epoch: bytes(32))
    nodes = [{"node": node, "low": node & -node, "noise": draw(node)} for node in range(1, CAPACITY + 1)]
    chosen, rest = [], RELEASE
    while rest:
        chosen.append(rest)
        rest &= rest - 1
    binary = BinaryTree(HORIZON, 1, EPSILON)
    blue = BlueTree.best(HORIZON, width=1, epsilon=EPSILON)
    root = SquareRoot(HORIZON, 1, EPSILON, DELTA)
    again = laplace.variance(Fraction(HORIZON) / EPSILON)  # every release anew, each with its part of epsilon
    return {
        "nodes": nodes,
        "release": RELEASE,
        "chosen": chosen[::-1],
        "noise": counter.noise(RELEASE),
        "times": TIMES,
        "anew": again**0.5,
        "binary": [binary.variance(t) ** 0.5 for t in TIMES],
        "blue": [blue.variance(t) ** 0.5 for t in TIMES],
        "root": [root.within(t) ** 0.5 for t in TIMES],
        "elements": [laplace.variance(1 / EPSILON) ** 0.5 * t**0.5 for t in TIMES],
    }


def draw(data: Data) -> Figure:
    """The tree on the left, the errors on the right."""
    below = (
        "Left: nodes of a binary counter; each has the exact sum below it, plus its noise.  "
        "Right: ε = 1, a unit changes it by 1."
    )
    with card(10.4, 4.7, "A release adds up few noisy nodes, so its error grows like a logarithm", below,
              left=0.02, right=0.865, wspace=0.27) as figure:  # fmt: skip
        tree, errors = figure.subplots(1, 2, width_ratios=(1.05, 1))
        empty(tree)
        for node in data["nodes"]:
            end, low, is_used = node["node"], node["low"], node["node"] in data["chosen"]
            height = low.bit_length() - 1
            place = (end - low + 0.06, 1.15 * height)
            face, edge = (PALE[RED], RED) if is_used else ("white", GREY)
            box = FancyBboxPatch(place, low - 0.12, 0.72, boxstyle="round,pad=0,rounding_size=0.1", facecolor=face,
                                 edgecolor=edge, linewidth=1.6 if is_used else 0.9)  # fmt: skip
            tree.add_patch(box)
            color = RED if is_used else QUIET
            tree.text(end - low / 2, place[1] + 0.36, _signed(node["noise"]), ha="center", va="center", color=color,
                      weight="bold" if is_used else "normal", size=9)  # fmt: skip
        for element in range(1, CAPACITY + 1):
            tree.text(element - 0.5, -0.42, str(element), ha="center", va="center", size=9,
                      color=INK if element <= data["release"] else GREY)  # fmt: skip
        tree.text(0, -1.0, "element (time →)", color=QUIET, size=9)
        parts = " ".join(_signed(node["noise"]) for node in data["nodes"] if node["node"] in data["chosen"])
        said = f"release {data['release']} = sum 1 to {data['release']}, {parts} = {_signed(data['noise'])}"
        tree.text(0, 4.75, said, color=RED, size=10, weight="bold")
        tree.set(xlim=(-0.1, 15.2), ylim=(-1.2, 5.2))
        lines = {
            "every release anew, each\nwith 1/4095 of ε": ([data["anew"]] * len(data["times"]), GREY, "--"),
            "a draw per element": (data["elements"], VIOLET, ":"),
            "binary tree": (data["binary"], BLUE, "-"),
            "BLUE": (data["blue"], RED, "-"),
            "square root,\nδ = 1e-6": (data["root"], GREEN, "-"),
        }
        plain(errors)
        for values, color, style in lines.values():
            errors.plot(data["times"], values, style, color=color, linewidth=1.8)
        errors.set(xscale="log", yscale="log", xlabel="release t (elements so far)", ylim=(1, 12000))
        errors.set_ylabel("standard deviation of the noise")
        errors.set_yticks([1, 10, 100, 1000, 10000], ["1", "10", "100", "1,000", "10,000"])
        errors.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        errors.minorticks_off()
        heights = {"every": 5800, "a draw": 92, "binary": 50, "BLUE": 25, "square": 9.5}
        for label, (_, color, _) in lines.items():
            height = next(at for word, at in heights.items() if label.startswith(word))
            if label.startswith("every"):
                errors.text(1.3, 1900, label, color=color, size=9)
            else:
                errors.text(5200, height, label, color=color, size=9, va="center")
    return figure


def _signed(number: int) -> str:
    return f"{number:+d}" if number else "0"
