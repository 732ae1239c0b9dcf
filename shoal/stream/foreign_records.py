"""Records in the contributions topic that shoal did not write: recognized, and left out.

Every message of shoal's carries the key `TOPIC|PARTITION` of the source partition that sent it. A record that is no
message and has no such key was written by somebody else: no message can be mistaken for it, and to leave it out loses
nothing, for messages are numbered. A record that is no message and has such a key may be one of a later version:
fail-stop.
"""

import re
from dataclasses import dataclass
from typing import Any

from shoal.models.errors import FailStop
from shoal.models.records import Message
from shoal.stream.machine import Record

OURS = re.compile(rb".+\|[0-9]+", re.DOTALL)
ROW, PARTIAL, CELL = 6, 2, 3  # fields


@dataclass(slots=True)
class Strays:
    """What was left out of a partition since it was taken over."""

    count: int = 0
    last: int = -1  # offset


def read_message(record: Record, where: str, strays: Strays) -> Message | None:
    """The message that a record holds; None, and noted, for one that shoal did not write.

    Raises:
        FailStop: it cannot be read, and may be shoal's all the same.
    """
    try:
        message = Message.decode(record.value or b"null")
        if _is_whole(message):
            return message
    except (ValueError, TypeError, LookupError):
        pass
    if record.key is None or not OURS.fullmatch(record.key):
        strays.count, strays.last = strays.count + 1, record.offset
        return None
    raise FailStop(
        f"{where}, offset {record.offset}: not a message that this version of shoal can read, though its key is that "
        "of one; start the version that wrote it, or find out who else writes there"
    )


def _is_whole(message: Message) -> bool:
    """Whether the fields are what `Message` says; what is inside of rows decides no acceptance."""
    plain: tuple[tuple[Any, type], ...] = (
        (message.topic, str), (message.partition, int), (message.number, int), (message.offset, int),
        (message.wall, int), (message.idle, bool), (message.contributions, dict), (message.partials, dict),
        (message.turn, int),
    )  # fmt: skip
    if not all(type(value) is kind for value, kind in plain) or message.partition < 0:
        return False
    if not isinstance(message.watermarks, dict | None):
        return False
    if not all(type(mark) in (int, type(None)) for mark in (message.watermarks or {}).values()):
        return False
    rows = all(set(map(len, rows)) <= {ROW} for rows in message.contributions.values())
    return rows and all(
        set(map(len, partials)) <= {PARTIAL} and all(len(flat) % CELL == 0 for _, flat in partials)
        for partials in message.partials.values()
    )
