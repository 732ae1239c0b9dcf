"""Six events on their way through the stages, driven as `shoal run` drives them: what each stage makes of them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from docs.generate.pictures.card import BLUE, GOLD, GREEN, GREY, PALE, RED, VIOLET, Data, card, empty
from shoal.agents.pictures import INK, QUIET
from shoal.models.config.file import load
from shoal.models.digests import FIRST, chain
from shoal.stream.file_run import FileRun, line_of
from shoal.stream.topic import plan_topic

CONFIGURATION = """
[privacy]
epsilon = 4
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "sum"
range = [0, 200]
grid = 200
epsilon = 1
max_contributions = 2
every = "1h"
"""
EVENTS = [
    ("ann", 31, "08:05"), ("bob", 12, "08:20"), ("ann", 900, "08:40"),
    ("ann", 20, "08:50"), ("bob", None, "08:55"), ("cem", 40, "09:10"),
]  # fmt: skip
KEY = bytes(range(32))  # of this picture, and of nothing else


def data() -> Data:
    """What bound sends and keeps, and what release makes of it."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "shoal.toml"
        file.write_text(CONFIGURATION)
        plan = plan_topic(load(file), "purchases", KEY, source_partitions=1, contributions_partitions=1)
    run = FileRun(plan)
    fates = []
    for offset, (customer, amount, at) in enumerate(EVENTS):
        event = {"customer": customer, "amount": amount, "at": f"2026-03-02T{at}:00Z"}
        before = run.bound.counters.copy()
        run.bound.process([line_of(offset, orjson.dumps(event))], offset + 1)
        fates.append([name for name, count in run.bound.counters.items() if count > before[name]])
    if (bound := run.bound.take(wall=0)) is None:
        raise ValueError("bound has nothing to send")
    ((_, message),) = bound.messages
    run.release.receive(message)
    run.release.work()
    if (released := run.release.take()) is None:
        raise ValueError("no hour is over")
    (release,) = released.releases
    body = orjson.loads(release.value)
    ((_, rows),) = message.partials.items()
    return {
        "fates": fates,
        "offset": bound.next_offset,
        "sums": [[hour, row[1], row[2]] for hour, (_, row) in zip(("08:00", "09:00"), rows, strict=True)],
        "dead": [orjson.loads(letter)["reason"] for letter in bound.dead_letters],
        "release": {name: body[name] for name in ("seq", "at", "value", "noise_sd", "samples")},
        "chain": chain(FIRST, release.value).hex()[:16],
    }


def draw(data: Data) -> Figure:
    """Four columns, with an arrow from each to the next."""
    below = "Sums of an hour: range 0 to 200, two purchases of a customer count, ε = 1. Made by the stages themselves."
    with card(12.6, 5.3, "The way of six events: what each stage keeps, sends and never sends", below,
              left=0.01, right=0.99, bottom=0.02, top=0.9) as figure:  # fmt: skip
        panel = figure.subplots()
        empty(panel)
        panel.set(xlim=(0, 12.6), ylim=(0, 4.4))
        _column(panel, 0.15, 3.15, "purchases", "source topic", GREY)
        _column(panel, 3.75, 2.75, "bound", "one transaction", BLUE)
        _column(panel, 6.95, 2.75, "release", "one transaction", RED)
        _column(panel, 10.15, 2.2, "audit", "SQL", GREEN)
        for start, end in ((3.3, 3.75), (6.5, 6.95), (9.7, 10.15)):
            panel.annotate(
                "", (end, 1.8), (start, 1.8), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.4}
            )
        for place, ((customer, amount, at), fate) in enumerate(zip(EVENTS, data["fates"], strict=True)):
            height = 3.15 - 0.5 * place
            said, color = _fate(fate, amount, at)
            shown = "null" if amount is None else str(amount)
            panel.text(0.3, height, f"{at}  {customer}  {shown:>4}", family="DejaVu Sans Mono", size=9, va="center")
            panel.text(2.08, height, said, color=color, size=8.5, va="center")
        (_, samples, total), (_, later, rest) = data["sums"]
        exact = total
        _lines(panel, 3.9, [
            ("sends, exact, summed over users:", QUIET), (f"08–09 h: {samples} samples, {total}", INK),
            (f"09–10 h: {later} sample, {rest}", INK), ("clock: event time is at 09:10", INK),
            ("keeps: samples of each user,", QUIET), (f"next offset {data['offset']}", INK),
            (f"dead letter: {data['dead'][0]}", GOLD),
        ])  # fmt: skip
        release = data["release"]
        noise = round(release["value"] - exact)
        told = f"noise_sd {release['noise_sd']:.0f}, samples {release['samples']}"
        _lines(panel, 7.1, [
            ("09:00 is over: the clock says so", QUIET), (f"exact sum {exact}", INK),
            (f"noise {noise:+d}, by the key", VIOLET), (f"release {release['seq']}: {release['value']:g}", RED),
            (told, RED), ("keeps: the open hour, sums,", QUIET), ("next offset", INK),
        ])  # fmt: skip
        _lines(panel, 10.3, [
            ("the same bytes,", INK), ("with their digest:", INK), (data["chain"], GREEN),
            ("charged before the", QUIET), ("first event: ε 1", QUIET),
        ])  # fmt: skip
    return figure


def _fate(names: list[str], amount: int | None, at: str) -> tuple[str, str]:
    """What became of an event, by the counters that it moved."""
    if "over_cap" in names:
        return "over the cap", GOLD
    if names:
        return "dead letter", GOLD
    if amount is not None and amount > 200:
        return "counts as 200", BLUE
    return ("counts" if at < "09" else "next hour"), BLUE


def _column(panel: Axes, left: float, width: float, name: str, what: str, color: str) -> None:
    shape = FancyBboxPatch((left, 0.1), width, 3.5, boxstyle="round,pad=0,rounding_size=0.1")
    shape.set(facecolor=PALE[color], edgecolor=color, linewidth=1.3, alpha=0.6)
    panel.add_patch(shape)
    panel.text(left + 0.05, 3.82, name, weight="bold", color=INK, size=11)
    panel.text(left + width - 0.05, 3.82, what, color=QUIET, size=9, ha="right")


def _lines(panel: Axes, left: float, lines: list[tuple[str, str]]) -> None:
    for place, (line, color) in enumerate(lines):
        panel.text(left, 3.25 - 0.43 * place, line, color=color, size=9, va="center")
