"""Feeds of GTFS-realtime, as a transit agency would write them."""

from collections.abc import Iterable
from io import BytesIO
from math import isnan
from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.proto import serialize_length_prefixed
from google.transit.gtfs_realtime_pb2 import FeedMessage


def report(vehicle: str | None, time: int | None, **position: float) -> dict[str, Any]:
    """A vehicle position with these fields, named as the specification names them."""
    named = {} if vehicle is None else {"vehicle": {"id": vehicle}}
    written = {name: "NaN" if isnan(number) else number for name, number in position.items()}
    timed = {} if time is None else {"timestamp": time}
    return {**named, **timed, "position": {"latitude": 51.5, "longitude": -0.125, **written}}


def snapshot(reports: Iterable[dict[str, Any]], *, time: int | None = None, **others: Any) -> Any:
    """A feed message of these positions, after other entities."""
    header = {"gtfs_realtime_version": "2.0", **({} if time is None else {"timestamp": time})}
    entities = [{"id": f"other {name}", name: content} for name, content in others.items()]
    entities += [{"id": str(number), "vehicle": one} for number, one in enumerate(reports)]
    return ParseDict({"header": header, "entity": entities}, FeedMessage())


def after_lengths(messages: Iterable[Any]) -> bytes:
    """The messages, each after its length."""
    written = BytesIO()
    for message in messages:
        serialize_length_prefixed(message, written)
    return written.getvalue()
