"""Two sides of each sample, what they cost beside a sum and a count, and a mean that is told from them."""

import random
from fractions import Fraction
from math import sqrt

from matplotlib.figure import Figure

from docs.generate.pictures.card import BLUE, GREY, PALE, RED, Data, card, plain
from shoal.agents.pictures import INK, QUIET
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.estimates import Sided, mean
from shoal.mechanisms.linear.sides import TwoSides
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.sums.running import RunningSum

STEPS, CAP, EPSILON = 1000, 8, Fraction(1)
GRID = Grid(Fraction(0), Fraction(100), STEPS)
SAMPLES = [0, 150, 400, 620, 1000]  # in grid steps
DAYS, A_DAY, MEAN = 60, 30, 0.3
SIDES = TwoSides(STEPS)
KEY = bytes(31) + b"\x05"


def _sums() -> RunningSum:
    return RunningSum(CAP * SIDES.width, EPSILON, DAYS)


def data() -> Data:
    """Sides of five samples; noise of a mean by where it lies; a stream's releases."""
    places = [place / 50 for place in range(51)]
    both, half = _sums(), RunningSum(CAP * STEPS, EPSILON / 2, DAYS)
    count = RunningSum(CAP, EPSILON / 2, DAYS)
    samples = DAYS * A_DAY
    side = both.variance(DAYS)
    two = [sqrt(side * ((1 - at) ** 2 + at**2)) / (samples * STEPS) for at in places]
    apart = [sqrt(half.variance(DAYS) + count.variance(DAYS) * (at * STEPS) ** 2) / (samples * STEPS) for at in places]
    return {
        "sides": [SIDES.parts(1, sample) for sample in SAMPLES],
        "places": places,
        "two": [100 * each for each in two],
        "apart": [100 * each for each in apart],
        **_stream(),
    }


def _stream() -> Data:
    rng = random.Random(6)
    names = [side.draw[1] for side in SIDES.noised]
    summers = [_sums().summer(lambda epoch, name=name: derive(KEY, name, epoch)) for name in names]  # type: ignore[misc]
    rows: list[Data] = []
    total, came = 0, 0
    for _ in range(DAYS):
        values = [GRID.clip(min(max(rng.gauss(100 * MEAN, 18), 0), 100)) for _ in range(A_DAY)]
        parts = SIDES.parts(len(values), sum(values))
        noisy = tuple(summer.add(part) for summer, part in zip(summers, parts, strict=True))
        total, came = total + sum(values), came + len(values)
        sums = _sums()
        t = summers[0].t
        told = mean(
            GRID, SIDES.places, Sided(noisy, 1, SIDES.width, sums.noise_sd(t), sums.noise_quantile(t)), clamps=True
        )
        rows.append({
            "truth": total / came / STEPS * 100, "count": came, "told": told.counts["count"],
            "value": told.value, "low": told.low, "high": told.high,
        })  # fmt: skip
    return {"rows": rows}


def draw(data: Data) -> Figure:
    """Sides, cost, stream."""
    below = f"Presence is protected: ε = 1, cap {CAP}, range 0 to 100, {DAYS} steps, {A_DAY} samples each."
    with card(12.2, 4.7, "Every sample adds the same amount to two sides together, so both have all of epsilon", below,
              left=0.068, right=0.985, wspace=0.24) as figure:  # fmt: skip
        sides, cost, stream = figure.subplots(1, 3, width_ratios=(0.9, 1, 1.15))
        plain(sides, "What five samples add")
        for place, (upper, lower) in enumerate(data["sides"]):
            sides.bar(place, upper / 10, width=0.62, color=PALE[RED], edgecolor=RED)
            sides.bar(place, lower / 10, bottom=upper / 10, width=0.62, color=PALE[BLUE], edgecolor=BLUE)
        sides.set_xticks(range(len(SAMPLES)), [f"{sample / 10:g}" for sample in SAMPLES])
        sides.set(xlabel="value of the sample", ylim=(0, 118), ylabel="added to P (red) and Q (blue)")
        sides.text(-0.3, 106, "always 100: mean = 100 P / (P + Q)", color=INK, size=9)
        plain(cost, "Noise of the last mean, by where it lies")
        lies = [100 * at for at in data["places"]]
        cost.plot(lies, data["apart"], color=GREY, linewidth=1.8)
        cost.plot(lies, data["two"], color=RED, linewidth=2)
        cost.set(xlim=(0, 100), ylim=(0, 1.12 * max(data["apart"])), xlabel="mean", ylabel="standard deviation")
        cost.text(4, data["apart"][0] * 1.12, "a sum and a count,\nhalf of ε each", color=QUIET)
        cost.text(4, data["two"][0] * 0.62, "two sides", color=RED)
        plain(stream, "A stream, with low and high")
        rows = data["rows"]
        steps = range(1, len(rows) + 1)
        stream.fill_between(
            steps, [row["low"] for row in rows], [row["high"] for row in rows], color=PALE[RED], linewidth=0
        )
        told = [(step, row["value"]) for step, row in zip(steps, rows, strict=True) if row["value"] is not None]
        stream.plot(*zip(*told, strict=True), color=RED, linewidth=1.8)
        stream.plot(steps, [row["truth"] for row in rows], color=INK, linewidth=1, linestyle=(0, (4, 2)))
        first = told[0][0]
        stream.text(first + 1, 88, f"no value before step {first}:\nthe count is too near its noise", color=QUIET)
        stream.text(42, 45, "dashes: exact", color=INK)
        stream.set(xlim=(1, len(rows)), ylim=(0, 102), xlabel="step", ylabel="mean")
    return figure
