"""Records that are known to be JSON objects."""

from typing import Any

from shoal.models.events import parse


def parsed(raw: bytes) -> dict[str, Any]:
    """The event of a record."""
    event = parse(raw)
    assert isinstance(event, dict)
    return event
