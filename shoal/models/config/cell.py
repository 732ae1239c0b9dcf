"""Keys of what is released per place and slot of time.

{ h3 = 8, lat = "lat", lon = "lon" }   the cell of an event: a hexagon of the H3 grid at that resolution
slot = "1h"                            every cell is released once, at the end of each slot
"""

from typing import Literal

from pydantic import Field

from shoal.models.config.section import Section

MOST_BINS = 1 << 13  # a release has eight numbers for each, and Kafka takes a megabyte
Cap = Literal["median", "optimal"]


class CellSection(Section):
    """`cell = { h3 = ..., lat = ..., lon = ... }` of a metric: where an event was."""

    h3: int = Field(..., ge=0, le=15, description="resolution of the H3 grid: 8 is 0.7 square kilometres a cell")
    lat: str = Field(..., min_length=1, description="field with the latitude in degrees, -90 to 90")
    lon: str = Field(..., min_length=1, description="field with the longitude in degrees, -180 to 180")
