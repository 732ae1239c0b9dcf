"""Records as they stand in topics, as the object that a schema describes, and where a record is open."""

from typing import Any

import orjson

MARK = b"\x00mark"
Entry = tuple[bytes | None, ...]


def objects(kind: str, entry: Entry) -> list[tuple[str, Any]]:
    """The schema's name and the record, of an entry of the golden corpus; nothing for what is binary."""
    match kind, entry:
        case ("file-releases" | "file-activations" | "file-dead-letters", (bytes(value),)):
            return [(kind.removeprefix("file-"), orjson.loads(value))]
        case ("dead-letters", (bytes(value),)):
            return [(kind, orjson.loads(value))]
        case ("releases" | "activations", (_, _, bytes(value), *_)):
            return [(kind, orjson.loads(value))]
        case ("messages", (_, bytes(value))):
            return [("contributions", orjson.loads(value))]
        case ("bound-changelog" | "release-changelog", (_, bytes(key), value)):
            return changelog(kind, key, value)
    return []


def changelog(name: str, key: bytes, value: bytes | None) -> list[tuple[str, Any]]:
    """An entry of a changelog: of bound its mark alone is JSON."""
    if name == "bound-changelog":
        return [] if key != MARK or value is None else [(name, orjson.loads(value))]
    if key.startswith(b"\x00") and key != MARK:
        return []  # the id of the topic, as text
    held = None if value is None else orjson.loads(value)
    if key == MARK:
        return [(name, {"kind": MARK.decode(), "key": None, "value": held})]
    return [(name, {"kind": chr(key[0]), "key": orjson.loads(key[1:]), "value": held})]


# Fields whose inner names are not the schema's: labels, groups, quantiles, cells. Their entries may come and go.
OPEN = frozenset({"quantiles", "c", "s", "m", "starts", "accounts", "watermarks", "clocks", "acted", "held"})
# Fields that a configuration may leave out, or a record need not have.
OPTIONAL = frozenset({"withheld", "nodes", "clip", "beat", "next", "active", "tick", "waiting"})
# Fields whose inside is a statistic's own business.
CLOSED = frozenset({"releaser"})
