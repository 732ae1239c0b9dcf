"""Keys of what is released per place and slot of time.

{ h3 = 8, lat = "lat", lon = "lon" }   the cell of an event: a hexagon of the H3 grid at that resolution
slot = "1h"                            every cell is released once, at the end of each slot
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from shoal.models.config.section import Section
from shoal.models.extras import hexagons

MOST_BINS = 1 << 13  # a release has eight numbers for each, and Kafka takes a megabyte
Cap = Literal["median", "optimal"]


class CellSection(Section):
    """`cell = { h3 = ..., lat = ..., lon = ... }` of a metric: where an event was."""

    h3: int = Field(..., ge=0, le=15, description="resolution of the H3 grid: 8 is 0.7 square kilometres a cell")
    lat: str = Field(..., min_length=1, description="field with the latitude in degrees, -90 to 90")
    lon: str = Field(..., min_length=1, description="field with the longitude in degrees, -180 to 180")

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse names that no event's cell has.

        Raises:
            ValueError: the name of one.
        """
        if not names:
            return
        h3 = hexagons()
        for name in names:
            is_cell = h3.is_valid_cell(name) and name == h3.int_to_str(h3.str_to_int(name))
            if not is_cell or h3.get_resolution(name) != self.h3:
                raise ValueError(
                    f"groups has {name!r}, which is no cell of resolution {self.h3}; write H3 indices as releases do"
                )
