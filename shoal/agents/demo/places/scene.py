"""The scene of places: how fast the buses of a city drive, by H3 cell and hour.

The buses are simulated: nobody publishes where real people were, which is why there are maps like this one.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self

import orjson
from rich.console import RenderableType
from rich.text import Text

from shoal.agents.demo.places.outcome import SlotOutcome, final, hour, outcomes, quantile, summary
from shoal.agents.demo.progress import DemoProgress, Due
from shoal.agents.demo.scene import Conclusion, Scene
from shoal.agents.demo.view import board, plain_table
from shoal.agents.map.drawing import PAGE, PICTURE, draw_map
from shoal.agents.map.releases import read_places
from shoal.agents.simulate.city import City
from shoal.agents.simulate.events import Trips, batches
from shoal.agents.simulate.truth import Truth, true_means
from shoal.models.config.durations import SECOND
from shoal.models.config.file import Config

METRIC, RESOLUTION, SLOT = "speed", 8, 3600
MORNING = 1_772_431_200  # 2026-03-02T06:00:00Z, a Monday
USERS, HOURS, RADIUS = 6_000, 4, 5.0

# The unit is a bus and an hour: what it did in one hour, in all cells, costs epsilon = 1. A bus counts in four
# cells at most; who was where decides in which, and how many of its samples pay. A cell in which few buses count is not
# released.
METRICS = """\
epsilon = 1.0                    # about all speeds of one bus in one hour

[[metric]]
name = "speed"
topic = "trips"
user = "bus"
value = "speed"
time = "at"
statistic = "mean"
range = [0, 65]                  # km/h
slot = "1h"
cell = { h3 = 8, lat = "lat", lon = "lon" }
max_groups = 4                   # of a bus in an hour; what it did in others is left out
max_per_group = 64               # of a bus in a cell and hour; further ones are only counted
epsilon = 1.0
min_users = 20                   # a courtesy: whose number is known anyway
"""


@dataclass(frozen=True)
class PlacesScene(Scene):
    """Simulated buses, whose true mean speeds are known."""

    file: Path
    count: int
    users: int
    truth: dict[tuple[int, str], Truth]  # by end of the slot and cell
    events = "events of simulated buses"
    rate = 40_000.0
    title = "# What `shoal demo --geo` ran: how fast buses drive, by place and hour.\n"
    metrics = METRICS

    @classmethod
    def open(cls, folder: Path, users: int = USERS, hours: int = HOURS, seed: int = 0) -> Self:
        """Simulate the trips, write them into the folder, and compute their true means."""
        city = City(radius=RADIUS, resolution=RESOLUTION)
        trips = Trips(users, MORNING, MORNING + hours * SLOT, seed, city)
        file = folder / "trips.jsonl"
        with file.open("wb") as written:
            written.writelines(lines for _, _, lines in batches(trips))
        with file.open("rb") as read:
            truth = true_means(map(orjson.loads, read), slot=SLOT * SECOND, resolution=RESOLUTION)
        return cls(file, sum(cell.samples for cell in truth.values()), users, truth)

    def due(self, config: Config) -> Due:
        """Every cell of every slot in which a bus drove: a slot's releases come in pieces."""
        return {METRIC: dict(Counter(at for at, _ in self.truth))}

    def line(self, progress: DemoProgress) -> str:
        slots = self._outcomes(progress)
        if not slots:
            return ""
        errors = [error for slot in slots for error in slot.errors]
        text = f"released up to {hour(slots[-1].at)}: {len(errors):,} speeds"
        return f"{text}, half of them within {median(errors):.1f} km/h of the truth" if errors else text

    def board(self, progress: DemoProgress) -> RenderableType:
        slots = self._outcomes(progress)
        numbers = "cells released", "not released", "noise \N{PLUS-MINUS SIGN} km/h", "from the truth", "nine of ten"
        table = plain_table("hour until", *numbers)
        for slot in slots:
            table.add_row(hour(slot.at), f"{len(slot.errors):,}", f"{slot.not_released:,}", *_errors(slot))
        if not slots:
            table.add_row("waiting")
        return board(progress, f"released up to {hour(slots[-1].at)}" if slots else "", table)

    def conclude(self, progress: DemoProgress, folder: Path, verdict: str) -> Conclusion:
        lines = enumerate(progress.ordered())
        drawn = {"picture": folder / PICTURE, "page": folder / PAGE}
        with drawn["picture"].open("wb") as picture, drawn["page"].open("wb") as page:
            draw_map(read_places(lines, "releases", METRIC), picture, page, "speed, km/h", verdict)
        slots = self._outcomes(progress)
        first = f"{self.count:,} events of {self.users:,} simulated buses"
        return Conclusion([first, *summary(slots)], drawn, final(slots))

    def _outcomes(self, progress: DemoProgress) -> list[SlotOutcome]:
        return outcomes(progress.releases.get(METRIC, []), self.truth)


def _errors(slot: SlotOutcome) -> list[Text | str]:
    if not slot.errors:
        return []
    nearer = Text(f"{median(slot.errors):.1f}", "bold cyan")
    return [f"{median(slot.margins):.1f}", nearer, f"{quantile(slot.errors, 0.9):.1f}"]
