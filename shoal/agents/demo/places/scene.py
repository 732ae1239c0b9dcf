"""The scene of places: how fast the buses of a city drive, by H3 cell and hour.

outcome     releases beside the truth, slot by slot
board       what a terminal shows meanwhile

The buses are simulated: nobody publishes where real people were, which is why there are maps like this one.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Self

import orjson
from rich.console import RenderableType

from shoal.agents.demo.places import board
from shoal.agents.demo.places.outcome import Found, final, found_in, summary
from shoal.agents.demo.progress import Due, Progress
from shoal.agents.demo.scene import Told
from shoal.agents.map.drawing import draw_map
from shoal.agents.map.releases import read_places
from shoal.agents.simulate.city import City
from shoal.agents.simulate.events import Trips, batches
from shoal.agents.simulate.truth import Truth, true_means
from shoal.models.config.durations import SECOND
from shoal.models.config.file import Config

METRIC, RESOLUTION, SLOT = "speed", 8, 3600
MORNING = 1_772_431_200  # 2026-03-02T06:00:00Z, a Monday
USERS, HOURS, RADIUS = 6_000, 4, 5.0

# The unit is a bus and an hour: what it did in one hour, in all cells together, costs epsilon = 1. A bus counts in four
# cells at most; who was where decides in which, and how many of its samples pay. A cell in which few buses count is not
# released.
CONFIG = Template("""\
# What `shoal demo --geo` ran: how fast buses drive, by place and hour.

[kafka]
brokers = "$brokers"
app = "shoal"
partitions = 2

[audit]
url = "sqlite:///shoal.db"

[privacy]
key_file = "shoal.key"
epsilon = 1.0                    # about all speeds of one bus in one hour

[[metric]]
name = "speed"
topic = "trips"
user = "bus"
value = "speed"
time = "at"
statistic = "slot-mean"
range = [0, 65]                  # km/h
slot = "1h"
cell = { h3 = 8, lat = "lat", lon = "lon" }
max_cells = 4                    # of a bus in an hour; what it did in others is left out
max_contributions = 64           # of a bus in a cell and hour; further ones are only counted
epsilon = 1.0
min_users = 20                   # a courtesy: whose number is known anyway
""")


@dataclass(frozen=True)
class Places:
    """See the module."""

    file: Path
    count: int
    users: int
    truth: dict[tuple[int, str], Truth]  # by end of the slot and cell
    events = "events of simulated buses"
    rate = 40_000.0

    @classmethod
    def open(cls, place: Path, users: int = USERS, hours: int = HOURS, seed: int = 0) -> Self:
        """Let buses drive, and find out how fast they were."""
        city = City(radius=RADIUS, resolution=RESOLUTION)
        trips = Trips(users, MORNING, MORNING + hours * SLOT, seed, city)
        file = place / "trips.jsonl"
        with file.open("wb") as written:
            for _, _, lines in batches(trips):
                written.write(lines)
        with file.open("rb") as read:
            truth = true_means(map(orjson.loads, read), slot=SLOT * SECOND, resolution=RESOLUTION)
        return cls(file, sum(one.samples for one in truth.values()), users, truth)

    def config(self, brokers: str) -> str:
        """One metric."""
        return CONFIG.substitute(brokers=brokers)

    def due(self, config: Config) -> Due:
        """Every cell of every slot in which a bus drove: a slot's releases come in pieces."""
        return {METRIC: dict(Counter(at for at, _ in self.truth))}

    def line(self, progress: Progress) -> str:
        """The slots that are there, and how good they are."""
        return board.line(self._found(progress))

    def board(self, progress: Progress) -> RenderableType:
        """Progress, and a row for each slot."""
        return board.board(progress, self._found(progress))

    def look_back(self, progress: Progress, place: Path, verdict: str) -> Told:
        """The map, and how near it is to the truth."""
        lines = (seen.raw for seen in progress.ordered())
        drawn = draw_map(read_places(lines, "releases", METRIC), place, "speed, km/h", verdict)
        found = self._found(progress)
        said = f"{self.count:,} events of {self.users:,} simulated buses"
        files = {name: Path(drawn[name]) for name in ("picture", "page")}
        return Told([said, *summary(found)], files, final(found))

    def _found(self, progress: Progress) -> list[Found]:
        return found_in(progress.releases.get(METRIC, []), self.truth)
