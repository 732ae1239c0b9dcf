"""What a simulation is written as: JSON lines, or the feed of a transit agency (GTFS-realtime)."""

from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import groupby
from operator import itemgetter

import orjson

from shoal.agents.simulate.fleet import Fleet
from shoal.models.times import iso

SECOND = 1_000_000  # microseconds
KMH = 3.6  # km/h in a metre per second
Report = tuple[int, int, float, float, float]  # bus, second, latitude, longitude, km/h
Writer = Callable[[Fleet, Sequence[Report]], bytes]


def json_lines(fleet: Fleet, reports: Sequence[Report]) -> bytes:
    """Each report as an object on a line."""
    times = {at: iso(at * SECOND) for at in {report[1] for report in reports}}
    names, dumps = fleet.names, orjson.dumps
    return b"".join(
        dumps({"bus": names[who], "at": times[at], "lat": north, "lon": east, "speed": pace}) + b"\n"
        for who, at, north, east, pace in reports
    )


def feed_messages(fleet: Fleet, reports: Sequence[Report]) -> bytes:
    """For each second in which buses report, a feed message of these buses after its length.

    A feed has four bytes for a coordinate, which moves it by less than a metre, and its speeds are in m/s.
    """
    from google.protobuf.proto import serialize_length_prefixed  # whoever writes JSON should not wait for it
    from google.transit.gtfs_realtime_pb2 import FeedHeader, FeedMessage

    written = BytesIO()
    for at, of_second in groupby(reports, key=itemgetter(1)):
        message = FeedMessage()
        message.header.gtfs_realtime_version = "2.0"
        message.header.incrementality = FeedHeader.DIFFERENTIAL
        message.header.timestamp = at
        for who, _, north, east, pace in of_second:
            entity = message.entity.add(id=fleet.names[who])
            position = entity.vehicle.position
            position.latitude, position.longitude, position.speed = north, east, pace / KMH
            entity.vehicle.vehicle.id, entity.vehicle.timestamp = fleet.names[who], at
            entity.vehicle.trip.route_id = f"line-{fleet.line[who]:03d}"
        serialize_length_prefixed(message, written)
    return written.getvalue()
