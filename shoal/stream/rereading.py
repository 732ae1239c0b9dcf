"""A way out for states of which an older version of shoal let messages pass.

Up to format 1 a worker whose configuration lacked a topic passed over that topic's messages, and its mark forgot how
far it had been read: the next message then had a number that nobody expected. All messages are still in the
contributions. So a state of that time in which a source partition was never heard is read again from the first message
on: what it has is skipped by its number, what it lacks counts now, and releases are those that would have been made.
Marks of later versions need none of this.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.models.errors import FailStop
from shoal.stream.clocks import Clocks


def reread_until(mark: Mapping[str, Any], clocks: Clocks, read: Iterable[str]) -> int:
    """Up to which offset messages may be in the state already although the position is before them; 0 for none."""
    if "reread" in mark:
        return int(mark["reread"])
    unheard = any(source.number == 0 for topic in read for source in clocks[topic].sources)
    return int(mark["offset"]) if unheard and mark.get("format", 1) == 1 else 0


def refuse_half_known(where: str, mark: Mapping[str, Any], states: Iterable[tuple[str, str]]) -> None:
    """Refuse a state that has something of a metric (topic, label), and forgot how far its topic was read.

    Raises:
        FailStop: to read again would count twice.
    """
    for topic, label in states:
        if topic not in mark["clocks"]:
            raise FailStop(
                f"{where}: its state has metric {label} and forgot how far topic {topic} was read, for a worker of an "
                "older version wrote here with a configuration that lacked it; raise the version of its metrics"
            )
