"""A city: a disc on the globe, in cells of one H3 resolution."""

import math
from dataclasses import dataclass

import numpy as np

KM_PER_DEGREE = 111.195  # of latitude
CITIES = {
    "amsterdam": (52.3731, 4.8926),
    "berlin": (52.5200, 13.4050),
    "lagos": (6.5244, 3.3792),
    "london": (51.5074, -0.1278),
    "melbourne": (-37.8136, 144.9631),
    "mumbai": (19.0760, 72.8777),
    "surat": (21.1702, 72.8311),
    "toronto": (43.6532, -79.3832),
}
MOST_NORTHERN = 70.0
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True)
class City:
    """The disc in which the buses drive."""

    lat: float = CITIES["london"][0]
    lon: float = CITIES["london"][1]
    radius: float = 9.0  # km
    resolution: int = 8

    @property
    def hours_ahead(self) -> int:
        """Hours ahead of UTC, by the sun: rush hours go by them."""
        return round(self.lon / 15)

    def place(self, east: Floats, north: Floats) -> tuple[Floats, Floats]:
        """Latitude and longitude of points this many km from the centre; beyond the date line the longitude goes on."""
        lon = self.lon + east / (KM_PER_DEGREE * math.cos(math.radians(self.lat)))
        return self.lat + north / KM_PER_DEGREE, lon

    def offset(self, lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
        """How many km east and north of the centre.

        >>> east, north = City(lat=10.0, lon=179.9).offset(np.array([10.0]), np.array([-179.9]))
        >>> east.round(1).tolist(), north.tolist()
        ([21.9], [0.0])
        """
        turn = (lon - self.lon + 180) % 360 - 180
        return turn * KM_PER_DEGREE * math.cos(math.radians(self.lat)), (lat - self.lat) * KM_PER_DEGREE


def find_city(text: str) -> tuple[float, float]:
    """Latitude and longitude of a city's name, or of `LAT,LON`.

    >>> find_city("52.5,13.4"), find_city("Surat")
    ((52.5, 13.4), (21.1702, 72.8311))

    Raises:
        ValueError: neither; says what would be.
    """
    if text.lower() in CITIES:
        return CITIES[text.lower()]
    try:
        lat, lon = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{text!r} is no city here; say LAT,LON or one of: {', '.join(CITIES)}") from None
    if not (abs(lat) <= MOST_NORTHERN and abs(lon) <= 180):
        raise ValueError(f"{text!r}: no bus drives there; latitudes -70 to 70, longitudes -180 to 180")
    return lat, lon
