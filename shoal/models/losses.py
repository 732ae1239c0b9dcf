"""Accepted losses: records of a source that were gone before they were read, and that an operator gave up by name."""

from typing import Any, NamedTuple

import orjson

from shoal.models.times import iso, time_of_text


class Place(NamedTuple):
    """Where a loss begins and ends: at a state, which the digest of its mark names, and at the offset to read next.

    Where presence is protected, offsets tell how many records came. The ledger then has the offset sealed under the
    key; it is the end of the topic when the loss was accepted. And no record counts before the next beat behind it.
    """

    mark: str  # digest of the mark under the key
    topic_id: str  # of the topic that is read from then on
    first: int | None = None  # the first offset that was not read; None where presence is protected
    next: int | None = None  # None while it is sealed
    sealed: str | None = None  # the same under the key, where presence is protected
    beat: int | None = None  # in microseconds: likewise, the earliest beat before which no record counts

    def encode(self) -> str:
        """The place as the ledger keeps it."""
        said: dict[str, Any] = {"mark": self.mark, "topic_id": self.topic_id}
        if self.sealed is None:
            return orjson.dumps(said | {"first": self.first, "next": self.next}).decode()
        beat = {} if self.beat is None else {"beat": iso(self.beat)}
        return orjson.dumps(said | {"sealed": self.sealed} | beat).decode()

    @classmethod
    def decode(cls, text: str) -> "Place":
        """The place again, without what is sealed.

        >>> place = Place("f00d", "ab12", first=7, next=9)
        >>> Place.decode(place.encode()) == place
        True
        """
        said: dict[str, Any] = orjson.loads(text)
        beat = time_of_text(said["beat"]) if "beat" in said else None
        return cls(said["mark"], said["topic_id"], said.get("first"), said.get("next"), said.get("sealed"), beat)

    def words(self) -> str:
        """What is lost, in words.

        >>> Place("", "", first=7, next=9).words(), Place("", "", first=7, next=0).words()
        ('offsets 7 to 8', 'what followed offset 6, and offsets begin again: 0 is read next')
        >>> Place("", "", sealed="f00d", beat=0).words()
        'records that were not read, up to the next beat from 1970-01-01T00:00:00Z on'
        """
        if self.sealed is not None:
            named = "" if self.beat is None else f" from {iso(self.beat)} on"
            return f"records that were not read, up to the next beat{named}"
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
