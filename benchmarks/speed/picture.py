"""Bars of events per second of processor time, of everybody in the table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from benchmarks.speed import summary
from benchmarks.speed.subjects import KERNEL_LANE, PEER, RAW, STREAMS, TWIN_LANE
from docs.generate.pictures.card import BLUE, GOLD, GREEN, GREY, Data, card, svg
from shoal.agents.pictures import INK, QUIET

COLOURS = {RAW: GREY, KERNEL_LANE: BLUE, TWIN_LANE: GREEN, PEER: GOLD}
HEIGHT = 0.3  # inches of a bar, with what is around it


@dataclass(frozen=True)
class Bars:
    """A picture as `docs/generate/pictures/card.py` draws it."""

    kept: Mapping[str, Any]

    def data(self) -> Data:
        """A bar for each line of the table."""
        found = self.kept["throughput"]["data"]
        bars = []
        for key, subject in found["subjects"].items():
            spread = summary.spread(found["rounds"], key, summary.by_cpu)
            if spread is not None:
                bars.append({"label": subject["label"], "kind": subject["kind"], "rate": list(spread)})
            if key == STREAMS and spread is not None:
                late = summary.spread(found["rounds"], key, lambda run: summary.by_cpu(summary.warm(run)))
                assert late is not None
                bars.append({"label": "the same, warm: its last quarter", "kind": subject["kind"], "rate": list(late)})
        return {"bars": bars}

    def draw(self, data: Data) -> Figure:
        """Median as a bar, range as a line over it."""
        bars = data["bars"]
        height = 1.6 + HEIGHT * len(bars)
        below = "thousands, for the worker's process; a line from the least to the greatest of all rounds"
        with card(9.5, height, "Events per second of processor time", below, left=0.42, right=0.9) as figure:
            panel = figure.subplots()
            widest = max(bar["rate"][2] for bar in bars)
            for place, bar in enumerate(bars):
                centre, least, most = bar["rate"]
                panel.barh(place, centre / 1000, height=0.68, color=COLOURS[bar["kind"]])
                panel.plot([least / 1000, most / 1000], [place, place], color=INK, linewidth=1)
                at = (max(centre, most) + widest / 80) / 1000
                panel.text(at, place, summary.short(centre / 1000), va="center", size=9, color=INK)
            panel.set_yticks(range(len(bars)), [bar["label"].replace("`", "") for bar in bars], size=9)
            panel.invert_yaxis()
            panel.tick_params(axis="y", length=0)
            panel.grid(axis="x", color="#eceff2", linewidth=0.8)
            panel.set_axisbelow(True)
            panel.set_xlim(0, widest / 1000 * 1.02)
            panel.tick_params(axis="x", colors=QUIET)
        return figure


def draw(kept: Mapping[str, Any]) -> str:
    """The text of the file."""
    return svg(Bars(kept))
