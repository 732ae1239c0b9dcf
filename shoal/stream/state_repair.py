"""Repairs states for which an older version of shoal passed over messages.

Up to format 1 a worker whose configuration lacked a topic passed over that topic's messages, and its mark forgot how
far it had been read: the next message then had a number that nobody expected. All messages are still in the
contributions. So a state of that time in which a source partition was never heard is read again from the first message
on: what it has is skipped by its number, what it lacks counts now, and releases are those that would have been made.
Marks of later versions need none of this.
"""

from collections.abc import Mapping
from typing import Any

from shoal.models.errors import FailStop
from shoal.models.records import Message
from shoal.stream.clock import Clocks, SourceClock


class Rereading:
    """Up to which offset messages may be in the state although its position is before them."""

    def __init__(self, until: int = 0) -> None:
        self._until = until

    @classmethod
    def of(cls, where: str, mark: Mapping[str, Any], clocks: Clocks, known: Mapping[str, str]) -> "Rereading":
        """For a restored state, with the topics of those metrics of which it has something: label -> topic.

        Raises:
            FailStop: it has something of a topic and forgot how far that was read: to read again would count twice.
        """
        for label, topic in sorted(known.items()):
            if topic not in mark["clocks"]:
                raise FailStop(
                    f"{where}: its state has metric {label} and forgot how far topic {topic} was read, for a worker of "
                    "an older version wrote here with a configuration that lacked it; raise the version of its metrics"
                )
        unheard = any(source.number == 0 for topic in clocks.values() for source in topic.sources)
        begins = unheard and mark.get("format", 1) == 1
        return cls(mark.get("reread", mark["offset"] if begins else 0))

    def position(self, mark: Mapping[str, Any]) -> int:
        """The offset at which the partition reads on: the mark's, or 0 where all is read again."""
        return 0 if self._until and "reread" not in mark else int(mark["offset"])

    def skips(self, offset: int, message: Message, source: SourceClock) -> bool:
        """Whether the state has a message that is read again."""
        return 0 <= offset < self._until and message.number <= source.number

    def mark(self, position: int | None) -> dict[str, int]:
        """What the mark has to say as long as it is not over."""
        return {"reread": self._until} if (position or 0) < self._until else {}
