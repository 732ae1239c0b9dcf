"""Vehicle positions of a transit feed (GTFS-realtime) as JSON events, with the field names of the specification.

A file holds one feed message, several one after the other, or several that each follow their length. Feeds repeat a
position until there is a newer one: a position with the same vehicle and time as that vehicle's last one is skipped.
Vehicle and time alone decide that, never a value. What else a feed tells, such as delays and alerts, is no event.

A position that has a speed and a bearing also has the velocity's parts, `east` and `north`: a mean of speeds and one of
bearings would not say which way, and how fast, vehicles go on average.
"""

import json
import math
from collections.abc import Iterator
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
import orjson
from google.protobuf.message import DecodeError, Message
from google.transit.gtfs_realtime_pb2 import FeedEntity, FeedHeader, FeedMessage, VehiclePosition

from shoal.agents.input.long_lines import LONGEST
from shoal.models.errors import InputError

MOST_OF_A_VARINT = 10  # bytes
VARINT, FIXED_64, WITH_LENGTH, FIXED_32 = 0, 1, 2, 5  # how the wire format ends a field
FIXED = {FIXED_64: 8, FIXED_32: 4}
PARTS = {
    "trip": ("trip_id", "route_id", "direction_id"),
    "vehicle": ("id", "label"),
    "position": ("latitude", "longitude", "bearing", "speed"),
}
ALONE = ("stop_id", "occupancy_percentage")


class Feed:
    """The vehicle positions of a file; iterate once: (number from 1, event)."""

    def __init__(self, file: BinaryIO, path: str, *, with_lengths: bool) -> None:
        self._file, self._path, self._with_lengths = file, path, with_lengths
        self._number = 0
        self._last: dict[str, int] = {}  # vehicle -> time of its last position

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Raises InputError where the file is no feed, or ends within a message."""
        try:
            for message in self._messages():
                yield from self._positions(message)
        except DecodeError:
            raise InputError(
                f"{self._path} is cut off or damaged after record {self._number}, so nothing after it can be read; "
                "copy or make it again"
            ) from None

    def _messages(self) -> Iterator[BinaryIO]:
        if not self._with_lengths:
            yield self._file
            return
        while (length := _next(self._file)) is not None:
            yield BytesIO(_taken(self._file, length))

    def _positions(self, message: BinaryIO) -> Iterator[tuple[int, bytes]]:
        time_of_feed = 0
        for field, content in _fields(message):
            if field == FeedMessage.HEADER_FIELD_NUMBER:
                time_of_feed = FeedHeader.FromString(content).timestamp
            elif field == FeedMessage.ENTITY_FIELD_NUMBER:
                entity = FeedEntity.FromString(content)
                if not entity.HasField("vehicle"):
                    continue
                self._number += 1
                time = entity.vehicle.timestamp or time_of_feed
                if not self._is_repeated(entity.vehicle.vehicle.id, time):
                    yield self._number, _event(entity.vehicle, time)

    def _is_repeated(self, vehicle: str, time: int) -> bool:
        if not (vehicle and time):
            return False
        repeated = self._last.get(vehicle) == time
        self._last[vehicle] = time
        return repeated


def _fields(message: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field that has a length, as header and entities have."""
    while (tag := _next(message)) is not None:
        wire_type = tag & 7
        if wire_type == WITH_LENGTH:
            yield tag >> 3, _taken(message, _varint(message))
        elif wire_type == VARINT:
            _varint(message)
        elif wire_type in FIXED:
            _taken(message, FIXED[wire_type])
        else:
            raise DecodeError


def _next(file: BinaryIO) -> int | None:
    """The tag or length that comes next; None at the end."""
    first = file.read(1)
    return _varint(file, first) if first else None


def _varint(file: BinaryIO, byte: bytes = b"") -> int:
    number = 0
    for shift in range(0, 7 * MOST_OF_A_VARINT, 7):
        byte = byte or _taken(file, 1)
        number |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return number
        byte = b""
    raise DecodeError


def _taken(file: BinaryIO, length: int) -> bytes:
    content = file.read(length) if length <= LONGEST else b""
    if len(content) < length:
        raise DecodeError
    return content


def _event(report: VehiclePosition, time: int) -> bytes:
    event: dict[str, Any] = {"timestamp": time} if time else {}
    event |= {part: given for part, names in PARTS.items() if (given := _given(getattr(report, part), names))}
    event |= _given(report, ALONE)
    position = event.get("position", {})
    if "speed" in position and math.isfinite(position.get("bearing", math.nan)):
        way, speed = math.radians(position["bearing"]), float(position["speed"])
        position |= {"east": np.float32(speed * math.sin(way)), "north": np.float32(speed * math.cos(way))}
    try:
        return orjson.dumps(event, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # an id that is no UTF-8 stays so, and bound refuses the record: replaced letters make one of two
        text = json.dumps(event, default=_as_it_stands, ensure_ascii=False)
        return text.encode("utf-8", "surrogateescape")


def _given(message: Message, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields that are there; numbers with the digits that a feed's four bytes have."""
    given = {name: getattr(message, name) for name in names if message.HasField(name)}
    return {name: np.float32(value) if type(value) is float else value for name, value in given.items()}


def _as_it_stands(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else float(value)
