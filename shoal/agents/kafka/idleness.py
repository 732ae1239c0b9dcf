"""Whether a partition has nothing more to read, decided from fetch responses alone."""

from aiokafka import TopicPartition


class Idleness:
    """Decides from fetch responses whether a partition is at its high watermark.

    aiokafka has one fetch in flight to a node, and drops a response whose fetch began elsewhere than the present
    position. So a second response at an unchanged position answers a fetch that was sent after the first response
    came, from this position; if its high watermark is the position, the partition was idle when the first one came.
    """

    def __init__(self) -> None:
        self._first: dict[TopicPartition, tuple[int, int]] = {}

    def at(self, tp: TopicPartition, position: int, highwater: int | None, responded: int | None) -> int | None:
        """Take in the last response's high watermark and time; return the wall time (ms) of idleness, or None."""
        if responded is None or position != highwater:
            self._first.pop(tp, None)
            return None
        first = self._first.get(tp)
        self._first[tp] = (position, responded)
        return first[1] if first and first[0] == position and first[1] != responded else None
