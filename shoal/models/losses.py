"""Accepted losses: records of a source that were gone before they were read, and that an operator gave up by name."""

from typing import Any, NamedTuple

import orjson

from shoal.models.times import iso, time_of_text


class Place(NamedTuple):
    """Where a loss begins and ends.

    It begins at a state, which the digest of its mark names. It ends at an offset; or at a beat if presence is
    protected, for offsets tell how many records came.
    """

    mark: str  # digest of the mark under the key
    topic_id: str  # of the topic that is read from then on
    first: int | None = None  # the first offset that was not read; None where presence is protected
    next: int | None = None  # the offset to read next
    beat: int | None = None  # in microseconds: no record before a beat of this time or a later one counts

    def encode(self) -> str:
        """The place as the ledger keeps it."""
        said = {"mark": self.mark, "topic_id": self.topic_id}
        if self.beat is not None:
            return orjson.dumps(said | {"beat": iso(self.beat)}).decode()
        return orjson.dumps(said | {"first": self.first, "next": self.next}).decode()

    @classmethod
    def decode(cls, text: str) -> "Place":
        """The place again.

        >>> place = Place("f00d", "ab12", first=7, next=9)
        >>> Place.decode(place.encode()) == place
        True
        """
        said: dict[str, Any] = orjson.loads(text)
        beat = said.get("beat")
        found = None if beat is None else time_of_text(beat)
        return cls(said["mark"], said["topic_id"], said.get("first"), said.get("next"), found)

    def words(self) -> str:
        """What is lost, in words.

        >>> Place("", "", first=7, next=9).words(), Place("", "", first=7, next=0).words()
        ('offsets 7 to 8', 'what followed offset 6, and offsets begin again: 0 is read next')
        >>> Place("", "", beat=0).words()
        'records before the first beat from 1970-01-01T00:00:00Z on'
        """
        if self.beat is not None:
            return f"records before the first beat from {iso(self.beat)} on"
        first, following = self.first or 0, self.next or 0
        if following > first:
            return f"offsets {first} to {following - 1}"
        return f"what followed offset {first - 1}, and offsets begin again: {following} is read next"


class AcceptedLoss(NamedTuple):
    """A row of the ledger about one partition of a source."""

    id: int
    topic: str
    partition: int
    place: Place
    who: str
    at: str

    def words(self) -> str:
        """What is lost, and who accepted it when."""
        return f"{self.topic}[{self.partition}]: {self.place.words()} are lost; accepted by {self.who} at {self.at}"
